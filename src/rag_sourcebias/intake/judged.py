"""Tables of items that a judge and people graded, in one table or two, and of label shares."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from importlib import resources
from itertools import chain, count, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.codec import PathLike
from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import FloatArray, LabelDistributions, places_of
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.tables import (
    Chosen,
    Table,
    columns_in,
    find_columns,
    find_ids,
    ids_of,
    list_in,
    listed,
    names_of,
    numbers_of,
    read_table,
    require_once,
    require_roles,
    score_columns,
    values_of,
)

# Human and judge values of items.


_Given = Mapping[str, Any]  # the column, or columns, that the caller named for each role asked for
_FACTORS = {"group": "groups", "cluster": "clusters"}


def read_judged_items(
    source: Any,  # noqa: ANN401 - whatever a user has
    *,
    id: Chosen = None,
    human: Chosen = None,
    judge: Chosen = None,
    group: str | None = None,
    cluster: str | None = None,
    require_human: bool = True,
) -> JudgedItems:
    """Read items with judge values and, for some, human labels.

    Parameters
    ----------
    source : path, frame, list of dicts, dict of lists or result of ragas or deepeval
        A path is of CSV, TSV, JSON or JSON lines (plain or ``.gz``), or Parquet.
    id, human, judge, group, cluster : str or None
        Column names. Where None, the usual names are looked for (``id``, ``human``,
        ``human_label``, ``judge``, ``judge_score``, …; ``group`` only under this
        name; for ``cluster`` also that of the query, as rows of one query depend on each other:
        ``"none"`` if they do not). ``id`` may be several columns, joined by a tab; without an id
        column ``query_id`` and ``doc_id`` are used, and without those the row numbers. A column
        that is named has no other role; an empty one that only has a usual name is left out.
        Several ``human`` columns are several people, whose mean counts; several ``judge`` columns
        several judges, or votes of one
        (:meth:`~rag_sourcebias.core.completions.JudgedItems.of_judges`).
    require_human : bool
        False accepts a table without a human column: every item is then unlabelled.

    Returns
    -------
    JudgedItems
        In the order of the table. An empty human cell (also ``-``, ``NA``, ``null``) is an
        unlabelled item, an empty judge cell one the judge failed on; so is a value such as -1 or
        99 that lies apart from all others. true/false, yes/no, correct/incorrect, pass/fail count
        as 1/0, A/B/tie as 1/0/½.

    Raises
    ------
    DataError
        If a column cannot be found (the message lists those there are), a cell is not a number,
        an id is empty or repeated, or a group or cluster is empty; with file and line.
    MissingExtraError
        If a Parquet file is given and pyarrow is not installed.
    """
    given = {"id": id, "human": human, "judge": judge, "group": group, "cluster": cluster}
    table = read_table(source)
    needed = ("human", "judge") if require_human else ("judge",)
    return _items(table, _columns(table, given, needed=needed), given)


def read_audited_items(
    source: Any,  # noqa: ANN401
    *,
    length: str | None = None,
    swapped: str | None = None,
    **columns: Any,  # noqa: ANN401 - those of read_judged_items
) -> tuple[JudgedItems, FloatArray | None, FloatArray | None]:
    """Read items as :func:`read_judged_items`, and what may sway their judge.

    Parameters
    ----------
    length, swapped : str or None
        Columns of the length of what was judged (or the text itself, whose characters are then
        counted), and of the judge value with the two things compared in the other order. Where
        None: ``length``, ``n_words``, ``n_chars``, ``answer``, ``response``, ``output``, ``text``
        or ``passage``; ``judge_swapped``.

    Returns
    -------
    items : JudgedItems
    length, swapped : float64 arrays of shape (n,) or None

    Raises
    ------
    DataError
        As :func:`read_judged_items`.
    """
    given = dict.fromkeys(("id", "human", "judge", "group", "cluster")) | columns
    given |= {"length": length, "swapped": swapped}
    table = read_table(source)
    found = _columns(table, given, needed=("human", "judge"))
    lengths = again = None
    if found["length"]:
        lengths = _lengths(table, found["length"])
    if found["swapped"]:
        again = values_of(table, found["swapped"], role="swapped judge value")
    return _items(table, found, given), lengths, again


def _columns(
    table: Table, given: _Given, *, needed: Sequence[str], joined: bool = False
) -> dict[str, Any]:
    """Find the columns of the roles that are given: those named, or usual.

    Parameters
    ----------
    joined : bool
        Ids are needed, and the only column left is the one that is needed, whatever its name.
    """
    named = [name for role in ("human", "judge") for name in listed(given.get(role))]
    if twice := [name for name in named if named.count(name) > 1]:
        raise DataError(f"{table.path}: column {twice[0]!r} is named twice; name it once")
    roles = dict(given)
    id_columns = roles.pop("id")
    taken = columns_in(given)
    found = find_columns(table, roles, taken=taken)
    ids = find_ids(table, id_columns, taken=taken, needed=joined)
    if id_columns is None and ids == listed(found.get("cluster")):
        ids = (*ids, *listed(found["group"]))  # each system's row of a query is an item
    rest = {*table.names}.difference(ids, columns_in(found))
    if joined and not found[needed[0]] and len(rest) == 1:
        found[needed[0]] = rest.pop()
    require_roles(table, found, needed)
    return {**found, "id": ids}


def _labels(table: Table, columns: Chosen) -> FloatArray:
    """Return the mean of what people said of each item; NaN where nobody did."""
    people = [values_of(table, column, role="human label") for column in listed(columns)]
    values = np.array(people).reshape(-1, len(table))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(values, axis=0) / (~np.isnan(values)).sum(axis=0))


def _items(table: Table, found: _Given, given: _Given) -> JudgedItems:
    """Return items with the labels, judges and factors of a table."""
    ids, human = ids_of(table, found["id"]), _labels(table, found.get("human"))
    judges = {
        column: values_of(table, column, role="judge value") for column in listed(found["judge"])
    }
    factors = {}
    for role, factor in _FACTORS.items():
        for column in listed(found[role]):
            # an empty column that only has a usual name is none
            if given[role] or any(str(cell or "").strip() for cell in table.columns[column]):
                factors[factor] = tuple(names_of(table, column, role=role, shown=True))
    return JudgedItems.of_judges(
        ids=tuple(ids), human=human, judges=judges, notes=tuple(table.notes), **factors
    )


def _lengths(table: Table, column: str) -> FloatArray:
    """Numbers as they are, texts as their characters; an answer may be a number."""
    if column not in ("answer", "response", "output", "text", "passage"):
        with suppress(DataError):
            return numbers_of(table, column, role="length")
    cells = ("" if cell is None else str(cell) for cell in table.columns[column])
    return np.array(list(map(len, cells)), dtype=np.float64)


def join_judged(
    human_source: Any,  # noqa: ANN401
    judge_source: Any,  # noqa: ANN401
    *,
    id: Chosen = None,
    human: Chosen = None,
    judge: Chosen = None,
    group: str | None = None,
    cluster: str | None = None,
) -> JudgedItems:
    """Join a table of human labels with a table of judge values by id.

    Parameters
    ----------
    human_source, judge_source : path, frame, list of dicts or dict of lists
        As in :func:`read_judged_items`; both need an id column. That of the judge lists every
        item, and the groups and clusters.
    id : str, sequence of str or None
        Id column or columns, of the same name in both.
    human, judge : str or None
        Column names. Where None: the usual names, or else the only column that is not the id.
        ``judge`` may be several.
    group, cluster : str or None
        Columns of the judge's table, as in :func:`read_judged_items`.

    Returns
    -------
    JudgedItems
        In the order of the judge's table.

    Raises
    ------
    DataError
        As :func:`read_judged_items`, and if labelled items do not join (how many, which first).
    """
    by_people = read_table(human_source)
    found = _columns(by_people, {"id": id, "human": human}, needed=("human",), joined=True)
    labels, human_ids = _labels(by_people, found["human"]), ids_of(by_people, found["id"])
    given = {"id": id, "judge": judge, "group": group, "cluster": cluster}
    table = read_table(judge_source)
    items = _items(table, _columns(table, given, needed=("judge",), joined=True), given)
    labeled = np.flatnonzero(~np.isnan(labels))
    places = places_of([human_ids[row] for row in labeled], items.ids)
    lost = labeled[places < 0]
    if len(lost):
        first = int(lost[0])
        raise DataError(
            f"{len(lost)} of {len(labeled)} labelled items are not in {table.path}, first "
            f"{human_ids[first]!r} ({by_people.where(first)}); ids there look like "
            f"{items.ids[0]!r}; every labelled item needs a judge value"
        )
    joined = items.human.copy()
    joined[places] = labels[labeled]
    return replace(items, human=joined, notes=(*by_people.notes, *items.notes))


def items_of_arrays(y: Any, yhat: Any, unlabeled: Any) -> JudgedItems:  # noqa: ANN401
    """Return items from arrays: labels and judge values of some, judge values of the others.

    Raises
    ------
    DataError
        If they are no arrays of numbers that go together.
    """
    try:
        human, judge, rest = (
            np.asarray(() if value is None else value, dtype=np.float64)
            for value in (y, yhat, unlabeled)
        )
    except (TypeError, ValueError) as error:
        raise DataError(f"y, yhat or yhat_unlabeled holds what is no number: {error}") from error
    if {human.ndim, judge.ndim, rest.ndim} != {1} or not 0 < len(human) == len(judge):
        raise DataError(
            f"y has shape {human.shape}, yhat {judge.shape} and yhat_unlabeled {rest.shape}; "
            "expected one value per item, in y and yhat of the same items"
        )
    return JudgedItems(
        ids=tuple(map(str, range(len(judge) + len(rest)))),
        human=np.concatenate([human, np.full(len(rest), np.nan)]),
        judge=np.concatenate([judge, rest]),
    )


# The judged sample that comes with the package.


JUDGED_SAMPLE_LICENSE = "Apache-2.0 (EVOUNA, Wang et al. 2023)"


def judged_sample_file() -> AbstractContextManager[Path]:
    """Give the sample's CSV file, for as long as the context lasts."""
    return resources.as_file(
        resources.files("rag_sourcebias.intake").joinpath("samples", "evouna", "items.csv")
    )


def load_judged_sample() -> JudgedItems:
    """Load 1,500 answers: five systems on 300 questions, 60 of which people graded.

    From EVOUNA. Human values are 1 (correct) and 0; the judge is lexical match: 1 where a golden
    answer stands in the answer. Groups are systems, clusters questions. It needs no connection.

    Examples
    --------
    >>> items = load_judged_sample()
    >>> len(items), items.n_labeled, items.n_judge_missing
    (1500, 300, 0)
    """
    with judged_sample_file() as file:
        return read_judged_items(file)


# Label distributions: what a judge believes about (query, document) pairs.


_MOST_GRADES = 1_000  # a damaged grade must not ask for a table of its size
_PAIR = ("query_id", "doc_id")
_TOLERANCE = 1e-6
_BETWEEN = re.compile(r"[\s|]+")  # the votes of a cell
_VOTES = ("grade", "votes")


def read_label_distributions(path: PathLike, *, n_grades: int | None = None) -> LabelDistributions:
    """Read distributions over the grades 0 … R.

    Parameters
    ----------
    path : path
        CSV, TSV or JSON lines (plain or ``.gz``), or Parquet, with ``query_id`` and ``doc_id``
        (also ``qid``, ``docid``, ``docno``, ``corpus-id``) and one of: columns ``p0`` … ``pR``;
        ``votes``, a list of whole grades; ``grade``, one whole grade. In text files a list is
        written ``[2, 3]`` or with spaces or ``|`` between numbers.
    n_grades : int or None
        R + 1. None takes it from the columns or, for votes and grades, from the highest grade
        seen: pass it where the highest grade may not occur.

    Raises
    ------
    DataError
        With file and line: a row does not sum to 1, is negative, has another length or holds a
        grade outside the scale, or a pair occurs twice.
    """
    table = read_table(path)
    found = find_columns(table, dict.fromkeys(_PAIR), needed=_PAIR)
    columns = list(takewhile(table.columns.__contains__, map("p{}".format, count())))
    if len(columns) < 2:
        votes = next((name for name in _VOTES if name in table.columns), None)
        if votes is None:
            raise DataError(
                f"{path}: no column is recognised as labels (columns p0 … pR, a 'votes' list or a "
                f"'grade'); its columns are {', '.join(table.names)}"
            )
        probs = _vote_shares(table, votes, n_grades)
    else:
        probs = np.column_stack([numbers_of(table, name, role="probability") for name in columns])
        # written so that NaN counts as wrong
        good = (np.abs(probs.sum(axis=1) - 1) <= _TOLERANCE) & (probs.min(axis=1) >= -_TOLERANCE)
        table.refuse(
            ~good,
            columns[0],
            f"and {', '.join(columns[1:])} do not sum to 1, or are not all at least 0; divide each "
            "row by its sum, and leave out pairs the judge gave no answer for",
        )
    if n_grades is not None and probs.shape[1] != n_grades:
        raise DataError(
            f"{table.path}: {probs.shape[1]} grades in the file where n_grades={n_grades} was "
            "asked for"
        )
    query, doc = (names_of(table, found[role], role=role) for role in _PAIR)
    require_once(table, list(zip(query, doc, strict=True)), "pair", "keep one row per pair")
    return LabelDistributions.from_rows(zip(query, doc, probs.tolist(), strict=True))


def _vote_shares(table: Table, column: str, n_grades: int | None) -> FloatArray:
    """Return the share of each grade among the votes of a cell."""
    votes = list(map(_votes, table.columns[column]))
    rows = np.repeat(np.arange(len(votes)), list(map(len, votes)))
    flat = table.spread(rows.tolist(), {column: list(chain.from_iterable(votes))})
    grades = numbers_of(flat, column, role="grade")
    width = max(int(np.nanmax(grades, initial=0)) + 1, 2) if n_grades is None else n_grades
    most = min(width, _MOST_GRADES)
    flat.refuse(
        ~((grades >= 0) & (grades < most) & (grades % 1 == 0)),  # NaN too
        column,
        f"is outside the scale 0 … {most - 1}; leave out pairs the judge gave no answer for",
    )
    counts = np.zeros((len(votes), width))
    np.add.at(counts, (rows, grades.astype(np.int64)), 1.0)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _votes(cell: Any) -> list[Any]:  # noqa: ANN401 - whatever a table holds
    """Return the grades in a cell: one, a list, or a text of several; one None if it is empty."""
    votes = list_in(cell)
    if isinstance(votes, str):
        votes = _BETWEEN.split(votes.strip())
    return (votes or [None]) if isinstance(votes, list) else [votes]


# What ragas writes, as judged items; ragas itself is not needed.
# ``EvaluationResult`` or its ``to_pandas()``, as CSV, JSON or Parquet, or the CSV of an
# ``@experiment``. A metric that failed is NaN there (an empty cell): it is kept as a judge
# failure.


_JOINED_BY = ("id", "item_id", "sample_id", "example_id", "user_input", "question")


def read_ragas_result(
    source: Any,  # noqa: ANN401
    *,
    metric: str | None = None,
    human_path: PathLike | None = None,
    id: Chosen = None,
    human: Chosen = None,
    group: str | None = None,
    cluster: str | None = None,
) -> tuple[JudgedItems, str, str]:
    """Read a ragas result with human labels of some of its rows.

    Parameters
    ----------
    source : path, frame or ``EvaluationResult``
    metric : str or None
        Column of the scores. None takes the only column of numbers.
    human_path : path or None
        Human labels, joined by ``id``; where None, by the first of ``id``, ``sample_id``,
        ``user_input`` or ``question`` that both have. Without ``human_path`` the labels are a
        column of the result.
    id, human, group, cluster : str or None
        Column names. Groups and clusters stand in the result.

    Returns
    -------
    items : JudgedItems
    metric, joined_by : str
        The column of the scores, and those by which the human labels were joined.

    Raises
    ------
    DataError
        If the metric is not unique (the columns are listed), nothing joins the files, or as
        :func:`~rag_sourcebias.read_judged_items` and
        :func:`~rag_sourcebias.join_judged`.
    """
    table = read_table(source)
    if metric is None:
        taken = {*listed(human), *listed(id), group, cluster}
        metrics = score_columns(table, taken=taken)
        if len(metrics) != 1:
            found = f"scores of {len(metrics)} metrics" if metrics else "no column of scores"
            raise DataError(
                f"{table.path} has {found}; choose with metric=… out of "
                f"{', '.join(metrics or table.names)}"
            )
        metric = metrics[0]
    columns: dict[str, Any] = {"human": human, "judge": metric, "group": group, "cluster": cluster}
    if human_path is None:
        return read_judged_items(table, id=id or (), **columns), metric, "the row"
    by_people = read_table(human_path)
    both = {*table.names} & {*by_people.names}
    shared = id or next((name for name in _JOINED_BY if name in both), None)
    return join_judged(by_people, table, id=shared, **columns), metric, " + ".join(listed(shared))
