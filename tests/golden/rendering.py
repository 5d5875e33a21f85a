"""What every renderer makes of a report, without what differs from machine to machine."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from rag_sourcebias.kinds import read_report
from rag_sourcebias.report.render import markdown, page, print_report, visible_report

FOLDER = Path(__file__).parent / "reports"
NAMES = sorted(file.name.removesuffix(".json.gz") for file in FOLDER.glob("*.json.gz"))
#: One of each kind is compared word by word; the others are stored for what else is tested.
SHOWN = (
    "answers-several", "debias-full", "explain-clear", "judged-answers", "pairs-full", "skew-full",
    "style-full",
)  # fmt: skip
WIDTH = 100

_STYLE = re.compile(r"<style>.*?</style>|<script>.*?</script>|; script-src '[^']*'", re.DOTALL)
_PICTURE = re.compile(r"<svg.*?</svg>", re.DOTALL)
_WORDS = re.compile(r"<(text|title(?= id=)|desc)[^>]*>(.*?)</\1>", re.DOTALL)
_BETWEEN = re.compile(r">\s+<")
_TAG = re.compile(r"(<(?:section|h[1-6]|article|tr|li|div|p|details|figure|dl|table)\b)")


def _words(picture: re.Match[str]) -> str:
    """Keep what a picture says; where its lines are is tested elsewhere."""
    said = (" ".join(found[1].split()) for found in _WORDS.findall(picture[0]))
    return f"\n[picture: {' | '.join(filter(None, said))}]"


def html(text: str) -> str:
    """Return a page without style sheet, script, lines of pictures and blanks between elements."""
    text = _PICTURE.sub(_words, _STYLE.sub("", text))
    text = _BETWEEN.sub("><", re.sub(r"[ \t\n]+", " ", text).replace("> <", "><"))
    return _TAG.sub(r"\n\1", text).strip() + "\n"


def rendered(name: str) -> dict[str, str]:
    """Return every output of a stored report, by the name of its file."""
    report = read_report(FOLDER / f"{name}.json.gz")
    document = visible_report(report).page()
    terminal = io.StringIO()
    print_report(report, Console(file=terminal, width=WIDTH, emoji=False, color_system=None))
    lines = (line.rstrip() for line in terminal.getvalue().splitlines())
    return {
        f"{name}.html": html(page(document)),
        f"{name}.md": markdown(document),
        f"{name}.txt": "\n".join(lines) + "\n",
    }


def write(names: list[str]) -> None:
    """Store the outputs of reports: for an improvement that somebody has looked at."""
    for name in names:
        for file, text in rendered(name).items():
            (FOLDER / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    import sys

    write(sys.argv[1:] or list(SHOWN))
