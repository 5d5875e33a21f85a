"""Bootstrap intervals of many samples of one size at a time, for coverage studies.

All samples share one set of resampled positions, so that the resampled means of all of them are
one matrix product. Each interval is the one :func:`bootstrap_interval` gives with the same
positions.
"""

from __future__ import annotations

import math

import numpy as np

from rag_sourcebias.inference.quantiles import normal_quantile
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["KINDS", "bootstrap_ends"]

KINDS = ("empirical", "bca", "studentized")
_AT_ONCE = 100


def bootstrap_ends(
    samples: FloatArray,
    *,
    confidence_level: float,
    n_resamples: int = 10_000,
    rng: np.random.Generator,
) -> dict[str, FloatArray]:
    """Return lower and upper ends for each kind.

    Parameters
    ----------
    samples : float64 array of shape (s, n)
        Rows whose values differ.

    Returns
    -------
    dict of str to float64 array of shape (s, 2)
        For ``"empirical"``, ``"bca"`` and ``"studentized"``.
    """
    n = samples.shape[1]
    counts = _counts(n, n_resamples, rng)
    tails = np.array([0.5 - confidence_level / 2, 0.5 + confidence_level / 2])
    found: dict[str, list[FloatArray]] = {kind: [] for kind in KINDS}
    for start in range(0, len(samples), _AT_ONCE):
        values = samples[start : start + _AT_ONCE]
        centre = values.mean(axis=1)
        centred = values - centre[:, None]
        shifts = centred @ counts.T / n  # resampled mean − mean
        squares = centred**2 @ counts.T / n - shifts**2
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = shifts / np.sqrt(np.maximum(squares, 0.0) / (n - 1))
        error = values.std(axis=1, ddof=1) / math.sqrt(n)
        ordered = np.sort(shifts, axis=1)
        empirical = np.quantile(ordered, tails, axis=1).T
        bca = np.array(
            [
                np.quantile(row, _bca_tails(deviations, row, tails))
                for row, deviations in zip(ordered, centred, strict=True)
            ]
        )
        # a resample without spread says nothing about the ratio
        student = np.array([np.quantile(row[np.isfinite(row)], tails) for row in ratios])
        found["empirical"].append(centre[:, None] + empirical)
        found["bca"].append(centre[:, None] + bca)
        found["studentized"].append(centre[:, None] - (student * error[:, None])[:, ::-1])
    return {kind: np.concatenate(ends) for kind, ends in found.items()}


def _counts(n: int, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """How often each position is drawn in each resample; shape (n_resamples, n)."""
    drawn = rng.integers(0, n, (n_resamples, n))
    flat = drawn + n * np.arange(n_resamples)[:, None]
    counts = np.bincount(flat.ravel(), minlength=n * n_resamples).reshape(n_resamples, n)
    return counts.astype(np.float64)


def _bca_tails(centred: FloatArray, ordered: FloatArray, tails: FloatArray) -> FloatArray:
    """Shift the percentiles by bias and acceleration (Efron 1987, eq. 2.3)."""
    size = len(ordered)
    slack = 1e-12 * float(np.abs(centred).max())
    below, upto = np.searchsorted(ordered, [-slack, slack], side="left")
    share = (below + upto) / 2 / size
    bias = normal_quantile(min(max(share, 1 / size), 1 - 1 / size))
    acceleration = float((centred**3).sum() / (6 * (centred**2).sum() ** 1.5))
    z = bias + np.array([normal_quantile(float(tail)) for tail in tails])
    shifted = bias + z / (1 - acceleration * z)
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in shifted])
