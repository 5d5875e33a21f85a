"""Checks of values: outside the scale, or all the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["check_scale", "is_constant"]


def check_scale(
    values: FloatArray,
    low: float,
    high: float,
    *,
    ids: Sequence[str] | None = None,
    what: str = "human label",
) -> None:
    """Refuse values outside a scale.

    Parameters
    ----------
    values : float64 array of shape (n,)
        NaN (no value) passes.
    low, high : float
        Ends of the scale; both belong to it.
    ids : sequence of str or None
        Names of the items, for the message.

    Raises
    ------
    DataError
        Saying how many lie outside, and naming the first.
    """
    outside = np.flatnonzero((values < low) | (values > high))
    if len(outside):
        first = int(outside[0])
        name = f"item {ids[first]!r}" if ids is not None else f"item {first} (counted from 0)"
        raise DataError(
            f"{len(outside)} {what}(s) outside the scale {low:g} … {high:g}, first "
            f"{values[first]:g} of {name}; correct them, or state the scale they are on"
        )


def is_constant(values: FloatArray) -> bool:
    """Whether all values (NaN aside) are equal up to rounding, so that a judge tells nothing."""
    known = values[~np.isnan(values)]
    if not len(known):
        return True
    span = float(known.max()) - float(known.min())
    return span <= 1e-12 * max(1.0, abs(float(known[0])))
