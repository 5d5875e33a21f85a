"""One refusal of numbers that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError

# Types of arrays, by what they hold.


BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


# One refusal of numbers that are none.


def require_finite(values: npt.NDArray[np.floating[Any]], what: str, *, remedy: str) -> None:
    """Raise where a value is NaN or infinite, naming its place.

    Parameters
    ----------
    what : str
        The values in the plural, such as ``"ranks"``.
    remedy : str
        What to do about it, such as ``"leave out queries that lack a version"``.

    Raises
    ------
    DataError
    """
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return
    names = ("row", "column") if values.ndim <= 2 else ("row", *("index",) * values.ndim)
    place = ", ".join(f"{name} {at}" for name, at in zip(names, bad[0].tolist(), strict=False))
    more = f" ({len(bad)} such values)" if len(bad) > 1 else ""
    value = values[tuple(bad[0])]
    raise DataError(f"{what} hold NaN or infinity: {value} in {place}{more}; {remedy}")
