"""How well a judge orders items: correlations and AUC, with intervals for clustered items."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference.quantiles import as_generator, check_level, t_quantile
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["ASSUMPTIONS", "correlation_intervals", "resampled_weights"]

_BLOCK = 250_000  # weights held at once
ASSUMPTIONS = ("labelled items (clusters) are a random sample",)
_ONE = 1 - 1e-12


def resampled_weights(
    clusters: IntArray, *, resamples: int, rng: np.random.Generator | int
) -> Iterator[FloatArray]:
    """Give bootstrap weights in blocks: how often each item is drawn with its cluster.

    Parameters
    ----------
    clusters : int64 array of shape (n,)
        Codes 0 … G − 1, all used.

    Yields
    ------
    float64 array of shape (b, n)
        ``resamples`` rows in all.
    """
    generator = as_generator(rng)
    g = int(clusters.max()) + 1
    block = max(1, _BLOCK // max(len(clusters), g))
    for start in range(0, resamples, block):
        b = min(block, resamples - start)
        drawn = generator.integers(0, g, size=(b, g)) + np.arange(b)[:, None] * g
        counts = np.bincount(drawn.ravel(), minlength=b * g).reshape(b, g).astype(np.float64)
        yield counts[:, clusters]


def correlation_intervals(
    x: FloatArray,
    y: FloatArray,
    clusters: IntArray,
    *,
    confidence_level: float = 0.95,
    resamples: int = 1000,
    rng: np.random.Generator | int = 0,
) -> tuple[Interval, Interval]:
    """Pearson's and Spearman's correlation with intervals.

    Cluster bootstrap standard error of Fisher's z with t(G − 2) quantiles: right for binary,
    skewed and clustered values, where Fisher's 1/√(n − 3) is not. Spearman's ranks are taken anew
    in every resample, with mid-ranks for ties.

    Parameters
    ----------
    x, y : float64 arrays of shape (n,)
    clusters : int64 array of shape (n,)
        Codes 0 … G − 1; ``numpy.arange(n)`` for independent items.

    Returns
    -------
    pearson, spearman : Interval

    Raises
    ------
    InsufficientDataError
        With fewer than 4 clusters, or if x or y is constant.
    """
    check_level(confidence_level)
    g = int(clusters.max(initial=-1)) + 1
    if g < 4:
        raise InsufficientDataError(
            f"a correlation of {g} independent item(s) has no interval; at least 4 are needed",
            n=g,
            n_needed=4,
        )
    if not (np.ptp(x) > 0 and np.ptp(y) > 0):
        raise InsufficientDataError("a constant has no correlation; values must differ", n=g)
    once = np.ones((1, len(x)))
    rank_x, rank_y = _Ranks(x), _Ranks(y)
    estimates = (
        float(_weighted_correlation(once, x[None], y[None])[0]),
        float(_weighted_correlation(once, rank_x(once), rank_y(once))[0]),
    )
    drawn: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for weights in resampled_weights(clusters, resamples=resamples, rng=rng):
        drawn[0].append(_weighted_correlation(weights, x[None], y[None]))
        drawn[1].append(_weighted_correlation(weights, rank_x(weights), rank_y(weights)))
    pearson, spearman = (
        _on_fisher_scale(r, np.concatenate(d), g, level=confidence_level, name=name)
        for r, d, name in zip(estimates, drawn, ("Pearson", "Spearman"), strict=True)
    )
    return pearson, spearman


class _Ranks:
    """Mid-ranks of fixed values under changing weights."""

    def __init__(self, values: FloatArray) -> None:
        _, self._code = np.unique(values, return_inverse=True)
        self._order = np.argsort(self._code, kind="stable")
        self._starts = np.flatnonzero(np.diff(self._code[self._order], prepend=-1))

    def __call__(self, weights: FloatArray) -> FloatArray:
        total = np.add.reduceat(weights[:, self._order], self._starts, axis=1)
        ranks: FloatArray = (np.cumsum(total, axis=1) - total / 2)[:, self._code]
        return ranks


def _weighted_correlation(weights: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Row-wise correlation; NaN where a row is constant."""
    total = weights.sum(axis=1, keepdims=True)
    dx = x - (weights * x).sum(axis=1, keepdims=True) / total
    dy = y - (weights * y).sum(axis=1, keepdims=True) / total
    wx = weights * dx
    cross = (wx * dy).sum(axis=1)
    scale = np.sqrt((wx * dx).sum(axis=1) * (weights * dy * dy).sum(axis=1))
    result = np.full(len(cross), np.nan)
    np.divide(cross, scale, out=result, where=scale > 1e-12 * np.abs(total[:, 0]))
    clipped: FloatArray = np.clip(result, -1.0, 1.0)
    return clipped


def _on_fisher_scale(r: float, drawn: FloatArray, g: int, *, level: float, name: str) -> Interval:
    lower = upper = r
    if abs(r) < _ONE:
        z = np.arctanh(np.clip(drawn[~np.isnan(drawn)], -_ONE, _ONE))
        # a handful of resamples with |r| = 1 would make the deviation infinite: use quantiles
        spread = float(np.subtract(*np.quantile(z, [0.84134, 0.15866]))) / 2
        width = t_quantile(0.5 + level / 2, g - 2) * spread
        centre = math.atanh(r)
        lower, upper = math.tanh(centre - width), math.tanh(centre + width)
    return Interval(
        estimate=r,
        lower=min(lower, r),
        upper=max(upper, r),
        confidence_level=level,
        method=f"{name}, cluster bootstrap of Fisher's z",
        n_labeled=g,
        assumptions=ASSUMPTIONS,
    )
