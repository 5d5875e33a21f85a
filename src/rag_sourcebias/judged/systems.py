"""Several systems on the same items at once: simultaneous differences, ranks, and who is best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Float32Array, FloatArray, IntArray
from rag_sourcebias.core.errors import InsufficientDataError, as_generator, check_level
from rag_sourcebias.infer.decide import t_quantile
from rag_sourcebias.infer.judged import (
    MIN_LABELED,
    PSEUDO_ITEMS,
    UNSEEN_ITEMS,
    reach_of_differences,
    two_ends,
)
from rag_sourcebias.infer.regression import sampling_reach
from rag_sourcebias.infer.samples import JudgedSample, Target, check_target

MAX_PAIRS_OF_FEW = 36  # all pairs of 9 systems: more are compared from 30 labels on only
MIN_LABELED_OF_MANY = 30
_RESAMPLES_AT_ONCE = 64  # so that what is held of them fits a processor's cache
_FEWEST_SHRUNK = 4  # systems whose spread can be told from chance
_MOST_LEVERAGE = 0.9  # an item that decides the slope alone is not blown up without limit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SystemComparison:
    """What human labels of some items and a judge's of all say of m systems.

    Parameters
    ----------
    score : float64 array of shape (m,)
        Estimated mean of each system, from which they are ranked: what a system differs in from
        what the judge predicts is shrunk towards 0 as far as chance explains it.
    first, second : int64 arrays of shape (p,)
        The systems compared.
    difference, lower, upper : float64 arrays of shape (p,)
        First minus second; all p intervals hold at once, with the confidence level.
    best, worst : int64 arrays of shape (m,)
        Lowest and highest rank that the differences leave each system, 1 being the best. All m
        hold at once. Without all pairs, 1 and m.
    tau : tuple of float
        Kendall's τ between the judge's means and the corrected ones, before scores are shrunk; and
        the lowest and highest value that the differences leave it.
    quantile : float
        Standard errors to each side.
    n_labeled, n_unlabeled : int
    """

    score: FloatArray
    first: IntArray
    second: IntArray
    difference: FloatArray
    lower: FloatArray
    upper: FloatArray
    best: IntArray
    worst: IntArray
    tau: tuple[float, float, float]
    quantile: float
    n_labeled: int
    n_unlabeled: int


def compare_systems(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    baseline: int | None = None,
    target: Target = "population",
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    n_resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> SystemComparison:
    """Compare systems on items they share, with intervals that hold all at once.

    Parameters
    ----------
    y, yhat : array-like of shape (n, m)
        Human and judge values of the labelled items, one column per system.
    yhat_unlabeled : array-like of shape (N, m)
    baseline : int, optional
        Column that every other one is compared with; all pairs without it.
    bounds : tuple of float, optional
        Range of the human values.
    n_resamples : int
        Joint resamples of the items.

    Returns
    -------
    SystemComparison
        What people see between systems is regressed on what the judge sees between them, with one
        slope for all; each system keeps its own offset. The differences are widened by the larger
        of two quantiles of the largest |t| over all of them: of a joint bootstrap of the labelled
        items, studentised (Romano & Wolf 2005), and of the multivariate t. A pseudo-item
        enters each variance where values are 0 or 1, and two where labels may have missed rare
        departures, as for :func:`~rag_sourcebias.infer.judged.difference_interval`.

    Raises
    ------
    InsufficientDataError
        With fewer than 10 labelled items; with more than 36 comparisons (all pairs of 9 systems)
        below 30: of that many, some would be wrong too often.
    """
    sample = JudgedSample.build(y, yhat, yhat_unlabeled)
    check_level(confidence_level)
    check_target(target)
    first, second = _pairs(sample, baseline)
    fit = _fit(sample, target)
    human, judge, residual = (
        values[:, first] - values[:, second] for values in (sample.y, sample.x, fit.residual)
    )
    reach = reach_of_differences(sample, human, (human - judge, residual), bounds)
    n = float(sample.n_labeled)
    among = fit.influence[:, first] - fit.influence[:, second]
    variance = np.einsum("ij,ij->j", among, among) + _of_pairs(fit.pool, first, second)
    items = PSEUDO_ITEMS if reach.two_values else UNSEEN_ITEMS
    weight = np.where(reach.found > 0, items, 0.0)
    unseen = weight * reach.found**2 * sampling_reach(sample, target) / n
    error = np.sqrt((n * variance + unseen) / (n + weight))
    quantile = _largest(
        fit,
        first,
        second,
        weight=weight / n,
        unseen=unseen / n,
        error=error,
        level=confidence_level,
        n_resamples=n_resamples,
        rng=as_generator(rng),
    )
    gap = fit.estimate[first] - fit.estimate[second]
    centre = gap * n / (n + weight) if reach.two_values else gap
    lower = np.minimum(centre - quantile * error, gap)
    upper = np.maximum(centre + quantile * error, gap)
    if scale := bounds or two_ends(sample.y, bounds):
        most = scale[1] - scale[0]
        gap, lower, upper = (np.clip(values, -most, most) for values in (gap, lower, upper))
    best, worst = _ranks(first, second, lower, upper, sample.y.shape[1], all_pairs=baseline is None)
    judge = np.concatenate([sample.x, sample.x_unlabeled]).mean(axis=0)
    return SystemComparison(
        score=_shrunk(sample, fit, judge),
        first=first,
        second=second,
        difference=gap,
        lower=lower,
        upper=upper,
        best=best,
        worst=worst,
        tau=_tau(judge, gap, (first, second), (lower, upper)),
        quantile=quantile,
        n_labeled=sample.n_labeled,
        n_unlabeled=sample.n_unlabeled,
    )


def _pairs(sample: JudgedSample, baseline: int | None) -> tuple[IntArray, IntArray]:
    """Return the columns compared, or say why they cannot be."""
    n, m = sample.y.shape
    if baseline is None:
        first, second = np.triu_indices(m, 1)
    else:
        first = np.delete(np.arange(m), baseline)
        second = np.full(m - 1, baseline)
    needed = labels_for(len(first))
    if n < needed:
        more = "; compare 9 or fewer, or each with one baseline" if needed > MIN_LABELED else ""
        raise InsufficientDataError(
            f"{n} labelled item(s): {len(first)} comparisons of {m} systems at once need at least "
            f"{needed}{more}",
            n=n,
            n_needed=needed,
        )
    return first.astype(np.int64), second.astype(np.int64)


def labels_for(n_pairs: int) -> int:
    """Return the labelled items from which so many differences can be compared at once."""
    return MIN_LABELED_OF_MANY if n_pairs > MAX_PAIRS_OF_FEW else MIN_LABELED


class _Fit(NamedTuple):
    """Estimates of m systems, and what each labelled item and the pool contribute to their error.

    Parameters
    ----------
    estimate : float64 array of shape (m,)
    influence : float64 array of shape (n, m)
        What each labelled item contributes to the error.
    residual : float64 array of shape (n, m)
        … and what of it the judge does not see.
    pool : float64 array of shape (m, m)
        Covariance from drawing the other items out of their population.
    offset : float64 array of shape (m,)
        Mean human value less what the judge predicts, over the labelled items.
    """

    estimate: FloatArray
    influence: FloatArray
    residual: FloatArray
    pool: FloatArray
    offset: FloatArray


def _fit(sample: JudgedSample, target: Target) -> _Fit:
    """Regress what people see between systems on what the judge sees, with one slope.

    The slope is that of least squares after the means of items and systems are taken out. An item
    is a cluster of m values: its residuals are divided by the root of 1 − leverage (HC2).
    """
    n, m = sample.y.shape
    everything = np.concatenate([sample.x, sample.x_unlabeled])
    centred = [values - values.mean(axis=0) for values in (sample.y, sample.x)]
    y, x = (values - values.mean(axis=1, keepdims=True) for values in centred)
    power = float((x * x).sum())
    size = float(np.abs(everything).max(initial=0.0))
    slope = float((x * y).sum()) / power if power > (1e-10 * max(size, 1e-300)) ** 2 else 0.0
    means = [values.mean(axis=0) for values in (sample.y, sample.x)]
    shift = (everything if target != "unlabeled" else sample.x_unlabeled).mean(axis=0) - means[1]
    leverage = np.full(n, 1 / n)
    if slope:
        leverage += (x * x).sum(axis=1) / power
    residual = (y - slope * x) / np.sqrt(1 - np.minimum(leverage, _MOST_LEVERAGE))[:, None]
    along = (x * residual).sum(axis=1) / power if slope else np.zeros(n)
    unseen = residual / n + along[:, None] * (shift - shift.mean())
    unseen = unseen * math.sqrt(sampling_reach(sample, target))
    influence, pool = unseen, np.zeros((m, m))
    if target == "population" and len(everything) > 1:
        # A labelled item is also one of those drawn. With one slope for all, what the judge does
        # not see of a system goes with what it sees, so the two parts are added before squaring.
        seen = slope * centred[1] / len(everything)
        influence = unseen + seen
        pool = slope**2 * np.atleast_2d(np.cov(everything, rowvar=False)) / len(everything)
        pool -= seen.T @ seen
    return _Fit(means[0] + slope * shift, influence, unseen, pool, means[0] - slope * means[1])


def _of_pairs(covariance: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Variance of each difference under a covariance of systems."""
    own = np.diag(covariance)
    return np.maximum(own[first] + own[second] - 2 * covariance[first, second], 0.0)


def _largest(
    fit: _Fit,
    first: IntArray,
    second: IntArray,
    *,
    weight: FloatArray,
    unseen: FloatArray,
    error: FloatArray,
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> float:
    """Return a quantile of the largest |t| over all pairs, and never less than that of one.

    The larger of that by a joint bootstrap and of that under the multivariate t. ``weight`` is that
    of the pseudo-item against one label, per pair; ``unseen`` its variance, before it is averaged
    in. The bootstrap follows skewness, and is short where few labels are resampled; the t knows
    how few they are, and no skewness. Where no label shows a difference neither knows more
    than the pseudo-items.
    """
    size = float(error.max(initial=0.0)) or 1.0  # 32 bits suffice for values around 1
    influence = fit.influence / size
    n, m = influence.shape
    among = influence[:, first] - influence[:, second]
    squares = (among * among).astype(np.float32)
    units = influence.astype(np.float32)
    values, vectors = np.linalg.eigh(fit.pool)
    # a root: its product with its transpose is the covariance
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    systems = (root / size).astype(np.float32)
    drawn, normal = np.empty(n_resamples, np.float32), np.empty(n_resamples, np.float32)
    fixed = ((unseen + _of_pairs(fit.pool, first, second)) / size**2).astype(np.float32)
    scaled = (1 / (1 + weight)).astype(np.float32)
    error = error / size
    precision = np.where(error > 1e-9, 1 / np.maximum(error, 1e-9) ** 2, 0).astype(np.float32)
    degrees = max(n - 2, 1)

    def squared(values: Float32Array) -> Float32Array:
        """Squared difference of first and second, for every pair; shape (k, p)."""
        return np.asarray(np.square(values[:, first] - values[:, second]))

    for start in range(0, n_resamples, _RESAMPLES_AT_ONCE):
        stop = min(start + _RESAMPLES_AT_ONCE, n_resamples)
        k = stop - start
        counts = _resampled(n, k, rng).astype(np.float32)
        # Σ w·u² − (Σ w·u)²/n, with u what one item adds to the difference
        total = counts @ units
        spread = counts @ squares - squared(total) * np.float32(1 / n)
        spread = np.maximum((np.maximum(spread, 0) + fixed) * scaled, np.float32(1e-30))
        noise = rng.standard_normal((k, m), dtype=np.float32) @ systems
        drawn[start:stop] = (squared(total + noise) / spread).max(axis=1)
        normals = rng.standard_normal((k, n), dtype=np.float32) @ units
        noise = rng.standard_normal((k, m), dtype=np.float32) @ systems
        normal[start:stop] = (squared(normals + noise) * precision).max(axis=1)
    normal /= (rng.chisquare(degrees, n_resamples) / degrees).astype(np.float32)
    joint = max(float(np.quantile(values, level)) for values in (drawn, normal))
    return max(math.sqrt(joint), t_quantile(0.5 + level / 2, float(degrees)))


def _resampled(n: int, k: int, rng: np.random.Generator) -> IntArray:
    """How often each of n items is drawn in each of k resamples; shape (k, n)."""
    drawn = (rng.random((k, n)) * n).astype(np.int64)
    places = drawn + n * np.arange(k)[:, None]
    return np.bincount(places.ravel(), minlength=k * n).reshape(k, n)


def _ranks(
    first: IntArray,
    second: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    m: int,
    *,
    all_pairs: bool,
) -> tuple[IntArray, IntArray]:
    """Count for each system those surely above and surely below it."""
    if not all_pairs:
        return np.ones(m, dtype=np.int64), np.full(m, m, dtype=np.int64)
    higher, smaller = lower > 0, upper < 0
    return (
        1 + np.bincount(second[higher], minlength=m) + np.bincount(first[smaller], minlength=m),
        m - np.bincount(first[higher], minlength=m) - np.bincount(second[smaller], minlength=m),
    )


def _shrunk(sample: JudgedSample, fit: _Fit, judge: FloatArray) -> FloatArray:
    """Scores whose offsets from the judge are shrunk (James & Stein 1961).

    An offset is how far people put a system above what the judge predicts. What follows a line in
    the judge's means (a judge that sees less, or more, between systems than within an item) and
    what is left are both kept as far as chance does not explain them.
    """
    m = sample.y.shape[1]
    offset = fit.offset - fit.offset.mean()
    if m < _FEWEST_SHRUNK or not offset.any():
        return fit.estimate
    centred = fit.residual - fit.residual.mean(axis=1, keepdims=True)
    chance = float((centred * centred).sum()) / (m - 1)  # of one offset
    apart = judge - judge.mean()
    power = float(apart @ apart)
    tilt = float(apart @ offset) / power if power > 0 else 0.0
    line = tilt * max(1 - chance / (power * tilt**2), 0.0) * apart if tilt else np.zeros(m)
    left = offset - tilt * apart
    spread = float(left @ left)
    kept = max(1 - (m - 2) * chance / spread, 0.0) if spread > 0 else 0.0
    return np.asarray(fit.estimate - offset + line + kept * left)


def _tau(
    judge: FloatArray,
    gap: FloatArray,
    pairs: tuple[IntArray, IntArray],
    ends: tuple[FloatArray, FloatArray],
) -> tuple[float, float, float]:
    """Kendall's τ of judge and corrected means, and what the differences leave it.

    Not of the scores: these are drawn towards the judge, and agree with it by construction.
    """
    first, second = pairs
    says = np.sign(judge[first] - judge[second])
    now = float((says * np.sign(gap)).mean())
    known = np.where(ends[0] > 0, 1, np.where(ends[1] < 0, -1, 0))
    certain, left = float((says * known).mean()), float((np.abs(says) * (known == 0)).mean())
    return now, min(certain - left, now), max(certain + left, now)
