"""Observations as checked arrays, and averages of evidence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["as_rows", "log_mean_exp"]


def as_rows(values: npt.ArrayLike, groups: int, *, bounded: bool = True) -> FloatArray:
    """Return observations in shape (n, groups) after checking them.

    Raises
    ------
    DataError
        If the shape does not fit, or a value is not finite or, with ``bounded``, not in [0, 1].
    """
    rows = np.asarray(values, np.float64)
    if rows.ndim == 1 and groups == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] != groups:
        raise DataError(f"expected observations of shape (n, {groups}), found {rows.shape}")
    good = (rows >= 0) & (rows <= 1) if bounded else np.isfinite(rows)
    if not good.all():
        row, group = np.argwhere(~good)[0]
        allowed = "in [0, 1]" if bounded else "finite"
        raise DataError(
            f"observation {row} of group {group} is {float(rows[row, group])!r}; "
            f"it must be {allowed}"
        )
    return rows


def log_mean_exp(log_values: FloatArray, axis: int = -1) -> FloatArray:
    """Logarithm of the mean of exponentials: an average of e-processes is one."""
    top = log_values.max(axis=axis, keepdims=True)
    mean = np.exp(log_values - top).mean(axis=axis)
    return np.asarray(np.log(mean) + top.squeeze(axis))
