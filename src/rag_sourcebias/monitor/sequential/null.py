"""What the mean of the observations is under the null: a number, or somewhere in a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["NullMean", "NullRange", "as_range"]


@dataclass(frozen=True, slots=True, eq=False)
class NullRange:
    """The null mean lies in [lower, upper], as with a baseline that was itself estimated.

    Parameters
    ----------
    lower, upper : float or ndarray
        In [0, 1], lower at most upper; shapes that broadcast to those of the observations.

    Raises
    ------
    DataError
        If an end is not in [0, 1], or they stand in the wrong order.
    """

    lower: npt.ArrayLike
    upper: npt.ArrayLike

    def __post_init__(self) -> None:
        lower, upper = np.asarray(self.lower, np.float64), np.asarray(self.upper, np.float64)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        for end in (lower, upper):
            inside = (end >= 0) & (end <= 1)
            if not inside.all():
                raise DataError(
                    f"a baseline share must lie in [0, 1], found {float(end[~inside].flat[0])!r}"
                )
        if np.any(lower > upper):
            raise DataError(f"a baseline range needs lower ≤ upper, found [{lower}, {upper}]")

    def to(self, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """Return both ends in this shape.

        Raises
        ------
        DataError
            If they do not broadcast to it.
        """
        try:
            return np.broadcast_to(self.lower, shape), np.broadcast_to(self.upper, shape)
        except ValueError:
            found = np.broadcast_shapes(np.shape(self.lower), np.shape(self.upper))
            raise DataError(
                f"baselines of shape {found} do not fit observations of shape {shape}"
            ) from None

    def to_plain(self) -> dict[str, Any]:
        """Return the arguments as plain JSON values."""
        return {"lower": np.asarray(self.lower).tolist(), "upper": np.asarray(self.upper).tolist()}


NullMean = npt.ArrayLike | NullRange


def as_range(null: NullMean) -> NullRange:
    """Return a range; a number or array is a range of one point each."""
    return null if isinstance(null, NullRange) else NullRange(null, null)
