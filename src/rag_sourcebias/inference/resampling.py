"""Query-cluster bootstrap, in blocks of bounded memory."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import as_generator, check_level
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.finite import require_finite

__all__ = ["bootstrap_means", "bootstrap_relative_delta", "dirichlet_sums"]

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
