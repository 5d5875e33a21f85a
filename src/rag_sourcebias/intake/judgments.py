"""Relevance judgments from any carrier: TREC and BEIR files, tables and dictionaries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from rag_sourcebias.core.data import Qrels, coded
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.files import fields_of, read_lines, tells_number
from rag_sourcebias.intake.objects import a, is_column
from rag_sourcebias.intake.tables import (
    Table,
    find_column,
    names_of,
    read_fields,
    read_table,
    table_name,
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
        Negative grades (junk pages of some TREC tracks) become 0 and are counted; a pair judged
        twice alike is kept once.

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
        columns = partial(_columns, path=table_name(judgments))
        table = _rows_with_grade(read_table(_as_columns(judgments), columns))
        queries, docs = (
            names_of(table, str(table.roles[role]), role=f"{role} id")
            for role in ("query", "document")
        )
    else:  # an id may end in a space that separates nothing
        queries, docs = (table.columns[str(table.roles[role])] for role in ("query", "document"))
    cells = table.columns.get(str(table.roles["grade"]), [1] * len(table))
    texts = list(map(str, cells))
    grade_of = {text: _whole(text, scale) for text in set(texts)}
    if None in grade_of.values():
        row = next(row for row, text in enumerate(texts) if grade_of[text] is None)
        told = f"{table.where(row)}: query {queries[row]!r}, document {docs[row]!r}"
        raise DataError(f"{told}: grade {cells[row]!r:.80} {_remedy(texts[row])}")
    grades = np.array([grade_of[text] for text in texts], dtype=np.int32)
    query_ids, query_codes = coded(queries)
    doc_ids, doc_codes = coded(docs)
    pairs = query_codes.astype(np.int64) * len(doc_ids) + doc_codes
    _, first, same = np.unique(pairs, return_index=True, return_inverse=True)
    differ = np.flatnonzero(grades != grades[first][same])
    if len(differ):
        row, unit = int(differ[0]), table.unit.strip() or "line"
        rows = (int(first[same[row]]), row)
        places = (f"grade {grades[at]} in {unit} {table.lines[at]}" for at in rows)
        raise DataError(
            f"{table.path}: query {queries[row]!r}, document {docs[row]!r} has "
            f"{' and '.join(places)}; keep one of them"
        )
    once = np.sort(first)
    return Qrels(
        query_ids=query_ids,
        doc_ids=doc_ids,
        query_codes=query_codes[once],
        doc_codes=doc_codes[once],
        grades=np.maximum(grades[once], 0),
        n_negative=int(np.count_nonzero(grades[once] < 0)),
    )


def _rows_with_grade(table: Table) -> Table:
    """Return the rows that have a grade: in a sheet nobody has judged the others yet."""
    cells = table.columns.get(str(table.roles["grade"]))
    if cells is None:
        return table
    rows = [row for row, cell in enumerate(cells) if cell not in ("", None)]
    if not rows:
        raise DataError(
            f"{table.path}: no row has a grade; write one (0, 1, 2, …) for each document judged"
        )
    return replace(
        table,
        lines=[table.lines[row] for row in rows],
        columns={name: [column[row] for row in rows] for name, column in table.columns.items()},
    )


# Grades.


_INT32_MAX = 2**31 - 1
_WORDS = {"True": 1.0, "False": 0.0}


def _whole(text: str, scale: float) -> int | None:
    """Return a grade times the scale; None if that is no whole number."""
    try:
        number = _WORDS[text] if text in _WORDS else float(text)
    except ValueError:
        return None
    if not abs(number * scale) <= _INT32_MAX:  # written so that NaN counts as wrong
        return None
    grade = Fraction(repr(number)) * Fraction(repr(float(scale)))  # as people wrote it, in tenths
    return int(grade) if grade.denominator == 1 else None


def _remedy(text: str) -> str:
    if not tells_number(text) or abs(float(text)) > _INT32_MAX:
        return f"is not a whole number within ± {_INT32_MAX}; grades are 0, 1, 2, …"
    times = Fraction(repr(float(text))).limit_denominator(100).denominator
    return (
        f"is not a whole number; multiply all grades by {times}, as audit does with --grade-scale "
        f"{times} (grade_scale={times})"
    )


# Tables, and lines without names of columns.


def _columns(names: Sequence[str], *, path: str) -> dict[str, str | None]:
    document = find_column(names, "document", path=path)
    query = find_column(names, "query", path=path, taken=(document,))
    grade = find_column(names, "grade", path=path)
    if None in (query, document) or (grade is None and find_column(names, "rank") is not None):
        raise DataError(
            f"{path} has the columns {', '.join(names)}; expected query_id, doc_id and "
            "relevance, or other usual names of these"
        )
    return {"query": query, "document": document, "grade": grade}


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


_BEIR = {"query": "query-id", "document": "corpus-id", "grade": "score"}
_TREC = {"query": "query_id", "": "iteration", "document": "doc_id", "grade": "grade"}


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
