r"""Average ranks at equal length (METHODS §2.2).

Styles differ in length, so a preference for a style may be one for length. With x the log length
of a version minus the mean log length of the versions of its document,

    rank_ij = a_j + b·x_ij + error,      adjusted R̄_j = R̄_j − b·x̄_j

where the slope b comes from how lengths vary from query to query within a style.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.finite import require_finite

__all__ = ["LengthAdjusted", "adjusted_from_means", "length_adjusted", "length_columns"]

_CONSTANT = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthAdjusted:
    """Average ranks with and without the part that length explains.

    Parameters
    ----------
    average, adjusted : float64 arrays of shape (k,)
        Both sum to k(k + 1)/2; an adjusted average may leave [1, k].
    slope : float
        Ranks per unit of ln(length); negative when longer versions rank higher.
    """

    average: FloatArray = field(repr=False)
    adjusted: FloatArray = field(repr=False)
    slope: float


def length_adjusted(
    ranks: npt.NDArray[np.floating[Any]], lengths: npt.NDArray[Any]
) -> LengthAdjusted:
    """Average rank of each style at the mean log length of all versions of a document.

    Parameters
    ----------
    ranks : float array of shape (n, k)
    lengths : number array of shape (n, k)
        Length of each version, such as words; positive.

    Raises
    ------
    DataError
        If shapes disagree or a length is not positive and finite.
    InsufficientDataError
        If lengths do not vary within styles, so that length and style cannot be told apart.
    """
    means = length_columns(ranks, lengths).mean(axis=0)
    k = ranks.shape[1]
    if _spread(means, k) < _CONSTANT:
        raise InsufficientDataError(
            f"over {len(ranks)} queries every style keeps its length relative to the other "
            "versions, so length and style cannot be told apart; more queries are needed",
            n=len(ranks),
        )
    return LengthAdjusted(
        average=means[:k],
        adjusted=adjusted_from_means(means),
        slope=float(_slope(means, k)),
    )


def length_columns(ranks: npt.NDArray[np.floating[Any]], lengths: npt.NDArray[Any]) -> FloatArray:
    """Per-query terms whose means determine the adjusted ranks, to resample queries by.

    Returns
    -------
    float64 array of shape (n, 2k + 2)
        Ranks, centred log lengths x, Σ x·rank and Σ x².
    """
    r, size = np.asarray(ranks, dtype=np.float64), np.asarray(lengths, dtype=np.float64)
    if r.ndim != 2 or r.shape != size.shape or not len(r):
        raise DataError(
            f"ranks have shape {r.shape} and lengths {size.shape}; both must be (queries, styles)"
        )
    bad = np.argwhere(~(np.isfinite(size) & (size > 0)))
    if len(bad):
        row, column = bad[0]
        raise DataError(
            f"length {size[row, column]:g} in row {row}, column {column}; lengths must be positive "
            "(leave out queries with an empty version)"
        )
    require_finite(r, "ranks", remedy="leave out queries that lack a version")
    x = np.log(size)
    x -= x.mean(axis=1, keepdims=True)
    return np.column_stack((r, x, (x * r).sum(axis=1), (x * x).sum(axis=1)))


def adjusted_from_means(means: FloatArray) -> FloatArray:
    """Adjusted average ranks from means of :func:`length_columns`.

    Parameters
    ----------
    means : float64 array of shape (..., 2k + 2)
        Such as resampled means. Where lengths do not vary within styles nothing is adjusted.

    Returns
    -------
    float64 array of shape (..., k)
    """
    k = means.shape[-1] // 2 - 1
    adjusted: FloatArray = means[..., :k] - _slope(means, k)[..., None] * means[..., k : 2 * k]
    return adjusted


def _spread(means: FloatArray, k: int) -> FloatArray:
    """Mean over queries of Σ (x − x̄ of its style)²."""
    x = means[..., k : 2 * k]
    return np.asarray(means[..., -1] - np.sum(x * x, axis=-1), dtype=np.float64)


def _slope(means: FloatArray, k: int) -> FloatArray:
    spread = _spread(means, k)
    shared = means[..., -2] - np.sum(means[..., :k] * means[..., k : 2 * k], axis=-1)
    slope: FloatArray = np.divide(
        shared, spread, out=np.zeros_like(spread), where=spread >= _CONSTANT
    )
    return slope
