"""Join a run with qrels once; every measure is then a sum over the relevant entries."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels

__all__ = ["Hits", "Ties", "join", "rank_of_labels", "rank_span", "trec_order"]

Ties = Literal["expected", "trec"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hits:
    """Relevant entries of a run, in the order of the run.

    A hit stands somewhere on the ranks ``start + 1 … stop``: one rank when its score is unique,
    the whole tie block otherwise.

    Parameters
    ----------
    query : int64 array of shape (h,)
        Index into ``qrels.query_ids``.
    doc : int64 array of shape (h,)
        Index into ``qrels.doc_ids``.
    grade : int64 array of shape (h,)
        At least 1.
    start, stop : int64 arrays of shape (h,)
    """

    query: IntArray
    doc: IntArray
    grade: IntArray
    start: IntArray
    stop: IntArray


def join(run: Run, qrels: Qrels, *, ties: Ties = "expected") -> Hits:
    """Find the relevant entries of a run.

    Parameters
    ----------
    ties : {"expected", "trec"}
        ``"expected"``: equal neighbouring scores share their ranks (McSherry & Najork 2008).
        ``"trec"``: score descending, then document id descending, as trec_eval does.
    """
    if ties == "trec":
        run = trec_order(run)
    relevant = np.flatnonzero(qrels.grades > 0)
    n_docs = max(len(qrels.doc_ids), 1)
    wanted = qrels.query_codes[relevant].astype(np.int64) * n_docs + qrels.doc_codes[relevant]
    order = np.argsort(wanted, kind="stable")
    wanted, grades = wanted[order], qrels.grades[relevant][order]

    query = np.repeat(_codes(run.query_ids, qrels.query_ids), np.diff(run.offsets))
    doc = _codes(run.doc_ids, qrels.doc_ids)[run.doc_codes]
    entries = _candidates(query, doc, wanted // n_docs, wanted % n_docs)
    query, doc = query[entries], doc[entries]
    key = np.where((query >= 0) & (doc >= 0), query * n_docs + doc, -1)
    place = np.searchsorted(wanted, key)
    place[place == len(wanted)] = 0
    found = wanted[place] == key if len(wanted) else np.zeros(len(key), dtype=bool)
    entries, place = entries[found], place[found]
    start, stop = rank_span(run, entries, ties=ties)
    return Hits(
        query=wanted[place] // n_docs if len(wanted) else place,
        doc=wanted[place] % n_docs if len(wanted) else place,
        grade=grades[place].astype(np.int64),
        start=start,
        stop=stop,
    )


def _candidates(
    query: IntArray, doc: IntArray, wanted_query: IntArray, wanted_doc: IntArray
) -> IntArray:
    """Entries whose (query, document) may be wanted: all that are, and a few that are not.

    Most entries are not relevant; a hashed table of the wanted pairs drops them without a search.
    """
    mask = (1 << min(max(16, (16 * len(wanted_doc)).bit_length()), 24)) - 1

    def slot(q: IntArray, d: IntArray) -> IntArray:
        return (q * 2_654_435_761 + d) & mask

    table = np.zeros(mask + 1, dtype=bool)
    table[slot(wanted_query, wanted_doc)] = True
    return np.flatnonzero(table[slot(query, doc)])


def _codes(names: tuple[str, ...], vocabulary: tuple[str, ...]) -> IntArray:
    if names == vocabulary:
        return np.arange(len(names), dtype=np.int64)
    get = dict(zip(vocabulary, range(len(vocabulary)), strict=True)).get
    return np.fromiter(map(get, names, repeat(-1)), dtype=np.int64, count=len(names))


def rank_span(
    run: Run, entries: npt.NDArray[np.integer[Any]], *, ties: Ties
) -> tuple[IntArray, IntArray]:
    """Return the ranks before and through which each entry's tie block reaches.

    ``start`` counts the entries ranked above the block, ``stop - start`` is its size.
    """
    first = run.offsets[run.query_codes[entries]]
    if run.scores is None or ties == "trec" or not len(entries):
        start = entries - first
        return start, start + 1
    opens = np.ones(len(run), dtype=bool)
    np.not_equal(run.scores[1:], run.scores[:-1], out=opens[1:])
    opens[run.offsets[:-1][np.diff(run.offsets) > 0]] = True
    bounds = np.append(np.flatnonzero(opens), len(run))
    block = np.searchsorted(bounds, entries, side="right") - 1
    return bounds[block] - first, bounds[block + 1] - first


def trec_order(run: Run) -> Run:
    """Reorder a run as trec_eval does: score descending, then document id descending."""
    if run.scores is None or not len(run):
        return run
    order = np.arange(len(run))
    inside = np.ones(len(run), dtype=bool)  # not the first entry of its query
    inside[run.offsets[:-1][np.diff(run.offsets) > 0]] = False
    scores = run.scores
    # Compared, not subtracted: infinite scores have no difference.
    if np.any((scores[1:] > scores[:-1]) & inside[1:]):
        order = np.lexsort((-scores, run.query_codes))
        scores = scores[order]
    same = np.flatnonzero((scores[1:] == scores[:-1]) & inside[1:])
    if len(same):
        order = _by_descending_id(run, order, same)
    elif scores is run.scores:
        return run
    return Run(
        query_ids=run.query_ids,
        offsets=run.offsets,
        doc_codes=run.doc_codes[order],
        doc_ids=run.doc_ids,
        scores=scores,
        name=run.name,
        n_duplicates=run.n_duplicates,
    )


def _by_descending_id(run: Run, order: IntArray, same: IntArray) -> IntArray:
    """Sort tied entries by id; ``same`` are the places whose next place has an equal score."""
    opens = np.ones(len(same), dtype=bool)
    opens[1:] = same[1:] != same[:-1] + 1
    tied = np.flatnonzero(np.bincount(np.concatenate((same, same + 1))))
    block = np.searchsorted(same[opens], tied, side="right")
    codes = run.doc_codes[order[tied]]
    ids = np.unique(codes)
    # Sorting UTF-8 bytes and sorting code points give the same order, so str order is strcmp's.
    place = np.empty(len(ids), dtype=np.int64)
    place[sorted(range(len(ids)), key=lambda i: run.doc_ids[ids[i]], reverse=True)] = np.arange(
        len(ids)
    )
    within = np.lexsort((place[np.searchsorted(ids, codes)], block))
    order[tied] = order[tied][within]
    return order


def rank_of_labels(
    run: Run,
    query_ids: tuple[str, ...],
    doc_ids: tuple[str, ...],
    query_codes: npt.NDArray[np.integer[Any]],
    doc_codes: npt.NDArray[np.integer[Any]],
) -> tuple[IntArray, IntArray]:
    """Find the rank of labelled pairs in the order of the run.

    Returns
    -------
    rank : int64 array of shape (m,)
        Starts at 1; 0 for a pair that was not retrieved.
    retrieved : int64 array of shape (len(query_ids),)
        Documents the run holds for each query.
    """
    n_docs = max(len(doc_ids), 1)
    key = query_codes.astype(np.int64) * n_docs + doc_codes
    order = np.argsort(key, kind="stable")
    wanted = key[order]
    sizes = np.diff(run.offsets)
    of_run = _codes(run.query_ids, query_ids)
    query = np.repeat(of_run, sizes)
    doc = _codes(run.doc_ids, doc_ids)[run.doc_codes]
    entry = np.where((query >= 0) & (doc >= 0), query * n_docs + doc, -1)
    place = np.searchsorted(wanted, entry)
    place[place == len(wanted)] = 0
    found = wanted[place] == entry if len(wanted) else np.zeros(len(entry), dtype=bool)
    rank = np.zeros(len(key), dtype=np.int64)
    rank[order[place[found]]] = run.ranks[found]
    retrieved = np.zeros(len(query_ids), dtype=np.int64)
    retrieved[of_run[of_run >= 0]] = sizes[of_run >= 0]
    return rank, retrieved
