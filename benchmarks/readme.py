"""What the commands and examples of README and docs print, for the figures in their text.

    python benchmarks/readme.py [NAME …] [--data FOLDER]

Runs the commands below as a user would, and the Python examples of pages that show their output,
and keeps what they printed and the reports they wrote, without values per query, in
benchmarks/results/readme.json. `python benchmarks/claims.py` then writes the figures into the text.
Named entries are run again and the others kept; every entry is written as soon as it is finished.
About five minutes on two quiet cores; the first time `debias` takes 20 more, to encode NFCorpus.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = Path(__file__).parent / "results" / "readme.json"
MINILM = "all-MiniLM-L6-v2"
COMMANDS = {
    "source": f"audit source --sample --retriever bm25 --retriever dense:{MINILM} --report report",
    "interval": "interval --sample --report report",
    "style": f"audit style --sample --encoder {MINILM} --report report",
    "answers": f"audit answers {{data}}/evouna/NQ.json.gz --fit-on {{data}}/evouna/TQ.json.gz "
    f"--encoder {MINILM} --report report",
    "debias": f"debias {{data}}/nfcorpus --split train --unseen --encoder {MINILM} "
    "--output parity.json --on {data}/nfcorpus:dev --on {data}/nq-utd --report report",
}
PAGES = ("quick-start.md", "concepts.md", "statistics.md", "extending.md")
EXAMPLE = re.compile(r"```python\n(.*?)```(\n\n(?:<!--=\w+-->\n)?```\n)?", flags=re.DOTALL)
LONGEST = 12  # lists beyond are values per query, pair or resample


def brief(value: object) -> object:
    """Return a report without what it holds per query; of an interval, its three numbers."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        if {"estimate", "lower", "upper"} <= value.keys():
            value = {key: value[key] for key in ("estimate", "lower", "upper")}
        kept = {key: brief(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner is not None}
    if isinstance(value, list):
        return None if len(value) > LONGEST else [brief(inner) for inner in value]
    return value


def ran(command: str, data: Path) -> dict[str, object]:
    """Return what a command prints, without tables, and its report."""
    program = Path(sys.executable).parent / "rag-sourcebias"
    words = [word.format(data=data) for word in command.split()]
    known = {**os.environ, "COLUMNS": "1000", "NO_COLOR": "1", "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [program, *words], cwd=folder, env=known, stdout=subprocess.PIPE, text=True, check=True
        )
        report = json.loads(Path(folder, "report", "report.json").read_text(encoding="utf-8"))
    lines = [
        line for line in done.stdout.splitlines() if re.search("[a-z]", line) and "   " not in line
    ]
    shown = command.replace("{data}", "data")
    return {"command": f"rag-sourcebias {shown}", "lines": lines, "report": brief(report)}


def printed(page: str) -> dict[str, object]:
    """Return what the examples of a page print, where the page shows it."""
    examples = EXAMPLE.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    while not examples[-1][1]:
        examples.pop()
    names: dict[str, object] = {}
    found = []
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for code, shown in examples:
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(code, f"docs/{page}", "exec"), names)
            if shown:
                found.append(out.getvalue().splitlines())
    return {"printed": found}


def main() -> None:
    sys.path.remove(str(Path(__file__).parent))  # coverage/ beside this file is not the package
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*COMMANDS, *PAGES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    near = ROOT.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=os.environ.get("RAG_SOURCEBIAS_DATA", near))
    options = parser.parse_args()
    if unknown := set(options.names) - set(names):
        parser.error(f"no entry named {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for name in options.names or names:
        print(name, file=sys.stderr, flush=True)
        entry = ran(COMMANDS[name], options.data.resolve()) if name in COMMANDS else printed(name)
        kept = json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else {}
        kept[name] = entry
        TARGET.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
