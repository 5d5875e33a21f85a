"""Shares of a variance that go with each of several factors, whichever is entered first."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.inference.quantiles import as_generator, t_quantile
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["variance_shares"]


def variance_shares(
    y: FloatArray,
    x: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    confidence_level: float,
    resamples: int,
    rng: np.random.Generator | int,
) -> tuple[Interval, tuple[Interval, ...]]:
    """R² of a regression, and its parts (Lindeman, Merenda and Gold 1980).

    A part is the rise of R² when the factor is added, averaged over all orders of entry (its
    Shapley value); parts sum to R². Noise raises them. Clusters are resampled; ends are ± t
    standard errors, which for nominal 95 % covered .91–1.00 with 80 and 300 queries (percentile
    and basic ends 0–.97 and .67–1.00: a share near 0 is bounded by it).

    Parameters
    ----------
    y : float64 array of shape (n,)
    x : float64 array of shape (n, p)
    clusters : integer array of shape (n,)
    """
    _, code = np.unique(clusters, return_inverse=True)
    g, p = int(code.max()) + 1, x.shape[1]
    # Standardised, so that moments of resamples lose no digits.
    columns = np.column_stack((x, y))
    columns = (columns - columns.mean(axis=0)) / np.maximum(columns.std(axis=0), 1e-300)
    design = np.column_stack((np.ones(len(y)), columns))
    moments = np.zeros((g, p + 2, p + 2))
    np.add.at(moments, code, design[:, :, None] * design[:, None, :])
    counts = as_generator(rng).multinomial(g, np.full(g, 1 / g), size=resamples)
    every = np.concatenate((np.ones((1, g)), counts))
    summed: FloatArray = np.einsum("rg,gij->rij", every, moments, optimize=True)
    parts = _parts(summed, p)
    both = np.column_stack((parts.sum(axis=1), parts))
    widths = t_quantile(0.5 + confidence_level / 2, g - 1) * both[1:].std(axis=0, ddof=1)
    total, *each = (
        Interval(
            estimate=float(share),
            lower=float(max(share - width, 0.0)),
            upper=float(min(share + width, 1.0)),
            confidence_level=confidence_level,
            method="cluster bootstrap, ± t standard errors",
            n_labeled=g,
            assumptions=("queries are a random sample",),
        )
        for share, width in zip(both[0], widths, strict=True)
    )
    return total, tuple(each)


def _parts(moments: FloatArray, p: int) -> FloatArray:
    """Shapley parts of R² from raw moments (r, p + 2, p + 2) with intercept; shape (r, p)."""
    mean = moments[:, 0, 1:] / moments[:, :1, 0]
    cov = moments[:, 1:, 1:] / moments[:, :1, :1] - mean[:, :, None] * mean[:, None, :]
    total = np.maximum(cov[:, p, p], 1e-12)
    explained: dict[tuple[int, ...], FloatArray] = {(): np.zeros(len(cov))}
    for size in range(1, p + 1):
        for some in combinations(range(p), size):
            inner = cov[:, some][:, :, some]
            # A resample may hold a factor at one value only: no more than rounding is added.
            ridge = 1e-9 * np.eye(size)
            right = cov[:, some, p]
            solved = np.linalg.solve(inner + ridge, right[:, :, None])[:, :, 0]
            explained[some] = np.clip((solved * right).sum(axis=1) / total, 0.0, 1.0)
    parts = np.zeros((len(cov), p))
    for some, value in explained.items():
        for k in set(range(p)) - set(some):
            weight = math.factorial(len(some)) * math.factorial(p - len(some) - 1)
            gain = explained[tuple(sorted((*some, k)))] - value
            parts[:, k] += weight / math.factorial(p) * gain
    return parts
