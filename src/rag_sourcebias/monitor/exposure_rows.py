"""Many retrievals at once: share of the ranks of each group, and whose document came first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.monitor import RANK_LIMITS

__all__ = ["ExposureRows", "exposure_rows"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExposureRows:
    """One row per retrieval, n of them, one column per group.

    Parameters
    ----------
    documents : int64 array of shape (n, width)
        Documents shown.
    weights : float64 array of shape (n, width)
        Sum of the weights of their ranks.
    share : float64 array of shape (n, width)
        ``weights`` over their sum; 0 where nothing was retrieved.
    first : float64 array of shape (n, width)
        1 for the group of the document at rank 1.
    pool : float64 array of shape (n, width)
        Share of all documents of the event, shown or not.
    shown : int64 array of shape (n,)
        Documents shown.
    ranks : int64 array of shape (width, len(RANK_LIMITS))
        Documents shown at ranks up to each limit, over all rows.
    """

    documents: IntArray
    weights: FloatArray
    share: FloatArray
    first: FloatArray
    pool: FloatArray
    shown: IntArray
    ranks: IntArray


def exposure_rows(
    codes: Sequence[int],
    lengths: Sequence[int],
    *,
    width: int,
    attention: FloatArray,
    shown: int | None = None,
) -> ExposureRows:
    """Count a batch of retrievals; a row does not depend on the others.

    Parameters
    ----------
    codes : sequence of int
        Column of each document, retrieval after retrieval, best document first.
    lengths : sequence of int
        Documents of each retrieval.
    width : int
    attention : float64 array
        Weight of each rank, for at least the longest retrieval; not 0 at rank 1.
    shown : int or None
        Documents that are shown; None for all. Further ones are in the pool only.
    """
    column, length = np.asarray(codes, np.int64), np.asarray(lengths, np.int64)
    n = len(length)
    row = np.repeat(np.arange(n), length)
    start = np.concatenate([[0], np.cumsum(length)])[:-1]
    rank = np.arange(len(column)) - start[row]  # from 0
    cell = row * width + column

    def table(keep: npt.NDArray[np.bool_], weight: FloatArray | None = None) -> npt.NDArray[Any]:
        found = np.bincount(
            cell[keep], None if weight is None else weight[keep], minlength=n * width
        )
        return np.asarray(found.reshape(n, width))

    visible = rank < (len(column) if shown is None else shown)
    weights = table(visible, attention[rank])
    n_shown = length if shown is None else np.minimum(length, shown)
    whole = np.concatenate([[1.0], np.cumsum(attention)])[n_shown]
    pool = table(np.ones(len(cell), np.bool_)) / np.maximum(length, 1)[:, None]
    return ExposureRows(
        documents=table(visible),
        weights=weights,
        share=np.minimum(weights / whole[:, None], 1.0),  # rounding may leave [0, 1]
        first=table(rank == 0).astype(np.float64),
        pool=pool,
        shown=n_shown,
        ranks=_ranks(column[visible], rank[visible] + 1, width),
    )


def _ranks(column: IntArray, rank: IntArray, width: int) -> IntArray:
    """Count documents of each column at ranks up to each limit."""
    limits = len(RANK_LIMITS)
    bucket = np.searchsorted(RANK_LIMITS, rank)  # the last one is of ranks beyond all limits
    table = np.bincount(column * (limits + 1) + bucket, minlength=width * (limits + 1))
    return np.asarray(table.reshape(width, limits + 1)[:, :limits].cumsum(axis=1))
