"""Writes the figures of README and docs into their text, each from its result file.

    python benchmarks/claims.py            # after results changed: write what follows from them
    python benchmarks/claims.py --check    # write nothing; exit status 1 when a page says otherwise

A figure stands in the text between two comments, ``<!--=name-->0.851<!--/-->``, and the comment
``<!-- figures`` at the end of the page says where it comes from, one row each::

    name | file > key > 0 > system=bm25 & k=5 > mean | {:.3f}

The file is one of benchmarks/results. A step of the path is a key, an index, the one row of a list
in which ``field=value`` or ``field~part of the value``, ``*`` (all rows, or with conditions those
that meet them), or at the end ``max``, ``min``, ``mean``, ``×100`` (or another number), or ``re``
with a pattern whose group is a number in a text. `` ÷ `` between two paths is their ratio. The
format is Python's; a list fills its fields in order, a dictionary by name. Where a fence stands
between the comments, the value is what the fence holds: a line of output, or several.

What looks like a measurement and is not generated is an error, without exception:

- a figure is a number with a decimal point, a percentage, two numbers in brackets, a number with
  "×" or "times", or one with a unit of time below a minute or of memory;
- it is one in prose, in tables, in the comments of Python examples, and in what a fence without a
  language or a console fence shows as output. Code is none, unless it is nothing but a figure:
  settings are written as settings, such as ``k1=0.9``, and so is what goes in (csv, json, text);
- versions (1.2.3, Python 3.11, Apache-2.0, CC BY 4.0) and nominal levels ("at 5 %", "95 %
  interval") are none.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import mean
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
# Pages that are written whole from their results, and what writes them without measuring.
WRITTEN = {
    "coverage.md": "benchmarks/coverage/run.py --redraw",
    "neighbours.md": "benchmarks/neighbours/run.py --page",
    "upstream.md": "benchmarks/upstream/run.py --page",
    "results.md": "benchmarks/reproduce/run.py --redraw",
    "validity.md": "benchmarks/validity/run.py --redraw",
    "licences.md": "",  # of what is installed: benchmarks/packaging/licences.py
}
WIDTH = 100

MARK = re.compile(r"<!--=(?P<name>\w+)-->(?P<shown>(?:(?!<!--).)*)<!--/-->", flags=re.DOTALL)
TABLE = re.compile(r"<!-- figures\n(?P<rows>.*?)\n-->", flags=re.DOTALL)
START = re.compile(r"^[ >]*(?:[-*] |\d+\. )?<!--=\w+-->(?!\n)", flags=re.MULTILINE)
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", flags=re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
QUIET = re.compile(r"<!--.*?-->|\]\([^)\s]*\)|https?://\S+", flags=re.DOTALL)
CONSTANT = re.compile(
    r"\d+(?:\.\d+){2,}|Python \d\.\d+|\b[A-Za-z]\w*-\d\.\d|CC BY \d\.\d"
    r"|\bat (?:5|95) ?%|\b95 ?% (?=interval|band)"
)
NUMBER = r"[+−-]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
FIGURE = re.compile(
    rf"\[{NUMBER}, {NUMBER}\]"
    rf"|(?<![\w.@]){NUMBER}(?:\s?(?:%|×)|\s(?:µs|ns|ms|s|seconds?|bytes|[kMGT]B|times)\b)"
    r"|(?<![\w.@])[+−-]?\d*\.\d+"
)
REDUCE = {"max": max, "min": min, "mean": mean}
UNREADABLE = (KeyError, IndexError, ValueError, TypeError, AttributeError, OSError)


class Problem(NamedTuple):
    """What a page says and its results do not."""

    page: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.what}"


@cache
def result(name: str) -> object:
    """Return a result file."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def fits(row: object, conditions: str) -> bool:
    """Whether a row of a list meets conditions such as ``system=bm25 & what~part``."""
    for condition in filter(None, conditions.split(" & ")):
        field, sign, wanted = re.fullmatch(r"([^=~]+)([=~])(.*)", condition).groups()
        there = str(row.get(field)) if isinstance(row, dict) else str(row)
        if there != wanted if sign == "=" else wanted not in there:
            return False
    return True


def among(rows: list, key: str) -> object:
    """Go one step down in a list."""
    if key.startswith("*"):
        return [row for row in rows if fits(row, key[2:])]
    if key in REDUCE:
        return REDUCE[key](rows)
    if key.isdigit():
        return rows[int(key)]
    found = [row for row in rows if fits(row, key)]
    if len(found) != 1:
        raise KeyError(f"{len(found)} rows fit {key!r}, not 1")
    return found[0]


def step(value: object, key: str) -> object:
    """Go one step down; KeyError says what is not there."""
    if isinstance(value, dict) and key in value:
        return value[key]
    if isinstance(value, list) or (isinstance(value, dict) and key in (*REDUCE, "*")):
        return among(value if isinstance(value, list) else list(value.values()), key)
    if key.startswith("×"):
        return float(key[1:]) * value
    if isinstance(value, str) and (there := re.search(key.removeprefix("re "), value)):
        return float(there[1].replace(",", ""))
    raise KeyError(f"no {key!r} in {str(list(value) if isinstance(value, dict) else value)[:200]}")


def at(path: str) -> object:
    """Return what a path names in its file."""
    name, *keys = path.strip().split(" > ")
    value, every = result(name), False
    for key in keys:
        spread = every and key not in REDUCE
        value = [step(inner, key) for inner in value] if spread else step(value, key)
        every = spread or key.startswith("*")
    return value


def text_of(value: object, form: str) -> str:
    """Return a value as the page shows it, with the signs of the field."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        shown = form.format(**value)
    else:
        shown = form.format(*value) if isinstance(value, list) else form.format(value)
    return re.sub(r"-(?=[\d.])", "−", re.sub(r"(?<=\d)%", " %", shown))


def fenced(value: object) -> str:
    """Return output as a fence: a line of it folded, several as they are."""
    if isinstance(value, str):
        value = textwrap.wrap(value, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(["", "```", *value, "```", ""])


class Page:
    """The text of a page, its figures, and what is wrong with them."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.problems: list[Problem] = []
        self.rows: dict[str, tuple[int, str, str]] = {}
        for table in TABLE.finditer(text):
            start = self.line(table.start()) + 1
            for number, row in enumerate(table["rows"].split("\n"), start):
                parts = [part.strip() for part in row.split(" | ")]
                if len(parts) == 3:
                    self.rows[parts[0]] = (number, parts[1], parts[2])
                else:
                    self.problems.append(Problem(name, number, f"not name | path | format: {row}"))

    def line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def add(self, at: int, what: str) -> None:
        self.problems.append(Problem(self.name, self.line(at), what))

    def figure(self, mark: re.Match[str]) -> str:
        """Return the figure of a mark as its result has it, and note where the text differs."""
        name, before = mark["name"], mark["shown"]
        if name not in self.rows:
            self.add(mark.start(), f"no figure is named {name}")
            return mark[0]
        number, path, form = self.rows[name]
        try:
            values = [at(one) for one in path.split(" ÷ ")]
            value = values[0] if len(values) == 1 else values[0] / values[1]
            shown = fenced(value) if before.startswith("\n```") else text_of(value, form)
        except UNREADABLE as error:
            self.problems.append(Problem(self.name, number, f"{name}: {error}"))
            return mark[0]
        if shown != before:
            stated, found = before.strip(), shown.strip()
            self.add(mark.start(), f"{name}: {stated!r} in the text, {found!r} in the result")
        return f"<!--={name}-->{shown}<!--/-->"

    def written(self) -> str:
        """Return the text with its figures as the results have them."""
        after = MARK.sub(self.figure, self.text)
        marks = {mark.start(): mark["name"] for mark in MARK.finditer(self.text)}
        for name in self.rows.keys() - set(marks.values()):
            self.problems.append(Problem(self.name, self.rows[name][0], f"nothing shows {name}"))
        for opening in re.finditer(r"<!--=", self.text):
            if opening.start() not in marks:
                self.add(opening.start(), "a mark without its end")
        for start in START.finditer(self.text):
            self.add(start.end(), "a line that begins with a mark is not read as Markdown")
        return after

    def loose(self) -> Iterator[Problem]:
        """Yield the figures that nothing generates."""
        text = FENCE.sub(outputs, TABLE.sub(blank, MARK.sub(blank, self.text)))
        text = CODE.sub(lambda m: m[0] if FIGURE.fullmatch(m[1].strip()) else blank(m), text)
        text = CONSTANT.sub(blank, QUIET.sub(blank, text))
        for figure in FIGURE.finditer(text):
            what = f"{figure[0]!r} is not generated from a result"
            yield Problem(self.name, self.line(figure.start()), what)


def blank(match: re.Match[str]) -> str:
    """Return as many spaces and line ends, so that lines keep their numbers."""
    return re.sub(r"[^\n]", " ", match[0])


def outputs(fence: re.Match[str]) -> str:
    """Return a fence without what goes in."""
    language, body = fence["language"], fence["body"]
    if language == "console":  # commands go in, other lines come out
        body = re.sub(r"^\$ (?:.*\\\n)*.*", blank, body, flags=re.MULTILINE)
    elif language == "python":
        body = re.sub(r"^[^#\n]*", blank, body, flags=re.MULTILINE)
    elif language:
        body = re.sub(r"[^\n]", " ", body)
    return f"   {' ' * len(language)}\n{body.replace('`', ' ')}   "


def check(name: str, text: str) -> list[Problem]:
    """Return all that is wrong with the figures of a page, in its order."""
    page = Page(name, text)
    page.written()
    return sorted([*page.problems, *page.loose()], key=lambda problem: problem.line)


def pages() -> list[Path]:
    """Return the pages whose text is written by hand."""
    docs = sorted((ROOT / "docs").glob("*.md"))
    return [ROOT / "README.md", *(path for path in docs if path.name not in WRITTEN)]


def write() -> None:
    """Write all pages from the results there are."""
    for name, command in WRITTEN.items():
        script = ROOT / command.partition(" ")[0]
        if script.is_file() and (ROOT / "docs" / name).exists():
            print(f"docs/{name}: python {command}", flush=True)
            words = [sys.executable, *command.split()]
            subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    for path in pages():
        before = path.read_text(encoding="utf-8")
        if (after := Page(path.name, before).written()) != before:
            path.write_text(after, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: written")


def main() -> int:
    parser = argparse.ArgumentParser(description="Figures of README and docs, from their results.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args().check:
        write()
    problems = []
    for path in pages():
        problems += check(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    print(*problems, sep="\n", end="\n" if problems else "")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
