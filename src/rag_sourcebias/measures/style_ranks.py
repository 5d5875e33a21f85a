"""Ranks of the versions of one document among themselves ([W] Eq. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.style_checks import (
    Missing,
    complete_queries,
    query_names,
    unique_names,
)
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["StyleRanks", "TieRank", "rank_versions", "style_ranks"]

TieRank = Literal["average", "min", "max"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StyleRanks:
    """Ranks of every style for every query; 1 is most similar to the query.

    Parameters
    ----------
    query_ids : tuple of str, length n
    styles : tuple of str, length k
    ranks : float64 array of shape (n, k)
        In [1, k]; with tied ranks averaged each row sums to k(k + 1)/2.
    dropped : tuple of str
        Queries left out because a version was missing.
    """

    query_ids: tuple[str, ...]
    styles: tuple[str, ...]
    ranks: FloatArray = field(repr=False)
    dropped: tuple[str, ...] = ()

    @property
    def average(self) -> FloatArray:
        """Average rank per style, shape (k,) ([W] Eq. 2)."""
        means: FloatArray = self.ranks.mean(axis=0)
        return means


def rank_versions(
    scores: npt.NDArray[np.floating[Any]], *, ties: TieRank = "average"
) -> FloatArray:
    """Rank along the last axis, highest score first.

    Parameters
    ----------
    scores : float array of shape (..., k)
        Finite. Compared in single precision, as scores of a run are: scores that differ by less
        than float32 resolves are tied.
    ties : {"average", "min", "max"}
        Rank of tied scores: the mean, the best or the worst of the ranks they share.

    Returns
    -------
    float64 array of the same shape
        In [1, k].

    Examples
    --------
    >>> rank_versions(np.array([0.9, 0.5, 0.9, 0.1])).tolist()
    [1.5, 3.0, 1.5, 4.0]
    """
    if ties not in ("average", "min", "max"):
        raise DataError(f"unknown tie rank {ties!r}; there are 'average', 'min' and 'max'")
    if not np.ndim(scores):
        raise DataError(f"scores {scores!r} are one number; give one per version")
    with np.errstate(over="ignore"):
        values = np.asarray(scores, dtype=np.float32)
    if not np.all(np.isfinite(values)):
        raise DataError("scores hold NaN, infinity or a number beyond single precision")
    # A version counts itself among its equals, hence the start value.
    share = {"average": 0.5, "min": 0.0, "max": 1.0}[ties]
    ranks = np.full(values.shape, 1.0 - share)
    # One version at a time: k passes over (..., k) instead of an array of shape (..., k, k).
    for j in range(values.shape[-1]):
        other = values[..., j : j + 1]
        ranks += other > values
        if share:
            ranks += share * (other == values)
    return ranks


def style_ranks(
    scores: npt.NDArray[np.floating[Any]],
    *,
    styles: Sequence[str],
    query_ids: Sequence[str] | None = None,
    ties: TieRank = "average",
    missing: Missing = "refuse",
) -> StyleRanks:
    """Rank the versions of one document for each query ([W] Eq. 1).

    Parameters
    ----------
    scores : float array of shape (n, k)
        Similarity of query i to the version of its document in style j, higher is more similar.
        NaN marks a version that does not exist.
    styles : sequence of str, length k
        Such as ``"human"``, ``"0"`` … ``"8"``; each once.
    query_ids : sequence of str, length n, optional
        Numbers from 0 by default.
    ties : {"average", "min", "max"}
    missing : {"refuse", "balanced"}
        What to do with queries that lack a version: raise, or leave them out and list them in
        :attr:`StyleRanks.dropped`. Ranks among fewer versions are never mixed in: they are not
        comparable.

    Raises
    ------
    DataError
        If a name occurs twice, shapes disagree, there are fewer than 2 styles, a score is
        infinite, or a version is missing and ``missing="refuse"``.
    InsufficientDataError
        If no query has every version.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(styles):
        raise DataError(
            f"scores have shape {values.shape}; expected one row per query and one column for "
            f"each of {len(styles)} styles"
        )
    ids = query_names(query_ids, len(values))
    names = unique_names(styles, "style", at_least=2)
    keep = complete_queries(values[:, None, :], ids, (None,), names, missing=missing)
    return StyleRanks(
        query_ids=tuple(q for q, kept in zip(ids, keep, strict=True) if kept),
        styles=names,
        ranks=rank_versions(values[keep], ties=ties),
        dropped=tuple(q for q, kept in zip(ids, keep, strict=True) if not kept),
    )
