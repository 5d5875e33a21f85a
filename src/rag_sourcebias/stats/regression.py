"""Intervals for one mean: from human labels alone, and by regression on the judge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.values import (
    FloatArray,
    Interval,
    as_generator,
    beta_quantile,
    check_level,
    normal_quantile,
    t_quantile,
)
from rag_sourcebias.stats.samples import JudgedSample, Target, as_values

# Intervals from human labels alone.


RANDOM = "the labelled items are a random sample"


def t_interval(
    y: npt.ArrayLike, *, confidence_level: float = 0.95, fraction_labeled: float = 0.0
) -> Interval:
    """Student's t interval for a mean.

    Parameters
    ----------
    y : array-like of shape (n,)
    fraction_labeled : float
        n/(n + N) in [0, 1] when the mean of a finite pool is wanted; 0 for a population.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 values, or values that do not differ.

    Examples
    --------
    >>> print(t_interval([3.0, 5.0, 4.0, 6.0]))
    4.5 [2.446, 6.554] (95%, labels alone (t), n = 4)
    """
    check_level(confidence_level)
    values = spread_values(y)
    n = len(values)
    error = values.std(ddof=1) / math.sqrt(n) * math.sqrt(max(1 - fraction_labeled, 0.0))
    half = t_quantile(0.5 + confidence_level / 2, n - 1) * float(error)
    mean = float(values.mean())
    return Interval(
        estimate=mean,
        lower=mean - half,
        upper=mean + half,
        confidence_level=confidence_level,
        method="labels alone (t)",
        target="pool" if fraction_labeled else "population",
        n_labeled=n,
        assumptions=(RANDOM, "their mean is close to normal"),
    )


def has_spread(values: FloatArray) -> bool:
    """Whether values differ by more than rounding."""
    return bool(len(values)) and float(values.max()) - float(values.min()) > 1e-12 * max(
        abs(float(values.min())), abs(float(values.max()))
    )


def spread_values(y: npt.ArrayLike) -> FloatArray:
    """Return values that have a spread to estimate, or raise."""
    values = as_values("y", y)
    if len(values) < 2:
        raise InsufficientDataError(
            f"{len(values)} human label(s): an interval needs at least 2, and 10 to be useful",
            n=len(values),
            n_needed=2,
        )
    if not has_spread(values):
        raise InsufficientDataError(
            f"all {len(values)} human values equal {values[0]:g}, so their spread cannot be "
            "estimated; label more items, or give the range of the values as bounds=(low, high)",
            n=len(values),
        )
    return values


def wilson_interval(successes: float, n: float, *, confidence_level: float = 0.95) -> Interval:
    """Wilson score interval for a proportion (Wilson 1927).

    Parameters
    ----------
    successes, n : float
        0 ≤ successes ≤ n; fractions are effective counts (Korn & Graubard 1998).

    Returns
    -------
    Interval
        In [0, 1].
    """
    share = _share(successes, n, confidence_level)
    ends = wilson_ends(share, n, normal_quantile(0.5 + confidence_level / 2))
    return _proportion((share, *ends), n, confidence_level, "Wilson")


def wilson_ends(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Ends of the score interval for a share observed on ``n`` (effective) items."""
    square = quantile * quantile / n
    centre = (share + square / 2) / (1 + square)
    half = quantile / (1 + square) * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return max(min(centre - half, share), 0.0), min(max(centre + half, share), 1.0)


def _share(successes: float, n: float, confidence_level: float) -> float:
    check_level(confidence_level)
    if n < 1:
        raise InsufficientDataError(f"{n} trials: a proportion needs at least 1", n=int(n))
    if not 0 <= successes <= n:
        raise DataError(f"{successes} successes out of {n} trials")
    return successes / n


def _proportion(ends: tuple[float, float, float], n: float, level: float, name: str) -> Interval:
    return Interval(
        estimate=ends[0],
        lower=ends[1],
        upper=ends[2],
        confidence_level=level,
        method=f"labels alone ({name})",
        n_labeled=round(n),
        assumptions=("independent trials with one probability",),
    )


# Bootstrap intervals for a mean, from human labels alone.


BootstrapKind = Literal["bca", "studentized", "empirical"]
_CHUNK = 4_000_000  # resampled values held at a time


def bootstrap_interval(
    y: npt.ArrayLike,
    *,
    confidence_level: float = 0.95,
    kind: BootstrapKind = "bca",
    n_resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """Bootstrap interval for a mean.

    Parameters
    ----------
    y : array-like of shape (n,)
        Finite values, in any unit.
    kind : {"bca", "studentized", "empirical"}
        Bias-corrected and accelerated (Efron 1987); bootstrap t; or the plain percentiles, the
        baseline of Oosterhuis et al. (KDD 2024), which is too short with few labels.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 values, or values that do not differ.
    """
    check_level(confidence_level)
    values = spread_values(y)
    n = len(values)
    means, errors = _resample(
        values, n_resamples, as_generator(rng), with_errors=kind == "studentized"
    )
    tails = np.array([0.5 - confidence_level / 2, 0.5 + confidence_level / 2])
    mean = float(values.mean())
    if kind == "studentized":
        # A resample without spread says nothing about the ratio; with n ≥ 10 there are few.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = (means - mean) / errors
        ratios = ratios[np.isfinite(ratios)]
        high, low = np.quantile(ratios, tails) * (values.std(ddof=1) / math.sqrt(n))
        lower, upper = mean - low, mean - high
    elif kind == "bca":
        lower, upper = np.quantile(means, _bca_tails(values, means, tails))
    elif kind == "empirical":
        lower, upper = np.quantile(means, tails)
    else:
        raise DataError(f"bootstrap kind {kind!r} is not one of bca, studentized, empirical")
    return Interval(
        estimate=mean,
        lower=min(float(lower), mean),
        upper=max(float(upper), mean),
        confidence_level=confidence_level,
        method=f"labels alone ({kind} bootstrap)",
        n_labeled=n,
        assumptions=(RANDOM, "resampling them imitates sampling the population"),
    )


def _resample(
    values: FloatArray, n_resamples: int, rng: np.random.Generator, *, with_errors: bool
) -> tuple[FloatArray, FloatArray]:
    n = len(values)
    means = np.empty(n_resamples)
    errors = np.empty(n_resamples if with_errors else 0)
    step = max(_CHUNK // n, 1)
    for start in range(0, n_resamples, step):
        stop = min(start + step, n_resamples)
        drawn = values[rng.integers(0, n, (stop - start, n))]
        means[start:stop] = drawn.mean(axis=1)
        if with_errors:
            errors[start:stop] = drawn.std(axis=1, ddof=1) / math.sqrt(n)
    return means, errors


def _bca_tails(values: FloatArray, means: FloatArray, tails: FloatArray) -> FloatArray:
    """Shift the percentiles by bias and acceleration (Efron 1987, eq. 2.3)."""
    mean = float(values.mean())
    below = (np.count_nonzero(means < mean) + np.count_nonzero(means == mean) / 2) / len(means)
    bias = normal_quantile(min(max(below, 1 / len(means)), 1 - 1 / len(means)))
    centred = values - mean
    acceleration = float((centred**3).sum() / (6 * (centred**2).sum() ** 1.5))
    moved = [bias + normal_quantile(float(tail)) for tail in tails]
    return np.array(
        [0.5 * math.erfc(-(bias + z / (1 - acceleration * z)) / math.sqrt(2)) for z in moved]
    )


# What a regression estimate would lose without each item or cluster.


CONSTANT = 1e-10  # spread relative to size below which a judge column is constant
_ROUNDING = 1e-12  # relative to the largest value
_ALONE = 1e-9  # 1 − leverage below which an item fixes its own fitted value


def item_influence(
    sample: JudgedSample,
    design: FloatArray,
    inverse: FloatArray,
    coefficients: FloatArray,
    towards: FloatArray,
    *,
    power: float,
) -> FloatArray:
    """What the estimate would lose without each item; shape (n, k).

    A residual is divided by 1 − leverage (the jackknife; HC3), or by its root with ``power`` 0.5
    (HC2 of MacKinnon & White 1985: unbiased where residuals vary alike).
    """
    residuals = sample.y - design @ coefficients
    free = 1 - sample.weights * np.einsum("ij,ij->i", design @ inverse, design)
    alone = free < _ALONE
    left_out = residuals / (np.where(alone, 1.0, free) ** power)[:, None]
    if alone.any():
        # The item alone decides a direction of the fit, so its own residual is 0. Without it that
        # direction has no slope, and the mean of the other items is what would predict it.
        left_out[alone] = sample.y[alone] - (sample.y.sum(axis=0) - sample.y[alone]) / max(
            sample.n_labeled - 1, 1
        )
    # What rounding leaves of a perfect fit is no residual.
    left_out[np.abs(left_out) <= _ROUNDING * np.abs(sample.y).max(initial=0.0)] = 0.0
    return (sample.weights * (design @ (inverse @ towards)))[:, None] * left_out


def cluster_influence(
    sample: JudgedSample,
    design: FloatArray,
    normal_equations: tuple[FloatArray, FloatArray],
    estimate: FloatArray,
    towards: FloatArray,
) -> FloatArray:
    """What the estimate would lose without each cluster; shape (G, k)."""
    gram, moments = normal_equations
    codes = np.unique(np.asarray(sample.cluster), return_inverse=True)[1]
    n_clusters = int(codes.max()) + 1
    weighted = design * sample.weights[:, None]
    width = design.shape[1]

    def by_cluster(values: FloatArray) -> FloatArray:
        return np.stack(
            [np.bincount(codes, weights=column, minlength=n_clusters) for column in values.T],
            axis=1,
        )

    grams = by_cluster((weighted[:, :, None] * design[:, None, :]).reshape(len(design), -1))
    own = by_cluster((weighted[:, :, None] * sample.y[:, None, :]).reshape(len(design), -1))
    without = np.linalg.pinv(
        gram - grams.reshape(n_clusters, width, width), rcond=CONSTANT, hermitian=True
    )
    left_out = without @ (moments - own.reshape(n_clusters, width, -1))
    return np.asarray(estimate - np.einsum("j,gjk->gk", towards, left_out))


# Regression on the judge: the estimator behind the default interval.
# Human values are regressed on judge values over the labelled items; the estimate is the mean of
# the fitted values over the target plus the mean residual (which ordinary least squares makes
# zero). The slope this learns is the optimal power of PPI++ (Angelopoulos et al. 2023), sign
# included. Its sampling error is read off residuals that are as large as without their item (HC2 to
# HC3 of MacKinnon & White 1985) and for clusters off the delete-one jackknife (CR3), so that the
# error of the slope itself is counted; tuned PPI leaves it out and under-covers below about 40
# labels.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionFit:
    """Estimates of k means and their covariance.

    Parameters
    ----------
    estimate : float64 array of shape (k,)
    covariance : float64 array of shape (k, k)
    degrees : float
        Degrees of freedom for a t quantile.
    rank : int
        Fitted parameters.
    skewness : float
        Of the first estimate.
    drawn : float
        Part of the variance of the first estimate that comes from drawing the judged items.
    residuals : float64 array of shape (n,)
        Of the labels of the first.
    """

    estimate: FloatArray
    covariance: FloatArray
    degrees: float
    rank: int
    skewness: float
    drawn: float
    residuals: FloatArray


def fit_regression(sample: JudgedSample, target: Target, *, leverage: float = 1.0) -> RegressionFit:
    """Estimate the mean human values of the target.

    Parameters
    ----------
    leverage : float
        Residuals of single items are divided by 1 − leverage to this power: 1 for HC3, 0.5 for
        HC2.

    Returns
    -------
    RegressionFit
        The variance of the estimated means is the jackknife variance of the labelled part, plus,
        for the population, the variance of the fitted values over the pool, divided by its size.
        For the pool the labelled part shrinks by 1 − n/(n + N); for the unlabelled items it grows
        by 1 + n/N.
    """
    design, pool, scale = _design(sample)
    gram = (design * sample.weights[:, None]).T @ design
    if sample.penalty is not None:  # of a column of spread 1
        gram = gram + np.diag(np.r_[0.0, sample.penalty / np.where(scale > 0, scale, 1.0) ** 2])
    values, vectors = np.linalg.eigh(gram)
    kept = values > CONSTANT * values[-1]
    inverse, rank = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T, int(kept.sum())
    # A matrix product with non-contiguous operands is several times slower for a million rows.
    moments = (design * sample.weights[:, None]).T @ sample.y
    coefficients = inverse @ moments
    towards = _target_means(sample, design, pool, target)
    if sample.cluster is None:
        influence = item_influence(sample, design, inverse, coefficients, towards, power=leverage)
        # a slope under a penalty is a part of a parameter
        spent = (
            float(rank)
            if sample.penalty is None
            else float(sample.weights @ np.einsum("ij,ij->i", design @ inverse, design))
        )
        degrees = max(sample.n_labeled - spent, 1.0)
        if sample.shifted:
            # Kish's effective number of items
            effective = float(sample.weights.sum() ** 2 / np.square(sample.weights).sum())
            degrees = max(min(degrees, effective - rank), 1.0)
    else:
        influence = cluster_influence(
            sample, design, (gram, moments), towards @ coefficients, towards
        )
        degrees = float(max(sample.n_units - 1, 1))
    influence = influence * math.sqrt(sampling_factor(sample, target))
    covariance, drawn = influence.T @ influence, np.zeros((1, 1))
    if target == "population":
        drawn = _fitted_covariance(sample, design, pool, coefficients)
        covariance = covariance + drawn
    return RegressionFit(
        estimate=towards @ coefficients,
        covariance=covariance,
        degrees=degrees,
        rank=rank,
        skewness=_skewness(influence[:, 0], float(covariance[0, 0])),
        drawn=float(drawn[0, 0]),
        residuals=sample.y[:, 0] - design @ coefficients[:, 0],
    )


def _skewness(influence: FloatArray, variance: float) -> float:
    """Skewness of the estimate from what each unit contributes to it; small-sample corrected."""
    n = len(influence)
    if n < 3 or variance <= 0:
        return 0.0
    third = float(((influence - influence.mean()) ** 3).sum())
    return float(third / variance**1.5 * np.sqrt(n * (n - 1)) / (n - 2))


def _design(sample: JudgedSample) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return 1 and the centred, scaled judge columns, of both sets; and the scales."""
    centre = np.average(sample.x, axis=0, weights=sample.weights)
    scale = sample.x.std(axis=0)
    size = np.maximum(np.abs(sample.x).max(axis=0, initial=0.0), np.finfo(float).tiny)
    scale = np.where(scale > CONSTANT * size, scale, 0.0)
    usable = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)

    def rows(x: FloatArray) -> FloatArray:
        matrix = np.ones((len(x), 1 + x.shape[1]))
        matrix[:, 1:] = (x - centre) * usable
        return matrix

    return rows(sample.x), rows(sample.x_unlabeled), scale


def _target_means(
    sample: JudgedSample, design: FloatArray, pool: FloatArray, target: Target
) -> FloatArray:
    """Mean design row of the items the estimate is about."""
    if (sample.shifted or target == "unlabeled") and len(pool):
        return np.asarray(pool.mean(axis=0))
    return np.asarray((design.sum(axis=0) + pool.sum(axis=0)) / (len(design) + len(pool)))


def sampling_factor(sample: JudgedSample, target: Target) -> float:
    """What the labelled part of the variance is multiplied with."""
    if target == "population":
        return 1.0
    if target == "pool" and sample.shifted:
        return 1 + sample.n_labeled / sample.n_unlabeled if sample.n_unlabeled else 1.0
    return sampling_reach(sample, target)


def _fitted_covariance(
    sample: JudgedSample, design: FloatArray, pool: FloatArray, coefficients: FloatArray
) -> FloatArray:
    """Covariance of the mean fitted value, from drawing the pool out of the population."""
    if sample.shifted:
        fitted = pool @ coefficients
        cluster = sample.cluster_unlabeled
    else:
        fitted = np.concatenate([design, pool]) @ coefficients
        cluster = (
            None
            if sample.cluster is None or sample.cluster_unlabeled is None
            else np.concatenate([sample.cluster, sample.cluster_unlabeled])
        )
    size = len(fitted)
    if size < 2:
        return np.zeros((fitted.shape[1], fitted.shape[1]))
    centred = fitted - fitted.mean(axis=0)
    units = size
    if cluster is not None:
        codes = np.unique(cluster, return_inverse=True)[1]
        centred = np.stack([np.bincount(codes, weights=c) for c in centred.T], axis=1)
        units = len(centred)
    return np.asarray(centred.T @ centred / size**2 * (units / max(units - 1, 1)))


# Score intervals for means of bounded values, from a regression on the judge.


PSEUDO_ITEMS = 4.0  # two at each end of the range (Agresti & Coull 1998)
JUDGED_ITEMS = 2.0  # one at each end, for a population mean with a judge


def score_form(
    sample: JudgedSample,
    fit: RegressionFit,
    target: Target,
    quantile: float,
    bounds: tuple[float, float],
) -> tuple[float, float, float]:
    """Wilson's interval on the number of items that would give this variance.

    Pseudo-items at both ends of the range enter the variance: labels that all agree, with the judge
    or with each other, do not make it zero. Two-valued labels
    whose judge has two values too are shares within these instead (:func:`_shares_form`).
    """
    shares = _shares_form(sample, fit, target, quantile, bounds)
    if shares is not None:
        return shares
    low, high = bounds
    width = high - low
    share = min(max((float(fit.estimate[0]) - low) / width, 0.0), 1.0)
    n = _effective_units(sample)
    variance = max(float(fit.covariance[0, 0]), 0.0) / width**2
    judged = sample.x.shape[1] and target == "population"
    seen = JUDGED_ITEMS if judged else PSEUDO_ITEMS
    if judged and sample.penalty is not None:  # the mean of several judges parts from people less
        seen /= 2
    pseudo = seen / 2 * ((1 - share) ** 2 + share**2)
    smoothed = (n * variance + sampling_reach(sample, target) * pseudo / n) / (n + seen)
    if smoothed <= 0:
        estimate = low + width * share
        return estimate, estimate, estimate
    pulled = (n * share + seen / 2) / (n + seen)
    lower, upper = wilson_ends(share, pulled * (1 - pulled) / smoothed, quantile)
    if target != "population":
        # What is left to estimate are the items where people and judge part: rare, and not pulled
        # towards the middle as Wilson's form pulls.
        half = quantile * smoothed**0.5
        lower, upper = min(lower, max(share - half, 0.0)), max(upper, min(share + half, 1.0))
    return low + width * share, low + width * lower, low + width * upper


_FEW = 10  # labels; with twice as many, a quarter of the correction for few is left


def _shares_form(
    sample: JudgedSample,
    fit: RegressionFit,
    target: Target,
    quantile: float,
    bounds: tuple[float, float],
) -> tuple[float, float, float] | None:
    """Return the ends where the fit is a weighted sum of shares, one for each value of the judge.

    The ends are quantiles of that sum with every share as after Jeffreys' prior (for one share,
    Jeffreys' interval: Brown, Cai & DasGupta 2001), so that the interval reaches further where few
    labels show little. None with other labels, several judges, clusters or weights.
    """
    cells = _cells(sample, fit, bounds)
    if cells is None:
        return None
    from scipy.special import stdtr

    labels, counts, pool = cells
    share, everything = labels / counts, counts + pool
    if target == "unlabeled" and pool.any():
        everything = pool
    weight = everything / everything.sum()
    reach = np.ones(len(share))
    if target == "pool":
        reach = pool / everything
    elif target == "unlabeled" and pool.any():
        reach = 1 + counts / np.maximum(pool, 1)
    probability = float(stdtr(fit.degrees, quantile))
    normal = normal_quantile(probability)
    estimate = float(weight @ share)
    between = 0.0
    if target == "population":  # the shares of the judge's values, in a pool drawn at random
        spread = float(weight @ (share - estimate) ** 2)
        between = spread / max(float(everything.sum()) - 1, 1.0) * normal**2
    # t instead of normal quantiles where labels are few, as HC3 instead of HC2 is taken
    few = 1 + (quantile / normal - 1) * min(1.0, _FEW / float(counts.sum())) ** 2
    scales = weight * np.sqrt(reach)
    apart = _sum_quantiles(scales, labels + 0.5, counts - labels + 0.5, probability)
    apart = np.maximum((apart - float(scales @ share)) * (-1, 1), 0.0)
    below, above = (few * np.sqrt(np.square(apart) + between)).tolist()
    low, width = bounds[0], bounds[1] - bounds[0]
    return (
        low + width * estimate,
        low + width * max(estimate - below, 0.0),
        low + width * min(estimate + above, 1.0),
    )


def _cells(
    sample: JudgedSample, fit: RegressionFit, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Count labels at the upper end, labels and others for each value of the judge.

    None unless these tell as much as the fit, and every item belongs to one.
    """
    y, plain = sample.y[:, 0], sample.cluster is None and not sample.shifted
    if not plain or sample.x.shape[1] > 1 or sample.penalty is not None:
        return None
    judge, others = (
        x[:, 0] if x.shape[1] else np.zeros(len(x)) for x in (sample.x, sample.x_unlabeled)
    )
    values, place = np.unique(judge, return_inverse=True)
    if len(values) > fit.rank or not np.isin(y, bounds).all():
        return None
    if len(values) != fit.rank or len(values) < 2:
        return None
    pool = [float(np.count_nonzero(others == value)) for value in values]
    if sum(pool) != sample.n_unlabeled:
        return None
    successes = np.bincount(place, weights=(y == bounds[1]).astype(np.float64))
    return successes.astype(np.float64), np.bincount(place).astype(np.float64), np.array(pool)


_STEPS = 128  # quantiles that stand for a share


def _sum_quantiles(
    scales: FloatArray, a: FloatArray, b: FloatArray, probability: float
) -> FloatArray:
    """Lower and upper quantile of a weighted sum of independent beta variables, to about 1 %."""
    from scipy.special import betaincinv

    steps, sums = (np.arange(_STEPS) + 0.5) / _STEPS, np.zeros(1)
    for scale, *shape in zip(scales, a, b, strict=True):
        if len(sums) > _STEPS:
            sums = np.sort(sums).reshape(_STEPS, -1).mean(axis=1)
        sums = np.add.outer(sums, scale * betaincinv(*shape, steps)).ravel()
    return np.asarray(np.quantile(sums, [1 - probability, probability]))


def _jeffreys(successes: float, n: float, probability: float) -> tuple[float, float]:
    """Ends of the interval between quantiles of Beta(k + ½, n − k + ½); open at 0 and n."""
    parameters = successes + 0.5, n - successes + 0.5
    return (
        beta_quantile(1 - probability, *parameters) if successes > 0 else 0.0,
        beta_quantile(probability, *parameters) if successes < n else 1.0,
    )


def _effective_units(sample: JudgedSample) -> float:
    """Independent items that the labels are worth: between clusters and items.

    Items over the design effect of the labels (Kish 1965); labels that all agree tell none, and
    count as clusters.
    """
    n, y = sample.n_labeled, sample.y[:, 0]
    if sample.cluster is None or not has_spread(y):
        return float(sample.n_units)
    apart = np.bincount(np.unique(sample.cluster, return_inverse=True)[1], weights=y - y.mean())
    effect = float(apart @ apart) * sample.n_units / (sample.n_units - 1) / (n * float(y.var()))
    return float(np.clip(n / max(effect, 1e-9), sample.n_units, n))


def sampling_reach(sample: JudgedSample, target: Target) -> float:
    """How sampling a finite target shrinks or stretches the variance of the labelled part."""
    n, pool = sample.n_labeled, sample.n_unlabeled
    if target == "pool":
        return pool / (n + pool)
    return 1 + n / pool if target == "unlabeled" and pool else 1.0


# Which interval to draw around a regression estimate: score, skew-corrected t, or t.
# A t interval assumes that the estimate is close to normal. It misses on one side where labels are
# few and skewed, and most where they pile up at one end of their range: then the few labels that
# depart decide everything, and often none of the rare ones is among them.


_MIN_DEPARTING = 10  # labels away from the end they pile up at; from here on skewness is seen
_MIN_DEPARTING_FAR = 20  # … where they depart far, as two-valued labels do
_NEAR_TWO = 0.75  # of the largest variance that values between the ends can have
_MIN_TIED = 3  # the smallest of a few values is always equal to itself
_MIN_SKEW = 20  # units up to which the skewness itself is too uncertain to correct for in full
_MOST_GRADES = 20  # values; means of three people's grades 1 to 5 have 13
_FAR = 0.5  # of the way from the mean to an end of the scale
_LONG_SKEW = 1.25  # of labels; of 15 to 50 normal ones in at most 2 draws of 100 so large
LONG_TAIL = (
    "a few labels lie far from the rest, and others may lie further: without bounds such intervals "
    "may hold the true mean less often than they say; give bounds if you know them, or label more"
)
SAME_SCALE = 15.0  # ratio of ranges above which judge and people use different scales


class Form(NamedTuple):
    """The form of an interval.

    Parameters
    ----------
    bounds : tuple of float or None
        Range for a score interval; None for t.
    clip : tuple of float or None
        Range that a t interval is cut to.
    note : str
        What the reader must know about the range; may be empty.
    span : tuple of float or None
        Range of grades, of which a t interval may have seen too few.
    """

    bounds: tuple[float, float] | None
    clip: tuple[float, float] | None = None
    note: str = ""
    span: tuple[float, float] | None = None


def choose_form(
    sample: JudgedSample, bounds: tuple[float, float] | None, *, alone: bool = False
) -> Form:
    """Choose by what the labels look like, never by how wide an interval comes out.

    Parameters
    ----------
    alone : bool
        Whether labels alone make the interval: then the scale is not known from a judge.

    Raises
    ------
    DataError
        If a label is outside the bounds.
    """
    y = sample.y[:, 0]
    if bounds is not None:
        low, high = bounds
        if not low < high:
            raise DataError(f"bounds {bounds}: the first must be below the second")
        outside = np.flatnonzero((y < low) | (y > high))
        if len(outside):
            raise DataError(
                f"{len(outside)} human value(s) outside the scale [{low:g}, {high:g}], first "
                f"{y[outside[0]]:g} at position {outside[0]}"
            )
        score = bool(np.isin(y, bounds).all()) or not has_spread(y)
        score = score or (_piled(y, bounds) is not None and not _few_far(sample, bounds))
        return Form(bounds if score else None, bounds, span=bounds if graded(y) else None)
    if np.isin(y, (0.0, 1.0)).all():
        return Form((0.0, 1.0), (0.0, 1.0))
    end = _piled(y, (float(y.min()), float(y.max()))) if has_spread(y) else None
    seen, shared = (None, False) if end is None else _joint_range(sample, end)
    if seen is None:
        note = LONG_TAIL if _long_tailed(y) else ""
        return Form(None, note=note, span=_shared_scale(sample) if graded(y) else None)
    judged = shared and not alone and has_spread(sample.x[:, 0])
    return Form(
        None if judged and _few_far(sample, seen) else seen,
        seen,
        f"most labels are {end:g}: human values are taken to lie in [{seen[0]:.4g}, "
        f"{seen[1]:.4g}], the range seen; give bounds if you know them",
        seen,
    )


def _long_tailed(y: FloatArray) -> bool:
    """Whether a few labels lie so far from the rest that others may lie further."""
    centred = y - y.mean()
    spread = float((centred**2).mean()) ** 1.5
    return has_spread(y) and abs(float((centred**3).mean())) > _LONG_SKEW * spread


def _piled(y: FloatArray, ends: tuple[float, float]) -> float | None:
    """Return the end at which half the labels or more pile up while few depart from it.

    Or most labels, where these vary nearly as two values at the ends would.
    """
    far = _nearly_two(y, ends)
    for end in ends:
        departing = int(np.count_nonzero(y != end))
        few = departing < (_MIN_DEPARTING_FAR if far else _MIN_DEPARTING)
        if len(y) - departing >= max(_MIN_TIED, departing) and few:
            return end
    return None


def _nearly_two(y: FloatArray, ends: tuple[float, float]) -> bool:
    mean = float(y.mean())
    return float(y.var()) >= _NEAR_TWO * (mean - ends[0]) * (ends[1] - mean)


def _few_far(sample: JudgedSample, ends: tuple[float, float]) -> bool:
    """Whether labels are grades of which few lie far off, and enough of them for t."""
    y = sample.y[:, 0]
    return graded(y) and sample.n_units >= _FEW and not _nearly_two(y, ends)


def graded(y: FloatArray) -> bool:
    """Whether labels are of few values, on average each twice or more."""
    return len(np.unique(y)) <= min(_MOST_GRADES, len(y) / 2)


def _shared_scale(sample: JudgedSample) -> tuple[float, float]:
    """Range of human values, and of a judge's who grades these items on their scale."""
    y, judge = sample.y[:, 0], sample.x[:, :1]
    low, high = float(y.min()), float(y.max())
    slack = (high - low) / 2
    if sample.x.shape[1] == 1 and low - slack <= judge.min() and judge.max() <= high + slack:
        others = np.concatenate([judge, sample.x_unlabeled])
        low, high = min(low, float(others.min())), max(high, float(others.max()))
    return low, high


def _joint_range(sample: JudgedSample, end: float) -> tuple[tuple[float, float] | None, bool]:
    """Range of human and judge values, and whether the judge seems to answer on people's scale."""
    y = sample.y[:, 0]
    low, high = float(y.min()), float(y.max())
    spread, shared = high - low, False
    if sample.x.shape[1] == 1:
        judge = np.concatenate([sample.x[:, 0], sample.x_unlabeled[:, 0]])
        lowest, highest = float(judge.min()), float(judge.max())
        if end == high and highest <= high + spread:
            low, shared = min(low, lowest), True
        elif end == low and lowest >= low - spread:
            high, shared = max(high, highest), True
    if graded(y):
        lowest, highest = _shared_scale(sample)
        low, high = min(low, lowest), max(high, highest)
    return ((low, high) if high - low <= SAME_SCALE * spread else None), shared


_MOST_SKEW = 0.25  # of an estimate; taken in full, its own error makes few intervals very wide


def draw_interval(
    sample: JudgedSample, fit: RegressionFit, target: Target, quantile: float, form: Form
) -> tuple[float, float, float]:
    """Return estimate, lower and upper end.

    The largest skewness that is corrected for grows from 20 units on as the root of their number,
    to twice as much, and what the correction adds to the width fades as their square.
    """
    if form.bounds is not None:
        return score_form(sample, fit, target, quantile, form.bounds)
    estimate = float(fit.estimate[0])
    error = math.sqrt(max(float(fit.covariance[0, 0]), 0.0))
    few = min(_MIN_SKEW / sample.n_units, 1.0) ** 2
    most_skew = _MOST_SKEW * min(few**-0.25, 2.0)
    skewness = float(np.clip(fit.skewness, -most_skew, most_skew))
    lower = estimate - error * _skewed(quantile, skewness, few)
    upper = estimate - error * _skewed(-quantile, skewness, few)
    if form.span is not None:
        below, above = _far_errors(sample, fit, target, quantile, form.span)
        lower, upper = min(lower, estimate - below), max(upper, estimate + above)
    if form.clip is not None:
        lower, estimate, upper = (float(np.clip(v, *form.clip)) for v in (lower, estimate, upper))
    return estimate, min(lower, estimate), max(upper, estimate)


def _far_errors(
    sample: JudgedSample,
    fit: RegressionFit,
    target: Target,
    quantile: float,
    span: tuple[float, float],
) -> tuple[float, float]:
    """How far below and above the estimate its mean may lie for rare errors of the judge.

    Labels of a few grades may show few or none of those that a judge misses by far, and t knows
    none but those. Their share may be as large as Jeffreys' interval says, and each moves the mean
    by as much as the largest seen or, where none was, as the scale allows.
    """
    from scipy.special import stdtr

    probability, estimate = float(stdtr(fit.degrees, quantile)), float(fit.estimate[0])
    worth = _effective_units(sample) * _evenness(sample)
    shrink, other = sampling_reach(sample, target) ** 0.5, quantile * max(fit.drawn, 0.0) ** 0.5
    reach = []
    for side, end in ((-1, span[0]), (1, span[1])):
        room = max(side * (end - estimate), 0.0)
        errors = side * fit.residuals
        share = float((errors > _FAR * room).mean())
        size = min(room, float(errors.max())) if share else room
        unseen = _jeffreys(share * worth, worth, probability)[1] - share
        reach.append(math.hypot(shrink * unseen * size, other))
    return reach[0], reach[1]


def _evenness(sample: JudgedSample) -> float:
    """Items that would tell as much if all counted alike, as a share of the labelled (Kish)."""
    weights = sample.weights
    return float(weights.sum() ** 2 / (weights @ weights)) / sample.n_labeled


def _skewed(z: float, skewness: float, few: float) -> float:
    """Quantile of a studentised mean from that of t, corrected for the mean's skewness.

    Parameters
    ----------
    skewness : float
        Of the estimate, γ/√n; as it vanishes the value is ``z``.
    few : float
        Weight in [0, 1] of Hall's transformation (1992), which widens an interval. The rest is
        Johnson's shift (1978), which does not: with many units it covers as often.
    """
    if abs(skewness) < 1e-6:
        return z
    widened = 3 / skewness * (float(np.cbrt(1 + skewness * (z - skewness / 6))) - 1)
    return few * widened + (1 - few) * (z - skewness * (2 * z * z + 1) / 6)
