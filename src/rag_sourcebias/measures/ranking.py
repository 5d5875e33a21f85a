"""NDCG, MAP, MRR, P and Recall per query and per group of documents, tie-aware.

With ``ties="expected"`` a measure is its mean over all orders of tied documents (McSherry &
Najork, ECIR 2008), so it does not depend on document ids. With ``ties="trec"`` the values are
trec_eval's. All groups are scored in one pass over the relevant entries of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.judged import Hits, Ties, join
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels
from rag_sourcebias.types.reports import SourceScores

__all__ = [
    "MEASURES",
    "Cells",
    "Gain",
    "discounts",
    "group_scores",
    "harmonic_sums",
    "ranks_within",
    "score_run",
]

MEASURES = ("NDCG", "MAP", "MRR", "P", "Recall")
"""Names of the ranking measures; a cell of a report adds the cutoff, as in ``"NDCG@5"``."""

Gain = Literal["linear", "exponential"]


def score_run(
    run: Run,
    qrels: Qrels,
    *,
    measures: Sequence[str] = ("NDCG", "MAP"),
    cutoffs: Sequence[int] = (1, 3, 5),
    ties: Ties = "expected",
    gain: Gain = "linear",
) -> SourceScores:
    """Score a run per query, all documents taken together.

    Parameters
    ----------
    measures : sequence of str
        Out of ``"NDCG"``, ``"MAP"`` (trec_eval ``map_cut``: divided by all relevant documents),
        ``"MRR"``, ``"P"``, ``"Recall"``.
    cutoffs : sequence of int
    ties : {"expected", "trec"}
    gain : {"linear", "exponential"}
        NDCG gain of grade r: r (trec_eval), or 2^r − 1.

    Returns
    -------
    SourceScores
        One source named ``"all"``; every query of the qrels counts, also one without results.

    Examples
    --------
    >>> run = Run.from_dict({"q": {"a": 2.0, "b": 1.0}})
    >>> qrels = Qrels.from_dict({"q": {"b": 1}})
    >>> float(score_run(run, qrels, measures=["MRR"], cutoffs=[5]).values[0, 0, 0])
    0.5
    """
    groups = np.zeros(len(qrels.doc_ids), dtype=np.int64)
    return group_scores(
        run,
        qrels,
        groups,
        ("all",),
        measures=measures,
        cutoffs=cutoffs,
        ties=ties,
        gain=gain,
    )


def group_scores(
    run: Run,
    qrels: Qrels,
    groups: IntArray,
    names: tuple[str, ...],
    *,
    measures: Sequence[str] = ("NDCG", "MAP"),
    cutoffs: Sequence[int] = (1, 3, 5),
    ties: Ties = "expected",
    gain: Gain = "linear",
) -> SourceScores:
    """Score a run once per group: other groups keep their ranks but are not relevant.

    Parameters
    ----------
    groups : int64 array of shape (len(qrels.doc_ids),)
        Group of each judged document, -1 for none.
    names : tuple of str
        Group names; code i of ``groups`` is ``names[i]``.
    """
    for measure in measures:
        if measure not in MEASURES:
            raise DataError(f"unknown measure {measure!r}; there are {list(MEASURES)}")
    if not cutoffs or min(cutoffs) < 1:
        raise DataError(f"cutoffs {list(cutoffs)} must be one or more numbers of at least 1")
    hits = join(run, qrels, ties=ties)
    cells = Cells.build(hits, qrels, groups, n_groups=len(names))
    rows = [cells.score(measure, k, gain=gain) for measure in measures for k in cutoffs]
    shape = (len(rows), len(qrels.query_ids), len(names))
    return SourceScores(
        query_ids=qrels.query_ids,
        sources=names,
        measures=tuple(f"{measure}@{k}" for measure in measures for k in cutoffs),
        values=np.ascontiguousarray(np.array(rows).reshape(shape).transpose(0, 2, 1)),
        n_relevant=np.ascontiguousarray(cells.n_relevant.reshape(shape[1:]).T.astype(np.int32)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Hits sorted by cell, a cell being one (query, group); arrays have one entry per hit.

    ``hit`` is an entry's index among the joined hits, ``tied`` counts the hits of the same cell in
    the same tie block, ``before`` those in earlier blocks.
    """

    n_cells: int
    hit: IntArray
    cell: IntArray
    grade: IntArray
    start: IntArray
    stop: IntArray
    tied: IntArray
    before: IntArray
    n_relevant: IntArray
    ideal_cell: IntArray
    ideal_grade: IntArray
    ideal_place: IntArray

    @classmethod
    def build(cls, hits: Hits, qrels: Qrels, groups: IntArray, *, n_groups: int) -> Cells:
        """Sort hits by query and group, and count what is relevant in each."""
        n_cells = len(qrels.query_ids) * n_groups
        group = groups[hits.doc]
        kept = np.flatnonzero(group >= 0)
        cell = hits.query[kept] * n_groups + group[kept]
        order = np.argsort(cell, kind="stable")
        kept, cell = kept[order], cell[order]
        start, stop = hits.start[kept], hits.stop[kept]
        place = np.arange(len(cell))
        first_of_cell = _first(cell)
        if np.all(stop - start == 1):
            tied, before = np.ones_like(place), place - first_of_cell
        else:
            opens = np.ones(len(cell), dtype=bool)
            opens[1:] = (cell[1:] != cell[:-1]) | (start[1:] != start[:-1])
            bounds = np.append(np.flatnonzero(opens), len(cell))
            block = np.cumsum(opens) - 1
            tied = np.diff(bounds)[block]
            before = bounds[block] - first_of_cell
        relevant = np.flatnonzero((qrels.grades > 0) & (groups[qrels.doc_codes] >= 0))
        ideal_cell = (
            qrels.query_codes[relevant].astype(np.int64) * n_groups
            + groups[qrels.doc_codes[relevant]]
        )
        best = np.lexsort((-qrels.grades[relevant], ideal_cell))
        ideal_cell = ideal_cell[best]
        return cls(
            n_cells=n_cells,
            hit=kept,
            cell=cell,
            grade=hits.grade[kept],
            start=start,
            stop=stop,
            tied=tied,
            before=before,
            n_relevant=np.bincount(ideal_cell, minlength=n_cells),
            ideal_cell=ideal_cell,
            ideal_grade=qrels.grades[relevant][best].astype(np.int64),
            ideal_place=np.arange(len(ideal_cell)) - _first(ideal_cell),
        )

    def score(self, measure: str, k: int, *, gain: Gain) -> FloatArray:
        """Return one value per cell."""
        return self.totals(self.terms(measure, k, gain=gain))

    def totals(self, terms: FloatArray) -> FloatArray:
        """Add up what hits contribute to their cells."""
        return np.bincount(self.cell, weights=terms, minlength=self.n_cells).astype(
            np.float64, copy=False
        )

    def terms(self, measure: str, k: int, *, gain: Gain) -> FloatArray:
        """Return what each hit contributes to the value of its cell."""
        if measure == "MRR":
            return self._reciprocal_rank(k)
        size = self.stop - self.start
        if measure == "NDCG":
            raw = _gain(self.grade, gain) * discounts(self.start, self.stop, k)
        elif measure == "MAP":
            raw = self._precision_terms(k)
        else:
            raw = ranks_within(self.start, self.stop, k) / size
        return raw / self.scale(measure, k, gain=gain)[self.cell]

    def scale(self, measure: str, k: int, *, gain: Gain) -> FloatArray:
        """Return what a measure's sum over hits is divided by, per cell; 1 where nothing scores."""
        if measure == "MRR":
            return np.ones(self.n_cells)
        if measure == "P":
            return np.full(self.n_cells, float(k))
        if measure != "NDCG":
            return np.maximum(self.n_relevant, 1).astype(np.float64)
        top = self.ideal_place < k
        ideal = np.bincount(
            self.ideal_cell[top],
            weights=_gain(self.ideal_grade[top], gain) / np.log2(self.ideal_place[top] + 2),
            minlength=self.n_cells,
        )
        return np.where(ideal > 0, ideal, 1.0)

    def _precision_terms(self, k: int) -> FloatArray:
        """Expected precision at each hit's rank, 0 beyond the cutoff.

        A hit is equally likely on each rank i of its block; on rank i it has, in expectation,
        ``before + (i - start - 1)(tied - 1)/(size - 1)`` hits above it.
        """
        size = self.stop - self.start
        slope = (self.tied - 1) / np.maximum(size - 1, 1)
        at_start = self.before + 1 - (self.start + 1) * slope
        terms: FloatArray = (
            at_start * harmonic_sums(self.start, self.stop, k)
            + slope * ranks_within(self.start, self.stop, k)
        ) / size
        return terms

    def _reciprocal_rank(self, k: int) -> FloatArray:
        """Expected reciprocal rank of the first hit of each cell, as a term of that hit."""
        first = np.flatnonzero(self.before == 0)
        _, one = np.unique(self.cell[first], return_index=True)
        first = first[one]
        start, tied = self.start[first], self.tied[first]
        size = self.stop[first] - start
        chance = tied / size  # that the first hit stands on rank start + 1
        value = np.zeros(len(first))
        for step in range(1, int(np.max(size - tied, initial=0)) + 2):
            rank = start + step
            value += np.where(rank <= k, chance / rank, 0.0)
            chance = np.where(
                size > step, chance * (size - step - tied + 1) / np.maximum(size - step, 1), 0.0
            )
        terms = np.zeros(len(self.cell))
        terms[first] = value
        return terms


def ranks_within(start: IntArray, stop: IntArray, k: int) -> IntArray:
    """Count the ranks of tie blocks that lie within the cutoff."""
    return np.minimum(stop, k) - np.minimum(start, k)


def discounts(start: IntArray, stop: IntArray, k: int) -> FloatArray:
    """Return the expected discount 1/log2(rank + 1) within the cutoff of a hit in each block."""
    total = np.concatenate(([0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))))
    spread: FloatArray = (total[np.minimum(stop, k)] - total[np.minimum(start, k)]) / (stop - start)
    return spread


def harmonic_sums(start: IntArray, stop: IntArray, k: int) -> FloatArray:
    """Sum 1/rank over the ranks of tie blocks within the cutoff."""
    total = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, k + 1))))
    spread: FloatArray = total[np.minimum(stop, k)] - total[np.minimum(start, k)]
    return spread


def _first(cell: IntArray) -> IntArray:
    """Place of the first entry of each entry's cell, in sorted cells."""
    place = np.arange(len(cell))
    place[1:][cell[1:] == cell[:-1]] = 0
    first: IntArray = np.maximum.accumulate(place)
    return first


def _gain(grade: IntArray, gain: Gain) -> FloatArray:
    if gain == "exponential":
        return np.exp2(grade) - 1
    return grade.astype(np.float64)
