"""Ask a live retriever, without its answers counting as production, and score what it says."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.instrument.suppression import suppress
from rag_sourcebias.measures.ranking import MEASURES
from rag_sourcebias.measures.source import source_scores
from rag_sourcebias.monitor.canary.queries import CanaryQueries
from rag_sourcebias.protocols import Retriever
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.documents import Query
from rag_sourcebias.types.rankings import RankedList, Run
from rag_sourcebias.types.relevance import Qrels

__all__ = [
    "Answers",
    "Ask",
    "ask_queries",
    "ask_retriever",
    "ids_compared",
    "read_measure",
    "score_answers",
]

_logger = logging.getLogger("rag_sourcebias.monitor")
Ask = Callable[[str], Iterable[Any] | RankedList]
_MEASURE = re.compile(r"([A-Za-z]+)@([1-9][0-9]{0,3})")


def read_measure(measure: str) -> tuple[str, int]:
    """Split a name such as ``"NDCG@5"``.

    Raises
    ------
    DataError
        If it is not a measure of :mod:`rag_sourcebias.measures.ranking` with a cutoff.
    """
    found = _MEASURE.fullmatch(measure)
    if found is None or found[1] not in MEASURES:
        raise DataError(
            f"measure {measure!r} is unknown; accepted are {', '.join(MEASURES)} with a cutoff, "
            "such as 'NDCG@5'"
        )
    return found[1], int(found[2])


def ask_retriever(retriever: Retriever, *, depth: int = 10) -> Ask:
    """Return a callable for :class:`CanaryProbe` that asks a :class:`Retriever`.

    Its scores are kept, so that tied documents share their ranks as they do in an audit.
    """

    def ask(text: str) -> RankedList:
        return retriever.retrieve([Query(query_id="canary", text=text)], depth).ranked_list(0)

    return ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What was answered in one round.

    Parameters
    ----------
    rows : list of int
        Queries that were answered, as rows of the canary queries; one may come twice.
    lists : list of RankedList
        Their rankings.
    failed : int
        Queries that raised, gave something else than document ids, or took too long.
    """

    rows: list[int]
    lists: list[RankedList]
    failed: int


def ask_queries(
    ask: Ask,
    queries: CanaryQueries,
    rows: Iterable[int],
    *,
    doc_id: Callable[[Any], str] | None,
    timeout: float | None,
    dropped: DroppedEvents,
    stop: Callable[[], bool] = lambda: False,
) -> Answers:
    """Ask one query after the other; nothing that the retriever raises gets through.

    Parameters
    ----------
    rows : iterable of int
        Queries to ask; one that comes twice is asked twice.
    timeout : float or None
        A query that took longer counts as failed. It is not cut short: a thread cannot be.
    stop : callable
        Whether to leave the rest out, after the first.
    """
    answered: list[int] = []
    lists: list[RankedList] = []
    failed = 0
    for number, row in enumerate(rows):
        if number and stop():
            break
        started, found = time.monotonic(), None
        with guarded(dropped, "canary query failed"), suppress():
            found = _ranking(ask(queries.queries[row].text), str(len(lists)), doc_id)
        if found is not None and timeout is not None and time.monotonic() - started > timeout:
            dropped.add("canary query took longer than its time-out")
            found = None
        if found is None:
            failed += 1
        else:
            answered.append(row)
            lists.append(found)
    return Answers(rows=answered, lists=lists, failed=failed)


def ids_compared(queries: CanaryQueries, answers: Answers) -> bool:
    """Warn if nothing that came back is a known twin; False if nothing came back at all.

    Its id may have been read from the wrong place, and then every score is 0 without an error.
    """
    found = {doc_id for ranked in answers.lists for doc_id in ranked.doc_ids}
    if found and found.isdisjoint(queries.tags.doc_ids):
        _logger.warning(
            "none of the %d documents that answered the first canary round is one of the "
            "%d known twins; is their id read from the right place (doc_id=)?",
            len(found),
            len(queries.tags),
        )
    return bool(found)


def score_answers(queries: CanaryQueries, answers: Answers, measure: str) -> FloatArray:
    """Score rankings once per source, as :func:`rag_sourcebias.measures.source_scores` does.

    Returns
    -------
    ndarray of shape (answers, 2)
        Scores of human and LLM documents, in [0, 1].
    """
    if not answers.rows:
        return np.empty((0, 2))
    name, cutoff = read_measure(measure)
    scores = source_scores(
        Run.from_lists(answers.lists),
        _qrels_of(queries.qrels, answers.rows),
        queries.tags,
        sources=(queries.human, queries.llm),
        measures=[name],
        cutoffs=[cutoff],
    )
    # Rounding may pass 1 by an ulp.
    return np.asarray(np.clip(scores.values[0].T, 0.0, 1.0), np.float64)


def _qrels_of(qrels: Qrels, rows: list[int]) -> Qrels:
    """Judgments of queries that may come twice: each answer is a query of its own."""
    parts = [np.flatnonzero(qrels.query_codes == row) for row in rows]
    entries = np.concatenate(parts)
    return Qrels(
        query_ids=tuple(str(number) for number in range(len(rows))),
        doc_ids=qrels.doc_ids,
        query_codes=np.repeat(np.arange(len(rows)), [len(p) for p in parts]).astype(np.int32),
        doc_codes=qrels.doc_codes[entries],
        grades=qrels.grades[entries],
    )


def _ranking(answer: Any, name: str, doc_id: Callable[[Any], str] | None) -> RankedList:  # noqa: ANN401
    """Read an answer; a document that comes twice keeps its first rank (:class:`Run`)."""
    scores = None
    if isinstance(answer, RankedList):
        ids, scores = answer.doc_ids, answer.scores
    elif isinstance(answer, str | bytes):
        raise DataError("the retriever answered with one string; expected a list of document ids")
    else:
        ids = tuple(answer if doc_id is None else map(doc_id, answer))
    for found in ids:
        if not isinstance(found, str):
            raise DataError(
                f"the retriever answered with {type(found).__name__}; expected document ids "
                "(str), or pass doc_id= to read them off its items"
            )
    ranked = RankedList(query_id=name, doc_ids=ids, scores=scores)
    if scores is not None:
        Run.from_lists([ranked])  # refuses scores that are NaN or not as many: here, not later
    return ranked
