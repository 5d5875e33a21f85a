"""What a shift is made of: what the store holds, what is asked, and how it is ranked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from rag_sourcebias.core.data import FloatArray

# Exposure is E = Σ_t q_t e_t with the share q_t of questions on topic t. With the share c of the
# group in the index, logit e_t = logit c + r_t says what ranking makes of it: r_t is left as it is
# where documents come in that are treated as those before. A shift of q, c and r at once is split
# by the average over the orders in which they change (Shapley), which adds up exactly.


_PARTS = ("index", "asked", "ranking")
_ORDERS = tuple(permutations(range(len(_PARTS))))
_DRAWS = 400


def split_shift(
    before: FloatArray,
    after: FloatArray,
    *,
    index: tuple[float, float] | None = None,
    confidence_level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> dict[str, tuple[float, float, float]]:
    """Split a shift of the exposure of a group into index, asked and ranking, with intervals.

    Parameters
    ----------
    before, after : ndarray of shape (blocks, topics, 2)
        Retrievals on each topic, and the sum of the group's exposure in them.
    index : tuple of float or None
        Share of the group in the index before and after; None: unknown, so that "ranking" holds
        what the index does, too, and there is no part "index".
    rng : Generator or None
        Draws blocks before the shift, from which the error of both sides is taken.

    Returns
    -------
    dict of str to (part, lower, upper)
        In points of exposure share; the parts add up to the shift.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    n = len(before)
    m = len(after)
    base = before.sum(axis=0)
    now = after.sum(axis=0)
    old, new = (
        np.tensordot(rng.multinomial(k, np.full(n, 1 / n), _DRAWS), before, axes=1) for k in (n, m)
    )
    floor = np.array([1e-9, 0.0])
    old = np.concatenate([base[None], np.maximum(old, floor)])
    new = np.concatenate([now[None], np.maximum(now + new - base * m / n, floor)])
    shares = (0.5, 0.5) if index is None else index
    states = [_state(cells, share) for cells, share in ((old, shares[0]), (new, shares[1]))]
    parts = np.zeros((len(_PARTS), len(old)))
    for order in _ORDERS:
        chosen = [0, 0, 0]
        last = _exposed(states, chosen)
        for part in order:
            chosen[part] = 1
            value = _exposed(states, chosen)
            parts[part] += (value - last) / len(_ORDERS)
            last = value
    tails = [(1 - confidence_level) / 2, (1 + confidence_level) / 2]
    ends = np.quantile(parts[:, 1:], tails, axis=1)
    found = zip(_PARTS, parts[:, 0].tolist(), *ends.tolist(), strict=True)
    return {
        name: (part, lower, upper)
        for name, part, lower, upper in found
        if index is not None or name != "index"
    }


def _state(cells: FloatArray, share: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    n = cells[..., 0]
    total = cells[..., 1]
    asked = n / n.sum(axis=-1, keepdims=True)
    index = _logit(np.asarray(share))
    return index, asked, _logit((total + 0.5 * share) / (n + 0.5)) - index


def _logit(share: FloatArray) -> FloatArray:
    inside = np.clip(share, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def _exposed(
    states: Sequence[tuple[FloatArray, FloatArray, FloatArray]], chosen: Sequence[int]
) -> FloatArray:
    index, asked, ranking = (states[at][part] for part, at in enumerate(chosen))
    return np.asarray((asked / (1 + np.exp(-(index + ranking)))).sum(axis=-1))
