"""Blind sheets on which people grade documents or label items, with the design of the draw."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError, as_generator
from rag_sourcebias.core.files import PathLike, jsonl_text, write_atomic
from rag_sourcebias.core.fitted import read_fitted, write_fitted
from rag_sourcebias.infer.judged import MIN_LABELED
from rag_sourcebias.infer.means import group_codes
from rag_sourcebias.intake.tables import (
    find_ids,
    has_role,
    holds_scores,
    numbers_of,
    read_table,
    require_columns,
    sheet_csv,
)

# Sheets that people fill in, blind, and what must be true of them when they return.
# A sheet shows nothing of judge, system, rank or source, nor an id that tells them. Which rows are
# meant, and what the estimate needs beside the labels, stays in a manifest beside it, which is kept
# from annotators.


_KIND = "manifest of a labelling sheet"
_SCHEMA_VERSION = 1
_ROW, _LABEL = "row_id", "label"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilledSheet:
    """Labels that came back, in the order in which the rows were handed over.

    Parameters
    ----------
    labels : float64 array of shape (n,)
        NaN where there is none yet.
    names : tuple of str
        What each row is, as given to :func:`write_sheet`.
    n_grades : int or None
        Labels are whole grades 0 … ``n_grades`` − 1, where it is given.
    design : dict
        What was given to :func:`write_sheet`.
    """

    labels: FloatArray
    names: tuple[str, ...]
    n_grades: int | None
    design: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ManifestRow:
    """A row as it was written: which it is, and a digest of what it shows."""

    row_id: str
    name: str
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    """What a sheet must still say when it returns, and the design of its sample."""

    n_grades: int | None
    columns: tuple[str, ...]
    rows: tuple[_ManifestRow, ...]
    design: Mapping[str, Any]


def manifest_path(sheet: PathLike) -> Path:
    """Where the manifest of a sheet lies: ``labels.csv`` -> ``labels.csv.manifest.json``."""
    return Path(os.fspath(sheet) + ".manifest.json")


def write_sheet(
    path: PathLike,
    rows: Mapping[str, Mapping[str, str]],
    *,
    n_grades: int | None = None,
    design: Mapping[str, Any] | None = None,
    rng: np.random.Generator | int,
) -> Path:
    """Write a blind labelling sheet in random order, and its manifest beside it.

    Parameters
    ----------
    path : path
        ``.csv`` (with a byte-order mark, as spreadsheets want) or ``.jsonl``. Columns: ``row_id``,
        those of the rows and an empty ``label``. In CSV a cell that a spreadsheet would take for a
        formula gets a leading apostrophe.
    rows : mapping of str to mapping of str to str
        Names of the rows, which stay in the manifest, to the cells that people are shown.
    n_grades : int or None
        Labels are grades 0 … ``n_grades`` − 1; None for numbers, yes and no.
    design : mapping, optional
        Ready for JSON. It comes back with the labels.
    rng : Generator or int
        For the order of the rows.

    Returns
    -------
    Path
        Of the manifest. Keep it from annotators.

    Raises
    ------
    DataError
        If the ending is another one, a text is too long for a spreadsheet cell, a column is called
        as one of the sheet's own, or the sheet exists.
    """
    ending = Path(path).suffix.lower()
    if ending not in (".csv", ".jsonl"):
        raise DataError(f"{path}: labelling sheets are .csv or .jsonl")
    if Path(path).exists():
        raise DataError(f"{path} exists and may hold labels; choose another name")
    columns = tuple(next(iter(rows.values())))
    if {_ROW, _LABEL} & {*columns}:
        raise DataError(f"a column is called {_ROW} or {_LABEL}, as sheets have; rename it")
    places = np.argsort(as_generator(rng).permutation(len(rows))) + 1
    digits = len(str(len(rows)))
    known, records = [], {}
    for place, (name, shown) in zip(places.tolist(), rows.items(), strict=True):
        row_id = f"r{place:0{digits}d}"
        known.append(_ManifestRow(row_id=row_id, name=name, shown=_digest(shown.values())))
        records[row_id] = {_ROW: row_id, **shown, _LABEL: ""}
    in_order = [records[row_id] for row_id in sorted(records)]
    # complete before anything is written, so that a refusal leaves nothing behind
    sheet = "".join(sheet_csv(in_order, path) if ending == ".csv" else jsonl_text(in_order))
    target = manifest_path(path)
    manifest = _Manifest(n_grades=n_grades, columns=columns, rows=tuple(known), design=design or {})
    # the manifest first: a sheet without one could not be read back
    write_fitted(manifest, target, kind=_KIND, version=_SCHEMA_VERSION)
    write_atomic(path, sheet)
    return target


def read_sheet(path: PathLike, *, manifest: PathLike | None = None) -> FilledSheet:
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
        Naming file, line, row id and value: a row is unknown, occurs twice or was edited, or a
        label is no number or no grade; where grades are wanted also how many rows have none.
    UnsupportedVersionError
        If a later version wrote the manifest.
    """
    place = manifest_path(path) if manifest is None else Path(manifest)
    if not place.exists():
        raise DataError(
            f"{place} does not exist: the sheet's manifest is needed to read it; it was written "
            "beside the sheet, name it with manifest="
        )
    plan = read_fitted(_Manifest, place, kind=_KIND, version=_SCHEMA_VERSION)
    place_of = {row.row_id: at for at, row in enumerate(plan.rows)}
    sheet = read_table(path, quoted=True)
    require_columns(sheet.names, (_ROW, *plan.columns, _LABEL), sheet.path)
    sheet.columns[_LABEL] = [_plain(cell) for cell in sheet.columns[_LABEL]]
    values = numbers_of(sheet, _LABEL, role="label")
    if plan.n_grades is not None:
        odd = ~np.isnan(values) & ~np.isin(values, np.arange(plan.n_grades))
        why = f"is not on the scale; a whole number 0 … {plan.n_grades - 1} is expected"
        sheet.refuse(odd, _LABEL, why)
    labels = np.full(len(plan.rows), np.nan)
    seen: dict[str, str] = {}
    for value, (where, record) in zip(values.tolist(), sheet.records(), strict=True):
        row_id = _plain(record[_ROW])
        if row_id not in place_of:
            raise DataError(
                f"{where}: row_id {row_id!r} is not one of this sheet's {len(plan.rows)}; restore "
                "it, or use the manifest of this sheet"
            )
        if row_id in seen:
            raise DataError(f"{where}: row {row_id!r} stands at {seen[row_id]} already; keep one")
        seen[row_id] = where
        if _digest(record[name] for name in plan.columns) != plan.rows[place_of[row_id]].shown:
            raise DataError(
                f"{where}: row {row_id!r}: what it shows was changed; only the label may be filled "
                "in"
            )
        labels[place_of[row_id]] = value
    missing = np.flatnonzero(np.isnan(labels))
    if plan.n_grades is not None and len(missing):
        first = plan.rows[missing[0]]
        raise DataError(
            f"{path}: {len(missing)} of {len(labels)} rows have no grade, first {first.row_id!r} "
            f"({first.name}); grade them all: documents left out are rarely random"
        )
    names = tuple(row.name for row in plan.rows)
    return FilledSheet(labels=labels, names=names, n_grades=plan.n_grades, design=plan.design)


def _plain(value: object) -> str:
    """Text without what spreadsheets change on their own: white space, leading apostrophes."""
    return " ".join(str(value if value is not None else "").split()).lstrip("'")


def _digest(cells: Iterable[object]) -> str:
    text = "\0".join(map(_plain, cells))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


# Which items are labelled, and what people who label may see of them.


_HIDDEN = ("human", "judge", "group", "cluster", "system", "source", "style", "id", "doc_id")
_ALSO_HIDDEN = ("stratum", "status", "reason")  # how an item was drawn, and how the judge fared


def read_shown_texts(
    path: PathLike, *, id: str | Sequence[str] | None, named: Collection[str]
) -> tuple[list[dict[str, str]], bool]:
    """Read what people who label may see of items: their texts; and whether there are any.

    Left out are ids, columns that by their name tell human labels, judge, group, system or source,
    and all columns of numbers, which may be scores. Where nothing is left, ids are shown.

    Parameters
    ----------
    named : collection of str
        Further columns to leave out.

    Raises
    ------
    DataError
        If no column is recognised as id: labels could not be brought back.
    """
    table = read_table(path)
    ids = find_ids(table.names, given=id, path=os.fspath(path), needed=True)
    shown = [
        name
        for name in table.names
        if name not in (*ids, *named, *_ALSO_HIDDEN)
        and not has_role(name, _HIDDEN)
        and not holds_scores(table, name)
    ]
    records = (record for _, record in table.records())
    return [{name: _cell(record[name]) for name in shown or ids} for record in records], bool(shown)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
