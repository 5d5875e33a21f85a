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
