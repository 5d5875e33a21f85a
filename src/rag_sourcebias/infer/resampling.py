"""Resampled queries: their means and weighted sums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import as_generator

_BLOCK = 250_000  # random numbers held at once: what fits in the cache is 2–3 times faster


def coin_flips(n: int, resamples: int, generator: np.random.Generator) -> Iterator[FloatArray]:
    """Random 0 and 1 in blocks of some rows, of shape (rows, n)."""
    block = max(1, _BLOCK // n)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = np.frombuffer(generator.bytes(-(-rows * n // 8)), dtype=np.uint8)
        yield np.unpackbits(drawn, count=rows * n).reshape(rows, n).astype(np.float64)


def resampled_counts(
    n: int, *, resamples: int, rng: np.random.Generator | int, held: int = 0
) -> Iterator[FloatArray]:
    """Give in blocks how often each of n units is drawn, of shape (rows, n).

    Parameters
    ----------
    held : int
        Numbers that are made of a row, where these are more than n.
    """
    generator = as_generator(rng)
    block = max(1, _BLOCK // max(n, held))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = generator.integers(0, n, size=(rows, n)) + np.arange(rows)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


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
    generator = as_generator(rng)
    # Queries with the same scores are interchangeable: their weights add up to one gamma draw.
    rows, counts = np.unique(columns, axis=0, return_counts=True)
    shapes = np.append(counts, 1).astype(np.float64)
    sums, share = np.empty((resamples, columns.shape[1])), np.empty(resamples)
    block = max(1, _BLOCK // len(shapes))
    for start in range(0, resamples, block):
        size = (min(start + block, resamples) - start, len(shapes))
        weights = (
            generator.standard_exponential(size)
            if len(rows) == len(columns)
            else generator.standard_gamma(shapes, size)
        )
        weights /= weights.sum(axis=1, keepdims=True)
        sums[start : start + size[0]] = weights[:, :-1] @ rows
        share[start : start + size[0]] = weights[:, -1]
    return sums, share
