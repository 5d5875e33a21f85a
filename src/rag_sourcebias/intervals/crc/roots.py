"""Where a function of λ that does not decrease passes 0."""

from __future__ import annotations

import math
from collections.abc import Callable

from rag_sourcebias.intervals.crc.critical import INSIDE

__all__ = ["rising_root"]

_STEPS = 200
_WIDTH = 2e-16


def rising_root(
    value_at: Callable[[float], float],
    *,
    start: float,
    tolerance: float,
    known: float | None = None,
    step: float = 0.3,
) -> float:
    """Return a λ in (−1, 1) with ``|value| <= tolerance``, by bracketed secant steps.

    The steps are taken in ∓ln(1 − |λ|), in which utilities are close to linear; ``step`` is the
    first of them and ``known`` the value at ``start`` where it is at hand. Where the
    function jumps over 0 the first λ above is returned; where it is negative up to the last λ
    before 1, it is 1; where it is positive from the first λ after −1, it is that.
    """
    low, high = -1.0, 1.0
    lam = min(max(start, -INSIDE), INSIDE)
    value = value_at(lam) if known is None else known
    here = _stretched(lam)
    probe = here - math.copysign(step, value)
    for _ in range(_STEPS):
        low, high = (lam, high) if value < 0 else (low, lam)
        if abs(value) <= tolerance:
            return lam
        if high - low < _WIDTH or low >= INSIDE or high <= -INSIDE:
            return high
        guess = math.copysign(-math.expm1(-abs(probe)), probe)
        lam = guess if low < guess < high and abs(guess) < 1 else _next(low, high)
        old, before = value, here
        value, here = value_at(lam), _stretched(lam)
        if value == old:  # flat here: look at the end of the bracket
            probe = math.inf if value < 0 else -math.inf
        else:
            probe = here - value * (here - before) / (value - old)
    return high


def _stretched(lam: float) -> float:
    return math.copysign(-math.log1p(-abs(lam)), lam)


def _next(low: float, high: float) -> float:
    """Return the end not yet tried, or half-way."""
    if high == 1.0:
        return INSIDE
    return -INSIDE if low == -1.0 else (low + high) / 2
