"""What the scripts that write pages of evidence share: tables in Markdown, and as CSV beside them.

A page says what was asked, what came out and what failed; its tables in full lie in
``docs/evidence``. A page that is written again must not change by a byte, or its test fails.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

DIGITS = 6  # significant digits of a figure in a CSV file, as in the result files


def grid(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def cell(value: object) -> str:
    """Return a value as a cell holds it: on one line, its bars escaped."""
    return " ".join(str(value).split()).replace("|", "\\|")


def columns(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the names of all columns, in the order in which rows first have them."""
    return list(dict.fromkeys(name for row in rows for name in row))


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as CSV; a row has no value where it lacks a column."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: plain(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def plain(value: object) -> object:
    """Return a value as CSV holds it."""
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    if isinstance(value, str):
        return " ".join(value.split())
    return value


def write(page: Path, text: str, tables: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    """Write a page, and its tables into the folder ``evidence`` beside it."""
    page.write_text(text, encoding="utf-8")
    folder = page.parent / "evidence"
    folder.mkdir(exist_ok=True)
    for name, rows in tables.items():
        (folder / f"{name}.csv").write_text(csv_text(rows), encoding="utf-8")


def unlike(
    page: Path, text: str, tables: Mapping[str, Sequence[Mapping[str, object]]]
) -> list[str]:
    """Return the names of the files that a page written now would change."""
    wanted = {page: text}
    for name, rows in tables.items():
        wanted[page.parent / "evidence" / f"{name}.csv"] = csv_text(rows)
    return [
        path.name
        for path, found in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != found
    ]
