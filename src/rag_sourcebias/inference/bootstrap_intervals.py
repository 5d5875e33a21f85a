"""Intervals from resampled statistics of queries."""

from __future__ import annotations

import math

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level, t_quantile
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.finite import require_finite
from rag_sourcebias.types.intervals import Interval

__all__ = ["bootstrap_intervals"]

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
