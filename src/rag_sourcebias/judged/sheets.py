"""Blind sheets on which people grade documents or label items, with the design of the draw."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rag_sourcebias.core.codec import PathLike
from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError, as_generator
from rag_sourcebias.infer.judged import MIN_LABELED
from rag_sourcebias.infer.means import group_codes
from rag_sourcebias.infer.sheets import read_blind_sheet, write_blind_sheet
from rag_sourcebias.intake.tables import (
    find_ids,
    has_role,
    holds_scores,
    numbers_of,
    read_table,
)
from rag_sourcebias.judged.judge_audit import unit_codes

# Sheets that people fill in, blind, and what they say when they return.


_LABEL = "label"


class FilledSheet(NamedTuple):
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
    numbers = np.argsort(as_generator(rng).permutation(len(rows))) + 1
    return write_blind_sheet(
        path,
        rows,
        asked=_LABEL,
        numbers=numbers.tolist(),
        design={"n_grades": n_grades, "of": design or {}},
    )


def read_sheet(path: PathLike, *, manifest: PathLike | None = None) -> FilledSheet:
    """Read the labels of a sheet; see :func:`~rag_sourcebias.infer.sheets.read_blind_sheet`.

    Raises
    ------
    DataError
        As there, and naming file, line and value: a label is no number or no grade; where grades
        are wanted also how many rows have none.
    UnsupportedVersionError
        If a later version wrote the manifest.
    """
    sheet = read_blind_sheet(path, manifest=manifest)
    plan, n_grades = sheet.plan, sheet.plan.design.get("n_grades")
    if plan.asked != _LABEL:
        raise DataError(f"{path} asks for {plan.asked!r}; expected a sheet of labels")
    values = numbers_of(sheet.table, _LABEL, role="label")
    labels = np.full(len(plan.rows), np.nan)
    labels[sheet.places] = values
    if n_grades is not None:
        odd = ~np.isnan(values) & ~np.isin(values, np.arange(n_grades))
        why = f"is not on the scale; a whole number 0 … {n_grades - 1} is expected"
        sheet.table.refuse(odd, _LABEL, why, role="label")
        missing = np.flatnonzero(np.isnan(labels))
        if len(missing):
            first = plan.rows[missing[0]]
            raise DataError(
                f"{path}: {len(missing)} of {len(labels)} rows have no grade, first "
                f"{first.row_id!r} ({first.name}); grade them all: documents left out are rarely "
                "random"
            )
    return FilledSheet(
        labels=labels,
        names=tuple(row.name for row in plan.rows),
        n_grades=n_grades,
        design=plan.design.get("of", {}),
    )


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
    ids = find_ids(table, id, needed=True)
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
    unit = unit_codes(items)
    group = _group_of_units(items, unit)
    sizes = np.bincount(group)
    fewest = MIN_LABELED * len(sizes)
    n_units = len(group) * n // len(items)
    if n_units < fewest or sizes.min() < MIN_LABELED:
        needed = -(-fewest * len(items) // len(group))
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
