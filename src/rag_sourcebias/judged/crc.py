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
from rag_sourcebias.core.errors import (
    CalibrationError,
    DataError,
    check_level,
    meant,
    require_one_of,
)
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import resampled_counts
from rag_sourcebias.infer.samples import judge_correlation
from rag_sourcebias.intake.belong import require_meeting
from rag_sourcebias.measure.relevance import gains, rank_of_labels

# From label distributions to per-query utilities ([R] Eq. 1 and 5).
# A linear utility of a query is Σ ω(rank) Σ_r P(r) gain(r) over its ranked documents; DCG and
# precision are of this form. It is summed here; measures whose denominator depends on the labels
# (NDCG, MAP, MRR) follow below.


def dcg_weights(ranks: npt.NDArray[np.integer[Any]], cutoff: int) -> FloatArray:
    """ω of DCG@k: 1 / log2(rank + 1) through the cutoff, then 0; ranks start at 1."""
    return np.where(ranks <= cutoff, 1.0 / np.log2(ranks + 1.0), 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
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
        lam = np.broadcast_to(lam, self.n_queries)
        return self.total(perturb(self.probs, lam[self.query]) @ self.gains)

    def document_gains(self) -> FloatArray:
        """Return the gain expected of every document ([R] Eq. 5); shape (m,)."""
        return self.probs @ self.gains

    def total(self, gains: FloatArray) -> FloatArray:
        """Sum ω · gain within each query; ``gains`` of shape (m,)."""
        return _sums(self.query, self.weights * gains, self.n_queries)

    def take(self, queries: npt.NDArray[np.integer[Any]]) -> RankedLabels:
        """Return the queries asked for, in that order; a query may occur several times."""
        starts = np.searchsorted(self.query, np.arange(self.n_queries + 1))
        sizes = np.diff(starts)[queries]
        query = np.repeat(np.arange(len(queries)), sizes)
        rows = (starts[queries] - (np.cumsum(sizes) - sizes))[query] + np.arange(len(query))
        return replace(
            self,
            probs=self.probs[rows],
            weights=self.weights[rows],
            query=query,
            n_queries=len(queries),
        )


# Per-query values of a ranking from label distributions, human or judged.
# DCG and precision are sums over documents. NDCG, MAP, MRR and recall are not: their denominator
# or their terms depend on several labels. They are plugged in with the expected gains or the
# probabilities of relevance, so labels of the whole judged pool are a precondition; whatever error
# this makes, the human labels of the regression on the judge correct. With all probability on one
# grade every value is exactly the ordinary measure.


GainScale = Literal["exponential", "linear"]
LINEAR = ("DCG", "P")
_MEASURES = (*LINEAR, "NDCG", "MAP", "MRR", "Recall")


def parse_measure(text: str) -> tuple[str, int]:
    """Split ``"NDCG@10"`` into name and cutoff."""
    match = re.fullmatch(r"([A-Za-z]+)@([1-9][0-9]*)", text.strip())
    names = {name.lower(): name for name in _MEASURES}
    if match is None or match[1].lower() not in names:
        raise DataError(
            f"measure {text!r} is not one of {', '.join(f'{m}@k' for m in _MEASURES)}, such as "
            f"NDCG@10{meant(text.partition('@')[0], _MEASURES)}"
        )
    return names[match[1].lower()], int(match[2])


def measure_bounds(measure: str) -> tuple[float, float] | None:
    """Range of a measure; None for DCG, which has no upper end."""
    return None if parse_measure(measure)[0] == "DCG" else (0.0, 1.0)


class JudgedRanking(NamedTuple):
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
        require_meeting(f"run {run.name!r}", run, "the labels", labels)
        return cls(labels=labels, rank=rank, n_retrieved=retrieved)

    def rows_within(self, cutoff: int) -> IntArray:
        """Return the label rows that were retrieved through a rank, by query and rank."""
        rows = np.flatnonzero((self.rank > 0) & (self.rank <= cutoff))
        return rows[np.lexsort((self.rank[rows], self.labels.query_codes[rows]))]

    def unjudged(self, cutoff: int) -> IntArray:
        """Retrieved documents without a label within the cutoff; shape (n_queries,)."""
        codes = self.labels.query_codes[self.rows_within(cutoff)]
        found = np.bincount(codes, minlength=len(self.n_retrieved))
        return np.minimum(self.n_retrieved, cutoff) - found

    def ranked_labels(
        self, measure: str, *, gain: GainScale = "exponential", min_grade: int = 1
    ) -> RankedLabels:
        """Return the documents within the cutoff, for DCG@k or P@k; gain as in :meth:`values`."""
        name, cutoff = parse_measure(measure)
        if name not in LINEAR:
            raise DataError(
                f"{measure} is not a weighted sum of gains; conformal and document-level intervals "
                "are for DCG@k and P@k"
            )
        rows = self.rows_within(cutoff)
        weights = np.full(len(rows), 1.0 / cutoff)
        if name == "DCG":
            weights = dcg_weights(self.rank[rows], cutoff)
        return RankedLabels(
            probs=self.labels.probs[rows],
            weights=weights,
            query=self.labels.query_codes[rows].astype(np.int64),
            n_queries=len(self.n_retrieved),
            gains=_worth(name, self.labels.n_grades, gain, min_grade),
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
        worth = self.labels.probs @ _worth(name, self.labels.n_grades, gain, min_grade)
        if counted is not None:
            worth = np.where(counted, worth, 0.0)
        grid = self._grid(worth, cutoff)
        ranks = np.arange(1, cutoff + 1)
        if name == "DCG":
            return grid @ dcg_weights(ranks, cutoff)
        if name == "NDCG":
            return _ratio(grid @ dcg_weights(ranks, cutoff), self._ideal(worth, cutoff))
        if name == "P":
            return np.asarray(grid.sum(axis=1) / cutoff)
        if name == "MRR":
            none_before = np.cumprod(np.hstack([np.ones((len(grid), 1)), 1 - grid[:, :-1]]), axis=1)
            return (grid * none_before) @ (1 / ranks)
        relevant = _sums(self.labels.query_codes, worth, len(grid))
        if name == "Recall":
            return _ratio(grid.sum(axis=1), relevant)
        return _ratio((grid * (1 + (np.cumsum(grid, axis=1) - grid))) @ (1 / ranks), relevant)

    def _grid(self, worth: FloatArray, cutoff: int) -> FloatArray:
        """Worth by query and rank; 0 where nothing labelled was retrieved."""
        grid = np.zeros((len(self.n_retrieved), cutoff))
        rows = self.rows_within(cutoff)
        grid[self.labels.query_codes[rows], self.rank[rows] - 1] = worth[rows]
        return grid

    def _ideal(self, worth: FloatArray, cutoff: int) -> FloatArray:
        """DCG of all labelled documents of a query in the order of their worth."""
        codes = self.labels.query_codes
        order = np.lexsort((-worth, codes))
        sizes = np.bincount(codes, minlength=len(self.n_retrieved))
        place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return _sums(codes[order], worth[order] * dcg_weights(place + 1, cutoff), len(sizes))


def _worth(name: str, n_grades: int, gain: GainScale, min_grade: int) -> FloatArray:
    """Return what each grade counts in a measure: its gain, or whether it is relevant."""
    require_one_of("gain", gain, get_args(GainScale))
    grades = np.arange(n_grades)
    if name in ("DCG", "NDCG"):
        return gains(grades, gain)
    return (grades >= min_grade).astype(np.float64)


def _sums(codes: npt.NDArray[np.integer[Any]], values: FloatArray, size: int) -> FloatArray:
    # of no documents at all numpy counts integers
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
    lam = np.broadcast_to(lam, len(probs))[:, None]
    up = lam >= 0
    probs = np.where(up, probs, probs[:, ::-1])  # to move mass up
    tails = np.minimum(np.cumsum(probs[:, :0:-1], axis=1)[:, ::-1], 1.0)
    keep = 1.0 - np.abs(lam)
    survival = np.ones((len(probs), probs.shape[1] + 1))
    np.divide(np.minimum(tails, keep), keep, out=survival[:, 1:-1], where=keep > 0)
    survival[:, -1] = 0.0
    moved = survival[:, :-1] - survival[:, 1:]
    return np.where(up, moved, moved[:, ::-1])


# The λ at which a perturbed utility reaches a human value.
# A utility is increasing in λ except for two flat ends (−1, b] and [t, 1), where every tail is used
# up, and it jumps at ±1 where a distribution has no mass on the extreme grade.


#: Sums of errors within this of 0 count as 0.
TIE = 1e-9

#: The last λ before the jump at 1.
INSIDE = float(np.nextafter(1.0, 0.0))

_WIDTH = 2e-16  # of λ, to which an answer is found
_ROUNDING = 1e-13  # relative, of a sum of utilities


def crossings(
    labels: RankedLabels, y: FloatArray, *, tie: float = TIE
) -> tuple[FloatArray, FloatArray]:
    """Return where the utility of every query crosses its human value.

    The smallest λ with U(λ) ≥ y, and the largest with U(λ) ≤ y; arrays of shape (n_queries,). They
    differ where the utility is flat at y, or jumps over it. Values above the reach of the labels
    have both at 1, values below it both at −1.

    Parameters
    ----------
    labels : RankedLabels
    y : float64 array of shape (n_queries,)
        Human utility of each query.
    tie : float
        Difference that counts as none.
    """
    first = smallest_lambda(lambda lam: labels.utilities_at(lam) >= y - tie, labels.n_queries)
    last = -smallest_lambda(lambda lam: labels.utilities_at(-lam) <= y + tie, labels.n_queries)
    return first, last


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
    return np.where(at_start, -1.0, found)


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
    first, last = crossings(pooled, np.array([total]), tie=_ROUNDING * max(1.0, abs(total)))
    nearest = min(max(0.0, float(first[0])), float(last[0]))
    return min(max(nearest, -INSIDE), INSIDE)


# Dual calibration of an interval for a mean utility ([R] §6, Eq. 16–26).


class CRCCalibration(NamedTuple):
    """A pair of λ calibrated on labelled queries.

    Parameters
    ----------
    lambda_low, lambda_high : float
        Bounds in [−1, 1], ``lambda_low <= lambda_high``; both may be on one side of 0.
    lambda_center : float
        λ* of the labelled queries, moved into the bounds: the point estimate.
    confidence_level : float
    n_labeled : int
    """

    lambda_low: float
    lambda_high: float
    lambda_center: float
    confidence_level: float
    n_labeled: int


def calibrate_dual(
    labels: RankedLabels,
    y: FloatArray,
    *,
    confidence_level: float,
    n_batches: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> CRCCalibration:
    """Calibrate λ_low and λ_high on bootstrap batches of the labelled queries ([R] Eq. 22–25).

    The bounds are the tightest that leave, on each side, at most a share ½(α − (1 − α)/M) of the
    M batches with their human mean outside (sums within 1e-9 are inside). Where ties let the
    bounds pass each other, both are the λ between them nearest 0.

    Parameters
    ----------
    labels : RankedLabels
        Judge labels of exactly the labelled queries.
    y : float64 array of shape (n_queries,)
        Their human utilities.
    confidence_level : float
    n_batches : int
        M batches of n queries.
    rng : numpy.random.Generator or int

    Raises
    ------
    CalibrationError
        If no λ exists: fewer than 1/α − 1 batches, fewer than two queries, or human values beyond
        what the labels can reach.
    """
    n = labels.n_queries
    if n < 2:
        raise CalibrationError(f"{n} labelled queries cannot be resampled; at least 2 are needed")
    misses = paper_misses(n_batches, confidence_level, what="bootstrap batches")
    counts = np.concatenate([*resampled_counts(n, resamples=n_batches, rng=rng)])
    high = _tightest(lambda lam: counts @ (labels.utilities_at(lam) - y), misses)
    low = -_tightest(lambda lam: counts @ (y - labels.utilities_at(-lam)), misses)
    if low > high:
        low = high = min(max(0.0, high), low)
    return CRCCalibration(
        lambda_low=low,
        lambda_high=high,
        lambda_center=min(max(recalibration(labels, y), low), high),
        confidence_level=confidence_level,
        n_labeled=n,
    )


def _tightest(sums: Callable[[FloatArray], FloatArray], misses: int) -> float:
    """Return the smallest λ at which at most ``misses`` sums of errors are below 0.

    Sums do not decrease in λ; within 1e-9 they are ties, not below.
    """

    def enough(lam: FloatArray) -> npt.NDArray[np.bool_]:
        return np.array([np.count_nonzero(sums(lam) < -TIE) <= misses])

    found = smallest_lambda(enough, 1)
    if not enough(found)[0]:
        raise CalibrationError(
            "no lambda covers enough of the calibration sets: human values lie beyond what the "
            "labels can reach"
        )
    return float(found[0])


def crc_interval(calibration: CRCCalibration, labels: RankedLabels) -> Interval:
    """Return [Û(Q, λ_low), Û(Q, λ_high)] for the mean utility of unlabelled queries ([R] Eq. 20).

    Parameters
    ----------
    calibration : CRCCalibration
    labels : RankedLabels
        Judge labels of the unlabelled queries.
    """
    if not labels.n_queries:
        raise DataError("no unlabelled queries to give an interval for")
    lower, estimate, upper = (
        float(labels.utilities_at(lam).mean())
        for lam in (calibration.lambda_low, calibration.lambda_center, calibration.lambda_high)
    )
    return Interval(
        estimate=min(max(estimate, lower), upper),
        lower=lower,
        upper=upper,
        confidence_level=calibration.confidence_level,
        method=InferCode.CRC(),
        target="unlabeled",
        n_labeled=calibration.n_labeled,
        n_unlabeled=labels.n_queries,
        assumptions=(
            InferCode.SAME_POPULATION(),
            InferCode.JUDGE_CONSISTENT(),
            InferCode.CRC_BOOTSTRAP(),
        ),
        notes=(InferCode.CRC_SHORT(),),
    )


def crc_mean_interval(
    labels: RankedLabels, y: FloatArray, others: RankedLabels, *, confidence_level: float = 0.95
) -> Interval:
    """CRC for a data set: calibrated on labelled units, for the mean of the others ([R] §6).

    It under-covers: nominal 95 % intervals held that mean in .82 to .93 of fresh draws
    (docs/coverage.md), .847 with 100 labelled and 112 other queries, and the population mean, which
    they are not for, in .06 with an excellent judge.

    Parameters
    ----------
    labels, others : RankedLabels
        Judge labels of the labelled units and of the others.
    y : float64 array of shape (n,)
        Human values of the labelled units.

    Raises
    ------
    DataError
        If nothing is unlabelled.
    CalibrationError
        If human values lie beyond what the labels can reach.
    """
    return replace(
        crc_interval(calibrate_dual(labels, y, confidence_level=confidence_level), others),
        correlation=judge_correlation(y, labels.utilities()),
    )


def two_grades(values: FloatArray, bounds: tuple[float, float] | None) -> RankedLabels:
    """Return judge values within a scale, (0, 1) by default, as probabilities of its upper end.

    Raises
    ------
    DataError
        If a value is outside the scale.
    """
    low, high = bounds or (0.0, 1.0)
    outside = np.flatnonzero((values < low) | (values > high))
    if len(outside):
        raise DataError(
            f"method 'crc' reads judge values as probabilities between {low:g} and {high:g}, and "
            f"one is {values[outside[0]]:g}; give the scale of people and judge as bounds, or "
            "choose method regression"
        )
    share = (values - low) / (high - low)
    return RankedLabels.from_grid(
        np.stack((1 - share, share), axis=1)[:, None, :], np.ones(1), np.array([low, high])
    )


# Conformal residuals of a regression on the recalibrated judge.


_FEWEST = 5  # a line and a line of scales, left without one query
_SMALLEST_SCALE = 0.25  # of the mean absolute residual; keeps one small scale from ruling
_ALONE = 1.0 - 1e-9  # leverage of a query without which there is no slope


def residual_bounds(
    labels: RankedLabels, y: FloatArray, target: RankedLabels, *, rank: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return estimate, lower and upper of every target query.

    y is regressed on the judge at λ*, and the absolute residuals on the same judge value, which
    gives every query its scale. The score of a labelled query is its leave-one-out residual over
    its leave-one-out scale; the bounds are the fit ± the ``rank``-th smallest score × scale, cut
    to what the labels can reach.
    """
    n = len(y)
    if n < _FEWEST:
        raise CalibrationError(
            f"{n} labelled queries cannot support a fitted scale; at least {_FEWEST} are needed"
        )
    lam = recalibration(labels, y)
    judge = labels.utilities_at(lam)
    away = judge - judge.mean()
    squares = float(away @ away)
    if squares <= 1e-12 * max(1.0, float(judge @ judge)):  # a constant judge has no slope
        squares = np.inf
    share = away**2 / squares
    alone = 1 / n + share >= _ALONE
    slope = float(away @ y) / squares
    sizes = np.abs((y - y.mean() - slope * away) / np.where(alone, 1.0, 1.0 - 1 / n - share))
    scale_slope, kept = _scale(sizes, away, squares)
    smallest = _SMALLEST_SCALE * sizes.mean()
    leverage = 1 / n + kept * share
    away_from_fit = sizes - sizes.mean() - scale_slope * away
    # the fit of every query without its own size
    own = np.maximum(sizes - away_from_fit / np.maximum(1.0 - leverage, 1.0 - _ALONE), smallest)
    scores = np.where(alone, np.inf, sizes / np.where(own > 0, own, 1.0))
    quantile = np.partition(scores, rank - 1)[rank - 1]

    away = target.utilities_at(lam) - judge.mean()
    scale = np.maximum(sizes.mean() + scale_slope * away, smallest)
    reach = np.where(scale > 0, quantile * np.where(scale > 0, scale, 1.0), 0.0)
    fit, bottom, top = y.mean() + slope * away, target.utilities_at(-1.0), target.utilities_at(1.0)
    lower, estimate, upper = (np.clip(v, bottom, top) for v in (fit - reach, fit, fit + reach))
    return estimate, lower, upper


def _scale(sizes: FloatArray, away: FloatArray, squares: float) -> tuple[float, float]:
    """Return the slope of the residual sizes, shrunk by 1 − 1/F, and the share kept.

    With few queries the slope is mostly noise, and noise in the scale widens every interval.
    """
    slope = float(away @ sizes) / squares
    rest = sizes - sizes.mean() - slope * away
    noise = float(rest @ rest) / (len(sizes) - 2) / squares
    kept = max(0.0, 1.0 - noise / slope**2) if slope else 0.0
    return kept * slope, kept


# An interval for the utility of every single query ([R] §6.2 option b).


PerQueryRule = Literal["residual", "recalibrated", "paper"]


class PerQueryIntervals(NamedTuple):
    """Intervals for the utilities of single queries.

    Parameters
    ----------
    estimate, lower, upper : float64 arrays of shape (n_queries,)
        ``lower <= estimate <= upper``.
    lambda_low, lambda_high : float or None
        The pair of λ behind the bounds; None for the rule ``"residual"``.
    rule : str
    assumptions : tuple of Finding
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    lambda_low: float | None
    lambda_high: float | None
    rule: PerQueryRule
    assumptions: tuple[Finding, ...]


def per_query_intervals(
    labels_labelled: RankedLabels,
    y: FloatArray,
    labels_target: RankedLabels,
    *,
    rule: PerQueryRule = "residual",
    confidence_level: float,
) -> PerQueryIntervals:
    """Return an interval for the human utility of every target query.

    Parameters
    ----------
    labels_labelled : RankedLabels
        Judge labels of the n labelled queries.
    y : float64 array of shape (n,)
        Their human utilities.
    labels_target : RankedLabels
        Judge labels of the queries to give intervals for.
    rule : {"residual", "recalibrated", "paper"}
        ``"residual"``: leave-one-out residuals of a regression on the recalibrated judge, over a
        fitted scale; the narrowest from about 40 labelled queries on. ``"recalibrated"``: the
        judge is brought to the human scale by λ*, the score of a query is the smallest t with its
        value in [U(λ* − t), U(λ* + t)], and t is the conformal quantile of the scores.
        ``"paper"``: [R] Eq. 22–25 with single queries, which under-covers.
    confidence_level : float
        Read as a decimal number; ranks are exact.

    Raises
    ------
    CalibrationError
        If n is too small: below 1/α − 1 (``"residual"``: also 5).
    """
    spent = InferCode.ONE_CORRECTION if rule == "paper" else InferCode.FIT_COSTS_ONE
    low: float | None = None
    high: float | None = None
    if rule == "residual":
        rank = score_rank(len(y), confidence_level)
        estimate, lower, upper = residual_bounds(labels_labelled, y, labels_target, rank=rank)
    else:
        center = recalibration(labels_labelled, y)
        first, last = crossings(labels_labelled, y)
        if rule == "recalibrated":
            rank = score_rank(len(y), confidence_level)
            scores = np.maximum(np.maximum(first - center, center - last), 0.0)
            radius = float(np.partition(scores, rank - 1)[rank - 1])
            held = scores <= radius
            # center ± radius may be rounded short of the query that set the radius, or of the jump
            # at ±1
            low = min(center - radius, float(last[held & (last < center)].min(initial=center)))
            high = max(center + radius, float(first[held & (first > center)].max(initial=center)))
            low, high = max(low, -1.0), min(high, 1.0)
        else:
            # the tightest λ that leave so many queries outside on each side
            misses = paper_misses(len(y), confidence_level)
            high, low = float(np.sort(first)[::-1][misses]), float(np.sort(last)[misses])
            if low > high:  # ties let the bounds pass each other
                low = high = float(np.clip(0.0, high, low))
        lower, upper = labels_target.utilities_at(low), labels_target.utilities_at(high)
        estimate = np.clip(labels_target.utilities_at(center), lower, upper)
    return PerQueryIntervals(
        estimate=estimate,
        lower=lower,
        upper=upper,
        lambda_low=low,
        lambda_high=high,
        rule=rule,
        assumptions=(InferCode.EXCHANGEABLE(), InferCode.IN_REACH(), spent()),
    )
