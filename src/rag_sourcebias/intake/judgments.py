"""Relevance judgments from any carrier: TREC and BEIR files, tables and dictionaries."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import repeat
from typing import Any

import numpy as np

from rag_sourcebias.core.data import Qrels, coded
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.files import fields_of, read_lines, tells_number
from rag_sourcebias.intake.objects import a, is_column
from rag_sourcebias.intake.tables import (
    Table,
    cells_as,
    find_column,
    find_columns,
    names_of,
    read_fields,
    read_table,
)


def read_qrels(judgments: Any, *, scale: float = 1) -> Qrels:  # noqa: ANN401 - whatever a user has
    """Read relevance judgments from a file, a frame, rows or a dictionary.

    Parameters
    ----------
    judgments : path, frame, list of dicts or of triples, dict of columns or by query
        A file is plain or packed. TREC: ``query_id iteration doc_id grade``. BEIR: ``query-id
        corpus-id score``, without that header separated by spaces or commas. Under a header, in
        JSON and in Parquet columns of the usual names, in any order. A dictionary is ``{query:
        {document: grade}}`` or ``{query: [relevant documents]}``. Without a column of grades all
        documents are relevant.
    scale : float
        Grades are multiplied by it: 2 where they are 0, .5 and 1. A grade that is no whole number
        then is refused.

    Returns
    -------
    Qrels
        Negative grades (junk pages of some TREC tracks) become 0; a pair judged twice alike is
        kept once.

    Raises
    ------
    DataError
        If a file is missing, empty or not UTF-8, a line has another number of columns, a grade
        is not a whole number, or a pair is judged twice with different grades.
    """
    if isinstance(judgments, Qrels):
        return judgments
    table = _of_lines(judgments)
    if table is None:
        table = read_table(_as_columns(judgments))
        found = _columns(table)
        queries, docs = (names_of(table, found[role], role=f"{role} id") for role in _IDS)
    else:  # an id may end in a space that separates nothing
        found = _columns(table)
        queries, docs = (table.columns[found[role]] for role in _IDS)
    read: list[int | None] = [1] * len(table)
    if found["grade"]:
        read = cells_as(table, found["grade"], lambda cell: _grade(str(cell), scale))
    # in a sheet nobody has judged some rows yet
    rows = [row for row, grade in enumerate(read) if grade is not None]
    if not rows:
        raise DataError(
            f"{table.path}: no row has a grade; write one (0, 1, 2, …) for each document judged"
        )
    grades = np.array([read[row] for row in rows], dtype=np.int32)
    query_ids, query_codes = coded(queries[row] for row in rows)
    doc_ids, doc_codes = coded(docs[row] for row in rows)
    pairs = query_codes.astype(np.int64) * len(doc_ids) + doc_codes
    _, first, same = np.unique(pairs, return_index=True, return_inverse=True)
    for at in np.flatnonzero(grades != grades[first][same]):
        unit = table.unit.strip() or "line"
        both = (first[same[at]], at)
        places = (f"grade {grades[i]} in {unit} {table.lines[rows[i]]}" for i in both)
        raise DataError(
            f"{table.path}: query {queries[rows[at]]!r}, document {docs[rows[at]]!r} has "
            f"{' and '.join(places)}; keep one of them"
        )
    once = np.sort(first)
    return Qrels(
        query_ids=query_ids,
        doc_ids=doc_ids,
        query_codes=query_codes[once],
        doc_codes=doc_codes[once],
        grades=np.maximum(grades[once], 0),
    )


# Grades.


_INT32_MAX = 2**31 - 1
_WORDS = {"True": "1", "False": "0"}
_MISSING = ("", "None")


def _grade(cell: str, scale: float) -> int | None:
    """Return a grade times the scale; None where there is none.

    Raises
    ------
    DataError
        If that is no whole number.
    """
    if cell in _MISSING:
        return None
    text = _WORDS.get(cell, cell)
    if not tells_number(text) or abs(float(text) * scale) > _INT32_MAX:
        raise DataError(
            f"{cell!r:.80} is not a whole number within ± {_INT32_MAX}; grades are 0, 1, 2, …"
        )
    number = Fraction(repr(float(text)))  # as people wrote it, in tenths
    grade = number * Fraction(repr(float(scale)))
    if grade.denominator > 1:
        times = number.limit_denominator(100).denominator
        raise DataError(
            f"{cell!r:.80} is not a whole number; multiply all grades by {times}, as audit does "
            f"with --grade-scale {times} (grade_scale={times})"
        )
    return int(grade)


# Tables, and lines without names of columns.


_IDS = ("query", "document")


def _columns(table: Table) -> dict[str, Any]:
    document = find_column(table.names, "document", path=table.path)
    roles = {"document": document, "query": None, "grade": None}
    found = find_columns(table, roles, needed=_IDS, options={})
    if found["grade"] is None and find_column(table.names, "rank") is not None:
        raise DataError(
            f"{table.path} has ranks and no grades: its columns are {', '.join(table.names)}; "
            "judgments have query_id, doc_id and relevance"
        )
    return found


def _of_lines(judgments: Any) -> Table | None:  # noqa: ANN401
    """Read lines of ids and a grade, or of more that nobody needs; None for anything else."""
    if not isinstance(judgments, str | os.PathLike):
        return None
    path = os.fspath(judgments)
    if path.endswith((".parquet", ".pq")):
        return None
    first = next(read_lines(path), (0, ""))[1]
    if not first:
        return None
    fields = _judgment(first)
    judged = tells_number(fields[-1])  # a query may be called like a header
    headed = not judged and find_column(fields, "query") is not None
    if not judged and (first.startswith(("{", "[")) or (headed and re.search("[\t,;]", first))):
        return None
    columns = _BEIR if len(fields) == len(_BEIR) else _TREC
    return read_fields(path, columns, _judgment, n_headers=headed)


_BEIR = ("query-id", "corpus-id", "score")
_TREC = ("query_id", "iteration", "doc_id", "grade")


def _judgment(line: str) -> list[str]:
    fields = fields_of(line)
    return [field.strip() for field in re.split("[,;]", line)] if len(fields) == 1 else fields


# What programs hold.


def _as_columns(value: Any) -> Any:  # noqa: ANN401
    """Return judgments by query, and triples, as columns; anything else as it is."""
    names = ("query_id", "doc_id", "relevance")
    rows: Sequence[Any] = ()
    if isinstance(value, Mapping) and not _holds_columns(value):
        rows = [
            (query, doc, grade)
            for query, row in value.items()
            for doc, grade in _graded(query, row)
        ]
    elif isinstance(value, list | tuple) and value and isinstance(value[0], list | tuple):
        rows = value
    if not rows:
        return value
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _holds_columns(value: Mapping[Any, Any]) -> bool:
    """Whether a dictionary holds columns, and no lists of documents by query."""
    names = list(map(str, value))
    roles = (find_column(names, "query"), find_column(names, "document"))
    return None not in roles and all(map(is_column, value.values()))


def _graded(query: object, row: Any) -> Iterable[tuple[Any, Any]]:  # noqa: ANN401
    """Give documents with their grades, 1 where only the relevant ones are listed."""
    if isinstance(row, Mapping):
        return row.items()
    if isinstance(row, str) or not isinstance(row, Iterable):
        raise DataError(
            f"judgments of query {query!r}: {a(row)}; expected {{document id: grade}} or a list of "
            "relevant document ids"
        )
    return zip(row, repeat(1), strict=False)
