"""Blind sheets that people fill in, and the manifest beside each: what its rows are, of which draw.

A sheet shows nothing of judge, system, rank or source, nor an id that tells them. Which rows are
meant, and what the estimate needs beside what people say, stays in the manifest, which is kept from
them.
"""

import csv
import hashlib
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_sourcebias.core.codec import PathLike, jsonl_text, read_fitted, write_atomic, write_fitted
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.tables import Table, read_table, require_columns, require_once

_ROW = "row_id"
_KIND = "manifest of a sheet"
_SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class SheetRow:
    """A row as it was written: which it is, and a digest of what it shows."""

    row_id: str
    name: str
    shown: str


@dataclass(frozen=True, kw_only=True)
class SheetPlan:
    """What a sheet must still say when it returns, and the design of its sample.

    Parameters
    ----------
    asked : str
        The column that people fill in.
    columns : tuple of str
        Those that they are shown.
    rows : tuple of SheetRow
        As they were handed over.
    design : mapping
        Ready for JSON.
    """

    asked: str
    columns: tuple[str, ...]
    rows: tuple[SheetRow, ...]
    design: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReturnedSheet:
    """What came back: the column that people filled in, and the row of the plan of each cell."""

    plan: SheetPlan
    table: Table
    places: list[int]


def manifest_path(sheet: PathLike) -> Path:
    """Where the manifest of a sheet lies: ``labels.csv`` -> ``labels.csv.manifest.json``."""
    return Path(os.fspath(sheet) + ".manifest.json")


def write_blind_sheet(
    path: PathLike,
    rows: Mapping[str, Mapping[str, str]],
    *,
    asked: str,
    numbers: Iterable[int],
    design: Mapping[str, Any],
) -> Path:
    """Write a sheet with an empty column, and its manifest beside it.

    Parameters
    ----------
    path : path
        ``.csv`` (with a byte-order mark, as spreadsheets want) or ``.jsonl``.
    rows : mapping of str to mapping of str to str
        Names of the rows, which stay in the manifest, to the cells that people are shown.
    asked : str
        Name of the empty column.
    numbers : iterable of int
        Places of the rows in the sheet, from 1.
    design : mapping
        Ready for JSON. It comes back with what people say.

    Returns
    -------
    Path
        Of the manifest. Keep it from who fills in the sheet.

    Raises
    ------
    DataError
        If the ending is another one, a text is too long for a spreadsheet cell, a column is called
        as one of the sheet's own, or the sheet exists.
    """
    ending = Path(path).suffix.lower()
    if ending not in (".csv", ".jsonl"):
        raise DataError(f"{path}: sheets are .csv or .jsonl")
    if Path(path).exists():
        raise DataError(f"{path} exists and may be filled in; choose another name")
    columns = tuple(next(iter(rows.values())))
    if {_ROW, asked} & {*columns}:
        raise DataError(f"a column is called {_ROW} or {asked}, as sheets have; rename it")
    digits = len(str(len(rows)))
    known, records = [], {}
    for number, (name, shown) in zip(numbers, rows.items(), strict=True):
        row_id = f"r{number:0{digits}d}"
        known.append(SheetRow(row_id=row_id, name=name, shown=_digest(shown.values())))
        records[row_id] = {_ROW: row_id, **shown, asked: ""}
    in_order = [records[row_id] for row_id in sorted(records)]
    # complete before anything is written, so that a refusal leaves nothing behind
    sheet = sheet_csv(in_order, path) if ending == ".csv" else "".join(jsonl_text(in_order))
    plan = SheetPlan(asked=asked, columns=columns, rows=tuple(known), design=design)
    target = manifest_path(path)
    # the manifest first: a sheet without one could not be read back
    write_fitted(plan, target, kind=_KIND, version=_SCHEMA_VERSION)
    write_atomic(path, sheet)
    return target


def read_blind_sheet(path: PathLike, *, manifest: PathLike | None = None) -> ReturnedSheet:
    """Read a sheet and check it against its manifest.

    Rows may come back in any order, with other columns beside them, with CRLF, a byte-order mark
    and commas, semicolons or tabs between cells.

    Parameters
    ----------
    manifest : path or None
        None looks beside the sheet (:func:`manifest_path`).

    Raises
    ------
    DataError
        Naming file, line and row id: a row is unknown, occurs twice or was edited.
    UnsupportedVersionError
        If a later version wrote the manifest.
    """
    place = manifest_path(path) if manifest is None else Path(manifest)
    if not place.exists():
        raise DataError(
            f"{place} does not exist: the sheet's manifest is needed to read it; it was written "
            "beside the sheet, name it with manifest="
        )
    plan = read_fitted(SheetPlan, place, kind=_KIND, version=_SCHEMA_VERSION)
    place_of = {row.row_id: at for at, row in enumerate(plan.rows)}
    sheet = read_table(path, quoted=True)
    require_columns(sheet, (_ROW, *plan.columns, plan.asked))
    ids = list(map(_plain, sheet.columns[_ROW]))
    for row_id, (where, record) in zip(ids, sheet.records(), strict=True):
        if row_id not in place_of:
            raise DataError(
                f"{where}: row_id {row_id!r} is not one of this sheet's {len(plan.rows)}; restore "
                "it, or use the manifest of this sheet"
            )
        if _digest(record[name] for name in plan.columns) != plan.rows[place_of[row_id]].shown:
            raise DataError(
                f"{where}: row {row_id!r}: what it shows was changed; only {plan.asked!r} may be "
                "filled in"
            )
    require_once(sheet, ids, "row", "keep one")
    said = {plan.asked: list(map(_plain, sheet.columns[plan.asked]))}
    table = sheet.spread(range(len(sheet)), said)
    return ReturnedSheet(plan=plan, table=table, places=[place_of[row_id] for row_id in ids])


def _plain(value: object) -> str:
    """Text without what spreadsheets change on their own: white space, leading apostrophes."""
    return " ".join(str(value if value is not None else "").split()).lstrip("'")


def _digest(cells: Iterable[object]) -> str:
    text = "\0".join(map(_plain, cells))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


# CSV as spreadsheet programs read it: formulas made harmless, cells with line breaks.


_CELL_LIMIT = 32_767  # characters a spreadsheet keeps in one cell
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def sheet_csv(records: Sequence[Mapping[str, str]], path: PathLike) -> str:
    """Return the text of a CSV file with a byte-order mark, header first.

    A cell that a spreadsheet would take for a formula gets a leading apostrophe.

    Raises
    ------
    DataError
        If a cell is longer than a spreadsheet keeps.
    """
    lines = ["\ufeff", record_text(list(records[0]))]
    for record in records:
        longest = max(record, key=lambda name: len(record[name]))
        if len(record[longest]) > _CELL_LIMIT:
            raise DataError(
                f"{path}: {longest} of row {next(iter(record.values()))!r} has "
                f"{len(record[longest])} characters, a spreadsheet cell holds {_CELL_LIMIT}; "
                "write the sheet as .jsonl"
            )
        cells = [f"'{cell}" if _FORMULA.match(cell) else cell for cell in record.values()]
        lines.append(record_text(cells))
    return "".join(lines)


def record_text(cells: Sequence[str], end: str = "\r\n") -> str:
    """Return a record of a CSV file."""
    line = io.StringIO()
    csv.writer(line, lineterminator=end).writerow(cells)
    return line.getvalue()
