"""Inclusion probabilities, and a draw of fixed size that keeps them."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.intervals.utility import RankedLabels
from rag_sourcebias.types.arrays import FloatArray, IntArray

__all__ = ["draw", "inclusion_probabilities"]

_WHOLE = 1e-9  # a chance this near to 0 or 1 is rounding


def inclusion_probabilities(size: FloatArray, n: int) -> FloatArray:
    """Chances proportional to ``size``, capped at 1, that sum to ``n``.

    Parameters
    ----------
    size : float64 array of shape (m,)
        At least 0; infinite means certain.
    n : int
        At most the number of positive sizes, at least the number of infinite ones.
    """
    chance = np.zeros(len(size))
    certain = np.isinf(size)
    free = (size > 0) & ~certain
    while free.any():
        share = (n - int(certain.sum())) * size / float(size[free].sum())
        over = free & (share >= 1 - _WHOLE)
        if not over.any():
            chance[free] = share[free]
            break
        certain |= over
        free &= ~over
    chance[certain] = 1.0
    return chance


def draw(labels: RankedLabels, inclusion: FloatArray, rng: np.random.Generator) -> IntArray:
    """Pivotal sampling within every query, then among what each query has left over."""
    order = np.lexsort((rng.random(len(inclusion)), labels.query))
    order = order[(inclusion[order] > 0) & (inclusion[order] < 1)]
    bounds = np.searchsorted(labels.query[order], np.arange(labels.n_queries + 1)).tolist()
    rows, chances = order.tolist(), inclusion[order].tolist()
    luck = rng.random(len(rows)).tolist()
    chosen = np.flatnonzero(inclusion == 1).tolist()
    left_rows: list[int] = []
    left_chances: list[float] = []
    for query in rng.permutation(labels.n_queries).tolist():
        part = slice(bounds[query], bounds[query + 1])
        row, chance = _pivotal(rows[part], chances[part], luck[part], chosen)
        if row >= 0:
            left_rows.append(row)
            left_chances.append(chance)
    row, chance = _pivotal(left_rows, left_chances, rng.random(len(left_rows)).tolist(), chosen)
    if chance > 0.5:  # the sum of all chances is whole, up to rounding
        chosen.append(row)
    return np.sort(np.array(chosen, dtype=np.int64))


def _pivotal(
    rows: list[int], chances: list[float], luck: list[float], chosen: list[int]
) -> tuple[int, float]:
    """Let each row meet the next and one pass its chance to the other, until it is 0 or 1.

    Rows whose chance becomes 1 join ``chosen``; the last one with its chance is returned, row −1
    if none is left.
    """
    holder, held = -1, 0.0
    for row, chance, u in zip(rows, chances, luck, strict=True):
        total = held + chance
        if total < 1 - _WHOLE:  # one of the two drops out
            if u * total >= held:
                holder = row
            held = total
            continue
        # one of the two is taken, the other keeps what is left of the sum
        takes_holder = u * (2 - total) < 1 - chance
        chosen.append(holder if takes_holder else row)
        holder = row if takes_holder else holder
        held = total - 1
        if held <= _WHOLE:
            holder, held = -1, 0.0
    return holder, held
