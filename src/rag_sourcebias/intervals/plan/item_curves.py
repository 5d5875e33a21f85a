"""Half-widths against the number of labels, for items."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.quantiles import t_quantile

__all__ = ["Curves", "positive", "smallest"]


@dataclass(frozen=True, slots=True)
class Curves:
    """Half-width against the number of labels."""

    spread: float
    n_pilot: int
    pool: int
    target: str
    probability: float

    def with_judge(self, r: float) -> Callable[[int], float]:
        """Return the half-width from k labels and a judge of correlation ``r``."""
        # the pilot spent one more degree of freedom on the slope
        missed = self.spread * (1 - r * r)
        if r:
            missed *= (self.n_pilot - 1) / (self.n_pilot - 2)
        shared = self.spread * r * r / self.pool if self.target == "population" else 0.0

        def half(k: int) -> float:
            return t_quantile(self.probability, k - 2) * math.sqrt(missed * self._rest(k) + shared)

        return half

    def alone(self, k: int) -> float:
        """Return the half-width from k labels alone."""
        return t_quantile(self.probability, k - 1) * math.sqrt(self.spread * self._rest(k))

    def _rest(self, k: int) -> float:
        return max(1 / k - 1 / self.pool, 0.0) if self.target == "pool" else 1 / k


def smallest(half: Callable[[int], float], wanted: float, low: int, high: int) -> int | None:
    """Return the smallest n in [low, high] whose half-width does; None if none does."""
    reach = wanted * (1 + 1e-9)
    upper = low
    while half(upper) > reach:
        if upper >= high:
            return None
        low, upper = upper + 1, min(2 * upper, high)
    while low < upper:
        middle = (low + upper) // 2
        low, upper = (low, middle) if half(middle) <= reach else (middle + 1, upper)
    return upper


def positive(half_width: float) -> float:
    """Return the half-width, refusing what is not a positive number."""
    if not (math.isfinite(half_width) and half_width > 0):
        raise DataError(f"half_width {half_width!r} must be a positive number")
    return float(half_width)
