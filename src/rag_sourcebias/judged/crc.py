"""Utilities of rankings from label distributions, and the judge brought to the human scale by λ."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray, IntArray, LabelDistributions, Run
from rag_sourcebias.core.errors import CalibrationError, DataError, check_level, require_one_of
from rag_sourcebias.measure.relevance import rank_of_labels

# From label distributions to per-query utilities ([R] Eq. 1 and 5).
# A linear utility of a query is Σ ω(rank) Σ_r P(r) gain(r) over its ranked documents; DCG and
# precision are of this form. It is summed here; measures whose denominator depends on the labels
# (NDCG, MAP, MRR) are in :mod:`rag_sourcebias.intervals.plugin`.


def dcg_weights(ranks: npt.NDArray[np.integer[Any]], cutoff: int) -> FloatArray:
    """ω of DCG@k: 1 / log2(rank + 1) through the cutoff, then 0; ranks start at 1."""
    return np.where(ranks <= cutoff, 1.0 / np.log2(ranks + 1.0), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedLabels:
    """Label distributions of ranked documents with the weight of each document.

    Parameters
    ----------
    probs : float64 array of shape (m, L)
        Rows sum to 1; column r is the probability of grade r.
    weights : float64 array of shape (m,)
        ω of each document's rank; at least 0.
    query : int64 array of shape (m,)
        Index of the query of each document, not decreasing.
    n_queries : int
        Queries without a document have utility 0.
    gains : float64 array of shape (L,)
        Gain of each grade, not decreasing. [R] uses 2^r − 1.
    """

    probs: FloatArray
    weights: FloatArray
    query: IntArray
    n_queries: int
    gains: FloatArray

    @classmethod
    def from_grid(cls, probs: FloatArray, weights: FloatArray, gains: FloatArray) -> RankedLabels:
        """Build from ``probs`` of shape (queries, documents, L) and ``weights`` (documents,)."""
        n_queries, n_docs, n_grades = probs.shape
        return cls(
            probs=probs.reshape(-1, n_grades),
            weights=np.tile(weights, n_queries),
            query=np.repeat(np.arange(n_queries), n_docs),
            n_queries=n_queries,
            gains=gains,
        )

    def utilities(self) -> FloatArray:
        """Return the utility of every query; shape (n_queries,)."""
        return self.total(self.document_gains())

    def utilities_at(self, lam: float | FloatArray) -> FloatArray:
        """Return the utilities with labels perturbed by λ, one for all or one for each query."""
        lam = np.broadcast_to(np.asarray(lam, dtype=np.float64), self.n_queries)
        return self.total(perturb(self.probs, lam[self.query]) @ self.gains)

    def document_gains(self) -> FloatArray:
        """Return the gain expected of every document ([R] Eq. 5); shape (m,)."""
        return self.probs @ self.gains

    def total(self, gains: FloatArray) -> FloatArray:
        """Sum ω · gain within each query; ``gains`` of shape (m,)."""
        return np.bincount(
            self.query, weights=self.weights * gains, minlength=self.n_queries
        ).astype(np.float64, copy=False)  # of no documents at all numpy counts integers

    def take(self, queries: npt.NDArray[np.integer[Any]]) -> RankedLabels:
        """Return the queries asked for, in that order; a query may occur several times."""
        starts = np.searchsorted(self.query, np.arange(self.n_queries + 1))
        sizes = np.diff(starts)[queries]
        rows = np.repeat(starts[queries] - (np.cumsum(sizes) - sizes), sizes) + np.arange(
            int(sizes.sum())
        )
        return replace(
            self,
            probs=self.probs[rows],
            weights=self.weights[rows],
            query=np.repeat(np.arange(len(queries)), sizes),
            n_queries=len(queries),
        )


# Per-query values of a ranking from label distributions, human or judged.
# DCG and precision are sums over documents. NDCG, MAP, MRR and recall are not: their denominator
# or their terms depend on several labels. They are plugged in with the expected gains or the
# probabilities of relevance, so labels of the whole judged pool are a precondition; whatever error
# this makes, the human labels of the regression on the judge correct. With all probability on one
# grade every value is exactly the ordinary measure.


GainScale = Literal["exponential", "linear"]
_LINEAR = ("DCG", "P")
_MEASURES = (*_LINEAR, "NDCG", "MAP", "MRR", "Recall")


def parse_measure(text: str) -> tuple[str, int]:
    """Split ``"NDCG@10"`` into name and cutoff."""
    match = re.fullmatch(r"([A-Za-z]+)@([1-9][0-9]*)", text.strip())
    names = {name.lower(): name for name in _MEASURES}
    if match is None or match[1].lower() not in names:
        raise DataError(
            f"measure {text!r} is not one of {', '.join(f'{m}@k' for m in _MEASURES)}, such as "
            "NDCG@10"
        )
    return names[match[1].lower()], int(match[2])


def measure_bounds(measure: str) -> tuple[float, float] | None:
    """Range of a measure; None for DCG, which has no upper end."""
    return None if parse_measure(measure)[0] == "DCG" else (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedRanking:
    """A run beside the label distributions of its documents.

    Build with :meth:`join`. Rows are label rows; only queries with labels count, and a query of
    the labels that the run does not answer has value 0.

    Parameters
    ----------
    labels : LabelDistributions
    rank : int64 array of shape (m,)
        Rank of each labelled pair in the run, 0 when it was not retrieved.
    n_retrieved : int64 array of shape (n_queries,)
        Documents retrieved for each query.
    """

    labels: LabelDistributions
    rank: IntArray
    n_retrieved: IntArray

    @classmethod
    def join(cls, run: Run, labels: LabelDistributions) -> JudgedRanking:
        """Find the rank of every labelled pair; ranks follow the order of the run.

        Raises
        ------
        DataError
            If no query of the labels is in the run.
        """
        rank, retrieved = rank_of_labels(
            run, labels.query_ids, labels.doc_ids, labels.query_codes, labels.doc_codes
        )
        if not retrieved.any():
            raise DataError(
                f"none of the {len(labels.query_ids)} labelled queries is in run {run.name!r} "
                f"(first labelled query {labels.query_ids[0]!r}, first of the run "
                f"{run.query_ids[0] if run.query_ids else None!r}); query ids must be the same"
            )
        return cls(labels=labels, rank=rank, n_retrieved=retrieved)

    def unjudged(self, cutoff: int) -> IntArray:
        """Retrieved documents without a label within the cutoff; shape (n_queries,)."""
        found = np.bincount(
            self.labels.query_codes[(self.rank > 0) & (self.rank <= cutoff)],
            minlength=len(self.labels.query_ids),
        )
        return np.minimum(self.n_retrieved, cutoff) - found

    def ranked_labels(
        self, measure: str, *, gain: GainScale = "exponential", min_grade: int = 1
    ) -> RankedLabels:
        """Return the documents within the cutoff, for DCG@k or P@k; gain as in :meth:`values`."""
        name, cutoff = parse_measure(measure)
        if name not in _LINEAR:
            raise DataError(
                f"{measure} is not a weighted sum of gains; conformal and document-level intervals "
                "are for DCG@k and P@k"
            )
        rows = np.flatnonzero((self.rank > 0) & (self.rank <= cutoff))
        rows = rows[np.lexsort((self.rank[rows], self.labels.query_codes[rows]))]
        return RankedLabels(
            probs=self.labels.probs[rows],
            weights=dcg_weights(self.rank[rows], cutoff)
            if name == "DCG"
            else np.full(len(rows), 1.0 / cutoff),
            query=self.labels.query_codes[rows].astype(np.int64),
            n_queries=len(self.labels.query_ids),
            gains=_gains(self.labels.n_grades, gain)
            if name == "DCG"
            else (np.arange(self.labels.n_grades) >= min_grade).astype(np.float64),
        )

    def values(
        self,
        measure: str,
        *,
        gain: GainScale = "exponential",
        min_grade: int = 1,
        counted: npt.NDArray[np.bool_] | None = None,
    ) -> FloatArray:
        """Return one value per query of the labels; shape (n_queries,).

        Parameters
        ----------
        measure : str
            ``DCG@k``, ``NDCG@k``, ``P@k``, ``MAP@k`` (divided by all relevant documents, as
            trec_eval's map_cut), ``MRR@k`` or ``Recall@k``.
        gain : {"exponential", "linear"}
            Gain of grade r for DCG and NDCG: 2^r − 1 ([R]) or r (trec_eval).
        min_grade : int
            Lowest relevant grade of the other measures.
        counted : bool array of shape (m,), optional
            Label rows that may be relevant; the others keep their ranks but gain nothing ([K]'s
            per-source scores).
        """
        name, cutoff = parse_measure(measure)
        probs = self.labels.probs
        worth = (
            probs @ _gains(self.labels.n_grades, gain)
            if name in ("DCG", "NDCG")
            else probs[:, min_grade:].sum(axis=1)
        )
        if counted is not None:
            worth = np.where(counted, worth, 0.0)
        grid = self._grid(worth, cutoff)
        ranks = np.arange(1, cutoff + 1)
        if name in ("DCG", "NDCG"):
            total = grid @ dcg_weights(ranks, cutoff)
            return total if name == "DCG" else _ratio(total, self._ideal(worth, cutoff))
        if name == "P":
            return np.asarray(grid.sum(axis=1) / cutoff)
        if name == "MRR":
            none_before = np.cumprod(np.hstack([np.ones((len(grid), 1)), 1 - grid[:, :-1]]), axis=1)
            return np.asarray((grid * none_before) @ (1 / ranks))
        relevant = _sums(self.labels.query_codes, worth, len(grid))
        if name == "Recall":
            return _ratio(grid.sum(axis=1), relevant)
        return _ratio((grid * (1 + (np.cumsum(grid, axis=1) - grid))) @ (1 / ranks), relevant)

    def _grid(self, worth: FloatArray, cutoff: int) -> FloatArray:
        """Worth by query and rank; 0 where nothing labelled was retrieved."""
        grid = np.zeros((len(self.labels.query_ids), cutoff))
        rows = np.flatnonzero((self.rank > 0) & (self.rank <= cutoff))
        grid[self.labels.query_codes[rows], self.rank[rows] - 1] = worth[rows]
        return grid

    def _ideal(self, worth: FloatArray, cutoff: int) -> FloatArray:
        """DCG of all labelled documents of a query in the order of their worth."""
        codes = self.labels.query_codes
        order = np.lexsort((-worth, codes))
        sizes = np.bincount(codes, minlength=len(self.labels.query_ids))
        place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return _sums(codes[order], worth[order] * dcg_weights(place + 1, cutoff), len(sizes))


def _gains(n_grades: int, gain: GainScale) -> FloatArray:
    grades = np.arange(n_grades, dtype=np.float64)
    require_one_of("gain", gain, get_args(GainScale))
    return np.exp2(grades) - 1 if gain == "exponential" else grades


def _sums(codes: npt.NDArray[np.integer[Any]], values: FloatArray, size: int) -> FloatArray:
    return np.bincount(codes, weights=values, minlength=size).astype(np.float64, copy=False)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


# Label distributions pushed up or down by a signed λ ([R] Eq. 16–19).
# For λ ≥ 0 the mass λ is taken from the lowest grades first and the rest is rescaled to 1: what is
# left is the upper (1 − λ) tail of the distribution, so with the survival function S_r = P(grade ≥
# r) the perturbed survival function is min(1, S_r / (1 − λ)). For λ < 0 the same holds mirrored.
# The top grade (λ ≥ 0) and the bottom grade (λ < 0) are never reduced. At λ = ±1 nothing would be
# left of a distribution without mass on the favoured grade; the limits are defined as all mass on
# that grade, whatever the judge believed.


def perturb(probs: FloatArray, lam: float | FloatArray) -> FloatArray:
    """Return the distributions perturbed by λ ([R] Eq. 16–18).

    Parameters
    ----------
    probs : float64 array of shape (m, L)
        Rows sum to 1.
    lam : float or float64 array of shape (m,)
        In [−1, 1]; 0 returns the distributions, 1 all mass on the last grade, −1 on the first.

    Returns
    -------
    float64 array of shape (m, L)
        Rows sum to 1.
    """
    lam = np.broadcast_to(np.asarray(lam, dtype=np.float64), len(probs))
    raised = _raised(probs, np.maximum(lam, 0.0))
    if np.all(lam >= 0):
        return raised
    lowered = _raised(probs[:, ::-1], np.maximum(-lam, 0.0))[:, ::-1]
    return np.where(lam[:, None] >= 0, raised, lowered)


def _raised(probs: FloatArray, lam: FloatArray) -> FloatArray:
    """Move mass up, for λ of at least 0."""
    tails = np.minimum(np.cumsum(probs[:, :0:-1], axis=1)[:, ::-1], 1.0)
    keep = np.broadcast_to(1.0 - lam[:, None], tails.shape)
    tails = np.divide(np.minimum(tails, keep), keep, out=np.ones_like(tails), where=keep > 0)
    survival = np.column_stack([np.ones(len(probs)), tails, np.zeros(len(probs))])
    return np.asarray(survival[:, :-1] - survival[:, 1:])


# The λ at which a perturbed utility reaches a human value.
# A utility is increasing in λ except for two flat ends (−1, b] and [t, 1), where every tail is used
# up, and it jumps at ±1 where a distribution has no mass on the extreme grade.


#: Sums of errors within this of 0 count as 0.
TIE = 1e-9

#: The last λ before the jump at 1.
INSIDE = float(np.nextafter(1.0, 0.0))

_WIDTH = 2e-16  # of λ, to which an answer is found
_ROUNDING = 1e-13  # relative, of a sum of utilities


class Crossing(NamedTuple):
    """Where the utility crosses the human value.

    ``first`` is the smallest λ with U(λ) ≥ y and ``last`` the largest with U(λ) ≤ y, ties within
    1e-9; they differ where the utility is flat at y, or jumps over it. Values above the reach of
    the labels have both at 1, values below it both at −1.
    """

    first: FloatArray
    last: FloatArray


def crossings(labels: RankedLabels, y: FloatArray) -> Crossing:
    """Return the critical λ of every query, arrays of shape (n_queries,).

    Parameters
    ----------
    labels : RankedLabels
    y : float64 array of shape (n_queries,)
        Human utility of each query.
    """
    first = smallest_lambda(lambda lam: labels.utilities_at(lam) >= y - TIE, labels.n_queries)
    last = -smallest_lambda(lambda lam: labels.utilities_at(-lam) <= y + TIE, labels.n_queries)
    return Crossing(first, last)


def smallest_lambda(holds: Callable[[FloatArray], npt.NDArray[np.bool_]], n: int) -> FloatArray:
    """Return for each of n conditions the smallest λ at which it holds; 1 where it never does.

    Parameters
    ----------
    holds : callable
        Takes n values of λ in [−1, 1]; what holds at one λ holds at every larger one.
    """
    low, high = np.full(n, -INSIDE), np.full(n, INSIDE)
    at_start, before_jump = holds(np.full(n, -1.0)), holds(high)
    just_after = holds(low)
    while np.any(high - low > _WIDTH):
        middle = (low + high) / 2
        there = holds(middle)
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    found = np.where(just_after, -INSIDE, np.where(before_jump, high, 1.0))
    return np.asarray(np.where(at_start, -1.0, found))


# Conformal ranks in exact rationals.
# ⌈(n + 1)(1 − α)⌉ and ⌊(n + 1)α/2⌋ jump at whole numbers, where floating point rounds either way:
# 0.05 · 280 / 2 is 7, not 7.000000000000001 or 6.999999999999999. The confidence level is
# therefore read as the decimal number it was written as.


def tail_mass(confidence_level: float) -> Fraction:
    """Return α = 1 − the level, exactly."""
    check_level(confidence_level)
    return 1 - Fraction(repr(float(confidence_level)))


def score_rank(n: int, confidence_level: float) -> int:
    """Return ⌈(n + 1)(1 − α)⌉, the rank of the conformal score; at most n.

    Raises
    ------
    CalibrationError
        If n < 1/α − 1.
    """
    alpha = tail_mass(confidence_level)
    if (n + 1) * alpha < 1:
        raise _too_few(n, math.ceil(1 / alpha - 1), confidence_level, "labelled queries")
    return math.ceil((n + 1) * (1 - alpha))


def paper_misses(n: int, confidence_level: float, *, what: str = "labelled queries") -> int:
    """Return the largest count with count / n ≤ ½(α − (1 − α)/n) ([R] Eq. 24).

    [R] prints "<" in Eq. 15; the guarantee holds with "≤", which alone makes n = 1/α − 1 enough.

    Raises
    ------
    CalibrationError
        If the threshold is negative, n < 1/α − 1: no λ exists.
    """
    alpha = tail_mass(confidence_level)
    misses = math.floor((n * alpha - (1 - alpha)) / 2)
    if misses < 0:
        raise _too_few(n, math.ceil(1 / alpha - 1), confidence_level, what)
    return misses


def _too_few(n: int, needed: int, level: float, what: str) -> CalibrationError:
    return CalibrationError(
        f"{n} {what} cannot support a {100 * level:.4g}% conformal interval: no lambda meets the "
        f"threshold; at least {needed} are needed"
    )


# The judge brought to the human scale by one λ.


def recalibration(labels: RankedLabels, y: FloatArray) -> float:
    """Return λ*, at which the mean error of the judge over the labelled queries is 0.

    Parameters
    ----------
    labels : RankedLabels
        Judge labels of exactly the labelled queries.
    y : float64 array of shape (n_queries,)
        Their human utilities.

    Returns
    -------
    float
        In (−1, 1). Where several λ are equally good the one nearest 0; where none brings the
        error to 0, the nearest 0 of those with the smallest error. One-hot labels do not move
        inside (−1, 1), so their λ* is 0.
    """
    if not labels.n_queries:
        return 0.0
    pooled = replace(labels, query=np.zeros_like(labels.query), n_queries=1)
    # the jumps at ±1 forget the judge
    lowest, highest = (float(pooled.utilities_at(end)[0]) for end in (-INSIDE, INSIDE))
    total = min(max(float(np.sum(y)), lowest), highest)
    tie = _ROUNDING * max(1.0, abs(total))
    first = smallest_lambda(lambda lam: pooled.utilities_at(lam) >= total - tie, 1)
    last = -smallest_lambda(lambda lam: pooled.utilities_at(-lam) <= total + tie, 1)
    nearest = min(max(0.0, float(first[0])), float(last[0]))
    return min(max(nearest, -INSIDE), INSIDE)
