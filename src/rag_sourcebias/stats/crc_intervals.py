"""An interval for the utility of every single query ([R] §6.2 option b, METHODS §4.4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import CalibrationError, DataError
from rag_sourcebias.core.values import FloatArray, Interval, as_generator
from rag_sourcebias.stats.crc import (
    INSIDE,
    TIE,
    RankedLabels,
    UtilityPath,
    balance,
    check_values,
    crossings,
    misses_per_side,
    paper_misses,
    recalibration,
    rising_root,
    score_rank,
    tail_mass,
)
from rag_sourcebias.stats.samples import judge_correlation

# The bootstrap distribution of a mean error without drawing from it.
# The sign probability of a sum of n draws with replacement is approximated by Lugannani and Rice's
# saddlepoint formula in its r* form (Barndorff-Nielsen), which stays inside (0, 1). Draws of
# exactly 0 are counted apart: a batch of only such draws is a tie, and how many others a batch
# holds is binomial.


Errors = Callable[[float], FloatArray]
_NORMAL = NormalDist()
_FAR = 38.0  # standard deviations at which a normal tail is 0 in double precision
_CLOSE = 1e-7
_ACCURATE = 3e-5  # normal quantile; far below the error of the approximation
_STEPS = 200
_NO_MASS = -80.0  # logarithm of a probability that no tail here can tell from 0


def negative_share(errors: FloatArray) -> float:
    """P(Σ of n draws < 0) for n draws with replacement from the n ``errors``."""
    return _NORMAL.cdf(normal_score(errors))


def normal_score(errors: FloatArray) -> float:
    """Return the normal quantile of :func:`negative_share`, within ±38."""
    n = len(errors)
    present = errors[np.abs(errors) > TIE / n]
    if len(present) == n:
        return _signed_root(errors, n)
    if not len(present):
        return -_FAR
    share = len(present) / n
    if present.min() > 0:
        return -_FAR
    if present.max() < 0:
        return _score(1.0 - (1.0 - share) ** n)
    draws = np.arange(1, n + 1)
    # logarithms, as the coefficients of many queries are no floats
    logs = (
        np.cumsum(np.log((n + 1 - draws) / draws))
        + draws * math.log(share)
        + (n - draws) * math.log1p(-share)
    )
    draws, mass = draws[logs > _NO_MASS], np.exp(logs[logs > _NO_MASS])
    root, ratio = _saddle(present)
    score = root * np.sqrt(draws) + np.log(ratio) / (root * np.sqrt(draws))
    tails = np.array([_NORMAL.cdf(float(s)) for s in np.clip(score, -_FAR, _FAR)])
    tails[draws == 1] = np.mean(present < 0)  # one draw needs no approximation
    return _score(float(mass @ tails))


def _score(share: float) -> float:
    return _NORMAL.inv_cdf(share) if 1e-300 < share < 1 else math.copysign(_FAR, share - 0.5)


def _signed_root(errors: FloatArray, n: int) -> float:
    """r* of the sum of n draws."""
    if errors.min() > 0 or errors.max() < 0:
        return math.copysign(_FAR, -float(errors[0]))
    root, ratio = _saddle(errors)
    scaled = root * math.sqrt(n)
    return max(-_FAR, min(_FAR, scaled + math.log(ratio) / scaled))


def _saddle(errors: FloatArray) -> tuple[float, float]:
    """Return r and q/r of one draw at 0; r is negative where the mean is positive.

    The saddlepoint minimises log mean exp(s·e), which is convex in s.
    """
    e = errors / math.sqrt(float(errors @ errors) / len(errors))
    squares = e * e
    s, low, high = -float(e.mean()), -math.inf, math.inf
    for _ in range(_STEPS):
        exponent = s * e
        peak = float(exponent.max())
        tilted = np.exp(exponent - peak)
        total = float(tilted.sum())
        slope = float(tilted @ e) / total
        curve = float(tilted @ squares) / total - slope * slope
        low, high = (s, high) if slope < 0 else (low, s)
        if abs(slope) <= _CLOSE * math.sqrt(curve):
            break
        step = s - slope / curve
        s = step if low < step < high else _between(low, high)
    fit = math.log(total / len(e)) + peak
    root = math.copysign(math.sqrt(max(-2.0 * fit, 0.0)), s)
    if abs(root) < 1e-5:  # q/r -> 1 + r·skewness/6 as both vanish
        skew = float(np.mean(e**3)) / float(np.mean(squares)) ** 1.5
        root = root if root else 1e-12
        return root, 1.0 + root * skew / 6
    return root, s * math.sqrt(curve) / root


def _between(low: float, high: float) -> float:
    if math.isinf(low):
        return 2.0 * high - 1.0
    return 2.0 * low + 1.0 if math.isinf(high) else (low + high) / 2


def solve_level(
    errors: Errors,
    share: float,
    *,
    start: float = 0.0,
    known: FloatArray | None = None,
    tolerance: float = _ACCURATE,
) -> float:
    """Return the smallest λ in (−1, 1] at which :func:`negative_share` is at most ``share``.

    Parameters
    ----------
    errors : callable
        Errors of all queries at λ, not decreasing in λ; shape (n,).
    share : float
        In (0, 1).
    start : float
        First λ tried.
    known : float64 array of shape (n,), optional
        Errors at ``start``, where they are at hand.
    tolerance : float
        Accepted error of the normal quantile of the share.
    """
    goal = _NORMAL.inv_cdf(share)
    return rising_root(
        lambda lam: goal - normal_score(errors(lam)),
        start=start,
        known=None if known is None else goal - normal_score(known),
        tolerance=tolerance,
    )


# Dual calibration as an order statistic ([R] Eq. 22–25).
# The sign of a batch's error is monotone in λ, so every batch has one critical λ and the smallest
# λ that leaves at most K batches uncovered is the (K + 1)-th largest of them. It is found by
# selection: one look at all batches close to a good guess leaves a few per cent of them, and the
# rest is pinned down among these few. No batch is solved on its own.


_CHUNK = 1 << 17  # draws summed at a time, so that they stay in cache
_WIDTH = 2e-16


class Batches(NamedTuple):
    """Bootstrap batches.

    Parameters
    ----------
    indices : integer array of shape (M, n)
        Queries of each batch.
    weights : int64 array of shape (M,)
        How many batches each row stands for.
    """

    indices: npt.NDArray[np.intp]
    weights: npt.NDArray[np.int64]

    def sums(self, errors: FloatArray) -> FloatArray:
        """Return the summed error of every batch; shape (M,)."""
        total, ones = np.empty(len(self.indices)), np.ones(self.indices.shape[1])
        rows = max(1, _CHUNK // max(1, self.indices.shape[1]))
        for start in range(0, len(total), rows):
            part = self.indices[start : start + rows]
            # "clip" only spares a second bounds check
            np.take(errors, part, mode="clip").dot(ones, out=total[start : start + rows])
        return total


class _Search:
    """Bracket of the answer with the batches whose critical λ lies in it."""

    def __init__(self, errors: Errors, batches: Batches, misses: int) -> None:
        self.errors, self.misses = errors, misses
        self.low, self.high = -1.0, 1.0
        self.active = batches
        self.above = 0  # weight of the batches below 0 even at ``high``
        self.low_sums: FloatArray | None = None
        self.high_sums: FloatArray | None = None
        self.near = 0.05

    def missing(self, lam: float) -> int:
        sums = self.active.sums(self.errors(lam))
        return self.above + int(self.active.weights[sums < -TIE].sum())

    def look(self, lam: float) -> None:
        """Move one end of the bracket to ``lam`` and drop the batches decided by that."""
        if not self.low < lam < self.high:
            return
        sums = self.active.sums(self.errors(lam))
        below = sums < -TIE
        missing = self.above + int(self.active.weights[below].sum())
        keep = ~below if missing <= self.misses else below
        if missing <= self.misses:
            self.high, self.above, self.high_sums = lam, missing, sums
        else:
            self.low, self.low_sums = lam, sums
        self.low_sums = None if self.low_sums is None else self.low_sums[keep]
        self.high_sums = None if self.high_sums is None else self.high_sums[keep]
        self.active = Batches(self.active.indices[keep], self.active.weights[keep])

    def squeeze(self) -> None:
        """Look on both sides of where straight lines put the answer."""
        at, slopes = self.slopes()
        sums = self.high_sums if self.low_sums is None else self.low_sums
        if sums is None:
            return
        steps = -(sums + TIE) / np.maximum(slopes, 1e-300)
        order = np.argsort(-steps, kind="stable")
        weights = np.cumsum(self.active.weights[order])
        rank = int(np.searchsorted(weights, self.misses - self.above, side="right"))
        step = float(steps[order[min(rank, len(order) - 1)]])
        near = self.near * (self.high - self.low if self.high_sums is not None else abs(step))
        before = self.high - self.low
        self.look(at + step + near)
        self.look(at + step - near)
        # straight lines fit ever better as the bracket closes
        fits = self.high - self.low <= 2.5 * near
        self.near = max(self.near**2, 1e-5) if fits and before < 1 else 0.05

    def slopes(self) -> tuple[float, FloatArray]:
        """Return a λ looked at and the rise of every active batch per unit of λ from there."""
        if self.low_sums is not None and self.high_sums is not None:
            return self.low, (self.high_sums - self.low_sums) / (self.high - self.low)
        at = self.high if self.low_sums is None else self.low
        step = math.copysign(1e-4 * (1.0 - abs(at)) + 1e-12, -at)
        return at, self.active.sums((self.errors(at + step) - self.errors(at)) / step)

    def settle(self) -> float:
        """Return the answer, after a look at the jump at an end that was not passed."""
        if self.low == -1.0 and self.missing(-1.0) <= self.misses:
            return -1.0
        if self.high == 1.0 and (missing := self.missing(1.0)) > self.misses:
            raise CalibrationError(
                f"no lambda covers enough of the calibration sets: {missing} have a human value "
                f"beyond what the labels can reach, {self.misses} are allowed"
            )
        return self.high


# Dual calibration of an interval for a mean utility ([R] §6, Eq. 16–26).


#: What a reader must know of a CRC interval over bootstrap batches (METHODS §4.5).
CAVEAT = (
    "leaves out the sampling error of what is unlabelled: under-covers its mean, and far more the "
    "population mean"
)

_LISTED = 8  # queries up to which every batch is listed: 6,435 distinct ones at 8
_LOOSE = 0.01  # normal quantile, for a first guess


@dataclass(frozen=True, slots=True, kw_only=True)
class CRCCalibration:
    """A pair of λ calibrated on labelled queries.

    Parameters
    ----------
    lambda_low, lambda_high : float
        Bounds in [−1, 1], ``lambda_low <= lambda_high``; both may be on one side of 0.
    lambda_center : float
        λ* of the labelled queries, moved into the bounds: the point estimate.
    confidence_level : float
    n_labeled : int
    n_batches : int or None
        Bootstrap batches M; None is the limit of infinitely many.
    """

    lambda_low: float
    lambda_high: float
    lambda_center: float
    confidence_level: float
    n_labeled: int
    n_batches: int | None


def calibrate_dual(
    labels: RankedLabels,
    y: FloatArray,
    *,
    confidence_level: float,
    n_batches: int | None = None,
    indices: npt.NDArray[np.integer[Any]] | None = None,
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
    n_batches : int, optional
        M batches of n queries; [R] uses 10,000. None (default) is the limit M → ∞: with up to 8
        queries every batch is listed, beyond that a saddlepoint approximation is used. The limit
        is deterministic.
    indices : integer array of shape (M, any), optional
        Queries of each batch; overrides ``n_batches`` and ``rng``.
    rng : numpy.random.Generator or int

    Raises
    ------
    CalibrationError
        If no λ exists: fewer than 1/α − 1 batches, fewer than two queries, or human values beyond
        what the labels can reach.
    """
    check_values(labels, y)
    n, alpha = labels.n_queries, tail_mass(confidence_level)
    if n < 2:
        raise CalibrationError(f"{n} labelled queries cannot be resampled; at least 2 are needed")
    path = UtilityPath.of(labels)
    center = balance(path, labels, y)
    y = np.asarray(y, dtype=np.float64)
    there = path.at(center) - y
    # what bounds from above, and the mirror image of what bounds from below
    sides = (
        _Side(lambda lam: path.at(lam) - y, center, there),
        _Side(lambda lam: y - path.at(-lam), -center, -there),
    )
    drawn: int | None = None
    if indices is None and n_batches is not None:
        indices = as_generator(rng).integers(0, n, size=(n_batches, n))
    if indices is not None:
        batches, drawn = (
            Batches(_checked(indices, n), np.ones(len(indices), np.int64)),
            len(indices),
        )
        misses = paper_misses(drawn, confidence_level, what="bootstrap batches")
        high, low = (_select(side, batches, misses) for side in sides)
    elif n <= _LISTED:
        batches, misses = _every_batch(n), math.floor(alpha / 2 * n**n)
        high, low = (_select(side, batches, misses) for side in sides)
    else:
        high, low = (_limit(side, float(alpha / 2)) for side in sides)
    low = -low
    if low > high:
        low = high = float(np.clip(0.0, high, low))
    return CRCCalibration(
        lambda_low=low,
        lambda_high=high,
        lambda_center=float(np.clip(center, low, high)),
        confidence_level=confidence_level,
        n_labeled=n,
        n_batches=drawn,
    )


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
    path = UtilityPath.of(labels)
    lower, estimate, upper = (
        float(path.at(lam).mean())
        for lam in (calibration.lambda_low, calibration.lambda_center, calibration.lambda_high)
    )
    return Interval(
        estimate=min(max(estimate, lower), upper),
        lower=lower,
        upper=upper,
        confidence_level=calibration.confidence_level,
        method="crc (paper)",
        target="unlabeled",
        n_labeled=calibration.n_labeled,
        n_unlabeled=labels.n_queries,
        assumptions=(
            "labelled and unlabelled queries are drawn from the same population",
            "the judge errs alike on both",
            "the mean of the unlabelled queries is distributed like a bootstrap mean of the "
            "labelled ones around the judge's value (Eq. 27); it is not",
        ),
        notes=(CAVEAT,),
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


class _Side(NamedTuple):
    """Errors rising in λ, a λ in their middle and the errors there."""

    errors: Errors
    center: float
    there: FloatArray


def _select(side: _Side, batches: Batches, misses: int) -> float:
    """Return the smallest λ at which the error of at most ``misses`` batches is below 0.

    They are counted by weight; sums within 1e-9 are ties, not below.
    """
    share = min(0.5, (misses + 1 + 4.0 * math.sqrt(misses + 1)) / int(batches.weights.sum()))
    guess = solve_level(side.errors, share, start=side.center, known=side.there, tolerance=_LOOSE)
    search = _Search(side.errors, batches, misses)
    search.look(min(max(guess, -INSIDE), INSIDE))
    while search.high - search.low > _WIDTH:
        before = search.high - search.low
        search.squeeze()
        if search.high - search.low > before / 2:
            # an end not yet tried, or the middle
            if search.high == 1.0 or search.low == -1.0:
                search.look(INSIDE if search.high == 1.0 else -INSIDE)
            search.look((search.low + search.high) / 2)
        if search.high - search.low == before:  # neighbours in floating point
            break
    return search.settle()


def _limit(side: _Side, share: float) -> float:
    lam = solve_level(side.errors, share, start=side.center, known=side.there)
    if lam == 1.0 and negative_share(side.errors(1.0)) > share:
        raise CalibrationError(
            "no lambda covers enough of the calibration sets: human values lie beyond what the "
            "labels can reach"
        )
    return -1.0 if lam <= -INSIDE and negative_share(side.errors(-1.0)) <= share else lam


def _checked(indices: npt.NDArray[np.integer[Any]], n: int) -> npt.NDArray[np.intp]:
    if indices.ndim != 2 or (len(indices) and not indices.size):
        raise DataError(f"batch indices of shape {indices.shape}; (batches, queries) is expected")
    lowest, highest = int(indices.min(initial=0)), int(indices.max(initial=0))
    if lowest < 0 or highest >= n:
        raise DataError(
            f"batch index {lowest if lowest < 0 else highest} with {n} labelled queries"
        )
    return indices.astype(np.intp, copy=False)


def _every_batch(n: int) -> Batches:
    """List the distinct batches of n out of n queries, weighted by their number of orders."""
    rows = list(combinations_with_replacement(range(n), n))
    orders = [
        math.factorial(n) // math.prod(math.factorial(row.count(i)) for i in set(row))
        for row in rows
    ]
    return Batches(np.array(rows, dtype=np.intp), np.array(orders, dtype=np.int64))


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
    if len(y) < _FEWEST:
        raise CalibrationError(
            f"{len(y)} labelled queries cannot support a fitted scale; at least {_FEWEST} are "
            "needed"
        )
    path, ahead = UtilityPath.of(labels), UtilityPath.of(target)
    lam = balance(path, labels, y)
    judge = path.at(lam)
    away = judge - judge.mean()
    squares = float(away @ away)
    if squares <= 1e-12 * max(1.0, float(judge @ judge)):  # a constant judge has no slope
        away, squares = np.zeros_like(away), np.inf
    share = away**2 / squares
    alone = 1.0 / len(y) + share >= _ALONE
    slope = float(away @ y) / squares
    sizes = np.abs((y - y.mean() - slope * away) / np.where(alone, 1.0, 1.0 - 1.0 / len(y) - share))
    scale_slope, kept = _scale(sizes, away, squares)
    smallest = _SMALLEST_SCALE * float(sizes.mean())
    leverage = 1.0 / len(y) + kept * share
    own = sizes - (sizes - (sizes.mean() + scale_slope * away)) / np.maximum(
        1.0 - leverage, 1.0 - _ALONE
    )
    own = np.maximum(own, smallest)  # the fit of every query without its own size
    scores = np.where(alone, np.inf, sizes / np.where(own > 0, own, 1.0))
    quantile = float(np.partition(scores, rank - 1)[rank - 1])

    away = ahead.at(lam) - judge.mean() if squares < np.inf else np.zeros(target.n_queries)
    scale = np.maximum(sizes.mean() + scale_slope * away, smallest)
    reach = np.where(scale > 0, quantile * np.where(scale > 0, scale, 1.0), 0.0)
    fit, bottom, top = y.mean() + slope * away, ahead.at(-1.0), ahead.at(1.0)
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


# An interval for the utility of every single query ([R] §6.2 option b, METHODS §4.4).


PerQueryRule = Literal["residual", "recalibrated", "two-sided", "paper"]

_FITTED = "the fit to the labelled queries costs no more than one of them"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerQueryIntervals:
    """Intervals for the utilities of single queries.

    Parameters
    ----------
    estimate, lower, upper : float64 arrays of shape (n_queries,)
        ``lower <= estimate <= upper``.
    lambda_low, lambda_high : float or None
        The pair of λ behind the bounds; None for the rule ``"residual"``.
    rule : str
    n_labeled : int
    confidence_level : float
        Of each single interval, on average over labelled sets and queries.
    assumptions : tuple of str
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    lambda_low: float | None
    lambda_high: float | None
    rule: PerQueryRule
    n_labeled: int
    confidence_level: float
    assumptions: tuple[str, ...]


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
    rule : {"residual", "recalibrated", "two-sided", "paper"}
        ``"residual"``: leave-one-out residuals of a regression on the recalibrated judge, over a
        fitted scale; the narrowest from about 40 labelled queries on. ``"recalibrated"``: the
        judge is brought to the human scale by λ*, the score of a query is the smallest t with its
        value in [U(λ* − t), U(λ* + t)], and t is the conformal quantile of the scores.
        ``"two-sided"``: the rule of [R] with a full correction for each side. ``"paper"``:
        [R] Eq. 22–25 with single queries, which under-covers.
    confidence_level : float
        Read as a decimal number; ranks are exact.

    Raises
    ------
    CalibrationError
        If n is too small: below 1/α − 1 (``"two-sided"``: 2/α − 1; ``"residual"``: also 5).
    """
    check_values(labels_labelled, y)
    if rule not in get_args(PerQueryRule):
        raise DataError(f"rule {rule!r}; one of {', '.join(get_args(PerQueryRule))} is expected")
    y = np.asarray(y, dtype=np.float64)
    path = UtilityPath.of(labels_target)
    assumptions: tuple[str, ...] = (
        "labelled and target queries are exchangeable",
        "human values lie between all documents at the lowest and all at the highest grade",
    )
    low: float | None
    high: float | None
    if rule == "residual":
        rank = score_rank(len(y), confidence_level)
        low = high = None
        estimate, lower, upper = residual_bounds(labels_labelled, y, labels_target, rank=rank)
        assumptions += (_FITTED,)
    else:
        center = recalibration(labels_labelled, y) if len(y) else 0.0
        if rule == "recalibrated":
            rank = score_rank(len(y), confidence_level)
            low, high = _one_parameter(labels_labelled, y, center, rank)
            assumptions += (_FITTED,)
        else:
            allowed = paper_misses if rule == "paper" else misses_per_side
            low, high = _two_parameters(labels_labelled, y, allowed(len(y), confidence_level))
            if rule == "paper":
                assumptions += (
                    "the rule of the paper spends one n + 1 correction on two sides: it "
                    "under-covers, by up to 1/(n + 1)",
                )
        lower, upper = path.at(low), path.at(high)
        estimate = np.clip(path.at(center), lower, upper)
    return PerQueryIntervals(
        estimate=estimate,
        lower=lower,
        upper=upper,
        lambda_low=low,
        lambda_high=high,
        rule=rule,
        n_labeled=len(y),
        confidence_level=confidence_level,
        assumptions=assumptions,
    )


def _one_parameter(
    labels: RankedLabels, y: FloatArray, center: float, rank: int
) -> tuple[float, float]:
    first, last = crossings(labels, y)
    scores = np.maximum(np.maximum(first - center, center - last), 0.0)
    radius = float(np.partition(scores, rank - 1)[rank - 1])
    held = scores <= radius
    # center ± radius may be rounded short of the query that set the radius, or of the jump at ±1
    low = min(center - radius, float(last[held & (last < center)].min(initial=center)))
    high = max(center + radius, float(first[held & (first > center)].max(initial=center)))
    return max(low, -1.0), min(high, 1.0)


def _two_parameters(labels: RankedLabels, y: FloatArray, misses: int) -> tuple[float, float]:
    """Return the tightest λ that leave at most ``misses`` queries outside on each side."""
    first, last = crossings(labels, y)
    high = float(np.sort(first)[::-1][misses])
    low = float(np.sort(last)[misses])
    if low > high:  # ties let the bounds pass each other
        low = high = float(np.clip(0.0, high, low))
    return low, high
