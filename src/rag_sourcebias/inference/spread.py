"""Intervals for how far the means of paired columns lie apart, such as systems' mean scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.pairs import SAMPLED
from rag_sourcebias.inference.quantiles import (
    as_generator,
    check_level,
    normal_quantile,
    t_quantile,
)
from rag_sourcebias.inference.resampling import bootstrap_means
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.finite import require_finite
from rag_sourcebias.types.intervals import Interval

__all__ = ["MIN_ROWS", "crossing", "mean_differences", "spread_interval"]

MIN_ROWS = 20
_STEPS = 60
_CLOSE = 1e-9


def mean_differences(
    columns: FloatArray,
    *,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> dict[tuple[int, int], Interval]:
    """Percentile intervals for the difference of each two columns' means, over resampled rows.

    Parameters
    ----------
    columns : float64 array of shape (n, k)
        One row per query, one column per system.

    Returns
    -------
    dict
        For i < j the interval of mean(column i) − mean(column j). Each holds its level alone; for
        all at once ask for ``1 - (1 - level) / number of pairs``.

    Raises
    ------
    InsufficientDataError
        With fewer than 20 rows: percentiles of the bootstrap then cover too rarely.
    """
    _check(columns, confidence_level)
    means = bootstrap_means(columns, resamples=resamples, rng=as_generator(rng))
    centre, tail = columns.mean(axis=0), (1 - confidence_level) / 2
    found = {}
    for i, j in combinations(range(columns.shape[1]), 2):
        lower, upper = np.quantile(means[:, i] - means[:, j], [tail, 1 - tail])
        estimate = float(centre[i] - centre[j])
        found[i, j] = Interval(
            estimate=estimate,
            lower=min(float(lower), estimate),
            upper=max(float(upper), estimate),
            confidence_level=confidence_level,
            method="paired bootstrap",
            n_labeled=len(columns),
            assumptions=(SAMPLED,),
        )
    return found


def spread_interval(
    columns: FloatArray,
    *,
    ddof: int = 0,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """Interval for the standard deviation of the columns' true means.

    Sampling error alone spreads means, so that the spread of resampled means lies above that of
    the data, and percentiles never reach 0. Here each candidate spread is tested instead: true
    means that deviate in the seen direction by t are kept if the seen spread lies within the
    central part of those of t·direction + (resampled − seen means).

    Parameters
    ----------
    columns : float64 array of shape (n, k)
        One row per query, one column per system.
    ddof : int
        As for the estimate, the plain standard deviation of the column means.

    Raises
    ------
    InsufficientDataError
        With fewer than 20 rows.
    """
    _check(columns, confidence_level)
    n, k = columns.shape
    if not 0 <= ddof < k:
        raise DataError(f"ddof {ddof} must be at least 0 and less than the {k} columns")
    means = columns.mean(axis=0)
    deviations = means - means.mean()
    seen = float(np.linalg.norm(deviations))
    errors = bootstrap_means(columns, resamples=resamples, rng=as_generator(rng)) - means
    errors -= errors.mean(axis=1, keepdims=True)
    # To the variance and the quantile of a t interval: without it 20 rows of 2 columns cover .91.
    probability = 0.5 + confidence_level / 2
    errors *= t_quantile(probability, n - 1) / normal_quantile(probability)
    errors *= math.sqrt(n / (n - 1))
    along = errors @ (deviations / seen) if seen > 0 else np.zeros(resamples)
    square = (errors**2).sum(axis=1)
    tail = (1 - confidence_level) / 2

    def at(probability: float, t: float) -> float:
        spread = np.sqrt(np.maximum(t**2 + 2 * t * along + square, 0.0))
        return float(np.quantile(spread, probability))

    start = seen + float(np.sqrt(square.max()))
    lower, upper = (
        crossing(partial(at, p), seen, start=start) if start else 0.0 for p in (1 - tail, tail)
    )
    scale = np.sqrt(k - ddof)
    return Interval(
        estimate=seen / scale,
        lower=min(lower, seen) / scale,
        upper=max(upper, seen) / scale,
        confidence_level=confidence_level,
        method="inverted paired bootstrap",
        n_labeled=n,
        assumptions=(SAMPLED,),
    )


def crossing(at: Callable[[float], float], seen: float, *, start: float = 1.0) -> float:
    """Return the t of at least 0 where a rising function passes ``seen``; 0 where it starts above.

    False position with halved ends (Illinois): a few steps where the function is nearly straight.
    """
    low, below = 0.0, at(0.0) - seen
    if below >= 0:
        return 0.0
    high = start
    while (above := at(high) - seen) < 0:
        low, below, high = high, above, 2 * high
    side = 0
    for _ in range(_STEPS):
        middle = high - above * (high - low) / (above - below)
        value = at(middle) - seen
        if abs(value) <= _CLOSE * seen or high - low <= _CLOSE * high:
            return middle
        if value < 0:
            low, below, above = middle, value, above / (2 if side < 0 else 1)
        else:
            high, above, below = middle, value, below / (2 if side > 0 else 1)
        side = -1 if value < 0 else 1
    return high


def _check(columns: FloatArray, confidence_level: float) -> None:
    check_level(confidence_level)
    if columns.ndim != 2 or columns.shape[1] < 2:
        raise DataError(
            f"columns have shape {columns.shape}; expected one row per query and at least 2 columns"
        )
    require_finite(columns, "columns", remedy="take the rows that have every value")
    if len(columns) < MIN_ROWS:
        raise InsufficientDataError(
            f"a bootstrap over {len(columns)} rows covers too rarely; at least {MIN_ROWS} are "
            "needed",
            n=len(columns),
            n_needed=MIN_ROWS,
        )
