"""Dual calibration as an order statistic ([R] Eq. 22–25).

The sign of a batch's error is monotone in λ, so every batch has one critical λ and the smallest λ
that leaves at most K batches uncovered is the (K + 1)-th largest of them. It is found by
selection: one look at all batches close to a good guess leaves a few per cent of them, and the
rest is pinned down among these few. No batch is solved on its own.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import CalibrationError
from rag_sourcebias.intervals.crc.critical import INSIDE, TIE
from rag_sourcebias.intervals.crc.limit import Errors
from rag_sourcebias.intervals.utility import FloatArray

__all__ = ["Batches", "smallest_lambda"]

_CHUNK = 1 << 17  # draws summed at a time, so that they stay in cache
_WIDTH = 2e-16


class Batches:
    """Bootstrap batches.

    Parameters
    ----------
    indices : integer array of shape (M, n)
        Queries of each batch.
    weights : int64 array of shape (M,), optional
        How many batches each row stands for; 1 by default.
    """

    def __init__(
        self, indices: npt.NDArray[np.intp], weights: npt.NDArray[np.int64] | None = None
    ) -> None:
        self.indices = indices
        self.weights = np.ones(len(indices), dtype=np.int64) if weights is None else weights

    def sums(self, errors: FloatArray) -> FloatArray:
        """Return the summed error of every batch; shape (M,)."""
        total, ones = np.empty(len(self.indices)), np.ones(self.indices.shape[1])
        rows = max(1, _CHUNK // max(1, self.indices.shape[1]))
        for start in range(0, len(total), rows):
            part = self.indices[start : start + rows]
            # "clip" only spares a second bounds check
            np.take(errors, part, mode="clip").dot(ones, out=total[start : start + rows])
        return total

    def keep(self, rows: npt.NDArray[np.bool_]) -> Batches:
        """Return the batches marked."""
        return Batches(self.indices[rows], self.weights[rows])


def smallest_lambda(errors: Errors, batches: Batches, misses: int, *, guess: float) -> float:
    """Return the smallest λ at which the error of at most ``misses`` batches is below 0.

    Parameters
    ----------
    errors : callable
        Errors of all queries at λ in [−1, 1], not decreasing in λ; shape (n,).
    batches : Batches
    misses : int
        Batches (by weight) that may stay below 0; sums within 1e-9 are ties, not below.
    guess : float
        Where to look first, best a little below the answer.

    Raises
    ------
    CalibrationError
        If more batches than that are below 0 even at λ = 1.
    """
    search = _Search(errors, batches, misses)
    search.look(min(max(guess, -INSIDE), INSIDE))
    while search.high - search.low > _WIDTH:
        before = search.high - search.low
        search.squeeze()
        if search.high - search.low > before / 2:
            search.halve()
        if search.high - search.low == before:  # neighbours in floating point
            break
    return search.settle()


class _Search:
    """Bracket of the answer with the batches whose critical λ lies in it."""

    def __init__(self, errors: Errors, batches: Batches, misses: int) -> None:
        self.errors, self.misses = errors, misses
        self.low, self.high = -1.0, 1.0
        self.active = batches
        self.above = 0  # weight of the batches below 0 even at ``high``
        self.low_sums: FloatArray | None = None
        self.high_sums: FloatArray | None = None
        self.near = 0.05

    def missing(self, lam: float) -> int:
        sums = self.active.sums(self.errors(lam))
        return self.above + int(self.active.weights[sums < -TIE].sum())

    def look(self, lam: float) -> None:
        """Move one end of the bracket to ``lam`` and drop the batches decided by that."""
        if not self.low < lam < self.high:
            return
        sums = self.active.sums(self.errors(lam))
        below = sums < -TIE
        missing = self.above + int(self.active.weights[below].sum())
        keep = ~below if missing <= self.misses else below
        if missing <= self.misses:
            self.high, self.above, self.high_sums = lam, missing, sums
        else:
            self.low, self.low_sums = lam, sums
        self.low_sums = None if self.low_sums is None else self.low_sums[keep]
        self.high_sums = None if self.high_sums is None else self.high_sums[keep]
        self.active = self.active.keep(keep)

    def halve(self) -> None:
        """Try an end not yet tried, or the middle."""
        if self.high == 1.0 or self.low == -1.0:
            self.look(INSIDE if self.high == 1.0 else -INSIDE)
        self.look((self.low + self.high) / 2)

    def squeeze(self) -> None:
        """Look on both sides of where straight lines put the answer."""
        at, slopes = self.slopes()
        sums = self.high_sums if self.low_sums is None else self.low_sums
        if sums is None:
            return
        steps = -(sums + TIE) / np.maximum(slopes, 1e-300)
        order = np.argsort(-steps, kind="stable")
        weights = np.cumsum(self.active.weights[order])
        rank = int(np.searchsorted(weights, self.misses - self.above, side="right"))
        step = float(steps[order[min(rank, len(order) - 1)]])
        near = self.near * (self.high - self.low if self.high_sums is not None else abs(step))
        before = self.high - self.low
        self.look(at + step + near)
        self.look(at + step - near)
        # straight lines fit ever better as the bracket closes
        fits = self.high - self.low <= 2.5 * near
        self.near = max(self.near**2, 1e-5) if fits and before < 1 else 0.05

    def slopes(self) -> tuple[float, FloatArray]:
        """Return a λ looked at and the rise of every active batch per unit of λ from there."""
        if self.low_sums is not None and self.high_sums is not None:
            return self.low, (self.high_sums - self.low_sums) / (self.high - self.low)
        at = self.high if self.low_sums is None else self.low
        step = math.copysign(1e-4 * (1.0 - abs(at)) + 1e-12, -at)
        rise = self.errors(at + step) - self.errors(at)
        return at, self.active.sums(rise / step)

    def settle(self) -> float:
        """Return the answer, after a look at the jump at an end that was not passed."""
        if self.low == -1.0 and self.missing(-1.0) <= self.misses:
            return -1.0
        if self.high == 1.0 and (missing := self.missing(1.0)) > self.misses:
            raise CalibrationError(
                f"no lambda covers enough of the calibration sets: {missing} have a human value "
                f"beyond what the labels can reach, {self.misses} are allowed"
            )
        return self.high
