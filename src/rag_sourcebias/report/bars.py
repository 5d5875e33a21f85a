"""Intervals as bars, and the rows of cards that show them; positions in percent of the width."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bar", "CardRow"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRow:
    """One number with its interval."""

    name: str
    estimate: str
    ends: str
    bar: Bar | None
