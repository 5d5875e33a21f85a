"""Counts of values between edges."""

from __future__ import annotations

from dataclasses import dataclass, field

from rag_sourcebias.types.arrays import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """Counts between edges.

    Parameters
    ----------
    edges : float64 array of shape (bins + 1,)
    counts : int64 array of shape (bins,)
        Values outside the outer edges are in the first and the last bin.
    mean, median : float
    """

    edges: FloatArray = field(repr=False)
    counts: IntArray = field(repr=False)
    mean: float
    median: float
