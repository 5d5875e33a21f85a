"""Readers of label distributions: what a judge believes about (query, document) pairs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.arrays import read_arrays
from rag_sourcebias.io.cells import names_of
from rag_sourcebias.io.columns import find_column
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.io.label_cells import (
    cell_floats,
    cell_grades,
    cell_items,
    stacked_rows,
    vote_shares,
)
from rag_sourcebias.io.tables import Table, read_table
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.labels import LabelDistributions

__all__ = ["read_label_distributions"]

_TOLERANCE = 1e-6
_FORMS = "columns p0 … pR, a 'probs' list, a 'votes' list or a 'grade'"


def read_label_distributions(
    path: PathLike, *, n_grades: int | None = None, of: Literal["judge", "human"] = "judge"
) -> LabelDistributions:
    """Read distributions over the grades 0 … R.

    Parameters
    ----------
    path : path
        CSV, TSV or JSON lines (plain or ``.gz``), or Parquet, with ``query_id`` and ``doc_id``
        (also ``qid``, ``docid``, ``docno``, ``corpus-id``) and one of: columns ``p0`` … ``pR``;
        ``probs``, a list of R + 1 numbers; ``votes``, a list of whole grades; ``grade``, one whole
        grade. In text files a list is written ``[0.1, 0.9]`` or with spaces or ``|`` between
        numbers. ``.npz`` reads arrays ``pred_label_dist`` and ``true_label_dist`` of shape
        (m, R + 1) with ids in ``<stem>.ids.tsv`` beside it.
    n_grades : int or None
        R + 1. None takes it from the columns or, for votes and grades, from the highest grade
        seen: pass it where the highest grade may not occur.
    of : {"judge", "human"}
        Which of the two arrays of an ``.npz`` file.

    Raises
    ------
    DataError
        With file and line: a row does not sum to 1, is negative, has another length or holds a
        grade outside the scale, or a pair occurs twice.
    """
    name = os.fspath(path)
    if name.endswith(".npz"):
        table, probs = _read_npz(Path(path), of)
    else:
        table, probs = _read_rows(path, n_grades)
    if n_grades is not None and probs.shape[1] != n_grades:
        raise DataError(
            f"{name}: {probs.shape[1]} grades in the file where n_grades={n_grades} was asked for"
        )
    query, doc = (_name_column(table, r) for r in ("query_id", "doc_id"))
    _check(probs, table)
    queries: dict[str, int] = {}
    docs: dict[str, int] = {}
    query_codes = [queries.setdefault(q, len(queries)) for q in query]
    doc_codes = [docs.setdefault(d, len(docs)) for d in doc]
    seen: dict[tuple[int, int], int] = {}
    for row, pair in enumerate(zip(query_codes, doc_codes, strict=True)):
        if seen.setdefault(pair, row) != row:
            raise DataError(
                f"{table.where(row)}: query {query[row]!r}, document {doc[row]!r} occurs already "
                f"in {table.where(seen[pair])}; keep one row per pair"
            )
    return LabelDistributions(
        query_ids=tuple(queries),
        doc_ids=tuple(docs),
        query_codes=np.array(query_codes, dtype=np.int32),
        doc_codes=np.array(doc_codes, dtype=np.int32),
        probs=probs,
    )


def _name_column(table: Table, role: str) -> list[str]:
    column = find_column(tuple(table.columns), role, given=None, path=table.path)
    return names_of(table, str(column), role=role)


def _check(probs: FloatArray, table: Table) -> None:
    totals = probs.sum(axis=1)
    good = (np.abs(totals - 1) <= _TOLERANCE) & (probs >= -_TOLERANCE).all(axis=1)
    bad = np.flatnonzero(~good)  # NaN counts as wrong
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"{table.where(row)}: probabilities {np.array2string(probs[row], precision=6)} sum to "
            f"{totals[row]:.6g}, not to 1 or not all at least 0 ({len(bad)} such row(s)); divide "
            "each row by its sum, and leave out pairs the judge gave no answer for"
        )


def _read_rows(path: PathLike, n_grades: int | None) -> tuple[Table, FloatArray]:
    name = os.fspath(path)
    form: list[str] = []

    def choose(names: tuple[str, ...]) -> list[str]:
        pair = [find_column(names, role, given=None, path=name) for role in ("query_id", "doc_id")]
        lacking = [r for r, c in zip(("query_id", "doc_id"), pair, strict=True) if c is None]
        form.extend(_value_columns(names))
        if lacking or not form:
            lacking += [] if form else [f"labels ({_FORMS})"]
            raise DataError(
                f"{name}: no column is recognised as {' or '.join(lacking)}; its columns are "
                f"{', '.join(names)}"
            )
        return [*(c for c in pair if c is not None), *form]

    table = read_table(path, choose)
    columns = [table.columns[c] for c in form]
    if re.fullmatch(r"p_?0", form[0]):
        return table, np.column_stack([cell_floats(c, table) for c in columns])
    if form[0] == "probs":
        return table, stacked_rows(
            [cell_items(c, table, i) for i, c in enumerate(columns[0])], table
        )
    votes = [
        cell_items(c, table, i) if form[0] == "votes" else [c] for i, c in enumerate(columns[0])
    ]
    return table, vote_shares(
        [cell_grades(v, table, i) for i, v in enumerate(votes)], table, n_grades
    )


def _value_columns(names: Sequence[str]) -> list[str]:
    for pattern in ("p{}", "p_{}"):
        numbered = [pattern.format(i) for i in range(len(names)) if pattern.format(i) in names]
        if len(numbered) > 1 and numbered[-1] == pattern.format(len(numbered) - 1):
            return numbered
    return next(([n] for n in ("probs", "votes", "grade") if n in names), [])


def _read_npz(path: Path, of: Literal["judge", "human"]) -> tuple[Table, FloatArray]:
    key = {"judge": "pred_label_dist", "human": "true_label_dist"}[of]
    sidecar = path.with_suffix(".ids.tsv")
    arrays = read_arrays(path)
    if key not in arrays:
        raise DataError(f"{path} has no array {key!r}; it holds {', '.join(arrays)}")
    with sound(path, f"numbers under {key!r}"):
        probs = np.asarray(arrays[key], dtype=np.float64)
    table = read_table(sidecar, _pair_columns(str(sidecar)))
    if probs.ndim != 2 or len(probs) != len(table):
        raise DataError(
            f"{path}: {key} has shape {probs.shape} but {sidecar.name} names {len(table)} rows"
        )
    return table, probs


def _pair_columns(name: str) -> Callable[[tuple[str, ...]], list[str]]:
    def choose(names: tuple[str, ...]) -> list[str]:
        pair = [find_column(names, role, given=None, path=name) for role in ("query_id", "doc_id")]
        found = [c for c in pair if c is not None]
        if len(found) < 2:
            raise DataError(f"{name}: query_id and doc_id are needed, found {', '.join(names)}")
        return found

    return choose
