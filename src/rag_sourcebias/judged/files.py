"""Files of judged evaluations: items, label distributions, ragas results."""

import json
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from rag_sourcebias.core.completions import JudgedItems, Judgments
from rag_sourcebias.core.data import FloatArray, LabelDistributions
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.files import PathLike, jsonl_text, write_atomic
from rag_sourcebias.intake.tables import (
    Table,
    find_column,
    find_columns,
    find_ids,
    ids_of,
    names_of,
    numbers_of,
    read_table,
    record_text,
    require_columns,
    score_columns,
    table_name,
    unescaped,
    values_of,
)
from rag_sourcebias.judged.judge_audit import BiasColumns

# Readers of judged data: human and judge values of items, in one table or in two.


_Ids = str | Sequence[str] | None
_Given = Mapping[str, Any]  # the column, or columns, that the caller named for each role
_Roles = dict[str, Any]
_FACTORS = {"group": "groups", "cluster": "clusters"}


def read_judged_items(
    source: Any,  # noqa: ANN401 - whatever a user has
    *,
    id: _Ids = None,
    human: str | Sequence[str] | None = None,
    judge: str | Sequence[str] | None = None,
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
    return _read_items(
        source,
        id,
        {"human": human, "judge": judge, "group": group, "cluster": cluster},
        needed=("human", "judge") if require_human else ("judge",),
    )[0]


def read_audited_items(
    source: Any,  # noqa: ANN401
    *,
    id: _Ids = None,
    human: str | Sequence[str] | None = None,
    judge: str | Sequence[str] | None = None,
    group: str | None = None,
    cluster: str | None = None,
    length: str | None = None,
    swapped: str | None = None,
    judge_name: str | None = None,
) -> tuple[JudgedItems, BiasColumns]:
    """Read items as :func:`read_judged_items`, and what may sway their judge.

    Parameters
    ----------
    length, swapped : str or None
        Columns of the length of what was judged (or the text itself, whose characters are then
        counted), and of the judge value with the two things compared in the other order. Where
        None: ``length``, ``n_words``, ``n_chars``, ``answer``, ``response``, ``output``, ``text``
        or ``passage``; ``judge_swapped``.
    judge_name : str or None
        Model of the judge.

    Raises
    ------
    DataError
        As :func:`read_judged_items`, or if the family of ``judge_name`` is not known.
    """
    items, table = _read_items(
        source,
        id,
        {"human": human, "judge": judge, "group": group, "cluster": cluster},
        also={"length": length, "swapped": swapped},
    )
    ids = list(items.ids)
    lengths, again = table.roles["length"], table.roles["swapped"]
    return items, BiasColumns(
        judge_name=judge_name,
        length=None if lengths is None else _lengths(table, str(lengths), ids),
        swapped=None
        if again is None
        else values_of(table, str(again), role="swapped judge value", ids=ids),
    )


def _read_items(
    source: Any,  # noqa: ANN401
    id: _Ids,
    given: _Given,
    *,
    needed: Sequence[str] = ("human", "judge"),
    also: Mapping[str, str | None] = MappingProxyType({}),
) -> tuple[JudgedItems, Table]:
    """Read items, and the table with further columns: those named, or of usual names."""
    choose = partial(
        _item_columns, path=table_name(source), id=id, given=given, needed=needed, also=also
    )
    table = read_table(source, choose)
    ids = ids_of(table, _listed(table.roles["id"]))
    return _items(table, ids, _labels(table, ids), given), table


def _labels(table: Table, ids: list[str]) -> FloatArray:
    """Return the mean of what people said of each item; NaN where nobody did."""
    people = [
        values_of(table, column, role="human label", ids=ids)
        for column in _listed(table.roles["human"])
    ]
    values = np.array(people).reshape(-1, len(ids))
    n = np.count_nonzero(~np.isnan(values), axis=0)
    labels = np.full(len(ids), np.nan)
    np.divide(np.nansum(values, axis=0), n, out=labels, where=n > 0)
    return labels


def _item_columns(
    names: tuple[str, ...],
    *,
    path: str,
    id: _Ids,
    given: _Given,
    needed: Sequence[str],
    also: Mapping[str, str | None],
) -> _Roles:
    """Return the columns of items by role: those of people and judges before ids and factors."""
    judges = _listed(given["judge"])
    if twice := [name for i, name in enumerate(judges) if name in judges[:i]]:
        raise DataError(f"judge column {twice[0]!r} is named twice; name each judge once")
    people = _listed(given["human"])
    require_columns(names, (*people, *judges), path)
    factors = {role: given[role] for role in _FACTORS}
    taken = {*_listed(id), *factors.values()}
    values = {
        role: named[0] if named else None for role, named in (("human", people), ("judge", judges))
    }
    found = find_columns(names, values, path=path, taken=taken, needed=needed)
    taken |= {*people, *judges}
    ids = find_ids(names, given=id, path=path, taken=taken)
    found |= find_columns(names, factors, path=path, taken=taken)
    if id is None and ids == (found["cluster"],) and found["group"]:
        ids = (*ids, found["group"])  # each system's row of a query is an item
    free = {*found.values(), *ids}
    found |= {
        role: find_column(names, role, given=column, path=path, taken=taken | free)
        for role, column in also.items()
    }
    judges = judges or _listed(found["judge"])
    people = people or _listed(found["human"])
    if both := [name for name in people if name in judges]:
        raise DataError(f"{path}: column {both[0]!r} cannot be both human and judge")
    return {**found, "human": people, "judge": judges, "id": ids}


def _items(table: Table, ids: list[str], labels: FloatArray, given: _Given) -> JudgedItems:
    """Return items with the labels, and the judges and factors of a table."""
    judges = {
        name: values_of(table, name, role="judge value", ids=ids)
        for name in _listed(table.roles["judge"])
    }
    factors = {
        field: tuple(names_of(table, str(column), role=role, shown=True))
        for role, field in _FACTORS.items()
        # an empty column that only has a usual name is none
        if (column := table.roles[role]) is not None
        and (given[role] or any(str(c or "").strip() for c in table.columns[str(column)]))
    }
    return JudgedItems.of_judges(
        ids=tuple(ids), human=labels, judges=judges, notes=tuple(table.notes), **factors
    )


def _lengths(table: Table, column: str, ids: list[str]) -> FloatArray:
    """Numbers as they are, texts as their characters; an answer may be a number."""
    if column not in ("answer", "response", "output", "text", "passage"):
        with suppress(DataError):
            return numbers_of(table, column, role="length", ids=ids)
    return np.array(
        [0 if cell is None else len(str(cell)) for cell in table.columns[column]], dtype=np.float64
    )


def _listed(names: str | Sequence[str] | None) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names or ())


def join_judged(
    human_source: Any,  # noqa: ANN401
    judge_source: Any,  # noqa: ANN401
    *,
    id: _Ids = None,
    human: str | Sequence[str] | None = None,
    judge: str | Sequence[str] | None = None,
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
    by_people = _values_by_id(human_source, "human", id, {"human": human})
    human_ids = ids_of(by_people, _listed(by_people.roles["id"]))
    labels = _labels(by_people, human_ids)
    given = {"judge": judge, "group": group, "cluster": cluster}
    table = _values_by_id(judge_source, "judge", id, given)
    table.notes.extend(by_people.notes)
    ids = ids_of(table, _listed(table.roles["id"]))
    row_of = {name: i for i, name in enumerate(ids)}
    labeled = np.flatnonzero(~np.isnan(labels))
    place = np.array([_row(row_of, human_ids[i]) for i in labeled], dtype=np.int64)
    lost = labeled[place < 0]
    if len(lost):
        first = int(lost[0])
        raise DataError(
            f"{len(lost)} of {len(labeled)} labelled items are not in {table.path}, first "
            f"{human_ids[first]!r} ({by_people.where(first)}); ids there look like {ids[0]!r}; "
            "every labelled item needs a judge value"
        )
    joined = np.full(len(ids), np.nan)
    joined[place] = labels[labeled]
    return _items(table, ids, joined, given)


def _row(row_of: Mapping[str, int], name: str) -> int:
    """Row of an id, or of what a sheet wrote so that no spreadsheet takes it for a formula; -1."""
    if name in row_of:
        return row_of[name]
    return row_of.get("\t".join(unescaped(part) for part in name.split("\t")), -1)


def _values_by_id(source: Any, role: str, id: _Ids, given: _Given) -> Table:  # noqa: ANN401
    """Read ids, factors and values: those named, of usual names, or the only column left."""
    path = table_name(source)

    def choose(names: tuple[str, ...]) -> _Roles:
        values = _listed(given[role])
        require_columns(names, values, path)
        ids = find_ids(names, given=id, path=path, needed=True)
        factors = {factor: given[factor] for factor in _FACTORS if factor in given}
        found = find_columns(names, factors, path=path, taken={*ids, *values})
        taken = {*ids, *found.values()}
        rest = [name for name in names if name not in taken]
        if not values and len(rest) > 1:
            found |= find_columns(names, {role: None}, path=path, taken=taken, needed=(role,))
            rest = [str(found[role])]
        return {**found, "id": ids, role: values or rest}

    return read_table(source, choose)


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


# Cells of label files as numbers.


_MOST_GRADES = 1_000  # a damaged grade must not ask for a table of its size


def _number(cell: Any, table: Table, row: int) -> float:  # noqa: ANN401
    try:
        if isinstance(cell, bool):
            raise TypeError
        return float(cell)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{table.where(row)}: {cell!r} is not a number") from error


def cell_items(cell: Any, table: Table, row: int) -> Sequence[Any]:  # noqa: ANN401
    """Return the entries of a list cell."""
    if isinstance(cell, str):
        try:
            cell = (
                json.loads(cell)
                if cell.lstrip().startswith("[")
                else re.split(r"[\s|]+", cell.strip())
            )
        except (ValueError, RecursionError) as error:
            raise DataError(f"{table.where(row)}: {cell!r} is not a list of numbers") from error
    if not isinstance(cell, list) or not cell or cell == [""]:
        raise DataError(
            f"{table.where(row)}: expected a list of numbers, found {cell!r}; leave out pairs the "
            "judge gave no answer for"
        )
    return cell


def cell_grades(cells: Sequence[Any], table: Table, row: int) -> list[int]:
    """Cells as whole grades."""
    values = [_number(c, table, row) for c in cells]
    for value in values:
        if not value.is_integer() or value < 0:
            raise DataError(
                f"{table.where(row)}: grade {value:g} is not a whole number of at least 0; leave "
                "out pairs the judge gave no answer for"
            )
    return [int(v) for v in values]


def vote_shares(votes: Sequence[Sequence[int]], table: Table, n_grades: int | None) -> FloatArray:
    """Votes as shares of each grade."""
    highest = [max(v) for v in votes]
    width = max(max(highest) + 1, 2) if n_grades is None else n_grades
    most = min(width, _MOST_GRADES)
    over = next((i for i, g in enumerate(highest) if g >= most), None)
    if over is not None:
        raise DataError(
            f"{table.where(over)}: grade {highest[over]} is outside the scale 0 … {most - 1}"
        )
    counts = np.zeros((len(votes), width))
    rows = np.repeat(np.arange(len(votes)), [len(v) for v in votes])
    np.add.at(counts, (rows, np.concatenate([np.asarray(v) for v in votes])), 1.0)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


# Readers of label distributions: what a judge believes about (query, document) pairs.


_PAIR = ("query_id", "doc_id")
_TOLERANCE = 1e-6
_FORMS = "columns p0 … pR, a 'votes' list or a 'grade'"


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
    name = os.fspath(path)
    table, probs = _read_rows(path, n_grades)
    if n_grades is not None and probs.shape[1] != n_grades:
        raise DataError(
            f"{name}: {probs.shape[1]} grades in the file where n_grades={n_grades} was asked for"
        )
    query, doc = (names_of(table, str(table.roles[role]), role=role) for role in _PAIR)
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


def _read_rows(source: Any, n_grades: int | None) -> tuple[Table, FloatArray]:  # noqa: ANN401
    name = table_name(source)

    def choose(names: tuple[str, ...]) -> _Roles:
        pair = find_columns(names, dict.fromkeys(_PAIR), path=name, needed=_PAIR)
        numbered = [f"p{i}" for i in range(len(names)) if f"p{i}" in names]
        if not (len(numbered) > 1 and numbered[-1] == f"p{len(numbered) - 1}"):
            numbered = [name for name in names if name in ("votes", "grade")][-1:]
        if not numbered:
            raise DataError(
                f"{name}: no column is recognised as labels ({_FORMS}); its columns are "
                f"{', '.join(names)}"
            )
        return {**pair, "labels": numbered}

    table = read_table(source, choose)
    form = _listed(table.roles["labels"])
    if form[0] == "p0":
        probs = np.empty((len(table), len(form)))
        for r, column in enumerate(form):
            probs[:, r] = [_number(cell, table, i) for i, cell in enumerate(table.columns[column])]
        return table, probs
    votes = []
    for i, cell in enumerate(table.columns[form[0]]):
        cells = [cell] if form[0] == "grade" else cell_items(cell, table, i)
        votes.append(cell_grades(cells, table, i))
    return table, vote_shares(votes, table, n_grades)


# What ragas writes, as judged items; ragas itself is not needed.
# ``EvaluationResult`` or its ``to_pandas()``, as CSV, JSON or Parquet, or the CSV of an
# ``@experiment``. A metric that failed is NaN there (an empty cell): it is kept as a judge
# failure.


_JOINED_BY = ("id", "item_id", "sample_id", "example_id", "user_input", "question")


class RagasItems(NamedTuple):
    """Items of a ragas result, the metric, and by what the human labels were joined."""

    items: JudgedItems
    metric: str
    joined_by: str


def read_ragas_result(
    source: Any,  # noqa: ANN401
    *,
    metric: str | None = None,
    human_path: PathLike | None = None,
    id: _Ids = None,
    human: str | Sequence[str] | None = None,
    group: str | None = None,
    cluster: str | None = None,
) -> RagasItems:
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

    Raises
    ------
    DataError
        If the metric is not unique (the columns are listed), nothing joins the files, or as
        :func:`~rag_sourcebias.read_judged_items` and
        :func:`~rag_sourcebias.join_judged`.
    """
    name = table_name(source)
    names = read_table(source, lambda _: ()).names
    if metric is None:
        metric = _only_metric(source, names, {*_listed(human), *_listed(id), group, cluster})
    require_columns(names, (metric,), name)
    if human_path is None:
        if not human and find_column(names, "human", given=None, path=name) is None:
            raise DataError(
                f"{name} has no column of human labels (its columns are {', '.join(names)}); name "
                "it with human=…, or give the labels in a file of their own"
            )
        items = read_judged_items(
            source, id=id or (), human=human, judge=metric, group=group, cluster=cluster
        )
        return RagasItems(items, metric, "the row")
    other = read_table(human_path, lambda _: ()).names
    shared = id or next((c for c in _JOINED_BY if c in names and c in other), None)
    if shared is None:
        raise DataError(
            f"nothing joins {name} ({', '.join(names)}) and {os.fspath(human_path)} "
            f"({', '.join(other)}); give both the same id column"
        )
    items = join_judged(
        human_path, source, id=shared, human=human, judge=metric, group=group, cluster=cluster
    )
    return RagasItems(items, metric, " + ".join(_listed(shared)))


def _only_metric(
    source: Any,  # noqa: ANN401
    names: Sequence[str],
    taken: Collection[str | None],
) -> str:
    metrics = score_columns(source, taken=taken)
    if len(metrics) == 1:
        return metrics[0]
    if metrics:
        raise DataError(
            f"{table_name(source)} has scores of {len(metrics)} metrics; choose with metric=… out "
            f"of {', '.join(metrics)}"
        )
    raise DataError(
        f"{table_name(source)} has no column of scores; its columns are {', '.join(names)}; name "
        "it with metric=…"
    )


# What a judge said, as tables that the readers above read.


Failures = Literal["leave-out", "lowest", "highest"]
Row = Mapping[str, Any]
_ENDINGS = (".tsv", ".csv", ".jsonl")


def table_ending(path: PathLike) -> str:
    """Return ``.tsv``, ``.csv`` or ``.jsonl``, with ``.gz`` behind it where the name has it.

    Raises
    ------
    DataError
        If the name ends otherwise.
    """
    name = os.fspath(path)
    packed = ".gz" if name.endswith(".gz") else ""
    ending = Path(name.removesuffix(packed)).suffix
    if ending not in _ENDINGS:
        raise DataError(f"{name}: write to a name that ends in {', '.join(_ENDINGS)} (or .gz)")
    return ending + packed


def beside(path: PathLike, what: str) -> Path:
    """Name a second file: ``labels.tsv.gz`` gives ``labels.<what>.tsv.gz``."""
    ending = table_ending(path)
    return Path(f"{os.fspath(path).removesuffix(ending)}.{what}{ending}")


def write_label_distributions(
    judgments: Judgments, path: PathLike, *, failures: Failures = "leave-out"
) -> int:
    """Write ``query_id``, ``doc_id``, ``p0`` … ``pR``, one row per pair.

    Parameters
    ----------
    failures : {"leave-out", "lowest", "highest"}
        What becomes of pairs without a judgment: no row, or all probability on the lowest or
        highest grade (between which a utility must lie whatever the judge would have said).

    Returns
    -------
    int
        Rows written.
    """
    ok, probs = judgments.ok, judgments.probs.copy()
    probs[~ok] = np.eye(judgments.n_grades)[0 if failures == "lowest" else -1]
    rows = np.flatnonzero(ok | (failures != "leave-out"))
    _write(
        path,
        (
            {
                "query_id": judgments.query_ids[i],
                "doc_id": judgments.doc_ids[i],
                **{f"p{r}": float(p) for r, p in enumerate(probs[i])},
            }
            for i in rows.tolist()
        ),
    )
    return len(rows)


def write_judgment_status(judgments: Judgments, path: PathLike) -> None:
    """Write how every item ended, failures included."""
    values = judgments.values()
    _write(
        path,
        (
            {
                "query_id": judgments.query_ids[i],
                "doc_id": judgments.doc_ids[i],
                "status": judgments.status[i],
                "judge": _finite_or_none(values[i]),
                "mass": _finite_or_none(judgments.mass[i]),
                "n_bounded": int(judgments.n_bounded[i]),
                "prompt_tokens": int(judgments.prompt_tokens[i]),
                "completion_tokens": int(judgments.completion_tokens[i]),
                "reason": " ".join(judgments.reasons[i].split()),
            }
            for i in range(len(judgments))
        ),
    )


def write_item_judgments(
    judgments: Judgments, path: PathLike, columns: Mapping[str, Sequence[Any]]
) -> None:
    """Write items with their expected grade, empty where the judge failed.

    Parameters
    ----------
    columns : mapping of str to sequence of length m
        What stands before it: ``id``, and ``human``, ``group``, ``cluster`` where there are such.
    """
    values = judgments.values()
    _write(
        path,
        (
            {
                **{name: column[i] for name, column in columns.items()},
                "judge": _finite_or_none(values[i]),
                "status": judgments.status[i],
                "reason": " ".join(judgments.reasons[i].split()),
            }
            for i in range(len(judgments))
        ),
    )


def _finite_or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _write(path: PathLike, rows: Iterator[Row]) -> None:
    ending = table_ending(path).removesuffix(".gz")
    write_atomic(
        path, jsonl_text(map(dict, rows)) if ending == ".jsonl" else _lines(path, rows, ending)
    )


def _lines(path: PathLike, rows: Iterator[Row], ending: str) -> Iterator[str]:
    for i, row in enumerate(rows):
        cells = ["" if v is None else f"{v:.10g}" if isinstance(v, float) else str(v)
                 for v in row.values()]  # fmt: skip
        for line in (cells,) if i else ([*row], cells):
            yield _tsv(path, line) if ending == ".tsv" else record_text(line, "\n")


def _tsv(path: PathLike, cells: Sequence[str]) -> str:
    bad = next((cell for cell in cells if any(c in cell for c in "\t\n\r")), None)
    if bad is not None:
        raise DataError(
            f"{path}: {bad!r} holds a tab or a line break, which TSV cannot; write .jsonl or .csv"
        )
    return "\t".join(cells) + "\n"
