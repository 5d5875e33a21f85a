"""TREC runs and relevance judgments, and the BEIR form of the latter."""

from __future__ import annotations

import logging
import re
from array import array
from collections.abc import Iterable, Iterator

import numpy as np

from rag_sourcebias.core.data import Qrels, Run
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import require_name
from rag_sourcebias.io.files import PathLike, read_lines, write_atomic

_logger = logging.getLogger("rag_sourcebias.io")
# The first number that rounds to infinity; the largest float32 itself prints as 3.4028235e+38.
_FLOAT32_LIMIT = 2.0**128 - 2.0**103
_HEADER_STARTS = ("query-id", "query_id", "qid")
_INT32_MAX = 2**31 - 1
# Only ASCII space separates: an id may hold a no-break or an ideographic space. The byte-order
# mark is listed because a file may not start with an id that does.
_SPACE = re.compile("[ \t\n\r\x0b\x0c\x1c-\x1f\ufeff]+")


def _fields(line: str) -> list[str]:
    if line.isascii():
        return line.split()
    return [field for field in _SPACE.split(line) if field]


def read_run(path: PathLike, *, name: str | None = None, sort_by_score: bool = True) -> Run:
    """Read a run in TREC format: ``query_id Q0 doc_id rank score tag``.

    Parameters
    ----------
    path : path
        Plain or ``.gz``; columns are separated by spaces or tabs; queries may be interleaved.
    name : str or None
        Name of the run; None takes the tag of the first line.
    sort_by_score : bool
        True ranks by descending score and ignores the rank column, as trec_eval does; equal scores
        keep the order of the file. False keeps the order of the file.

    Returns
    -------
    Run
        With float32 scores. A document listed twice for a query is kept once and counted in
        ``n_duplicates``.

    Raises
    ------
    DataError
        If the file is missing, empty or not UTF-8, or a line has another number of columns or a
        score that is not a finite float32 number, or the tag holds control characters.
    """
    queries: dict[str, int] = {}
    docs: dict[str, int] = {}
    query_codes, doc_codes, scores = array("i"), array("i"), array("f")
    tag = ""
    for number, line in read_lines(path):
        fields = _fields(line)
        if len(fields) != 6:
            raise DataError(
                f"{path}:{number}: expected 6 columns (query_id Q0 doc_id rank score tag), "
                f"found {len(fields)}: {line[:80]!r}"
            )
        try:
            score = float(fields[4])
        except ValueError as error:
            raise DataError(f"{path}:{number}: score {fields[4]!r} is not a number") from error
        if not -_FLOAT32_LIMIT < score < _FLOAT32_LIMIT:
            raise DataError(f"{path}:{number}: score {fields[4]!r} is not a finite float32 number")
        if not tag:
            tag = name or require_name(fields[5], "run name", f"{path}:{number}")
        query_codes.append(queries.setdefault(fields[0], len(queries)))
        doc_codes.append(docs.setdefault(fields[2], len(docs)))
        scores.append(score)
    if not scores:
        raise DataError(f"{path} is empty; expected lines 'query_id Q0 doc_id rank score tag'")
    query_ids, doc_ids = tuple(queries), tuple(docs)
    del queries, docs  # at a million documents the tables outweigh the run itself
    return Run.from_arrays(
        query_ids=query_ids,
        query_codes=np.frombuffer(query_codes, dtype=np.int32),
        doc_codes=np.frombuffer(doc_codes, dtype=np.int32),
        doc_ids=doc_ids,
        scores=np.frombuffer(scores, dtype=np.float32),
        name=tag,
        sort_by_score=sort_by_score,
    )


def write_run(run: Run, path: PathLike) -> None:
    """Write a run in TREC format, compressed if the name ends in ``.gz``.

    A run without scores gets ``n, n − 1, …, 1`` so that any reader restores its order. White space
    in the run's name becomes ``_``.

    Raises
    ------
    DataError
        If an id holds white space or a score is infinite: the format cannot carry them.
    """
    for kind, ids in (("query", run.query_ids), ("document", run.doc_ids)):
        bad = next((i for i in ids if _fields(i) != [i]), None)
        if bad is not None:
            raise DataError(
                f"{kind} id {bad!r} cannot be written to a TREC run: an id may not be empty or "
                "hold white space"
            )
    if run.scores is not None:
        if not np.isfinite(run.scores).all():
            raise DataError(f"run {run.name!r} has infinite scores; expected finite numbers")
        rises = (np.diff(run.scores) > 0) & (np.diff(run.query_codes) == 0)
        if rises.any():
            _logger.warning(
                "run %r is not ordered by score in %d place(s): tools that sort by score will "
                "read another ranking from %s",
                run.name,
                int(rises.sum()),
                path,
            )
    write_atomic(path, _run_lines(run))


def _run_lines(run: Run) -> Iterator[str]:
    tag = "_".join(_fields(run.name)) or "run"
    for ranked in run:
        scores = range(len(ranked), 0, -1) if ranked.scores is None else ranked.scores.astype(str)
        for rank, (doc_id, score) in enumerate(zip(ranked.doc_ids, scores, strict=True), start=1):
            yield f"{ranked.query_id} Q0 {doc_id} {rank} {score} {tag}\n"


def read_qrels(path: PathLike) -> Qrels:
    """Read relevance judgments, four-column TREC or three-column BEIR.

    Parameters
    ----------
    path : path
        Plain or ``.gz``. TREC: ``query_id iteration doc_id grade``. BEIR: ``query-id corpus-id
        score``, with or without that header; after a header with tabs only tabs separate.

    Returns
    -------
    Qrels
        Negative grades (junk pages of some TREC tracks) become 0 and are counted; a pair judged
        twice alike is kept once.

    Raises
    ------
    DataError
        If the file is missing, empty or not UTF-8, a line has another number of columns, a grade
        is not a whole number, or a pair is judged twice with different grades.
    """
    queries: dict[str, int] = {}
    docs: dict[str, int] = {}
    columns = (array("i"), array("i"), array("i"), array("q"))
    for number, query_id, doc_id, text in _qrels_rows(path):
        columns[0].append(queries.setdefault(query_id, len(queries)))
        columns[1].append(docs.setdefault(doc_id, len(docs)))
        columns[2].append(_grade(text, f"{path}:{number}"))
        columns[3].append(number)
    if not columns[0]:
        raise DataError(
            f"{path} holds no judgments; expected lines 'query_id iteration doc_id grade' or "
            "'query-id corpus-id score'"
        )
    query_ids, doc_ids = tuple(queries), tuple(docs)
    del queries, docs
    query_codes, doc_codes, grades = (np.frombuffer(c, dtype=np.int32) for c in columns[:3])
    key = query_codes.astype(np.int64) * len(doc_ids) + doc_codes
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order][1:] == key[order][:-1])
    first, second = order[again], order[again + 1]
    conflict = np.flatnonzero(grades[first] != grades[second])
    if len(conflict):
        one, two = int(first[conflict[0]]), int(second[conflict[0]])
        raise DataError(
            f"{path}: query {query_ids[query_codes[one]]!r}, document "
            f"{doc_ids[doc_codes[one]]!r} has grade {grades[one]} in line {columns[3][one]} and "
            f"grade {grades[two]} in line {columns[3][two]}; keep one of them"
        )
    keep = np.ones(len(key), dtype=bool)
    keep[second] = False
    return Qrels(
        query_ids=query_ids,
        doc_ids=doc_ids,
        query_codes=query_codes[keep],
        doc_codes=doc_codes[keep],
        grades=np.maximum(grades[keep], 0),
        n_negative=int(np.count_nonzero(grades[keep] < 0)),
    )


def _qrels_rows(path: PathLike) -> Iterable[tuple[int, str, str, str]]:
    """Give line number, query id, document id and grade of each judgment."""
    width, tabs_only = 0, False
    for number, line in read_lines(path):
        fields = line.split("\t") if tabs_only else _fields(line)
        if not width:
            width = 3 if len(fields) == 3 else 4
            # A query may be called like a header, but a judgment ends with a number.
            if fields[0] in _HEADER_STARTS and not _is_number(fields[-1]):
                tabs_only = "\t" in line
                continue
        if len(fields) != width:
            expected = (
                "query-id corpus-id score" if width == 3 else "query_id iteration doc_id grade"
            )
            raise DataError(
                f"{path}:{number}: expected {width} columns ({expected}), "
                f"found {len(fields)}: {line[:80]!r}"
            )
        yield number, fields[0], fields[-2], fields[-1]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _grade(text: str, where: str) -> int:
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(f"{where}: grade {text!r} is not a whole number") from error
    if not value.is_integer() or abs(value) > _INT32_MAX:
        raise DataError(f"{where}: grade {text!r} is not a whole number within ± {_INT32_MAX}")
    return int(value)
