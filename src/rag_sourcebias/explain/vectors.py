"""Vectors of pairs, checked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["checked_pairs", "unit_rows"]


def checked_pairs(
    human: npt.ArrayLike, other: npt.ArrayLike, *, at_least: int
) -> tuple[FloatArray, FloatArray]:
    """Return both sides as float64 arrays of the same shape (n, d).

    Raises
    ------
    DataError
        If they are no matrices of one shape or hold a number that is not finite.
    InsufficientDataError
        If there are fewer than ``at_least`` pairs.
    """
    first, second = (np.asarray(side, dtype=np.float64) for side in (human, other))
    if first.ndim != 2 or first.shape != second.shape:
        raise DataError(
            f"vectors of shapes {first.shape} and {second.shape}; expected two of one shape "
            "(pairs, dimension), row i of both being one pair"
        )
    for name, side in (("human", first), ("other", second)):
        if len(bad := np.flatnonzero(~np.isfinite(side).all(axis=1))):
            raise DataError(
                f"{len(bad)} {name} vector(s) hold NaN or infinity, first in row {bad[0]}; a "
                "vector must be finite"
            )
    if len(first) < at_least:
        raise InsufficientDataError(
            f"{len(first)} pairs; at least {at_least} are needed", n=len(first), n_needed=at_least
        )
    return first, second


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Scale the rows of an array of shape (n, d) to length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: FloatArray = vectors / np.where(lengths > 0, lengths, 1.0)
    return scaled
