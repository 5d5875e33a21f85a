"""Counts of values between edges, for plots."""

from __future__ import annotations

import math

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.histograms import Histogram

__all__ = ["histogram", "shared_edges", "unit_edges"]

_TAIL = 0.005  # of the values on either side, which share the outer bins
_NARROWEST = 1e-6


def histogram(values: FloatArray, edges: FloatArray) -> Histogram:
    """Count values between edges; NaN is left out.

    Parameters
    ----------
    values : float64 array of shape (n,)
    edges : float64 array of shape (bins + 1,)
        Rising. Values outside are counted in the first and the last bin.

    Raises
    ------
    DataError
        If edges do not rise.
    InsufficientDataError
        If no value is finite.
    """
    if len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise DataError(f"edges {np.asarray(edges).tolist()!s:.80} must be two or more and rise")
    finite = values[np.isfinite(values)]
    if not len(finite):
        raise InsufficientDataError("there is no finite value to count", n=0, n_needed=1)
    counts, _ = np.histogram(np.clip(finite, edges[0], edges[-1]), edges)
    return Histogram(
        edges=np.asarray(edges, dtype=np.float64),
        counts=counts.astype(np.int64),
        mean=float(finite.mean()),
        median=float(np.median(finite)),
    )


def unit_edges(*columns: FloatArray, bins: int = 40) -> FloatArray:
    """Edges up to 1 for values of at most 1, from the twentieth below the lowest value.

    Shape (bins + 1,). Used for cosines, which often lie in a small part of [−1, 1].
    """
    lowest = min((float(column.min()) for column in columns if len(column)), default=0.0)
    start = max(math.floor(20 * lowest) / 20, -1.0)
    return np.linspace(min(start, 0.95), 1.0, bins + 1)


def shared_edges(*columns: FloatArray, bins: int = 40) -> FloatArray:
    """Edges that hold all but the outermost values of all columns; shape (bins + 1,).

    Raises
    ------
    InsufficientDataError
        If no value is finite.
    """
    joint = np.concatenate([column[np.isfinite(column)] for column in columns])
    if not len(joint):
        raise InsufficientDataError("there is no finite value to count", n=0, n_needed=1)
    low, high = np.quantile(joint, (_TAIL, 1 - _TAIL))
    if high - low < _NARROWEST:  # all alike: a bin around them
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)
