"""How many queries a verdict on the means of paired columns needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from rag_sourcebias.inference.friedman import box_degrees
from rag_sourcebias.inference.resampling import dirichlet_sums
from rag_sourcebias.inference.spread import crossing
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["queries_to_tell"]

_DRAWS = 1_000
_PLANNED = 200  # draws for each candidate number of queries
# Quantiles of the distances that the data leave plausible.
_TRUTHS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
_ASSURANCE = 0.8  # of a verdict, and share of the distances that have it
_MOST = 10_000_000


def queries_to_tell(
    columns: FloatArray,
    *,
    alpha: float,
    alike: Callable[[FloatArray, int, float], npt.NDArray[np.bool_]],
    rng: np.random.Generator | int = 0,
) -> int:
    """Fewest queries that give a verdict with probability .8, for .8 of what is plausible now.

    Plausible are means that lie apart in the direction seen, by distances from their confidence
    distribution: planned for the distance seen alone, half the plans are too small.

    Parameters
    ----------
    columns : float64 array of shape (n, k)
        One row per query. Only differences within rows count.
    alpha : float
        Of the test of equal means (:func:`~rag_sourcebias.inference.friedman_test`).
    alike : callable
        Whether deviations of means, of shape (..., k), found with so many queries are called alike,
        given also the standard deviation of one query's contrast of length 1.
    """
    from scipy.special import fdtri

    n, k = len(columns), columns.shape[1]
    centred = columns - columns.mean(axis=1, keepdims=True)
    covariance = np.cov(centred, rowvar=False)
    total, degrees = float(np.trace(covariance)), box_degrees(covariance, n)
    if total <= 0:
        return n
    deviations = centred.mean(axis=0)
    sums, _ = dirichlet_sums(centred, resamples=_DRAWS, rng=rng)
    errors = sums - sums.mean(axis=0)
    errors *= math.sqrt(total / n / float(np.sum(errors.var(axis=0))))
    seen = float(np.linalg.norm(deviations))
    truths = np.zeros((1, k))
    if seen > 0:

        def at(probability: float, t: float) -> float:
            length = np.linalg.norm(t * deviations + errors, axis=1)
            return float(np.quantile(length, probability))

        scales = [crossing(partial(at, 1 - q), seen) for q in _TRUTHS]
        truths = np.array(scales)[:, None] * deviations
    per_query = errors[:_PLANNED] * math.sqrt(n)
    contrast = math.sqrt(total / (k - 1))

    def decided(queries: int) -> bool:
        found = truths[:, None] + per_query / math.sqrt(queries)
        statistic = queries * np.sum(found**2, axis=2) / total * queries / (queries + 1)
        critical = float(fdtri(degrees, degrees * (queries - 1), 1 - alpha))
        told = np.mean((statistic >= critical) | alike(found, queries, contrast), axis=1)
        return bool(np.mean(told >= _ASSURANCE) >= _ASSURANCE)

    low: int = n
    high: int = n + 1
    while not decided(high) and high < _MOST:
        low, high = high, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high
