"""docs/upstream.md, from the results; no figure stands in this file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
from evidence import grid

HOW = """\
# The frameworks' own tests

The frameworks' own test suites, run with and without observation and compared test by test: a test
must end the same way (passed, skipped, failed as it also does without us). Written by
`python benchmarks/upstream/run.py`; every figure is in `benchmarks/results/upstream.json`.

- **everything**: `instrument("langchain")`, `instrument("llama-index")` and `instrument("chroma")`
  are on throughout, with a queue each.
- **in place**: every LangChain retriever and vector store and every Chroma client is instrumented
  as soon as it is made.
- **wrapped**: the tests are given our `InstrumentedRetriever` and `TaggedVectorStore`.
- **broken**: as everything, with adapters that take one document out of each result. It must change
  outcomes, or the comparison could not see anything.

A cell says how many tests ended otherwise, and how many retrievals were observed meanwhile. Each
suite runs twice without observation; tests that differ between these two runs are left out."""

NAMES = {"everything": "everything", "in-place": "in place", "wrapped": "wrapped"}
TITLES = {
    "tested": "Tested versions",
    "lowest": "Oldest supported versions",
    "newest": "Newest releases within our bounds",
}


def cell(mode: Mapping[str, Any] | None) -> str:
    if mode is None:
        return ""
    lost = sum(mode["dropped"].values())
    text = f"{mode['n_different']} different, {sum(mode['retrievals'].values()):,} retrievals"
    return text + (f", {lost:,} dropped" if lost else "")


def control(mode: Mapping[str, Any] | None) -> str:
    if mode is None:
        return ""
    if not any(mode["documents"].values()):
        return "nothing retrieved"
    return f"{mode['n_different']} different"


def suite_row(name: str, row: Mapping[str, Any]) -> list[object]:
    modes = row["modes"]
    ends = row["outcomes"]
    return [
        name,
        row["version"] if name == row["package"] else f"{row['package']} {row['version']}",
        f"{row['tests']:,}",
        f"{ends.get('passed', 0):,}",
        *(cell(modes.get(mode)) for mode in NAMES),
        control(modes.get("broken")),
    ]


def named(part: Mapping[str, Any]) -> list[str]:
    """Every test that ended otherwise, and those that change by themselves."""
    lines = []
    for row in part["suites"].values():
        for mode, found in row["modes"].items():
            for item in found.get("different", ()):
                kind = "" if item["again"] else "; not when run again"
                lines.append(
                    f"- {row['package']}, {NAMES[mode]}: `{item['test']}`: {item['off']} without,"
                    f" {item['on']} with{kind}. `{item['error'].strip('`')}`"
                )
    for name, row in part["suites"].items():
        lines += [f"- {name}: `{test}` changes by itself" for test in row["unstable"]]
    return lines


def page(found: Mapping[str, Any]) -> str:
    head = ["suite", "version", "tests", "pass", *NAMES.values(), "broken"]
    parts = [HOW]
    suites = {name for part in found.values() for name in part["suites"]}
    for versions, title in TITLES.items():
        part = found.get(versions)
        if part is None:
            continue
        rows = [suite_row(name, row) for name, row in part["suites"].items()]
        notes = [f"- {name}: {row['note']}" for name, row in part["suites"].items() if row["note"]]
        notes += [f"- {name}: not run" for name in sorted(suites - set(part["suites"]))]
        notes += [f"- {package}: not run, {why}" for package, why in part["without"].items()]
        parts += [f"## {title}", f"Python {part['python']}.", grid(head, rows)]
        parts += ["\n".join([*notes, *named(part)])]
    return "\n\n".join(part for part in parts if part) + "\n"
