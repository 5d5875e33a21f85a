"""Intervals from human labels alone."""

from __future__ import annotations

import math

import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import (
    beta_quantile,
    check_level,
    normal_quantile,
    t_quantile,
)
from rag_sourcebias.intervals.values import as_values
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = [
    "RANDOM",
    "clopper_pearson_interval",
    "has_spread",
    "spread_values",
    "t_interval",
    "wilson_ends",
    "wilson_interval",
]

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
