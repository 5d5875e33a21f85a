"""Which of two versions of one document ranks higher, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_sourcebias.core.arrays import FloatArray, IntArray
from rag_sourcebias.core.data import Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.stats.ranking import Ties, rank_span, trec_order


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwinRanks:
    """Places of both versions of each relevant pair; arrays have one entry per (query, pair).

    Parameters
    ----------
    query : int64 array
        Index into ``qrels.query_ids``.
    baseline_row, other_row : int64 arrays
        Rows of the two documents in the tag table.
    baseline_rank, other_rank : float64 arrays
        Expected rank (mean of the tie block); NaN when not retrieved.
    baseline_score, other_score : float64 arrays
        NaN when not retrieved or when the run has no scores.
    above : float64 array
        1 when the other version ranks above the baseline's, 0 below, 0.5 tied. A version that
        was not retrieved ranks below one that was.
    n_unseen : int
        Pairs of which neither version was retrieved; they are left out.
    """

    query: IntArray
    baseline_row: IntArray
    other_row: IntArray
    baseline_rank: FloatArray
    other_rank: FloatArray
    baseline_score: FloatArray
    other_score: FloatArray
    above: FloatArray
    n_unseen: int


def count_pairs(tags: TagTable) -> int:
    """Number of ``pair_id`` values shared by documents of more than one source."""
    paired = (tags.pair_codes >= 0) & (tags.source_codes >= 0)
    members = np.unique(np.stack((tags.pair_codes[paired], tags.source_codes[paired])), axis=1)
    return int(np.count_nonzero(np.bincount(members[0]) > 1)) if members.size else 0


def other_above(baseline: FloatArray, other: FloatArray) -> FloatArray:
    """Compare scores of twins: 1 where the other is higher, 0 where lower, 0.5 where equal.

    Parameters
    ----------
    baseline, other : float array of shape (n,)
        Scores in any unit, higher is better; entry i of both is one pair of versions.

    Returns
    -------
    float64 array of shape (n,)
        Its mean is the win rate.
    """
    return np.where(other > baseline, 1.0, np.where(other < baseline, 0.0, 0.5))


def twin_ranks(
    run: Run, qrels: Qrels, tags: TagTable, *, baseline: str, other: str, ties: Ties = "expected"
) -> TwinRanks:
    """Find where both versions of each relevant document stand.

    Only pairs of which both versions are relevant to the query count, so that relevance cannot
    explain the difference.

    Raises
    ------
    DataError
        If one source holds two documents with the same ``pair_id``.
    """
    rows = tags.rows_for(qrels.doc_ids)
    left = _pair_keys(qrels, tags, rows, baseline)
    right = _pair_keys(qrels, tags, rows, other)
    keys, i, j = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
    b_doc, o_doc = left[1][i], right[1][j]
    ordered = trec_order(run) if ties == "trec" else run
    b_place = _places(ordered, qrels, keys // max(len(tags.pair_ids), 1), b_doc)
    o_place = _places(ordered, qrels, keys // max(len(tags.pair_ids), 1), o_doc)
    seen = (b_place >= 0) | (o_place >= 0)
    b_place, o_place = b_place[seen], o_place[seen]
    b_span, o_span = (_span(ordered, place, ties) for place in (b_place, o_place))
    above = np.where(o_span[0] < b_span[0], 1.0, np.where(o_span[0] > b_span[0], 0.0, 0.5))
    return TwinRanks(
        query=keys[seen] // max(len(tags.pair_ids), 1),
        baseline_row=rows[b_doc[seen]],
        other_row=rows[o_doc[seen]],
        baseline_rank=_mean_rank(b_span),
        other_rank=_mean_rank(o_span),
        baseline_score=_scores(ordered, b_place),
        other_score=_scores(ordered, o_place),
        above=above,
        n_unseen=int(np.count_nonzero(~seen)),
    )


def _pair_keys(
    qrels: Qrels, tags: TagTable, rows: IntArray, source: str
) -> tuple[IntArray, IntArray]:
    """Unique (query, pair) keys of the relevant documents of a source, and their qrels doc."""
    if source not in tags.sources:
        raise DataError(f"no document has source {source!r}; sources are {list(tags.sources)}")
    doc = qrels.doc_codes.astype(np.int64)
    row = rows[doc]
    wanted = np.flatnonzero(
        (qrels.grades > 0)
        & (row >= 0)
        & (tags.source_codes[row] == tags.sources.index(source))
        & (tags.pair_codes[row] >= 0)
    )
    key = (
        qrels.query_codes[wanted].astype(np.int64) * len(tags.pair_ids)
        + tags.pair_codes[row[wanted]]
    )
    unique, first = np.unique(key, return_index=True)
    if len(unique) < len(key):
        repeated = np.setdiff1d(np.arange(len(key)), first)[0]
        pair = tags.pair_ids[int(key[repeated]) % len(tags.pair_ids)]
        raise DataError(
            f"source {source!r} holds more than one document with pair_id {pair!r}; a pair has "
            "one version per source"
        )
    return unique, doc[wanted][first]


def _places(run: Run, qrels: Qrels, query: IntArray, doc: IntArray) -> IntArray:
    """Entry of the run that holds each (query, document) of the qrels, -1 when not retrieved."""
    run_query = {q: i for i, q in enumerate(run.query_ids)}
    run_doc = {d: i for i, d in enumerate(run.doc_ids)}
    q_map = np.array([run_query.get(q, -1) for q in qrels.query_ids], dtype=np.int64)
    d_map = np.array([run_doc.get(d, -1) for d in qrels.doc_ids], dtype=np.int64)
    if not len(query) or not len(run):
        return np.full(len(query), -1, dtype=np.int64)
    width = len(run.doc_ids)
    keys = run.query_codes * width + run.doc_codes
    order = np.argsort(keys, kind="stable")
    wanted = np.where(
        (q_map[query] >= 0) & (d_map[doc] >= 0), q_map[query] * width + d_map[doc], -1
    )
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(keys[order][at] == wanted, order[at], -1)


def _span(run: Run, place: IntArray, ties: Ties) -> tuple[IntArray, IntArray]:
    """Tie block of each entry; an entry that was not retrieved starts beyond every rank."""
    beyond = np.iinfo(np.int64).max
    start, stop = np.full(len(place), beyond), np.full(len(place), beyond)
    found = place >= 0
    start[found], stop[found] = rank_span(run, place[found], ties=ties)
    return start, stop


def _mean_rank(span: tuple[IntArray, IntArray]) -> FloatArray:
    start, stop = (part.astype(np.float64) for part in span)
    return np.where(span[0] == np.iinfo(np.int64).max, np.nan, (start + 1 + stop) / 2)


def _scores(run: Run, place: IntArray) -> FloatArray:
    if run.scores is None or not len(run):
        return np.full(len(place), np.nan)
    return np.where(place >= 0, run.scores[place].astype(np.float64), np.nan)
