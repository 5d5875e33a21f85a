"""Readers of judged data: human and judge values of items, in one file or in two."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.cells import ids_of, names_of, numbers_of
from rag_sourcebias.io.columns import find_column, find_ids
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.io.tables import Table, read_table
from rag_sourcebias.types.judged_items import JudgedItems

__all__ = ["join_judged", "read_judged_items"]

_Ids = str | Sequence[str] | None
_FACTORS = {"group": "groups", "cluster": "clusters", "stratum": "strata"}


def read_judged_items(
    path: PathLike,
    *,
    id: _Ids = None,
    human: str | None = None,
    judge: str | None = None,
    group: str | None = None,
    cluster: str | None = None,
    stratum: str | None = None,
    require_human: bool = True,
) -> JudgedItems:
    """Read items with judge values and, for some, human labels.

    Parameters
    ----------
    path : path
        CSV, TSV or JSON lines (plain or ``.gz``), or Parquet.
    id, human, judge, group, cluster, stratum : str or None
        Column names. Where None, the usual names are looked for (``id``, ``human``,
        ``human_label``, ``judge``, ``judge_score``, …; ``group``, ``cluster`` and ``stratum`` only
        under these names). ``id`` may be several columns, joined by a tab; without an id column
        ``query_id`` and ``doc_id`` are used, and without those the row numbers.
    require_human : bool
        False accepts a file without a human column: every item is then unlabelled.

    Returns
    -------
    JudgedItems
        In the order of the file. An empty human cell (also ``-``, ``NA``, ``null``) is an
        unlabelled item, an empty judge cell one the judge failed on. true/false, yes/no,
        correct/incorrect, pass/fail count as 1/0.

    Raises
    ------
    DataError
        If a column cannot be found (the message lists those there are), a cell is not a number,
        an id is empty or repeated, or a group, cluster or stratum is empty; with file and line.
    MissingExtraError
        If a Parquet file is given and pyarrow is not installed.
    """
    name = os.fspath(path)
    given = {"group": group, "cluster": cluster, "stratum": stratum}
    found: dict[str, str | None] = {}
    id_columns: tuple[str, ...] = ()

    def choose(names: tuple[str, ...]) -> list[str]:
        nonlocal id_columns
        found["human"] = find_column(names, "human", given=human, path=name)
        found["judge"] = find_column(names, "judge", given=judge, path=name)
        needed = ("human", "judge") if require_human else ("judge",)
        lacking = [role for role in needed if found[role] is None]
        if lacking:
            raise DataError(
                f"{name}: no column is recognised as {' or '.join(lacking)}; its columns are "
                f"{', '.join(names)}; name the column with "
                + " and ".join(f"{role}=…" for role in lacking)
            )
        id_columns = find_ids(names, given=id, path=name)
        for role, column in given.items():
            found[role] = find_column(names, role, given=column, path=name)
        return list(dict.fromkeys([*(c for c in found.values() if c), *id_columns]))

    table = read_table(path, choose)
    if found["human"] == found["judge"]:
        raise DataError(f"{name}: column {found['judge']!r} cannot be both human and judge")
    ids = ids_of(table, id_columns)
    return JudgedItems(
        ids=tuple(ids),
        human=(
            np.full(len(ids), np.nan)
            if found["human"] is None
            else numbers_of(table, found["human"], role="human label", ids=ids)
        ),
        judge=numbers_of(table, str(found["judge"]), role="judge value", ids=ids),
        **_factors(table, found),
    )


def _factors(table: Table, found: dict[str, str | None]) -> dict[str, tuple[str, ...]]:
    return {
        field: tuple(names_of(table, column, role=role, shown=True))
        for role, field in _FACTORS.items()
        if (column := found.get(role)) is not None
    }


def join_judged(
    human_path: PathLike,
    judge_path: PathLike,
    *,
    id: _Ids = None,
    human: str | None = None,
    judge: str | None = None,
    group: str | None = None,
    cluster: str | None = None,
    stratum: str | None = None,
    allow_judge_missing: bool = False,
) -> JudgedItems:
    """Join a file of human labels with a file of judge values by id.

    Parameters
    ----------
    human_path, judge_path : path
        As in :func:`read_judged_items`; both need an id column. The judge file lists every item,
        and the groups, clusters and strata.
    id : str, sequence of str or None
        Id column or columns, of the same name in both files.
    human, judge : str or None
        Column names. Where None: the usual names, or else the only column that is not the id.
    group, cluster, stratum : str or None
        Columns of the judge file, as in :func:`read_judged_items`.
    allow_judge_missing : bool
        True keeps a labelled item whose judge value is empty in the judge file (the judge failed
        on it). A labelled item that the judge file does not list at all is always an error.

    Returns
    -------
    JudgedItems
        In the order of the judge file.

    Raises
    ------
    DataError
        As :func:`read_judged_items`, and if labelled items do not join (how many, which first) or
        lack a judge value.
    """
    human_table, human_ids, human_column, _ = _one_value(human_path, "human", human, id, {})
    labels = numbers_of(human_table, human_column, role="human label", ids=human_ids)
    factors = {"group": group, "cluster": cluster, "stratum": stratum}
    table, ids, judge_column, found = _one_value(judge_path, "judge", judge, id, factors)
    values = numbers_of(table, judge_column, role="judge value", ids=ids)

    row_of = {name: i for i, name in enumerate(ids)}
    labeled = np.flatnonzero(~np.isnan(labels))
    place = np.array([row_of.get(human_ids[i], -1) for i in labeled], dtype=np.int64)
    lost = labeled[place < 0]
    if len(lost):
        first = int(lost[0])
        raise DataError(
            f"{len(lost)} of {len(labeled)} labelled items are not in {table.path}, first "
            f"{human_ids[first]!r} ({human_table.where(first)}); ids there look like {ids[0]!r}; "
            "every labelled item needs a judge value"
        )
    empty = np.flatnonzero(np.isnan(values[place]))
    if len(empty) and not allow_judge_missing:
        first = int(place[empty[0]])
        raise DataError(
            f"{len(empty)} of {len(labeled)} labelled items have no judge value, first "
            f"{ids[first]!r} ({table.where(first)}); judge them again, or pass "
            "allow_judge_missing=True to count them as failures of the judge"
        )
    joined = np.full(len(ids), np.nan)
    joined[place] = labels[labeled]
    return JudgedItems(ids=tuple(ids), human=joined, judge=values, **_factors(table, found))


def _one_value(
    path: PathLike, role: str, given: str | None, id_given: _Ids, factors: dict[str, str | None]
) -> tuple[Table, list[str], str, dict[str, str | None]]:
    """Read a file with ids and one value per id."""
    name = os.fspath(path)
    found: dict[str, str | None] = {}
    id_columns: tuple[str, ...] = ()
    value = ""

    def choose(names: tuple[str, ...]) -> list[str]:
        nonlocal id_columns, value
        id_columns = find_ids(names, given=id_given, path=name)
        if not id_columns:
            raise DataError(
                f"{name}: no column is recognised as id, and two files can only be joined by id; "
                f"its columns are {', '.join(names)}; name the column with id=…"
            )
        for factor, column in factors.items():
            found[factor] = find_column(names, factor, given=column, path=name)
        taken = {*id_columns, *found.values()}
        column = find_column(names, role, given=given, path=name)
        rest = [n for n in names if n not in taken]
        if column is None and len(rest) == 1:
            column = rest[0]
        if column is None:
            raise DataError(
                f"{name}: no column is recognised as {role}; its columns are {', '.join(names)}; "
                f"name the column with {role}=…"
            )
        value = column
        return list(dict.fromkeys([*id_columns, column, *(c for c in found.values() if c)]))

    table = read_table(path, choose)
    return table, ids_of(table, id_columns), value, found
