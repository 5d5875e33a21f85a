"""Shares against a known baseline, watched with the Beta mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.sequential.beta_mixture import (
    Side,
    beta_interval,
    beta_log_e,
    check_side,
)
from rag_sourcebias.monitor.sequential.null import NullMean, NullRange, as_range
from rag_sourcebias.monitor.sequential.process import SequentialTest
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["BetaTest"]


class BetaTest(SequentialTest):
    """Is the share of each group still its baseline? Binary outcomes, or values in [0, 1].

    Parameters
    ----------
    null : float, array_like of shape (groups,), or NullRange
        Baseline shares, strictly between 0 and 1.
    strength : float
        Observations that the mixing distribution is worth; it has the baseline as its mean. The
        default of 50 sees a share of .55 or .60 against .50 soonest.
    side : {"two-sided", "greater", "less"}
    confidence_level : float

    Raises
    ------
    DataError
        If an argument is out of its range.

    Examples
    --------
    >>> test = BetaTest(0.5)
    >>> _ = test.update_many([1.0] * 40)
    >>> test.alarm_at
    array([21])
    """

    kind = "beta"
    total: FloatArray

    def __init__(
        self,
        null: NullMean,
        *,
        strength: float = 50.0,
        side: Side = "two-sided",
        confidence_level: float = 0.95,
    ) -> None:
        check_side(side)
        ends = as_range(null)
        shape = np.broadcast_shapes(np.shape(ends.lower), np.shape(ends.upper), (1,))
        if len(shape) != 1:
            raise DataError(f"baselines must be one number per group, found shape {shape}")
        lower, upper = (end.copy() for end in ends.to(shape))
        centre = (lower + upper) / 2
        # One-sided, the end that evidence is measured from must leave room beyond it.
        from_end = {"two-sided": centre, "greater": upper, "less": lower}[side]
        if not ((from_end > 0) & (from_end < 1)).all() or not ((centre > 0) & (centre < 1)).all():
            raise DataError(f"baselines must lie strictly between 0 and 1, found {from_end}")
        if not (np.isfinite(strength) and strength > 0):
            raise DataError(f"strength must be a positive number, got {strength}")
        self.null, self.strength, self.side = NullRange(lower, upper), float(strength), side
        self._a, self._b = strength * centre, strength * (1 - centre)
        super().__init__(groups=shape[0], confidence_level=confidence_level)

    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Confidence sequence for the share of each group, at this moment, two-sided."""
        return beta_interval(
            np.full(self.groups, float(self.n)),
            self.total,
            a=self._a,
            b=self._b,
            confidence_level=self.confidence_level,
        )

    def _advance(self, rows: FloatArray) -> FloatArray:
        # Sums go on from the state one by one, so a batch gives bit for bit what single ones do.
        totals = np.cumsum(np.vstack([self.total, rows]), axis=0)[1:]
        n = self.n + np.arange(1.0, len(rows) + 1)[:, None]
        self.total = totals[-1].copy()
        return beta_log_e(n, totals, self.null, a=self._a, b=self._b, side=self.side)

    def _clear(self) -> None:
        self.total = np.zeros(self.groups)

    def _state(self) -> dict[str, Any]:
        return {"total": self.total}

    def _settings(self) -> dict[str, Any]:
        return {"null": self.null.to_plain(), "strength": self.strength, "side": self.side}
