"""Holes in judgments: what was retrieved and never judged, and what it may have been."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import BoolArray, IntArray, Qrels, Run, TagTable
from rag_sourcebias.measure.relevance import places_of, source_codes_for

# Documents on neighbouring ranks are relevant about as often; the bins grow as ranks get further
# from the top, where few are judged.
_LAST_RANKS = (5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Retrieved:
    """The documents of a run that have a source, for queries that have judgments.

    Parameters
    ----------
    qrels : Qrels
        The judgments, with a vocabulary that holds all documents of the run too.
    query, doc : int64 arrays of shape (n,)
        Indices into the judgments.
    source : int64 array of shape (n,)
        Index into the sources of the tags.
    rank : int64 array of shape (n,)
        From 1.
    grade : int64 array of shape (n,)
        -1 where nobody judged.
    """

    qrels: Qrels
    query: IntArray
    doc: IntArray
    source: IntArray
    rank: IntArray
    grade: IntArray

    @classmethod
    def of(cls, run: Run, qrels: Qrels, tags: TagTable) -> Retrieved:
        """Join a run with judgments and sources."""
        known = places_of(run.doc_ids, qrels.doc_ids)
        new = np.flatnonzero(known < 0)
        doc_of = known.copy()
        doc_of[new] = len(qrels.doc_ids) + np.arange(len(new))
        query = np.repeat(places_of(run.query_ids, qrels.query_ids), np.diff(run.offsets))
        source = source_codes_for(run.doc_ids, tags)[run.doc_codes]
        entries = np.flatnonzero((query >= 0) & (source >= 0))
        wider = replace(qrels, doc_ids=(*qrels.doc_ids, *(run.doc_ids[code] for code in new)))
        query, doc = query[entries], doc_of[run.doc_codes][entries]
        return cls(
            qrels=wider,
            query=query,
            doc=doc,
            source=source[entries],
            rank=run.ranks[entries].astype(np.int64),
            grade=_grades_of(query, doc, wider),
        )

    @property
    def judged(self) -> BoolArray:
        """Whether each was judged."""
        return self.grade >= 0

    def share_judged(self, source: int, k: int) -> float | None:
        """Return Judged@k of a source: the share of its documents on the first k ranks.

        None where none of its documents stands there.
        """
        here = (self.source == source) & (self.rank <= k)
        return float(self.judged[here].mean()) if here.any() else None


def _grades_of(query: IntArray, doc: IntArray, qrels: Qrels) -> IntArray:
    """Return the grade of each pair, -1 for those that were not judged."""
    n_docs = max(len(qrels.doc_ids), 1)
    judged = qrels.query_codes.astype(np.int64) * n_docs + qrels.doc_codes
    order = np.argsort(judged, kind="stable")
    wanted = query * n_docs + doc
    place = np.minimum(np.searchsorted(judged[order], wanted), max(len(judged) - 1, 0))
    grade = np.full(len(wanted), -1, dtype=np.int64)
    if len(judged):
        found = order[place]
        same = judged[found] == wanted
        grade[same] = qrels.grades[found[same]]
    return grade


def says_what_is_not_relevant(qrels: Qrels) -> bool:
    """Whether judgments hold documents that somebody found not relevant.

    Where they do not (BEIR keeps relevant documents alone), nobody knows which of the others were
    looked at, and holes cannot be told from documents that are not relevant.
    """
    return bool(np.any(qrels.grades == 0))


def filled(retrieved: Retrieved, rng: np.random.Generator) -> Qrels | None:
    """Return judgments in which every retrieved document with a source has a grade.

    A document that nobody judged gets the grade of one drawn from the judged documents of its
    source in its bin of ranks, or in the nearest bin above it that has any, else below (hot-deck
    imputation: Andridge & Little 2010).

    Returns
    -------
    Qrels or None
        None where no document of some source was judged, so that nothing is known of the others.
    """
    bins = np.searchsorted(_LAST_RANKS, retrieved.rank)
    judged = retrieved.judged
    grade = retrieved.grade.copy()
    for source in np.unique(retrieved.source[~judged]):
        mine = retrieved.source == source
        donors = [retrieved.grade[mine & judged & (bins == b)] for b in range(len(_LAST_RANKS) + 1)]
        for b in np.unique(bins[mine & ~judged]).tolist():
            pool = _nearest(donors, b)
            if pool is None:
                return None
            holes = np.flatnonzero(mine & ~judged & (bins == b))
            grade[holes] = rng.choice(pool, size=len(holes))
    return _with_grades(retrieved, grade)


def with_share(retrieved: Retrieved, share: float, rng: np.random.Generator) -> Qrels:
    """Return judgments in which a share of what was not judged has the lowest relevant grade."""
    grade = retrieved.grade.copy()
    holes = np.flatnonzero(~retrieved.judged)
    grade[holes[rng.random(len(holes)) < share]] = 1
    return _with_grades(retrieved, grade)


def _with_grades(retrieved: Retrieved, grade: IntArray) -> Qrels:
    """Return the judgments, and the grades above 0 of documents that were not judged."""
    holes = np.flatnonzero(~retrieved.judged & (grade > 0))
    qrels = retrieved.qrels
    return replace(
        qrels,
        query_codes=_joined(qrels.query_codes, retrieved.query[holes]),
        doc_codes=_joined(qrels.doc_codes, retrieved.doc[holes]),
        grades=_joined(qrels.grades, grade[holes]),
    )


def _nearest(donors: Sequence[IntArray], at: int) -> IntArray | None:
    """Return the grades of a bin, or of the nearest that has any: above it first, then below."""
    above = [donors[b] for b in range(at, -1, -1)]
    below = list(donors[at + 1 :])
    return next((grades for grades in above + below if len(grades)), None)


def _joined(judged: npt.NDArray[np.int32], new: IntArray) -> npt.NDArray[np.int32]:
    return np.concatenate([judged, new.astype(np.int32)])
