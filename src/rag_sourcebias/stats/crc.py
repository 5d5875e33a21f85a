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

from rag_sourcebias.core.data import LabelDistributions, Run
from rag_sourcebias.core.errors import (
    CalibrationError,
    DataError,
    require,
    require_one_of,
)
from rag_sourcebias.core.values import FloatArray, IntArray, check_level
from rag_sourcebias.stats.ranking import rank_of_labels

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

    def __post_init__(self) -> None:
        m, n_grades = self.probs.shape
        last = int(self.query.max(initial=-1))
        require(
            (
                self.weights.shape == self.query.shape == (m,),
                "probs, weights and query differ in length",
            ),
            (self.gains.shape == (n_grades,), f"{len(self.gains)} gains for {n_grades} grades"),
            (
                np.all(np.diff(self.gains) >= 0),
                f"gains {self.gains.tolist()} decrease; a higher grade gains no less",
            ),
            (np.all(self.weights >= 0), "document weights may not be negative"),
            (
                np.all(np.diff(self.query, prepend=0) >= 0),
                "documents must be grouped by query, in the order of the queries",
            ),
            (last < self.n_queries, f"query index {last} with {self.n_queries} queries"),
        )

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


def perturb(probs: FloatArray, lam: float) -> FloatArray:
    """Return the distributions perturbed by λ ([R] Eq. 16–18).

    Parameters
    ----------
    probs : float64 array of shape (m, L)
        Rows sum to 1.
    lam : float
        In [−1, 1]; 0 returns the distributions, 1 all mass on the last grade, −1 on the first.

    Returns
    -------
    float64 array of shape (m, L)
        Rows sum to 1.
    """
    _check_lambda(lam)
    if lam < 0:
        return perturb(probs[:, ::-1], -lam)[:, ::-1]
    tails, keep = _running(probs.T[:0:-1])[::-1], 1.0 - lam
    tails = np.minimum(tails, keep) / keep if keep else np.ones_like(tails)
    tails = np.column_stack([np.ones(len(probs)), tails.T, np.zeros(len(probs))])
    return tails[:, :-1] - tails[:, 1:]


@dataclass(frozen=True, slots=True, eq=False)
class UtilityPath:
    """Utilities as a function of λ, prepared once and cheap to evaluate.

    Parameters
    ----------
    upper, lower : float64 arrays of shape (L − 1, m)
        P(grade ≥ r) and P(grade < r) of every document with weight, for r = 1 … L − 1.
    steps : float64 array of shape (L − 1,)
        Gain from r − 1 to r.
    floor : float
        Gain of the lowest grade.
    starts, present : int64 arrays
        First document and index of every query that has documents.
    weights, query, n_queries
        As in :class:`RankedLabels`, for the documents with weight.
    """

    upper: FloatArray
    lower: FloatArray
    steps: FloatArray
    floor: float
    weights: FloatArray
    query: IntArray
    starts: IntArray
    present: IntArray
    n_queries: int

    @classmethod
    def of(cls, labels: RankedLabels) -> UtilityPath:
        """Prepare ``labels``; documents of weight 0 are dropped."""
        used = slice(None) if labels.weights.all() else np.flatnonzero(labels.weights)
        columns, query = np.ascontiguousarray(labels.probs[used].T), labels.query[used]
        first = np.ones(len(query), dtype=bool)
        first[1:] = query[1:] != query[:-1]
        starts = np.flatnonzero(first)
        return cls(
            upper=_running(columns[:0:-1])[::-1],
            lower=_running(columns[:-1]),
            steps=np.diff(labels.gains),
            floor=float(labels.gains[0]),
            weights=labels.weights[used],
            query=query,
            starts=starts,
            present=query[starts],
            n_queries=labels.n_queries,
        )

    def at(self, lam: float) -> FloatArray:
        """Return the utilities at λ; shape (n_queries,)."""
        _check_lambda(lam)
        tails, keep = self.upper if lam >= 0 else self.lower, 1.0 - abs(lam)
        gained = (  # one division per document, not per grade
            (self.steps @ np.minimum(tails, keep)) / keep
            if keep > 0
            else self.steps @ np.ones_like(tails)
        )
        level = self.floor + gained if lam >= 0 else self.floor + float(self.steps.sum()) - gained
        total = np.zeros(self.n_queries)
        if len(self.starts):
            total[self.present] = np.add.reduceat(self.weights * level, self.starts)
        return total


def _running(columns: FloatArray) -> FloatArray:
    """Cumulative sums down the rows, at most 1; a tail without mass is exactly 0."""
    sums = np.empty(columns.shape)
    total: FloatArray | float = 0.0
    for row, column in zip(sums, columns, strict=True):
        np.add(column, total, out=row)
        total = row
    return np.minimum(sums, 1.0, out=sums)


def _check_lambda(lam: float) -> None:
    if not abs(lam) <= 1:  # written so that NaN counts as wrong
        raise DataError(f"lambda {lam} is outside [-1, 1]")


# The λ at which a perturbed utility reaches a human value, in closed form.
# On λ ≥ 0 a utility is floor + Σ_k w_k min(1, s_k / c) with c = 1 − λ: between two neighbouring
# s_k it is W + R/c, so the crossing is found by sorting the s_k once. The utility is strictly
# increasing except for two flat ends (−1, b] and [t, 1), where every tail is used up, and it jumps
# at ±1 where a distribution has no mass on the extreme grade.


#: Sums of errors within this of 0 count as 0.
TIE = 1e-9

#: The last λ before the jump at 1.
INSIDE = float(np.nextafter(1.0, 0.0))


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
    check_values(labels, y)
    path, y = UtilityPath.of(labels), np.asarray(y, dtype=np.float64)
    bottom = _sums(path.query, path.weights * path.floor, path.n_queries)
    top = bottom + _sums(path.query, path.weights * float(path.steps.sum()), path.n_queries)
    rising, falling = _Profile(path, path.upper), _Profile(path, path.lower)
    low, high = y - TIE, y + TIE
    now = path.at(0.0)
    first = np.where(
        now >= low, falling.smallest(top - low) - 1.0, 1.0 - rising.largest(low - bottom)
    )
    last = np.where(
        now <= high, 1.0 - rising.smallest(high - bottom), falling.largest(top - high) - 1.0
    )
    return Crossing(first, last)


def set_crossing(
    labels: RankedLabels, y: FloatArray, *, counts: IntArray | None = None
) -> tuple[float, float]:
    """Return (first, last) critical λ of the mean error over a set of queries.

    Parameters
    ----------
    labels : RankedLabels
    y : float64 array of shape (n_queries,)
    counts : int64 array of shape (n_queries,), optional
        How often each query is in the set, such as in a bootstrap batch; once by default.
    """
    check_values(labels, y)
    times = np.ones(labels.n_queries) if counts is None else np.asarray(counts, dtype=np.float64)
    pooled = replace(
        labels,
        weights=labels.weights * times[labels.query],
        query=np.zeros_like(labels.query),
        n_queries=1,
    )
    found = crossings(pooled, np.array([times @ y]))
    return float(found.first[0]), float(found.last[0])


def check_values(labels: RankedLabels, y: FloatArray) -> None:
    """Raise unless there is one finite human value per query."""
    if np.shape(y) != (labels.n_queries,):
        raise DataError(f"human values of shape {np.shape(y)} for {labels.n_queries} queries")
    if not np.isfinite(y).all():
        bad = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataError(f"human value of query {bad} is {y[bad]}; leave queries without one out")


class _Profile:
    """F(c) = Σ_k w_k min(1, s_k / c) of every query, not increasing in c on (0, 1]."""

    def __init__(self, path: UtilityPath, tails: FloatArray) -> None:
        n_steps, n = len(path.steps), path.n_queries
        starts = np.searchsorted(path.query, np.arange(n + 1))
        place = (path.query, np.arange(len(path.query)) - starts[path.query])
        padded = np.zeros((2, n, int(np.diff(starts).max(initial=0)), n_steps))
        padded[0][place], padded[1][place] = tails.T, path.weights[:, None] * path.steps
        s, w = padded.reshape(2, n, -1)
        order = np.argsort(-s, axis=1, kind="stable")
        none = np.zeros((n, 1))
        # bounds of the pieces: above the largest tail F is linear in 1/c down to c = 1
        self.s = np.hstack([none + 1.0, np.take_along_axis(s, order, axis=1), none])
        w = np.take_along_axis(w, order, axis=1)
        self.saturated = np.hstack([none, np.cumsum(w, axis=1)])
        mass = (w * self.s[:, 1:-1])[:, ::-1]
        self.rest = np.hstack([np.cumsum(mass, axis=1)[:, ::-1], none])
        self.total = self.saturated[:, -1]
        positive = self.s[:, 1:-1] > 0
        self.reach = np.take_along_axis(self.saturated, positive.sum(1)[:, None], axis=1)[:, 0]
        at = np.where(positive, self.s[:, 1:-1], 1.0)
        self.value = np.where(positive, self.saturated[:, 1:] + self.rest[:, 1:] / at, np.inf)

    def _solve(self, target: FloatArray) -> FloatArray:
        """Return c with F(c) = target, for targets within reach."""
        rows, piece = np.arange(len(target)), (self.value < target[:, None]).sum(axis=1)
        rest, missing = self.rest[rows, piece], target - self.saturated[rows, piece]
        solvable = (rest > 0) & (missing > 0)
        c = np.where(solvable, rest / np.where(solvable, missing, 1.0), 1.0)
        # rounding may not carry c out of its piece, nor to 0
        c = np.clip(c, self.s[rows, piece + 1], self.s[rows, piece])
        return np.clip(c, 1.0 - INSIDE, 1.0)

    def largest(self, target: FloatArray) -> FloatArray:
        """Return the largest c with F(c) ≥ target; 0 where only the extreme grade reaches it."""
        return np.where(target > self.reach, 0.0, self._solve(target))

    def smallest(self, target: FloatArray) -> FloatArray:
        """Return the smallest c with F(c) ≤ target; 0 where even the extreme grade is below."""
        return np.where(
            target >= self.total,
            0.0,
            np.where(target >= self.reach, 1.0 - INSIDE, self._solve(target)),
        )


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


def misses_per_side(n: int, confidence_level: float) -> int:
    """Return ⌊(n + 1)α/2⌋ − 1, the queries a bound may miss with one correction for each side.

    Raises
    ------
    CalibrationError
        If n < 2/α − 1.
    """
    alpha = tail_mass(confidence_level)
    rank = math.floor((n + 1) * alpha / 2)
    if rank < 1:
        raise _too_few(n, math.ceil(2 / alpha - 1), confidence_level, "labelled queries")
    return rank - 1


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


# Where a function of λ that does not decrease passes 0.


_STEPS = 200
_WIDTH = 2e-16


def rising_root(
    value_at: Callable[[float], float],
    *,
    start: float,
    tolerance: float,
    known: float | None = None,
    step: float = 0.3,
) -> float:
    """Return a λ in (−1, 1) with ``|value| <= tolerance``, by bracketed secant steps.

    The steps are taken in ∓ln(1 − |λ|), in which utilities are close to linear; ``step`` is the
    first of them and ``known`` the value at ``start`` where it is at hand. Where the
    function jumps over 0 the first λ above is returned; where it is negative up to the last λ
    before 1, it is 1; where it is positive from the first λ after −1, it is that.
    """
    low, high = -1.0, 1.0
    lam = min(max(start, -INSIDE), INSIDE)
    value = value_at(lam) if known is None else known
    here = _stretched(lam)
    probe = here - math.copysign(step, value)
    for _ in range(_STEPS):
        low, high = (lam, high) if value < 0 else (low, lam)
        if abs(value) <= tolerance:
            return lam
        if high - low < _WIDTH or low >= INSIDE or high <= -INSIDE:
            return high
        guess = math.copysign(-math.expm1(-abs(probe)), probe)
        lam = guess if low < guess < high and abs(guess) < 1 else _next(low, high)
        old, before = value, here
        value, here = value_at(lam), _stretched(lam)
        if value == old:  # flat here: look at the end of the bracket
            probe = math.inf if value < 0 else -math.inf
        else:
            probe = here - value * (here - before) / (value - old)
    return high


def _stretched(lam: float) -> float:
    return math.copysign(-math.log1p(-abs(lam)), lam)


def _next(low: float, high: float) -> float:
    """Return the end not yet tried, or half-way."""
    if high == 1.0:
        return INSIDE
    return -INSIDE if low == -1.0 else (low + high) / 2


# The judge brought to the human scale by one λ (METHODS §4.2).


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
    check_values(labels, y)
    return balance(UtilityPath.of(labels), labels, y) if labels.n_queries else 0.0


def balance(path: UtilityPath, labels: RankedLabels, y: FloatArray) -> float:
    """Return the same with the path of ``labels`` at hand."""
    total = float(np.sum(y))

    def error(lam: float) -> float:
        return float(path.at(lam).sum()) - total

    now = error(0.0)
    if abs(now) <= TIE:
        return 0.0
    lam = rising_root(error, start=0.0, known=now, step=1.0, tolerance=TIE)
    # a root in a flat end is not yet the one nearest 0; with a slope on the side of 0 it is
    if abs(lam) < INSIDE and abs(error(lam * (1.0 - 1e-3))) > TIE:
        return lam
    there = error(math.copysign(INSIDE, -now))
    if now * there < 0 and abs(there) > TIE:  # the flat ends are not at the human mean
        return lam
    # the jump at ±1 forgets the judge; stay on the near side of it, at the edge of the flat end
    first, last = set_crossing(labels, y + there / labels.n_queries)
    return float(np.clip(np.clip(0.0, first, last), -INSIDE, INSIDE))
