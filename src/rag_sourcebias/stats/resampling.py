"""Intervals from resampled statistics of queries."""

from __future__ import annotations

import math

import numpy as np

from rag_sourcebias.core.arrays import FloatArray, require_finite
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.interval import Interval

# Quantiles; what they need is loaded by the first one.


def check_level(confidence_level: float) -> None:
    """Raise unless the level lies strictly between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise DataError(f"confidence_level {confidence_level!r} is outside (0, 1); 0.95 is usual")


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def t_quantile(probability: float, degrees: float) -> float:
    """Quantile of Student's t with ``degrees`` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Quantile of the beta distribution."""
    from scipy.special import betaincinv

    return float(betaincinv(a, b, probability))


def as_generator(rng: np.random.Generator | int) -> np.random.Generator:
    """Return a generator; an integer is a seed."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)


# Query-cluster bootstrap, in blocks of bounded memory.


_BLOCK = 250_000  # random numbers held at once: what fits in the cache is 2–3 times faster


def bootstrap_means(
    columns: FloatArray, *, resamples: int, rng: np.random.Generator | int
) -> FloatArray:
    """Means of resampled rows.

    Parameters
    ----------
    columns : float64 array of shape (n, m)
        One row per query; a query is drawn with all its columns.
    resamples : int

    Returns
    -------
    float64 array of shape (resamples, m)
    """
    if resamples < 1:
        raise DataError(f"resamples {resamples} must be at least 1")
    require_finite(columns, "columns", remedy="leave out queries without a value")
    generator = as_generator(rng)
    # Queries with the same scores are interchangeable: draw how often each distinct row comes.
    rows, counts = np.unique(columns, axis=0, return_counts=True)
    n, distinct = len(columns), len(rows)
    result = np.empty((resamples, columns.shape[1]))
    block = max(1, _BLOCK // max(n, distinct))
    for start in range(0, resamples, block):
        stop = min(start + block, resamples)
        if distinct * 8 < n:
            drawn = generator.multinomial(n, counts / n, size=stop - start)
        else:
            which = generator.integers(0, n, size=(stop - start, n), dtype=np.int32)
            if distinct < n:
                which = np.repeat(np.arange(distinct, dtype=np.int32), counts)[which]
            which += np.arange(stop - start, dtype=np.int32)[:, None] * np.int32(distinct)
            drawn = np.bincount(which.ravel(), minlength=(stop - start) * distinct)
            drawn = drawn.reshape(stop - start, distinct)
        result[start:stop] = drawn.astype(np.float64) @ rows / n
    return result


def dirichlet_sums(
    columns: FloatArray, *, resamples: int, rng: np.random.Generator | int
) -> tuple[FloatArray, FloatArray]:
    """Weighted sums of rows, and the weight left for one row that was not seen.

    Weights are uniform over those of n + 1 rows that sum to 1. Let the unseen row lie at a bound
    b of the values: the upper quantiles of ``sums + share * b`` are then upper confidence bounds
    of the mean (Gaffke 2005), those of Clopper and Pearson where values are 0 or 1.

    Parameters
    ----------
    columns : float64 array of shape (n, m)
        One row per query; a query is drawn with all its columns.

    Returns
    -------
    sums : float64 array of shape (resamples, m)
    share : float64 array of shape (resamples,)
    """
    if resamples < 1:
        raise DataError(f"resamples {resamples} must be at least 1")
    require_finite(columns, "columns", remedy="leave out queries without a value")
    generator = as_generator(rng)
    # Queries with the same scores are interchangeable: their weights add up to one gamma draw.
    rows, counts = np.unique(columns, axis=0, return_counts=True)
    shapes = np.append(counts, 1).astype(np.float64)
    sums, share = np.empty((resamples, columns.shape[1])), np.empty(resamples)
    block = max(1, _BLOCK // len(shapes))
    for start in range(0, resamples, block):
        size = (min(start + block, resamples) - start, len(shapes))
        if len(rows) == len(columns):
            weights = generator.standard_exponential(size)
        else:
            weights = generator.standard_gamma(shapes, size)
        weights /= weights.sum(axis=1, keepdims=True)
        sums[start : start + size[0]] = weights[:, :-1] @ rows
        share[start : start + size[0]] = weights[:, -1]
    return sums, share


def bootstrap_relative_delta(
    baseline: FloatArray,
    other: FloatArray,
    *,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> tuple[float, float]:
    """Percentile interval of Relative Δ over resampled queries.

    Relative Δ is a monotone function of ln(h / l), so percentiles of one are percentiles of the
    other.

    Parameters
    ----------
    baseline, other : float64 arrays of shape (n,)
        Scores of the same queries, at least 0, in any common unit.

    Returns
    -------
    lower, upper : float
        In percent.
    """
    check_level(confidence_level)
    means = bootstrap_means(
        np.column_stack((baseline, other)), resamples=resamples, rng=as_generator(rng)
    )
    total = means.sum(axis=1)
    if np.count_nonzero(total == 0) > resamples // 1000:
        raise InsufficientDataError(
            f"in {np.count_nonzero(total == 0)} of {resamples} resamples neither source scores; "
            "there are too few scoring queries for a bootstrap interval",
            n=len(baseline),
        )
    seen = total > 0
    delta = 200 * ((means[seen, 0] - means[seen, 1]) / total[seen])
    tail = (1 - confidence_level) / 2
    lower, upper = np.quantile(delta, [tail, 1 - tail])
    return float(lower), float(upper)


# Intervals from resampled statistics of queries.


_NO_SPREAD = 1e-12


def bootstrap_intervals(
    estimates: FloatArray,
    draws: FloatArray,
    *,
    n: int,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    confidence_level: float = 0.95,
) -> tuple[Interval | None, ...]:
    """One percentile interval per statistic from its resampled values.

    Not for statistics that noise can only raise, such as a range or unfairness: resampled values
    then lie above the truth.

    Tails are widened for small n (Hesterberg 2015), so that for a mean the interval is as wide as
    Student's t.

    Parameters
    ----------
    estimates : float64 array of shape (m,)
        From all queries.
    draws : float64 array of shape (resamples, m)
        From resampled queries (:func:`bootstrap_means` and a function of its rows).
    n : int
        Queries resampled.
    bounds : tuple of float
        Range of the statistic.

    Returns
    -------
    tuple of Interval or None, length m
        None where all resamples agree, which says nothing about how much queries vary.

    Raises
    ------
    DataError
        If shapes disagree or a value is not finite.
    InsufficientDataError
        If n < 2.
    """
    check_level(confidence_level)
    if draws.ndim != 2 or draws.shape[1:] != estimates.shape or not len(draws):
        raise DataError(f"{estimates.shape} estimates but resampled values {draws.shape}")
    for values, what in ((estimates, "estimates"), (draws, "resampled values")):
        require_finite(values, what, remedy="leave out queries without a value")
    if n < 2:
        raise InsufficientDataError(
            f"a bootstrap interval needs at least 2 queries, there is {n}", n=n, n_needed=2
        )
    tail = _widened_tail(n, confidence_level)
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
    lower = np.minimum(np.clip(lower, *bounds), estimates)
    upper = np.maximum(np.clip(upper, *bounds), estimates)
    spread = np.ptp(draws, axis=0)
    return tuple(
        Interval(
            estimate=float(estimate),
            lower=float(low),
            upper=float(high),
            confidence_level=confidence_level,
            method="bootstrap",
            n_labeled=n,
            assumptions=("queries are a random sample of the queries of interest",),
        )
        if wide > _NO_SPREAD
        else None
        for estimate, low, high, wide in zip(estimates, lower, upper, spread, strict=True)
    )


def _widened_tail(n: int, level: float) -> float:
    """Tail whose normal quantile is √(n/(n − 1)) · t(n − 1)."""
    t = t_quantile(0.5 + level / 2, n - 1) * math.sqrt(n / (n - 1))
    return 0.5 * math.erfc(t / math.sqrt(2))
