"""Do the shapes that the papers report appear on our data?

    python benchmarks/reproduce/run.py [--only ID …] [--list] [--run] [--output FILE]

One YAML file per table or figure in this folder says what was published, where our figures come
from and what they are held to (see entries.py; a new file needs no change here). Every check is
first made on the published figures themselves, where it names a shape: a shape that the paper does
not have is no shape to ask of us. Prints one line per check: OK, OKish (within the wider
tolerance), FAIL, or SKIPPED with the reason. Writes benchmarks/results/reproduce.json. Exit status
1 when a check fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from checks import SHAPES, verdict
from entries import RESULTS, Check, Entry, NotMadeError, Source, load, read_entry

from rag_sourcebias.audit.environment import environment

HERE = Path(__file__).resolve().parent


def entries(only: Iterable[str] = (), folder: Path = HERE) -> list[Entry]:
    files = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    unknown = [name for name in only if name not in files]
    if unknown:
        raise SystemExit(f"no entry {', '.join(unknown)}; there are {', '.join(files)}")
    return [read_entry(files[name]) for name in (list(only) or files)]


def judged(entry: Entry, *, results: Path = RESULTS) -> list[dict]:
    """One row per check and series of ours, and per shape and published series."""
    rows = []
    for check in entry.checks:
        if check.skip:
            rows.append(line(entry, check, ", ".join(check.series), "SKIPPED", check.skip))
            continue
        for name in check.series:
            try:
                series = load(entry.ours[name], results=results)
            except NotMadeError as error:
                rows.append(line(entry, check, name, "SKIPPED", str(error)))
                continue
            found, numbers = verdict(check, series, entry.published)
            why = f"{numbers} ({series.note})" if series.note else numbers
            rows.append(line(entry, check, name, found, why))
    return rows


def published(entry: Entry) -> list[dict]:
    """The shapes that are asked of us, on the paper's own figures."""
    rows = []
    for check in entry.checks:
        if check.kind in SHAPES and not check.skip:
            for name, series in entry.published.items():
                found, numbers = verdict(check, series, entry.published)
                rows.append(line(entry, check, f"published, {name}", found, numbers))
    return rows


def line(entry: Entry, check: Check, series: str, found: str, why: str) -> dict:
    return {
        "entry": entry.id,
        "check": check.kind,
        "says": check.says,
        "series": series,
        "verdict": found,
        "why": why,
    }


def make(wanted: Iterable[Source]) -> None:
    """Run what makes our figures, each command once."""
    for command in dict.fromkeys(source.command for source in wanted if source.command):
        done = subprocess.run([sys.executable, *command], cwd=HERE.parent, check=False)
        if done.returncode:
            print(f"{' '.join(command)} ended with status {done.returncode}", file=sys.stderr)


def listed(found: Iterable[Entry]) -> str:
    return "\n".join(
        f"{entry.id}: {entry.paper}; {entry.what} "
        f"({len(entry.checks)} checks on {', '.join(entry.ours) or 'nothing of ours'})"
        for entry in found
    )


def shown(row: dict) -> str:
    return f"{row['verdict']:8}{row['entry']}: {row['says']} [{row['series']}]: {row['why']}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Published shapes against our figures.")
    parser.add_argument("--list", action="store_true", help="name the entries and end")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="entries to check")
    parser.add_argument("--run", action="store_true", help="make our figures first (hours)")
    parser.add_argument("--published", action="store_true", help="print the papers' figures too")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/reproduce.json")
    options = parser.parse_args()
    found = entries(options.only)
    if options.list:
        print(listed(found))
        return 0
    if options.run:
        make(source for entry in found for source in entry.ours.values())
    theirs = [row for entry in found for row in published(entry)]
    rows = [row for entry in found for row in judged(entry)]
    output = options.output
    if output is None and not options.only:
        output = RESULTS / "reproduce.json"
    if output is not None:
        record = {
            "environment": environment(),
            "entries": {entry.id: f"{entry.paper}; {entry.what}" for entry in found},
            "published": theirs,
            "rows": rows,
        }
        output.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for row in (*(theirs if options.published else ()), *rows):
        print(shown(row))
    return int(any(row["verdict"] == "FAIL" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
