"""What a source-blind ranker would score: every measure's mean over permuted source labels.

The ranks of a query's relevant documents stay, and the labels of the two sources are exchanged
among them, within one grade: a ranker that puts better documents first is not biased. What a
source gets beyond that mean is skew (METHODS §10.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray, IntArray
from rag_sourcebias.core.data import Qrels, Run
from rag_sourcebias.stats.ranking import (
    Cells,
    Gain,
    Hits,
    Ties,
    discounts,
    harmonic_sums,
    join,
    ranks_within,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChanceScores:
    """Skew of two sources beyond chance, per query and per relevant document retrieved.

    Only queries with relevant documents of both sources count; the others hold 0.

    Parameters
    ----------
    measures : tuple of str, length M
    expected : float64 array of shape (M, 2, nq)
        Mean of the measure over permuted labels, of the first and of the second source.
    both : bool array of shape (nq,)
        Queries with relevant documents of both sources.
    largest : float64 array of shape (M,)
        Largest value that a query can have.
    query, doc : int64 arrays of shape (h,)
        Query and document (indices into the qrels) of each hit.
    skew_terms : float64 array of shape (M, h)
        What each hit adds to (m₁ − e₁) − (m₂ − e₂) of its query.
    base_terms : float64 array of shape (M, h)
        What each hit adds to (e₁ + e₂)/2 of its query.
    """

    measures: tuple[str, ...]
    expected: FloatArray
    both: npt.NDArray[np.bool_]
    largest: FloatArray
    query: IntArray
    doc: IntArray
    skew_terms: FloatArray
    base_terms: FloatArray

    def skew(self) -> FloatArray:
        """(m₁ − e₁) − (m₂ − e₂) per query, shape (M, nq)."""
        return self._per_query(self.skew_terms)

    def base(self) -> FloatArray:
        """(e₁ + e₂)/2 per query, shape (M, nq)."""
        return self._per_query(self.base_terms)

    def _per_query(self, terms: FloatArray) -> FloatArray:
        n = len(self.both)
        return np.stack([np.bincount(self.query, weights=row, minlength=n) for row in terms])


def chance_scores(
    run: Run,
    qrels: Qrels,
    groups: IntArray,
    *,
    measures: Sequence[str] = ("NDCG", "MAP"),
    cutoffs: Sequence[int] = (1, 3, 5),
    ties: Ties = "expected",
    gain: Gain = "linear",
) -> ChanceScores:
    """Compare what two sources score with what they would score under permuted labels.

    Parameters
    ----------
    groups : int64 array of shape (len(qrels.doc_ids),)
        0 for documents of the first source, 1 for those of the second, -1 for all others: they
        keep their ranks.
    """
    hits = join(run, qrels, ties=ties)
    labels = _Labels.of(hits, qrels, groups)
    cells = Cells.build(hits, qrels, groups, n_groups=2)
    inside = labels.both[cells.cell // 2]
    sign = np.where(cells.cell % 2 == 0, 1.0, -1.0)
    place = np.zeros(len(hits.query), dtype=np.int64)
    place[labels.hit] = np.arange(len(labels.hit))
    names, skew, base, expected, largest = [], [], [], [], []
    for measure in measures:
        for k in cutoffs:
            scale = cells.scale(measure, k, gain=gain).reshape(-1, 2).T
            by_chance = labels.expected(measure, k, gain=gain) / scale[:, labels.query]
            terms = by_chance[1] - by_chance[0]
            own = (sign * cells.terms(measure, k, gain=gain))[inside]
            np.add.at(terms, place[cells.hit[inside]], own)
            names.append(f"{measure}@{k}")
            skew.append(terms)
            base.append(by_chance.mean(axis=0))
            expected.append(
                [
                    np.bincount(labels.query, weights=row, minlength=len(labels.both))
                    for row in by_chance
                ]
            )
            most = int(labels.n.sum(axis=2).max(initial=0))
            largest.append(min(most, k) / k if measure == "P" else 1.0)
    return ChanceScores(
        measures=tuple(names),
        expected=np.array(expected),
        both=labels.both,
        largest=np.array(largest),
        query=labels.query,
        doc=hits.doc[labels.hit],
        skew_terms=np.array(skew),
        base_terms=np.array(base),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Labels:
    """Hits of the two sources in queries that have both, by query and rank.

    ``n`` of shape (2, nq, G) counts relevant documents per source, query and grade; ``share`` of
    shape (2, h) is the chance that a hit carries each label; ``before`` and ``tied`` of shape
    (G, h) count hits of each grade in earlier blocks and in the hit's own block.
    """

    both: npt.NDArray[np.bool_]
    hit: IntArray
    query: IntArray
    grade: IntArray
    level: IntArray
    start: IntArray
    stop: IntArray
    n: IntArray
    share: FloatArray
    before: IntArray
    tied: IntArray

    @classmethod
    def of(cls, hits: Hits, qrels: Qrels, groups: IntArray) -> _Labels:
        group = groups[qrels.doc_codes]
        relevant = (qrels.grades > 0) & (group >= 0)
        levels = np.unique(qrels.grades[relevant])
        n_queries, n_levels = len(qrels.query_ids), max(len(levels), 1)
        key = (group * n_queries + qrels.query_codes) * n_levels + np.searchsorted(
            levels, qrels.grades
        )
        n = np.bincount(key[relevant], minlength=2 * n_queries * n_levels).reshape(
            2, n_queries, n_levels
        )
        both = np.all(n.sum(axis=2) > 0, axis=0)
        hit = np.flatnonzero((groups[hits.doc] >= 0) & both[hits.query])
        # by query and rank: hits of one query lie together, but in the order of the run's queries
        hit = hit[np.lexsort((hits.start[hit], hits.query[hit]))]
        query, start = hits.query[hit], hits.start[hit]
        level = np.searchsorted(levels, hits.grade[hit])
        opens = np.ones(len(hit), dtype=bool)
        opens[1:] = (query[1:] != query[:-1]) | (start[1:] != start[:-1])
        bounds = np.append(np.flatnonzero(opens), len(hit))
        block = np.cumsum(opens) - 1
        first = np.searchsorted(query, query)
        before, tied = [], []
        for g in range(n_levels):
            upto = np.concatenate(([0], np.cumsum(level == g)))
            before.append(upto[bounds[block]] - upto[first])
            tied.append(upto[bounds[block + 1]] - upto[bounds[block]])
        of_level = n[:, query, level]
        return cls(
            both=both,
            hit=hit,
            query=query,
            grade=hits.grade[hit],
            level=level,
            start=start,
            stop=hits.stop[hit],
            n=n,
            share=of_level / np.maximum(of_level.sum(axis=0), 1),
            before=np.array(before).reshape(n_levels, -1),
            tied=np.array(tied).reshape(n_levels, -1),
        )

    def expected(self, measure: str, k: int, *, gain: Gain) -> FloatArray:
        """Return each hit's expected, unscaled term per source; shape (2, h)."""
        if measure == "NDCG":
            grade = np.exp2(self.grade) - 1 if gain == "exponential" else self.grade
            return self.share * (grade * discounts(self.start, self.stop, k))
        if measure == "MAP":
            return np.stack([self._precision(s, k) for s in (0, 1)])
        if measure == "MRR":
            return np.stack([self._first(s, k) for s in (0, 1)])
        return self.share * (ranks_within(self.start, self.stop, k) / (self.stop - self.start))

    def _precision(self, source: int, k: int) -> FloatArray:
        """Expected precision at each hit's rank where both it and what is above carry the label."""
        size = self.stop - self.start
        total = self.n.sum(axis=0)
        above, slope = np.zeros(len(self.hit)), np.zeros(len(self.hit))
        for g in range(len(self.before)):
            mine, every = self.n[source][self.query, g], total[self.query, g]
            same = self.level == g
            # of two documents of one grade the second carries the label less often
            joint = (mine - same) / np.maximum(every - same, 1)
            above += joint * self.before[g]
            slope += joint * (self.tied[g] - same)
        slope /= np.maximum(size - 1, 1)
        at_start = 1 + above - (self.start + 1) * slope
        terms: FloatArray = (
            self.share[source]
            * (
                at_start * harmonic_sums(self.start, self.stop, k)
                + slope * ranks_within(self.start, self.stop, k)
            )
            / size
        )
        return terms

    def _first(self, source: int, k: int) -> FloatArray:
        """Expected reciprocal rank of the first hit with the label, shared within tie blocks."""
        from scipy.special import gammaln

        mine, total = self.n[source][self.query].T, self.n.sum(axis=0)[self.query].T

        def none_among(count: IntArray) -> FloatArray:
            """Probability that none of ``count`` documents per grade carries the label."""
            left = total - count - mine
            chance = (
                gammaln(total - count + 1.0)
                - gammaln(np.maximum(left, 0) + 1.0)
                - gammaln(total + 1.0)
                + gammaln(total - mine + 1.0)
            )
            return np.where(np.any(left < 0, axis=0), 0.0, np.exp(chance.sum(axis=0)))

        size = self.stop - self.start
        here = none_among(self.before) - none_among(self.before + self.tied)
        terms = np.where(self.stop <= k, here / self.stop, 0.0)
        for i in np.flatnonzero(size > 1):
            terms[i] = self._first_in_block(source, int(i), k) / self.tied[:, i].sum()
        return terms

    def _first_in_block(self, source: int, i: int, k: int) -> float:
        """Expected reciprocal rank where the first hit with the label lies in hit i's tie block."""
        from math import comb

        counts = np.ones(1)
        for g in range(len(self.before)):
            mine = int(self.n[source, self.query[i], g])
            total = int(self.n[:, self.query[i], g].sum())
            before, tied = int(self.before[g, i]), int(self.tied[g, i])
            after = total - before - tied
            ways = [
                comb(tied, j) * comb(after, mine - j) if j <= mine else 0 for j in range(tied + 1)
            ]
            counts = np.convolve(counts, np.array(ways, dtype=np.float64) / comb(total, mine))
        start, size = int(self.start[i]), int(self.stop[i] - self.start[i])
        value = 0.0
        for j, chance in enumerate(counts):
            if j and chance:
                value += chance * sum(
                    comb(size - p, j - 1) / comb(size, j) / (start + p)
                    for p in range(1, min(size - j + 1, k - start) + 1)
                )
        return value
