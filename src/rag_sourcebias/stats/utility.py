"""Per-query values of a ranking from label distributions, human or judged."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray, IntArray
from rag_sourcebias.core.data import LabelDistributions, Run
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.stats.ranking import rank_of_labels

# From label distributions to per-query utilities ([R] Eq. 1 and 5).
# A linear utility of a query is Σ ω(rank) Σ_r P(r) gain(r) over its ranked documents; DCG and
# precision are of this form. It is summed here; measures whose denominator depends on the labels
# (NDCG, MAP, MRR) are in :mod:`rag_sourcebias.intervals.plugin`.


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


# Per-query values of a ranking from label distributions, human or judged.
# DCG and precision are sums over documents. NDCG, MAP, MRR and recall are not: their denominator
# or their terms depend on several labels. They are plugged in with the expected gains or the
# probabilities of relevance, so labels of the whole judged pool are a precondition; whatever error
# this makes, the human labels of the regression on the judge correct. With all probability on one
# grade every value is exactly the ordinary measure.


GainScale = Literal["exponential", "linear"]
_LINEAR = ("DCG", "P")
_MEASURES = (*_LINEAR, "NDCG", "MAP", "MRR", "Recall")


def parse_measure(text: str) -> tuple[str, int]:
    """Split ``"NDCG@10"`` into name and cutoff."""
    match = re.fullmatch(r"([A-Za-z]+)@([1-9][0-9]*)", text.strip())
    names = {name.lower(): name for name in _MEASURES}
    if match is None or match[1].lower() not in names:
        raise DataError(
            f"measure {text!r} is not one of {', '.join(f'{m}@k' for m in _MEASURES)}, such as "
            "NDCG@10"
        )
    return names[match[1].lower()], int(match[2])


def measure_bounds(measure: str) -> tuple[float, float] | None:
    """Range of a measure; None for DCG, which has no upper end."""
    return None if parse_measure(measure)[0] == "DCG" else (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedRanking:
    """A run beside the label distributions of its documents.

    Build with :meth:`join`. Rows are label rows; only queries with labels count, and a query of
    the labels that the run does not answer has value 0.

    Parameters
    ----------
    labels : LabelDistributions
    rank : int64 array of shape (m,)
        Rank of each labelled pair in the run, 0 when it was not retrieved.
    n_retrieved : int64 array of shape (n_queries,)
        Documents retrieved for each query.
    """

    labels: LabelDistributions
    rank: IntArray
    n_retrieved: IntArray

    @classmethod
    def join(cls, run: Run, labels: LabelDistributions) -> JudgedRanking:
        """Find the rank of every labelled pair; ranks follow the order of the run.

        Raises
        ------
        DataError
            If no query of the labels is in the run.
        """
        rank, retrieved = rank_of_labels(
            run, labels.query_ids, labels.doc_ids, labels.query_codes, labels.doc_codes
        )
        if not retrieved.any():
            raise DataError(
                f"none of the {len(labels.query_ids)} labelled queries is in run {run.name!r} "
                f"(first labelled query {labels.query_ids[0]!r}, first of the run "
                f"{run.query_ids[0] if run.query_ids else None!r}); query ids must be the same"
            )
        return cls(labels=labels, rank=rank, n_retrieved=retrieved)

    def unjudged(self, cutoff: int) -> IntArray:
        """Retrieved documents without a label within the cutoff; shape (n_queries,)."""
        inside = (self.rank > 0) & (self.rank <= cutoff)
        found = np.bincount(self.labels.query_codes[inside], minlength=len(self.labels.query_ids))
        missing: IntArray = np.minimum(self.n_retrieved, cutoff) - found
        return missing

    def ranked_labels(
        self, measure: str, *, gain: GainScale = "exponential", min_grade: int = 1
    ) -> RankedLabels:
        """Return the documents within the cutoff, for DCG@k or P@k; gain as in :meth:`values`."""
        name, cutoff = parse_measure(measure)
        if name not in _LINEAR:
            raise DataError(
                f"{measure} is not a weighted sum of gains; conformal and document-level intervals "
                "are for DCG@k and P@k"
            )
        rows = np.flatnonzero((self.rank > 0) & (self.rank <= cutoff))
        rows = rows[np.lexsort((self.rank[rows], self.labels.query_codes[rows]))]
        weigh = dcg_weights if name == "DCG" else precision_weights
        gains = (
            _gains(self.labels.n_grades, gain)
            if name == "DCG"
            else (np.arange(self.labels.n_grades) >= min_grade).astype(np.float64)
        )
        return RankedLabels(
            probs=self.labels.probs[rows],
            weights=weigh(self.rank[rows], cutoff),
            query=self.labels.query_codes[rows].astype(np.int64),
            n_queries=len(self.labels.query_ids),
            gains=gains,
        )

    def values(
        self,
        measure: str,
        *,
        gain: GainScale = "exponential",
        min_grade: int = 1,
        counted: npt.NDArray[np.bool_] | None = None,
    ) -> FloatArray:
        """Return one value per query of the labels; shape (n_queries,).

        Parameters
        ----------
        measure : str
            ``DCG@k``, ``NDCG@k``, ``P@k``, ``MAP@k`` (divided by all relevant documents, as
            trec_eval's map_cut), ``MRR@k`` or ``Recall@k``.
        gain : {"exponential", "linear"}
            Gain of grade r for DCG and NDCG: 2^r − 1 ([R]) or r (trec_eval).
        min_grade : int
            Lowest relevant grade of the other measures.
        counted : bool array of shape (m,), optional
            Label rows that may be relevant; the others keep their ranks but gain nothing ([K]'s
            per-source scores).
        """
        name, cutoff = parse_measure(measure)
        probs = self.labels.probs
        worth = (
            probs @ _gains(self.labels.n_grades, gain)
            if name in ("DCG", "NDCG")
            else probs[:, min_grade:].sum(axis=1)
        )
        if counted is not None:
            worth = np.where(counted, worth, 0.0)
        grid = self._grid(worth, cutoff)
        ranks = np.arange(1, cutoff + 1)
        if name in ("DCG", "NDCG"):
            total = grid @ dcg_weights(ranks, cutoff)
            return total if name == "DCG" else _ratio(total, self._ideal(worth, cutoff))
        if name == "P":
            return np.asarray(grid.sum(axis=1) / cutoff)
        if name == "MRR":
            none_before = np.cumprod(1 - grid, axis=1)
            none_before = np.concatenate([np.ones((len(grid), 1)), none_before[:, :-1]], axis=1)
            return np.asarray((grid * none_before) @ (1 / ranks))
        relevant = _sums(self.labels.query_codes, worth, len(grid))
        if name == "Recall":
            return _ratio(grid.sum(axis=1), relevant)
        before = np.cumsum(grid, axis=1) - grid
        return _ratio((grid * (1 + before)) @ (1 / ranks), relevant)

    def _grid(self, worth: FloatArray, cutoff: int) -> FloatArray:
        """Worth by query and rank; 0 where nothing labelled was retrieved."""
        grid = np.zeros((len(self.labels.query_ids), cutoff))
        rows = np.flatnonzero((self.rank > 0) & (self.rank <= cutoff))
        grid[self.labels.query_codes[rows], self.rank[rows] - 1] = worth[rows]
        return grid

    def _ideal(self, worth: FloatArray, cutoff: int) -> FloatArray:
        """DCG of all labelled documents of a query in the order of their worth."""
        codes = self.labels.query_codes
        order = np.lexsort((-worth, codes))
        sizes = np.bincount(codes, minlength=len(self.labels.query_ids))
        place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        weights = dcg_weights(place + 1, cutoff)
        return _sums(codes[order], worth[order] * weights, len(sizes))


def _gains(n_grades: int, gain: GainScale) -> FloatArray:
    grades = np.arange(n_grades, dtype=np.float64)
    if gain not in get_args(GainScale):
        raise DataError(f"gain {gain!r} is not one of {', '.join(get_args(GainScale))}")
    return np.exp2(grades) - 1 if gain == "exponential" else grades


def _sums(codes: npt.NDArray[np.int32], values: FloatArray, size: int) -> FloatArray:
    return np.bincount(codes, weights=values, minlength=size).astype(np.float64, copy=False)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
