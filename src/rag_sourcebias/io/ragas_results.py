"""What ragas writes, as judged items; ragas itself is not needed.

``EvaluationResult.to_pandas()`` saved as CSV, JSON lines or Parquet, or the CSV of an
``@experiment``. A metric that failed is NaN there (an empty cell): it is kept as a judge failure.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.cells import names_of, numbers_of
from rag_sourcebias.io.columns import find_column
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.io.judged import join_judged, read_judged_items
from rag_sourcebias.io.tables import Table, read_table
from rag_sourcebias.types.judged_items import JudgedItems

__all__ = ["RagasItems", "read_ragas_result"]

_JOINED_BY = ("id", "item_id", "sample_id", "example_id", "user_input", "question")
_ROW = ("row", "row_index")
# Fields of ragas' samples, and columns that pandas adds for its index.
_NOT_METRICS = frozenset(
    {
        *_JOINED_BY, *_ROW, "", "index", "unnamed: 0", "retrieved_contexts", "reference_contexts",
        "retrieved_context_ids", "reference_context_ids", "response", "multi_responses",
        "reference", "rubrics", "persona_name", "query_style", "query_length", "synthesizer_name",
        "answer", "contexts", "ground_truth", "human", "group", "cluster", "stratum",
    }
)  # fmt: skip


class _Factors(TypedDict):
    group: str | None
    cluster: str | None
    stratum: str | None


class RagasItems(NamedTuple):
    """Items of a ragas result, the metric, and by what the human labels were joined."""

    items: JudgedItems
    metric: str
    joined_by: str


def read_ragas_result(
    path: PathLike,
    *,
    metric: str | None = None,
    human_path: PathLike | None = None,
    id: str | Sequence[str] | None = None,
    human: str | None = None,
    group: str | None = None,
    cluster: str | None = None,
    stratum: str | None = None,
) -> RagasItems:
    """Read a ragas result with human labels of some of its rows.

    Parameters
    ----------
    path : path
    metric : str or None
        Column of the scores. None takes the only column of numbers.
    human_path : path or None
        Human labels, joined by ``id``; where None, by the first of ``id``, ``sample_id``,
        ``user_input`` or ``question`` that both files have, or else by ``row`` (or
        ``row_index``), counted from 0 as ragas and pandas count. Without ``human_path`` the
        labels are a column of the result.
    id, human, group, cluster, stratum : str or None
        Column names. Groups, clusters and strata stand in the result.

    Raises
    ------
    DataError
        If the metric is not unique (the columns are listed), nothing joins the files, or as
        :func:`~rag_sourcebias.io.judged.read_judged_items` and
        :func:`~rag_sourcebias.io.judged.join_judged`.
    """
    name = os.fspath(path)
    names = read_table(path, lambda _: ()).names
    found = _metric(path, names, metric, human)
    factors = _Factors(group=group, cluster=cluster, stratum=stratum)
    if human_path is None:
        if find_column(names, "human", given=human, path=name) is None:
            raise DataError(
                f"{name} has no column of human labels (its columns are {', '.join(names)}); name "
                "it with human=…, or give the labels in a file of their own"
            )
        items = read_judged_items(path, id=id or (), human=human, judge=found, **factors)
        return RagasItems(items, found, "the row")
    other = read_table(human_path, lambda _: ()).names
    shared = id or next((c for c in _JOINED_BY if c in names and c in other), None)
    row = next((c for c in _ROW if c in other), None)
    if shared is None and row is not None:
        unlabeled = read_judged_items(path, id=(), judge=found, require_human=False, **factors)
        return RagasItems(_join_rows(unlabeled, path, human_path, row, human), found, row)
    if shared is None:
        raise DataError(
            f"nothing joins {name} ({', '.join(names)}) and {os.fspath(human_path)} "
            f"({', '.join(other)}); give both the same id column, or the labels a column 'row' "
            "that counts the rows of the result from 0"
        )
    items = join_judged(
        human_path,
        path,
        id=shared,
        human=human,
        judge=found,
        allow_judge_missing=True,
        **factors,
    )
    return RagasItems(items, found, shared if isinstance(shared, str) else " + ".join(shared))


def _metric(path: PathLike, names: Sequence[str], given: str | None, human: str | None) -> str:
    name = os.fspath(path)
    if given is not None:
        if given not in names:
            raise DataError(f"{name} has no column {given!r}; its columns are {', '.join(names)}")
        return given
    rest = [n for n in names if n.lower() not in _NOT_METRICS and n != human]
    table = read_table(path, lambda _: rest)
    metrics = [n for n in rest if _is_scores(table, n)]
    if len(metrics) == 1:
        return metrics[0]
    if metrics:
        raise DataError(
            f"{name} has scores of {len(metrics)} metrics; choose with metric=… out of "
            f"{', '.join(metrics)}"
        )
    raise DataError(
        f"{name} has no column of scores; its columns are {', '.join(names)}; name it with metric=…"
    )


def _is_scores(table: Table, column: str) -> bool:
    """Whether a column holds numbers, some perhaps missing."""
    some = False
    for cell in table.columns[column]:
        if cell is None or (isinstance(cell, str) and cell.strip().lower() in ("", "nan")):
            continue
        if isinstance(cell, bool):
            return False
        try:
            value = float(cell)
        except (TypeError, ValueError, OverflowError):
            return False
        some = some or not math.isnan(value)
    return some


def _join_rows(
    unlabeled: JudgedItems, path: PathLike, human_path: PathLike, row: str, human: str | None
) -> JudgedItems:
    where = os.fspath(human_path)

    def choose(names: tuple[str, ...]) -> list[str]:
        column = find_column(names, "human", given=human, path=where)
        rest = [n for n in names if n != row]
        if column is None and len(rest) == 1:
            column = rest[0]
        if column is None:
            raise DataError(
                f"{where}: no column is recognised as human; its columns are {', '.join(names)}; "
                "name the column with human=…"
            )
        return [row, column]

    table = read_table(human_path, choose)
    rows = names_of(table, row, role="row")
    column = next(c for c in table.columns if c != row)
    labels = numbers_of(table, column, role="human label", ids=rows)
    joined = np.full(len(unlabeled), np.nan)
    for i, text in enumerate(rows):
        place = int(text) if text.isdecimal() else -1
        if not 0 <= place < len(joined):
            raise DataError(
                f"{table.where(i)}: row {text!r} is not one of the {len(joined)} rows 0 … "
                f"{len(joined) - 1} of {os.fspath(path)}"
            )
        if not math.isnan(joined[place]):
            raise DataError(f"{table.where(i)}: row {place} is labelled twice; keep one")
        joined[place] = labels[i]
    return JudgedItems(
        ids=tuple(str(i) for i in range(len(joined))),
        human=joined,
        judge=unlabeled.judge,
        groups=unlabeled.groups,
        clusters=unlabeled.clusters,
        strata=unlabeled.strata,
    )
