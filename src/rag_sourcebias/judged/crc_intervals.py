"""Intervals by conformal risk control ([R]): of the mean utility, and of every single query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import CalibrationError, DataError, as_generator
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.samples import judge_correlation
from rag_sourcebias.judged.crc import (
    TIE,
    RankedLabels,
    crossings,
    paper_misses,
    recalibration,
    score_rank,
    smallest_lambda,
)

# Dual calibration of an interval for a mean utility ([R] §6, Eq. 16–26).


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
    n_batches : int
        Bootstrap batches M.
    """

    lambda_low: float
    lambda_high: float
    lambda_center: float
    confidence_level: float
    n_labeled: int
    n_batches: int


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
    drawn = (
        as_generator(rng).integers(0, n, size=(n_batches, n)) + n * np.arange(n_batches)[:, None]
    )
    counts = np.bincount(drawn.ravel(), minlength=n_batches * n).reshape(n_batches, n) * 1.0
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
        n_batches=n_batches,
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
    if len(y) < _FEWEST:
        raise CalibrationError(
            f"{len(y)} labelled queries cannot support a fitted scale; at least {_FEWEST} are "
            "needed"
        )
    lam = recalibration(labels, y)
    judge = labels.utilities_at(lam)
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

    away = (
        target.utilities_at(lam) - judge.mean() if squares < np.inf else np.zeros(target.n_queries)
    )
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
    assumptions : tuple of Finding
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    lambda_low: float | None
    lambda_high: float | None
    rule: PerQueryRule
    n_labeled: int
    confidence_level: float
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
    assumptions = [InferCode.EXCHANGEABLE, InferCode.IN_REACH]
    low: float | None = None
    high: float | None = None
    if rule == "residual":
        rank = score_rank(len(y), confidence_level)
        estimate, lower, upper = residual_bounds(labels_labelled, y, labels_target, rank=rank)
        assumptions.append(InferCode.FIT_COSTS_ONE)
    else:
        center = recalibration(labels_labelled, y)
        if rule == "recalibrated":
            rank = score_rank(len(y), confidence_level)
            low, high = _one_parameter(labels_labelled, y, center, rank)
            assumptions.append(InferCode.FIT_COSTS_ONE)
        else:
            misses = paper_misses(len(y), confidence_level)
            low, high = _two_parameters(labels_labelled, y, misses)
            assumptions.append(InferCode.ONE_CORRECTION)
        lower, upper = labels_target.utilities_at(low), labels_target.utilities_at(high)
        estimate = np.clip(labels_target.utilities_at(center), lower, upper)
    return PerQueryIntervals(
        estimate=estimate,
        lower=lower,
        upper=upper,
        lambda_low=low,
        lambda_high=high,
        rule=rule,
        n_labeled=len(y),
        confidence_level=confidence_level,
        assumptions=tuple(code() for code in assumptions),
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
