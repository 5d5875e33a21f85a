r"""Confidence sequence for the mean of values in [0, 1], by betting against every candidate mean.

The capital of bets above m falls in m, that of bets below m rises in m; so the largest grid point
at which the former has reached 2/α bounds the mean from below at level 1 − α/2 over all time, the
smallest at which the latter has bounds it from above (Waudby-Smith & Ramdas 2024, §4). Ends are
grid points outside the set: the grid makes the interval wider, never narrower.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.quantiles import check_level
from rag_sourcebias.monitor.sequential.betting import FRACTIONS, log_payoffs
from rag_sourcebias.monitor.sequential.rows import as_rows, log_mean_exp
from rag_sourcebias.monitor.sequential.state import read_state, rebuild, restore, write_state

__all__ = ["BettingInterval"]

_CHUNK = 1 << 18


class BettingInterval:
    """Running bounds of a mean whose observations lie in [0, 1].

    Parameters
    ----------
    confidence_level : float
        Probability that the bounds hold the mean at all times together.
    points : int
        Candidate means, evenly spread over [0, 1].

    Attributes
    ----------
    n : int
    mean : float
        Of the observations; NaN without any.
    """

    kind = "betting-interval"

    def __init__(self, *, confidence_level: float = 0.95, points: int = 201) -> None:
        check_level(confidence_level)
        if points < 3:
            raise DataError(f"points must be at least 3, got {points}")
        self.confidence_level, self.points = confidence_level, points
        self._grid = np.linspace(0.0, 1.0, points)
        self.n, self.total = 0, 0.0
        self._capital = np.zeros((points, 2 * len(FRACTIONS)))

    @property
    def mean(self) -> float:
        """Mean so far."""
        return self.total / self.n if self.n else math.nan

    def update(self, value: float) -> None:
        """Add one observation."""
        self.update_many([value])

    def update_many(self, values: npt.ArrayLike) -> None:
        """Add observations, shape (n,), in order.

        Raises
        ------
        DataError
            If a value is not in [0, 1].
        """
        rows = as_rows(values, 1)
        step = max(_CHUNK // self._capital.size, 1)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            null = np.broadcast_to(self._grid, (len(part), self.points))
            new = log_payoffs(np.broadcast_to(part, null.shape), null, null)
            # Sums one by one, so a batch gives bit for bit what single updates do.
            self._capital = np.cumsum(np.concatenate([self._capital[None], new]), axis=0)[-1].copy()
            self.total = float(np.cumsum(np.concatenate([[self.total], part[:, 0]]))[-1])
            self.n += len(part)

    def interval(self) -> tuple[float, float]:
        """Return the bounds at this moment, in [0, 1]."""
        threshold = math.log(2) - math.log1p(-self.confidence_level)
        above, below = np.split(self._capital, 2, axis=1)
        too_low = np.flatnonzero(log_mean_exp(above) >= threshold)
        too_high = np.flatnonzero(log_mean_exp(below) >= threshold)
        lower = float(self._grid[too_low[-1]]) if len(too_low) else 0.0
        upper = float(self._grid[too_high[0]]) if len(too_high) else 1.0
        return lower, upper

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain JSON values."""
        settings = {"confidence_level": self.confidence_level, "points": self.points}
        return write_state(self.kind, settings, self._state())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BettingInterval:
        """Go on from what :meth:`to_dict` returned; errors as of the tests."""
        settings, state = read_state(data, cls.kind)
        found = rebuild(cls, settings)
        restore(found, found._state(), state)
        return found

    def _state(self) -> dict[str, Any]:
        return {"n": self.n, "total": self.total, "_capital": self._capital}
