"""Kendall's rank correlation with ties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.types.arrays import FloatArray

__all__ = ["kendall_tau_b"]


def kendall_tau_b(x: FloatArray, y: FloatArray) -> float:
    """Kendall's τ-b in O(n log n); NaN if x or y is constant."""
    n = len(x)
    _, cx, tx = np.unique(x, return_inverse=True, return_counts=True)
    _, cy, ty = np.unique(y, return_inverse=True, return_counts=True)
    _, txy = np.unique(cx * (len(ty) + 1) + cy, return_counts=True)

    def pairs(counts: npt.NDArray[np.int64]) -> float:
        return float((counts * (counts - 1.0)).sum() / 2)

    total, tied_x, tied_y, tied_both = n * (n - 1) / 2, pairs(tx), pairs(ty), pairs(txy)
    if total in (tied_x, tied_y):
        return math.nan
    discordant = _inversions(cy[np.lexsort((cy, cx))])
    agreement = total - tied_x - tied_y + tied_both - 2 * discordant
    return agreement / math.sqrt((total - tied_x) * (total - tied_y))


def _inversions(codes: npt.NDArray[np.integer[Any]]) -> float:
    """Count pairs i < j with codes[i] > codes[j], bit by bit from the highest."""
    count = 0.0
    values = codes.astype(np.int64)
    for bit in range(int(values.max(initial=0)).bit_length() - 1, -1, -1):
        values = values[np.argsort(values >> (bit + 1), kind="stable")]
        high = (values >> bit) & 1
        ones = np.cumsum(high)
        head = np.flatnonzero(np.diff(values >> (bit + 1), prepend=-1))
        sizes = np.diff(np.append(head, len(values)))
        before = np.repeat(ones[head] - high[head], sizes)
        count += float(((ones - before) * (1 - high)).sum())
    return count
