"""Bootstrap intervals for a mean, from human labels alone."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.interval import Interval
from rag_sourcebias.stats.resampling import (
    as_generator,
    beta_quantile,
    check_level,
    normal_quantile,
    t_quantile,
)
from rag_sourcebias.stats.samples import as_values

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
    if not len(values):
        return False
    size = max(abs(float(values.min())), abs(float(values.max())))
    return float(values.max()) - float(values.min()) > 1e-12 * size


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
    lower, upper = wilson_ends(share, n, normal_quantile(0.5 + confidence_level / 2))
    return _proportion((share, lower, upper), n, confidence_level, "Wilson")


def wilson_ends(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Ends of the score interval for a share observed on ``n`` (effective) items."""
    square = quantile * quantile / n
    centre = (share + square / 2) / (1 + square)
    half = quantile / (1 + square) * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return max(min(centre - half, share), 0.0), min(max(centre + half, share), 1.0)


def clopper_pearson_interval(
    successes: float, n: float, *, confidence_level: float = 0.95
) -> Interval:
    """Exact (conservative) interval for a proportion (Clopper & Pearson 1934).

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
    tail = 0.5 - confidence_level / 2
    lower = beta_quantile(tail, successes, n - successes + 1) if successes > 0 else 0.0
    upper = beta_quantile(1 - tail, successes + 1, n - successes) if successes < n else 1.0
    return _proportion((share, lower, upper), n, confidence_level, "Clopper–Pearson")


def _share(successes: float, n: float, confidence_level: float) -> float:
    check_level(confidence_level)
    if n < 1:
        raise InsufficientDataError(f"{n} trials: a proportion needs at least 1", n=int(n))
    if not 0 <= successes <= n:
        raise DataError(f"{successes} successes out of {n} trials")
    return successes / n


def _proportion(ends: tuple[float, float, float], n: float, level: float, name: str) -> Interval:
    share, lower, upper = ends
    return Interval(
        estimate=share,
        lower=lower,
        upper=upper,
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
        error = values.std(ddof=1) / math.sqrt(n)
        # A resample without spread says nothing about the ratio; with n ≥ 10 there are few.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = (means - mean) / errors
        ratios = ratios[np.isfinite(ratios)]
        high, low = np.quantile(ratios, tails) * error
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
    shifted = []
    for tail in tails:
        z = bias + normal_quantile(float(tail))
        shifted.append(0.5 * math.erfc(-(bias + z / (1 - acceleration * z)) / math.sqrt(2)))
    return np.array(shifted)
