"""The λ at which a perturbed utility reaches a human value, in closed form.

On λ ≥ 0 a utility is floor + Σ_k w_k min(1, s_k / c) with c = 1 − λ: between two neighbouring
s_k it is W + R/c, so the crossing is found by sorting the s_k once. The utility is strictly
increasing except for two flat ends (−1, b] and [t, 1), where every tail is used up, and it jumps
at ±1 where a distribution has no mass on the extreme grade.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.intervals.crc.perturb import UtilityPath
from rag_sourcebias.intervals.utility import FloatArray, IntArray, RankedLabels

__all__ = ["INSIDE", "TIE", "Crossing", "check_values", "crossings", "set_crossing"]

TIE = 1e-9
"""Sums of errors within this of 0 count as 0."""

INSIDE = float(np.nextafter(1.0, 0.0))
"""The last λ before the jump at 1."""

_BISECTIONS = 60


class Crossing(NamedTuple):
    """Where the utility crosses the human value.

    ``first`` is the smallest λ with U(λ) ≥ y and ``last`` the largest with U(λ) ≤ y, ties within
    1e-9; they differ where the utility is flat at y, or jumps over it. Values above the reach of
    the labels have both at 1, values below it both at −1.
    """

    first: FloatArray
    last: FloatArray


def crossings(labels: RankedLabels, y: FloatArray) -> Crossing:
    """Return the critical λ of every query, arrays of shape (n_queries,).

    Parameters
    ----------
    labels : RankedLabels
    y : float64 array of shape (n_queries,)
        Human utility of each query.
    """
    check_values(labels, y)
    path = UtilityPath.of(labels)
    solve = _bisected if labels.gain_of_mean else _sorted
    return Crossing(*solve(path, np.asarray(y, dtype=np.float64)))


def set_crossing(
    labels: RankedLabels, y: FloatArray, *, counts: IntArray | None = None
) -> tuple[float, float]:
    """Return (first, last) critical λ of the mean error over a set of queries.

    Parameters
    ----------
    labels : RankedLabels
    y : float64 array of shape (n_queries,)
    counts : int64 array of shape (n_queries,), optional
        How often each query is in the set, such as in a bootstrap batch; once by default.
    """
    check_values(labels, y)
    times = np.ones(labels.n_queries) if counts is None else np.asarray(counts, dtype=np.float64)
    pooled = replace(
        labels,
        weights=labels.weights * times[labels.query],
        query=np.zeros_like(labels.query),
        n_queries=1,
    )
    found = crossings(pooled, np.array([times @ y]))
    return float(found.first[0]), float(found.last[0])


def check_values(labels: RankedLabels, y: FloatArray) -> None:
    """Raise unless there is one finite human value per query."""
    if np.shape(y) != (labels.n_queries,):
        raise DataError(f"human values of shape {np.shape(y)} for {labels.n_queries} queries")
    if not np.isfinite(y).all():
        bad = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataError(f"human value of query {bad} is {y[bad]}; leave queries without one out")


def _sorted(path: UtilityPath, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve by sorting the tails of each query."""
    bottom = _sum(path, path.weights * path.floor)
    top = bottom + _sum(path, path.weights * float(path.steps.sum()))
    rising, falling = _Profile(path, path.upper), _Profile(path, path.lower)
    low, high = y - TIE, y + TIE
    now = path.at(0.0)
    first = np.where(
        now >= low, falling.smallest(top - low) - 1.0, 1.0 - rising.largest(low - bottom)
    )
    last = np.where(
        now <= high, 1.0 - rising.smallest(high - bottom), falling.largest(top - high) - 1.0
    )
    return first, last


def _sum(path: UtilityPath, values: FloatArray) -> FloatArray:
    return np.bincount(path.query, weights=values, minlength=path.n_queries).astype(np.float64)


class _Profile:
    """F(c) = Σ_k w_k min(1, s_k / c) of every query, not increasing in c on (0, 1]."""

    def __init__(self, path: UtilityPath, tails: FloatArray) -> None:
        n_steps, n = len(path.steps), path.n_queries
        starts = np.searchsorted(path.query, np.arange(n + 1))
        width = int(np.diff(starts).max(initial=0))
        place = (path.query, np.arange(len(path.query)) - starts[path.query])
        padded = np.zeros((2, n, width, n_steps))
        padded[0][place], padded[1][place] = tails.T, path.weights[:, None] * path.steps
        s, w = padded.reshape(2, n, -1)
        order = np.argsort(-s, axis=1, kind="stable")
        none = np.zeros((n, 1))
        # bounds of the pieces: above the largest tail F is linear in 1/c down to c = 1
        self.s = np.hstack([none + 1.0, np.take_along_axis(s, order, axis=1), none])
        w = np.take_along_axis(w, order, axis=1)
        self.saturated = np.hstack([none, np.cumsum(w, axis=1)])
        mass = (w * self.s[:, 1:-1])[:, ::-1]
        self.rest = np.hstack([np.cumsum(mass, axis=1)[:, ::-1], none])
        self.total = self.saturated[:, -1]
        positive = self.s[:, 1:-1] > 0
        self.reach = np.take_along_axis(self.saturated, positive.sum(1)[:, None], axis=1)[:, 0]
        at = np.where(positive, self.s[:, 1:-1], 1.0)
        self.value = np.where(positive, self.saturated[:, 1:] + self.rest[:, 1:] / at, np.inf)

    def _solve(self, target: FloatArray) -> FloatArray:
        """Return c with F(c) = target, for targets within reach."""
        rows, piece = np.arange(len(target)), (self.value < target[:, None]).sum(axis=1)
        rest, missing = self.rest[rows, piece], target - self.saturated[rows, piece]
        solvable = (rest > 0) & (missing > 0)
        c = np.where(solvable, rest / np.where(solvable, missing, 1.0), 1.0)
        # rounding may not carry c out of its piece, nor to 0
        c = np.clip(c, self.s[rows, piece + 1], self.s[rows, piece])
        return np.clip(c, 1.0 - INSIDE, 1.0)

    def largest(self, target: FloatArray) -> FloatArray:
        """Return the largest c with F(c) ≥ target; 0 where only the extreme grade reaches it."""
        return np.where(target > self.reach, 0.0, self._solve(target))

    def smallest(self, target: FloatArray) -> FloatArray:
        """Return the smallest c with F(c) ≤ target; 0 where even the extreme grade is below."""
        inside = np.where(target >= self.reach, 1.0 - INSIDE, self._solve(target))
        return np.where(target >= self.total, 0.0, inside)


def _bisected(path: UtilityPath, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve by bisection: the gain of the mean grade is not piecewise W + R/c."""
    first = _smallest(path, y - TIE, strictly=False)
    above = _smallest(path, y + TIE, strictly=True)
    # the last λ at or below y is the limit from the left of the first λ above it
    last = np.where(above >= 1.0, INSIDE, above)
    last = np.where(path.at(1.0) <= y + TIE, 1.0, last)
    return first, np.where(path.at(-INSIDE) > y + TIE, -1.0, last)


def _smallest(path: UtilityPath, y: FloatArray, *, strictly: bool) -> FloatArray:
    """Return the smallest λ at which each utility is at least (more than) y; 1 if none is."""

    def reached(lam: FloatArray) -> FloatArray:
        values = path.at(lam)
        return np.asarray(values > y if strictly else values >= y)

    ones = np.ones(path.n_queries)
    low, high = -INSIDE * ones, INSIDE * ones
    at_low, at_high, at_bottom = reached(low), reached(high), reached(-ones)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        hit = reached(middle)
        high, low = np.where(hit, middle, high), np.where(hit, low, middle)
    found = np.where(at_high, high, 1.0)
    found = np.where(at_low, -INSIDE, found)
    return np.where(at_bottom, -1.0, found)
