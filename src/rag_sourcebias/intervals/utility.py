"""From label distributions to per-query utilities ([R] Eq. 1 and 5).

A linear utility of a query is Σ ω(rank) Σ_r P(r) gain(r) over its ranked documents; DCG and
precision are of this form. It is summed here; measures whose denominator depends on the labels
(NDCG, MAP, MRR) are in :mod:`rag_sourcebias.intervals.plugin`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import FloatArray, IntArray

__all__ = ["RankedLabels", "dcg_weights", "precision_weights"]


def dcg_weights(ranks: npt.NDArray[np.integer[Any]], cutoff: int) -> FloatArray:
    """ω of DCG@k: 1 / log2(rank + 1) through the cutoff, then 0; ranks start at 1."""
    return np.where(ranks <= cutoff, 1.0 / np.log2(ranks + 1.0), 0.0)


def precision_weights(ranks: npt.NDArray[np.integer[Any]], cutoff: int) -> FloatArray:
    """ω of P@k: 1/k through the cutoff, then 0; ranks start at 1."""
    return np.where(ranks <= cutoff, 1.0 / cutoff, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedLabels:
    """Label distributions of ranked documents with the weight of each document.

    Parameters
    ----------
    probs : float64 array of shape (m, L)
        Rows sum to 1; column r is the probability of grade r.
    weights : float64 array of shape (m,)
        ω of each document's rank; at least 0.
    query : int64 array of shape (m,)
        Index of the query of each document, not decreasing.
    n_queries : int
        Queries without a document have utility 0.
    gains : float64 array of shape (L,)
        Gain of each grade, not decreasing. [R] uses 2^r − 1.
    gain_of_mean : bool
        False: the mean gain E[gain(r)] ([R] Eq. 5, the paper). True: the gain of the mean grade,
        2^E[r] − 1, as the authors' dataset code does.
    """

    probs: FloatArray
    weights: FloatArray
    query: IntArray
    n_queries: int
    gains: FloatArray
    gain_of_mean: bool = False

    def __post_init__(self) -> None:
        m, n_grades = self.probs.shape
        if not self.weights.shape == self.query.shape == (m,):
            raise DataError("probs, weights and query differ in length")
        if self.gains.shape != (n_grades,):
            raise DataError(f"{len(self.gains)} gains for {n_grades} grades")
        if np.any(np.diff(self.gains) < 0):
            raise DataError(f"gains {self.gains.tolist()} decrease; a higher grade gains no less")
        if np.any(self.weights < 0):
            raise DataError("document weights may not be negative")
        if m and (np.any(np.diff(self.query) < 0) or self.query[0] < 0):
            raise DataError("documents must be grouped by query, in the order of the queries")
        if m and int(self.query[-1]) >= self.n_queries:
            raise DataError(f"query index {int(self.query[-1])} with {self.n_queries} queries")

    @classmethod
    def from_grid(
        cls,
        probs: FloatArray,
        weights: FloatArray,
        gains: FloatArray,
        *,
        gain_of_mean: bool = False,
    ) -> RankedLabels:
        """Build from ``probs`` of shape (queries, documents, L) and ``weights`` (documents,)."""
        n_queries, n_docs, n_grades = probs.shape
        return cls(
            probs=probs.reshape(-1, n_grades),
            weights=np.tile(weights, n_queries),
            query=np.repeat(np.arange(n_queries), n_docs),
            n_queries=n_queries,
            gains=gains,
            gain_of_mean=gain_of_mean,
        )

    def utilities(self) -> FloatArray:
        """Return the utility of every query; shape (n_queries,)."""
        return self.total(self.document_gains())

    def document_gains(self) -> FloatArray:
        """Return the gain expected of every document; shape (m,)."""
        if not self.gain_of_mean:
            return self.probs @ self.gains
        return np.exp2(self.probs @ np.arange(self.probs.shape[1], dtype=np.float64)) - 1.0

    def total(self, gains: FloatArray) -> FloatArray:
        """Sum ω · gain within each query; ``gains`` of shape (m,)."""
        sums = np.bincount(self.query, weights=self.weights * gains, minlength=self.n_queries)
        return sums.astype(np.float64, copy=False)  # of no documents at all numpy counts integers

    def take(self, queries: npt.NDArray[np.integer[Any]]) -> RankedLabels:
        """Return the queries asked for, in that order; a query may occur several times."""
        starts = np.searchsorted(self.query, np.arange(self.n_queries + 1))
        sizes = np.diff(starts)[queries]
        offsets = np.cumsum(sizes) - sizes
        rows = np.repeat(starts[queries] - offsets, sizes) + np.arange(int(sizes.sum()))
        return replace(
            self,
            probs=self.probs[rows],
            weights=self.weights[rows],
            query=np.repeat(np.arange(len(queries)), sizes),
            n_queries=len(queries),
        )
