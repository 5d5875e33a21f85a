"""Intervals for a mean from human labels alone: t, Wilson, bootstrap."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError, as_generator, check_level
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.quantiles import normal_quantile, t_quantile
from rag_sourcebias.infer.samples import as_values, has_spread


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
        method=InferCode.LABELS_T(),
        target="pool" if fraction_labeled else "population",
        n_labeled=n,
        assumptions=(InferCode.ITEMS_SAMPLED(), InferCode.MEAN_NORMAL()),
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
    check_level(confidence_level)
    if n < 1:
        raise InsufficientDataError(f"{n} trials: a proportion needs at least 1", n=int(n))
    if not 0 <= successes <= n:
        raise DataError(f"{successes} successes out of {n} trials")
    share = successes / n
    lower, upper = wilson_ends(share, n, normal_quantile(0.5 + confidence_level / 2))
    return Interval(
        estimate=share,
        lower=lower,
        upper=upper,
        confidence_level=confidence_level,
        method=InferCode.LABELS_WILSON(),
        n_labeled=round(n),
        assumptions=(InferCode.TRIALS(),),
    )


def wilson_ends(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Ends of the score interval for a share observed on ``n`` (effective) items."""
    square = quantile * quantile / n
    centre = (share + square / 2) / (1 + square)
    half = quantile / (1 + square) * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return max(min(centre - half, share), 0.0), min(max(centre + half, share), 1.0)


_CHUNK = 4_000_000  # resampled values held at a time


def bootstrap_interval(
    y: npt.ArrayLike,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """Percentiles of resampled means, the baseline of Oosterhuis et al. (KDD 2024).

    Too short with few labels.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 values, or values that do not differ.
    """
    check_level(confidence_level)
    values = spread_values(y)
    n, generator = len(values), as_generator(rng)
    means = np.empty(n_resamples)
    step = max(_CHUNK // n, 1)
    for start in range(0, n_resamples, step):
        stop = min(start + step, n_resamples)
        means[start:stop] = values[generator.integers(0, n, (stop - start, n))].mean(axis=1)
    tail = 0.5 - confidence_level / 2
    lower, upper = np.quantile(means, [tail, 1 - tail]).tolist()
    mean = float(values.mean())
    return Interval(
        estimate=mean,
        lower=min(lower, mean),
        upper=max(upper, mean),
        confidence_level=confidence_level,
        method=InferCode.LABELS_BOOTSTRAP(),
        n_labeled=n,
        assumptions=(InferCode.ITEMS_SAMPLED(), InferCode.RESAMPLING()),
    )
