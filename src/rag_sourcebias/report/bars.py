"""Intervals as bars; positions in percent of the width."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An interval on a common scale.

    Parameters
    ----------
    side : str
        Which colour it takes.
    solid : bool
        Whether the dot is filled.
    was : float or None
        Where the value was before a change.
    chance : float or None
        Where chance alone would put it.
    """

    left: float
    width: float
    dot: float
    side: str
    solid: bool
    was: float | None = None
    chance: float | None = None

    @classmethod
    def over(
        cls,
        values: tuple[float, float, float],
        span: tuple[float, float],
        *,
        side: str,
        solid: bool,
        was: float | None = None,
        chance: float | None = None,
    ) -> Bar:
        """Place (lower end, value, upper end) on a scale; what lies beyond it stands at its end."""

        def place(value: float) -> float:
            part = (value - span[0]) / (span[1] - span[0])
            return round(100 * min(1.0, max(0.0, part)), 2)

        left, dot, right = map(place, values)
        return cls(
            left=left,
            width=round(right - left, 2),
            dot=dot,
            side=side,
            solid=solid,
            was=None if was is None else place(was),
            chance=None if chance is None else place(chance),
        )
