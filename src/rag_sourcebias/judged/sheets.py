"""Blind sheets on which people grade documents or label items, with the design of the draw."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import IntArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError, as_generator
from rag_sourcebias.infer.judged import MIN_LABELED
from rag_sourcebias.infer.means import group_codes
from rag_sourcebias.intake.files import PathLike, jsonl_text, write_atomic
from rag_sourcebias.intake.fitted import read_fitted, write_fitted
from rag_sourcebias.intake.tables import (
    Table,
    find_columns,
    find_ids,
    holds_scores,
    read_table,
    require_columns,
    sheet_csv,
)

# Sheets on which people grade documents, blind, and what must be true of them when they return.
# The sheet shows an annotator nothing of judge, rank or source. What the estimate needs (which
# rows, with which chances) stays in a manifest beside it, which is kept from annotators.


_KIND = "manifest of a labelling sheet"
_SCHEMA_VERSION = 1
_CONTENT = ("query_id", "query", "doc_id", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetRow:
    """One document to grade for one query."""

    query_id: str
    query: str
    doc_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilledSheet:
    """Grades that came back, in the order in which the rows were handed over.

    Parameters
    ----------
    grades : int64 array of shape (n,)
        Each in 0 … ``n_grades`` − 1.
    n_grades : int
    design : dict
        What was given to :func:`write_label_sheet`.
    """

    grades: npt.NDArray[np.int64]
    n_grades: int
    design: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ManifestRow:
    """A row as it was written: its place in the sample, its ids, and digests of its texts."""

    row_id: str
    position: int
    query_id: str
    doc_id: str
    query: str
    text: str

    def __str__(self) -> str:
        return f"query {self.query_id!r}, document {self.doc_id!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    """What a sheet must still say when it returns, and the design of its sample."""

    n_grades: int
    shows_doc_ids: bool
    rows: tuple[_ManifestRow, ...]
    design: Mapping[str, Any]

    def __post_init__(self) -> None:
        positions = sorted(row.position for row in self.rows)
        if not positions or positions != list(range(len(positions))):
            raise DataError("a row has no place of its own; it was cut or edited")

    @property
    def columns(self) -> list[str]:
        """Columns with what is graded."""
        return [name for name in _CONTENT if self.shows_doc_ids or name != "doc_id"]


def manifest_path(sheet: PathLike) -> Path:
    """Where the manifest of a sheet lies: ``labels.csv`` -> ``labels.csv.manifest.json``."""
    return Path(os.fspath(sheet) + ".manifest.json")


def write_label_sheet(
    path: PathLike,
    rows: Sequence[SheetRow],
    *,
    n_grades: int,
    design: Mapping[str, Any],
    rng: np.random.Generator | int,
    show_doc_ids: bool = True,
) -> Path:
    """Write a blind labelling sheet in random order, and its manifest beside it.

    Parameters
    ----------
    path : path
        ``.csv`` (with a byte-order mark, as spreadsheets want) or ``.jsonl``. Columns: ``row_id``,
        ``query_id``, ``query``, ``doc_id``, ``text`` and an empty ``grade``. In CSV a cell that a
        spreadsheet would take for a formula gets a leading apostrophe.
    rows : sequence of SheetRow
        Each pair of query and document once, in the order of the sample's rows.
    n_grades : int
        Grades are 0 … ``n_grades`` − 1.
    design : mapping
        Ready for JSON; ``DocumentSample.to_dict()``. It comes back with the grades.
    rng : Generator or int
        For the order of the rows.
    show_doc_ids : bool
        False leaves ``doc_id`` out, for ids that tell the source.

    Returns
    -------
    Path
        Of the manifest. Keep it from annotators: it holds the design.

    Raises
    ------
    DataError
        If the ending is another one, a text is too long for a spreadsheet cell, or the sheet
        exists.
    """
    ending = _new_sheet(path)
    digits = len(str(len(rows)))
    records, known = [], []
    order = as_generator(rng).permutation(len(rows)).tolist()
    for place, position in enumerate(order, start=1):
        row, row_id = rows[position], f"r{place:0{digits}d}"
        record = {"row_id": row_id, **asdict(row), "grade": ""}
        if not show_doc_ids:
            del record["doc_id"]
        records.append(record)
        known.append(
            _ManifestRow(
                row_id=row_id,
                position=position,
                query_id=row.query_id,
                doc_id=row.doc_id,
                query=_digest(row.query),
                text=_digest(row.text),
            )
        )
    manifest = _Manifest(
        n_grades=n_grades, shows_doc_ids=show_doc_ids, rows=tuple(known), design=design
    )
    # complete before anything is written, so that a refusal leaves nothing behind
    sheet = _sheet(records, path, ending)
    target = manifest_path(path)
    # the manifest first: a sheet without one could not be read back
    write_fitted(manifest, target, kind=_KIND, version=_SCHEMA_VERSION)
    write_atomic(path, sheet)
    return target


def _sheet(records: Sequence[dict[str, str]], path: PathLike, ending: str) -> str:
    lines = sheet_csv(records, path) if ending == ".csv" else jsonl_text(records)
    return "".join(lines)


def read_label_sheet(path: PathLike, *, manifest: PathLike | None = None) -> FilledSheet:
    """Read a filled sheet and check it against its manifest.

    Rows may come back in any order, with other columns beside them, with CRLF, a byte-order mark
    and commas, semicolons or tabs between cells.

    Parameters
    ----------
    path : path
    manifest : path or None
        None looks beside the sheet (:func:`manifest_path`).

    Raises
    ------
    DataError
        Naming file, line, row id and value: a row is unknown, occurs twice, was edited or is
        missing, or grades are empty (how many, which first) or outside the scale.
    UnsupportedVersionError
        If a later version wrote the manifest.
    """
    _ending(path)
    place = manifest_path(path) if manifest is None else Path(manifest)
    if not place.exists():
        raise DataError(
            f"{place} does not exist: the sheet's manifest is needed to read it; it was written "
            "beside the sheet, name it with manifest="
        )
    plan = read_fitted(_Manifest, place, kind=_KIND, version=_SCHEMA_VERSION)
    known = {row.row_id: row for row in plan.rows}
    grades = np.full(len(known), -1, dtype=np.int64)
    place_of: dict[str, str] = {}
    empty: list[str] = []
    sheet = read_table(path, quoted=True)
    require_columns(sheet.names, ("row_id", *plan.columns, "grade"), sheet.path)
    for where, record in sheet.records():
        row_id = str(record.get("row_id") or "").strip()
        if row_id not in known:
            raise DataError(
                f"{where}: row_id {row_id!r} is not one of this sheet's {len(known)} "
                f"({plan.rows[0].row_id} … {plan.rows[-1].row_id}); restore it, or "
                "use the manifest of this sheet"
            )
        if row_id in place_of:
            raise DataError(
                f"{where}: row {row_id!r} stands at {place_of[row_id]} already; keep one"
            )
        place_of[row_id] = where
        row = known[row_id]
        _check_content(record, row, plan.columns, where)
        grade = _grade(record.get("grade"), plan.n_grades, f"{where}: row {row_id!r}")
        if grade is None:
            empty.append(f"{where}: row {row_id!r} ({row})")
        else:
            grades[row.position] = grade
    missing = [row for row_id, row in known.items() if row_id not in place_of]
    if missing:
        raise DataError(
            f"{path}: {len(missing)} of {len(known)} rows are missing, first "
            f"{missing[0].row_id!r} ({missing[0]}); put them back: documents left out are rarely "
            "random"
        )
    if empty:
        raise DataError(
            f"{len(empty)} of {len(known)} rows have no grade, first {empty[0]}; grade them all: "
            "documents left out are rarely random"
        )
    return FilledSheet(grades=grades, n_grades=plan.n_grades, design=plan.design)


def _new_sheet(path: PathLike) -> str:
    ending = _ending(path)
    if Path(path).exists():
        raise DataError(f"{path} exists and may hold grades; choose another name")
    return ending


def _ending(path: PathLike) -> str:
    ending = Path(path).suffix.lower()
    if ending not in (".csv", ".jsonl"):
        raise DataError(f"{path}: labelling sheets are .csv or .jsonl")
    return ending


def _plain(value: object) -> str:
    """Text without what spreadsheets change on their own: white space, leading apostrophes."""
    return " ".join(str(value if value is not None else "").split()).lstrip("'")


def _digest(text: str) -> str:
    return hashlib.sha256(_plain(text).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _check_content(
    record: Mapping[str, Any], row: _ManifestRow, columns: Sequence[str], where: str
) -> None:
    for column in columns:
        value, written = record[column], getattr(row, column)
        if column.endswith("_id"):
            same = _plain(value) == _plain(written)
            told = f"{value!r} was {written!r}"
        else:
            same = _digest(value) == written
            told = f"{str(value)[:60]!r} was changed"
        if not same:
            raise DataError(
                f"{where}: row {row.row_id!r}: {column} {told}; only the grade may be filled in. "
                "Spreadsheets drop leading zeros: import the columns as text, or use .jsonl"
            )


def _grade(value: object, n_grades: int, where: str) -> int | None:
    text = "" if value is None else str(value).strip()
    if not text:
        return None
    # spreadsheets write 2 as 2.0 or 2,0 in some locales
    match = re.fullmatch(r"'?([0-9]{1,6})(?:[.,]0*)?", text)
    if match is None or isinstance(value, bool) or int(match[1]) >= n_grades:
        raise DataError(
            f"{where}: grade {value!r} is not on the scale; a whole number 0 … {n_grades - 1} is "
            "expected"
        )
    return int(match[1])


# Sheets on which people label items, with the design of the draw in columns of its own.


def read_shown_texts(
    path: PathLike,
    *,
    id: str | Sequence[str] | None,
    human: str | Sequence[str] | None,
    judge: str | Sequence[str] | None,
    group: str | None,
) -> Table:
    """Read what people who label may see of items: ids, and texts.

    Left out are the columns of human labels, judge and group, found as by
    :func:`~rag_sourcebias.read_judged_items`, and all columns of numbers, which may be scores.

    Raises
    ------
    DataError
        If no column is recognised as id: labels could not be brought back.
    """
    name = os.fspath(path)
    table = read_table(path)
    ids = find_ids(table.names, given=id, path=name, needed=True)
    roles: dict[str, str | None] = {"group": group}
    left_out: set[str | None] = set()
    for role, named in (("human", human), ("judge", judge)):
        if not named:
            roles[role] = None
        left_out.update([named] if isinstance(named, str) else named or ())
    left_out.update(find_columns(table.names, roles, path=name).values())
    shown = {
        column: table.columns[column]
        for column in table.names
        if column in ids or not (column in left_out or holds_scores(table, column))
    }
    return Table(path=table.path, names=tuple(shown), lines=table.lines, columns=shown)


def draw_items(items: JudgedItems, n: int, *, rng: np.random.Generator | int) -> IntArray:
    """Draw items to label at random.

    Parameters
    ----------
    items : JudgedItems
        Those with a human value were labelled before, drawn at random, and are part of the draw.
    n : int
        Items to label, those labelled before included. Where items have clusters, whole clusters
        are drawn, as many as hold about ``n`` items.

    Returns
    -------
    int64 array of shape (n,)
        Rows of the items, in order. Each group gets its share of the draw, and 10 units at least.

    Raises
    ------
    DataError
        If there are not as many items, or as many are labelled.
    InsufficientDataError
        If ``n`` is too few for 10 units of each group (with the number needed).
    """
    if n > len(items):
        raise DataError(f"{n} items to label, but only {len(items)} are there")
    unit = np.arange(len(items))
    if items.clusters is not None:
        unit = group_codes(items.clusters)
    group = _group_of_units(items, unit)
    sizes = np.bincount(group)
    n_units = len(group) * n // len(items)
    if n_units < MIN_LABELED * len(sizes) or sizes.min() < MIN_LABELED:
        needed = -(-MIN_LABELED * len(sizes) * len(items) // len(group))
        what = "items" if items.clusters is None else "clusters"
        of = f" of each of {len(sizes)} groups" if len(sizes) > 1 else ""
        raise InsufficientDataError(
            f"{n} items to label are too few: an interval with a judge needs {MIN_LABELED} "
            f"{what}{of}, about {needed} items",
            n=n,
            n_needed=needed,
        )
    labeled = np.bincount(unit, weights=items.labeled) > 0
    if labeled.sum() >= n_units:
        raise DataError(
            f"{n} items to label, those labelled before included, but {items.n_labeled} are "
            "labelled already; ask for more"
        )
    shares = np.maximum(np.bincount(group[labeled], minlength=len(sizes)), MIN_LABELED)
    while shares.sum() < n_units:
        wanting = np.where(shares < sizes, sizes / (shares + 0.5), 0.0)  # Webster's rule
        shares[wanting.argmax()] += 1
    # in random order, but those labelled before first
    order = np.lexsort((as_generator(rng).random(len(group)), ~labeled))
    drawn = [order[group[order] == code][:share] for code, share in enumerate(shares)]
    return np.flatnonzero(np.isin(unit, np.concatenate(drawn)))


def _group_of_units(items: JudgedItems, unit: IntArray) -> IntArray:
    """Code the group of each unit; all 0 without groups, or where a unit holds several."""
    found = np.zeros(int(unit.max()) + 1, dtype=np.int64)
    if items.groups is None:
        return found
    groups = group_codes(items.groups)
    found[unit] = groups
    return found if np.array_equal(found[unit], groups) else np.zeros_like(found)


def write_item_sheet(
    path: PathLike,
    texts: Table,
    rows: IntArray,
    *,
    human: npt.ArrayLike,
    rng: np.random.Generator | int,
) -> None:
    """Write items in random order, for people to fill in the column ``human``.

    Parameters
    ----------
    path : path
        ``.csv`` (as :func:`write_label_sheet` writes it) or ``.jsonl``: the columns of ``texts``,
        then ``human``. :func:`~rag_sourcebias.join_judged` reads it back.
    texts : Table
        What people are shown of every item, ids among it.
    rows : int64 array of shape (n,)
        Items to label, as of :func:`draw_items`.
    human : array-like of shape (m,)
        Labels there are already; NaN is an empty cell.
    rng : Generator or int
        For the order of the rows.

    Raises
    ------
    DataError
        If the ending is another one, the sheet exists, a column is called ``human``, or a text is
        too long for a spreadsheet cell.
    """
    ending = _new_sheet(path)
    if "human" in texts.columns:
        raise DataError(f"{texts.path} has a column 'human', as sheets have; rename it")
    labels = np.asarray(human, dtype=np.float64)
    records = []
    for row in as_generator(rng).permutation(rows).tolist():
        record = {name: _cell(column[row]) for name, column in texts.columns.items()}
        record["human"] = "" if math.isnan(labels[row]) else f"{labels[row]:.10g}"
        records.append(record)
    write_atomic(path, _sheet(records, path, ending))


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
