"""Relevance and exposure per query and source: NDCG, MAP, MRR, P, Recall, chance, holes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import (
    BoolArray,
    FloatArray,
    IntArray,
    Qrels,
    Run,
    TagTable,
    places_of,
)
from rag_sourcebias.core.errors import DataError, MissingTagsError, SettingError, require_one_of

# Join a run with qrels once; every measure is then a sum over the relevant entries.


Ties = Literal["expected", "trec"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hits:
    """Relevant entries of a run, in the order of the run.

    A hit stands somewhere on the ranks ``start + 1 … stop``: one rank when its score is unique,
    the whole tie block otherwise.

    Parameters
    ----------
    query : int64 array of shape (h,)
        Index into ``qrels.query_ids``.
    doc : int64 array of shape (h,)
        Index into ``qrels.doc_ids``.
    grade : int64 array of shape (h,)
        At least 1.
    start, stop : int64 arrays of shape (h,)
    """

    query: IntArray
    doc: IntArray
    grade: IntArray
    start: IntArray
    stop: IntArray


# What was looked up by id, as long as both sides live: scoring takes a tenth of the time.
_LOOKED_UP: WeakKeyDictionary[Run | TagTable, WeakKeyDictionary[Qrels, dict[str, Any]]] = (
    WeakKeyDictionary()
)


def join(run: Run, qrels: Qrels, *, ties: Ties = "expected") -> Hits:
    """Find the relevant entries of a run, once for the same run and judgments.

    Parameters
    ----------
    ties : {"expected", "trec"}
        ``"expected"``: equal neighbouring scores share their ranks (McSherry & Najork 2008).
        ``"trec"``: score descending, then document id descending, as trec_eval does.
    """
    known = _LOOKED_UP.setdefault(run, WeakKeyDictionary()).setdefault(qrels, {})
    if ties not in known:
        known[ties] = _joined(trec_order(run) if ties == "trec" else run, qrels, ties)
    hits: Hits = known[ties]
    return hits


def _joined(run: Run, qrels: Qrels, ties: Ties) -> Hits:
    relevant = np.flatnonzero(qrels.grades > 0)
    doc = _judged_places(run.doc_ids, qrels)[run.doc_codes]
    judged = np.flatnonzero(doc >= 0)  # for some query
    query = places_of(run.query_ids, qrels.query_ids)[run.query_codes[judged]]
    doc = doc[judged]
    found, place = matched(query, doc, qrels.query_codes[relevant], qrels.doc_codes[relevant])
    start, stop = rank_span(run, judged[found], ties=ties)
    return Hits(
        query=query[found],
        doc=doc[found],
        grade=qrels.grades[relevant[place]].astype(np.int64),
        start=start,
        stop=stop,
    )


def matched(
    query: IntArray,
    doc: IntArray,
    of_query: npt.NDArray[np.integer[Any]],
    of_doc: npt.NDArray[np.integer[Any]],
) -> tuple[IntArray, IntArray]:
    """Return the entries whose (query, document) is among others, and the place of each there.

    Most are not; a hashed table of the others drops them without a search. Codes of -1 never are.
    """
    mask = (1 << min(max(16, (16 * len(of_doc)).bit_length()), 24)) - 1

    def slot(q: npt.NDArray[np.integer[Any]], d: npt.NDArray[np.integer[Any]]) -> IntArray:
        return (q.astype(np.int64) * 2_654_435_761 + d) & mask

    table = np.zeros(mask + 1, dtype=bool)
    table[slot(of_query, of_doc)] = True
    some = np.flatnonzero(table[slot(query, doc)])
    some = some[(query[some] >= 0) & (doc[some] >= 0)]

    n_docs = max(int(doc.max(initial=0)), int(of_doc.max(initial=0))) + 1
    wanted = of_query.astype(np.int64) * n_docs + of_doc
    order = np.argsort(wanted, kind="stable")
    wanted, key = wanted[order], query[some] * n_docs + doc[some]
    at = np.minimum(np.searchsorted(wanted, key), len(wanted) - 1)
    same = wanted[at] == key
    return some[same], order[at[same]]


# What was looked up last among the documents of judgments, by which two measures go.
_PLACES: WeakKeyDictionary[Qrels, tuple[tuple[str, ...], IntArray]] = WeakKeyDictionary()


def _judged_places(names: tuple[str, ...], qrels: Qrels) -> IntArray:
    """Return the place of each name among the judged documents, -1 where it is not there."""
    known = _PLACES.get(qrels)
    if known is None or known[0] != names:
        known = _PLACES[qrels] = names, places_of(names, qrels.doc_ids)
    return known[1]


def rank_span(
    run: Run, entries: npt.NDArray[np.integer[Any]], *, ties: Ties
) -> tuple[IntArray, IntArray]:
    """Return the ranks before and through which each entry's tie block reaches.

    ``start`` counts the entries ranked above the block, ``stop - start`` is its size.
    """
    first = run.offsets[run.query_codes[entries]]
    if run.scores is None or ties == "trec" or not len(entries):
        start = entries - first
        return start, start + 1
    opens = np.ones(len(run), dtype=bool)
    np.not_equal(run.scores[1:], run.scores[:-1], out=opens[1:])
    opens[run.offsets[:-1][np.diff(run.offsets) > 0]] = True
    bounds = np.append(np.flatnonzero(opens), len(run))
    block = np.searchsorted(bounds, entries, side="right") - 1
    return bounds[block] - first, bounds[block + 1] - first


def trec_order(run: Run) -> Run:
    """Reorder a run as trec_eval does: score descending, then document id descending."""
    if run.scores is None or not len(run):
        return run
    # Sorting UTF-8 bytes and sorting code points give the same order, so str order is strcmp's.
    place = np.empty(len(run.doc_ids), dtype=np.int64)
    descending = sorted(range(len(run.doc_ids)), key=run.doc_ids.__getitem__, reverse=True)
    place[descending] = np.arange(len(run.doc_ids))
    with np.errstate(over="ignore"):  # beyond float32 it is infinite there, as here
        scores = run.scores.astype(np.float32)  # trec_eval reads scores so, and has its ties
    order = np.lexsort((place[run.doc_codes], -scores, run.query_codes))
    return replace(run, doc_codes=run.doc_codes[order], scores=run.scores[order])


def rank_of_labels(
    run: Run,
    query_ids: tuple[str, ...],
    doc_ids: tuple[str, ...],
    query_codes: npt.NDArray[np.integer[Any]],
    doc_codes: npt.NDArray[np.integer[Any]],
) -> tuple[IntArray, IntArray]:
    """Find the rank of labelled pairs in the order of the run.

    Returns
    -------
    rank : int64 array of shape (m,)
        Starts at 1; 0 for a pair that was not retrieved.
    retrieved : int64 array of shape (len(query_ids),)
        Documents the run holds for each query.
    """
    sizes = np.diff(run.offsets)
    of_run = places_of(run.query_ids, query_ids)
    doc = places_of(run.doc_ids, doc_ids)[run.doc_codes]
    found, place = matched(np.repeat(of_run, sizes), doc, query_codes, doc_codes)
    rank = np.zeros(len(query_codes), dtype=np.int64)
    rank[place] = run.ranks[found]
    retrieved = np.zeros(len(query_ids), dtype=np.int64)
    retrieved[of_run[of_run >= 0]] = sizes[of_run >= 0]
    return rank, retrieved


# NDCG, MAP, MRR, P and Recall per query and per group of documents, tie-aware.
# With ``ties="expected"`` a measure is its mean over all orders of tied documents (McSherry &
# Najork, ECIR 2008), so it does not depend on document ids. With ``ties="trec"`` the values are
# trec_eval's. All groups are scored in one pass over the relevant entries of the run.


#: Names of the ranking measures; a cell of a report adds the cutoff, as in ``"NDCG@5"``.
MEASURES = ("NDCG", "MAP", "MRR", "P", "Recall")

Gain = Literal["linear", "exponential"]


def check_cutoffs(cutoffs: Sequence[int]) -> None:
    """Raise unless there are cutoffs, all of at least 1."""
    if min(cutoffs, default=0) < 1:
        raise SettingError("cutoffs", f"{cutoffs} must be one or more numbers of at least 1")


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
    return group_scores(
        run,
        qrels,
        np.zeros(len(qrels.doc_ids), dtype=np.int64),
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
        require_one_of("measures", measure, MEASURES)
    check_cutoffs(cutoffs)
    cells = Cells.build(join(run, qrels, ties=ties), qrels, groups, n_groups=len(names))
    rows = [cells.score(measure, k, gain=gain) for measure in measures for k in cutoffs]
    shape = (len(rows), len(qrels.query_ids), len(names))
    return SourceScores(
        query_ids=tuple(qrels.query_ids),
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
        bounds, block = _tie_blocks(cell, start)
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
            tied=np.diff(bounds)[block],
            before=bounds[block] - _first(cell),
            n_relevant=np.bincount(ideal_cell, minlength=n_cells),
            ideal_cell=ideal_cell,
            ideal_grade=qrels.grades[relevant][best].astype(np.int64),
            ideal_place=np.arange(len(ideal_cell)) - _first(ideal_cell),
        )

    def score(self, measure: str, k: int, *, gain: Gain) -> FloatArray:
        """Return one value per cell, the sum of what its hits contribute."""
        terms = self.terms(measure, k, gain=gain)
        total = np.bincount(self.cell, weights=terms, minlength=self.n_cells)
        return total.astype(np.float64, copy=False)

    def terms(self, measure: str, k: int, *, gain: Gain) -> FloatArray:
        """Return what each hit contributes to the value of its cell."""
        if measure == "MRR":
            return self._reciprocal_rank(k)
        if measure == "NDCG":
            raw = gains(self.grade, gain) * discounts(self.start, self.stop, k)
        elif measure == "MAP":
            raw = self._precision_terms(k)
        else:
            raw = ranks_within(self.start, self.stop, k) / (self.stop - self.start)
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
            weights=gains(self.ideal_grade[top], gain) / np.log2(self.ideal_place[top] + 2),
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
        total = at_start * harmonic_sums(self.start, self.stop, k)
        return np.asarray((total + slope * ranks_within(self.start, self.stop, k)) / size)

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
    return np.asarray((total[np.minimum(stop, k)] - total[np.minimum(start, k)]) / (stop - start))


def harmonic_sums(start: IntArray, stop: IntArray, k: int) -> FloatArray:
    """Sum 1/rank over the ranks of tie blocks within the cutoff."""
    total = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, k + 1))))
    return total[np.minimum(stop, k)] - total[np.minimum(start, k)]


def _tie_blocks(cell: IntArray, start: IntArray) -> tuple[IntArray, IntArray]:
    """Return where the tie blocks of sorted cells begin and end, and the block of each entry."""
    opens = np.ones(len(cell), dtype=bool)
    opens[1:] = (cell[1:] != cell[:-1]) | (start[1:] != start[:-1])
    return np.append(np.flatnonzero(opens), len(cell)), np.cumsum(opens) - 1


def _first(cell: IntArray) -> IntArray:
    """Place of the first entry of each entry's cell, in sorted cells."""
    place = np.arange(len(cell))
    place[1:][cell[1:] == cell[:-1]] = 0
    return np.maximum.accumulate(place)


def gains(grade: npt.NDArray[np.integer[Any]], gain: Gain) -> FloatArray:
    """Return the gain of each grade: itself, or 2^grade − 1."""
    return np.exp2(grade) - 1 if gain == "exponential" else grade.astype(np.float64)


# Source bias on a mixed corpus: per-source scores and Relative Δ ([K] §3.1).


def relative_delta(mean_baseline: float, mean_other: float) -> float | None:
    """Relative Δ in percent: (M_H − M_L) / ((M_H + M_L) / 2) · 100 ([K] §3.1).

    Parameters
    ----------
    mean_baseline, mean_other : float
        Aggregated measures (means over queries), at least 0, in any common scale.

    Returns
    -------
    float or None
        In [−200, 200], positive when the baseline is ranked higher; None when both are 0.

    Examples
    --------
    >>> round(relative_delta(22.0, 17.0), 1)
    25.6
    """
    if mean_baseline < 0 or mean_other < 0:
        raise DataError(f"measures {mean_baseline} and {mean_other} must be at least 0")
    total = mean_baseline + mean_other
    # in this order never beyond ±200
    return 200.0 * ((mean_baseline - mean_other) / total) if total else None


def source_codes_for(doc_ids: Sequence[str], tags: TagTable) -> npt.NDArray[np.int64]:
    """Source code of each document, -1 for untagged or unknown ones; shape (len(doc_ids),)."""
    if tags.by_id is not None:
        sources: list[Any] = list(map(tags.by_id.get, doc_ids))
        return places_of(sources, tags.sources)
    rows = tags.rows_for(doc_ids)
    found = np.where(rows >= 0, tags.source_codes[rows], -1) if len(tags) else rows
    return found.astype(np.int64, copy=False)


def stays(codes: npt.NDArray[np.integer[Any]], tags: TagTable, kept: Sequence[str]) -> BoolArray:
    """Whether documents with these source codes stay where some sources are kept: all untagged."""
    return (codes < 0) | np.isin(codes, [tags.sources.index(name) for name in kept])


def of_sources(tags: TagTable, kept: Sequence[str]) -> tuple[TagTable, IntArray]:
    """Return the documents of some sources, and those without one, with their rows."""
    names = tuple(name for name in tags.sources if name in kept)
    code_of = [names.index(name) if name in kept else -1 for name in tags.sources]
    rows = np.flatnonzero(stays(tags.source_codes, tags, kept))
    codes = np.array([*code_of, -1], dtype=np.int32)[tags.source_codes[rows]]
    return replace(tags.take(rows), sources=names, source_codes=codes), rows


def _source_codes_of(qrels: Qrels, tags: TagTable) -> IntArray:
    """Return the source code of each judged document, looked up once."""
    known = _LOOKED_UP.setdefault(tags, WeakKeyDictionary()).setdefault(qrels, {})
    if "sources" not in known:
        known["sources"] = source_codes_for(qrels.doc_ids, tags)
    codes: IntArray = known["sources"]
    return codes


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceScores:
    """Per-query measures on a mixed run, one target source at a time ([K] §3.1).

    Parameters
    ----------
    query_ids : tuple of str, length nq
    sources : tuple of str, length S
    measures : tuple of str, length M
        Names such as ``"NDCG@5"``.
    values : float64 array of shape (M, S, nq)
        In [0, 1]. A query without relevant documents of a source scores 0 there and counts.
    n_relevant : int32 array of shape (S, nq)
        Relevant documents of each source per query.
    """

    query_ids: tuple[str, ...]
    sources: tuple[str, ...]
    measures: tuple[str, ...]
    values: npt.NDArray[np.float64] = field(repr=False)
    n_relevant: npt.NDArray[np.int32] = field(repr=False)

    def of(self, measure: str, source: str) -> FloatArray:
        """Per-query values of one measure for one source, shape (nq,)."""
        for kind, name, known in (
            ("measure", measure, self.measures),
            ("source", source, self.sources),
        ):
            if name not in known:
                raise DataError(f"no {kind} {name!r} here; there are {list(known)}")
        return np.asarray(self.values[self.measures.index(measure), self.sources.index(source)])


def source_scores(
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    *,
    sources: Sequence[str] | None = None,
    measures: Sequence[str] = ("NDCG", "MAP"),
    cutoffs: Sequence[int] = (1, 3, 5),
    ties: Ties = "expected",
    gain: Gain = "linear",
) -> SourceScores:
    """Score a mixed run once per source ([K] §3.1).

    For each target source, documents of other sources count as not relevant but keep their
    ranks, and the ideal ranking holds relevant documents of the target only.

    Parameters
    ----------
    run : Run
        Retrieved once from the union of all sources.
    qrels : Qrels
        Judgments of documents of every source.
    tags : TagTable
        Documents that are not in it, or have no source, keep their ranks and belong to no source.
    sources : sequence of str, optional
        Sources to score; all of the table by default.

    Returns
    -------
    SourceScores

    Raises
    ------
    MissingTagsError
        If no document has a source tag.
    DataError
        If a source has no relevant document at all.
    """
    if not tags.sources:
        raise MissingTagsError(
            "no document has a source tag; give tags for at least two sources, "
            'such as "human" and "llm:<model>"'
        )
    names = tuple(sources) if sources is not None else tags.sources
    if unknown := [name for name in names if name not in tags.sources]:
        raise DataError(f"no document has source {unknown[0]!r}; sources are {list(tags.sources)}")
    recode = np.full(len(tags.sources) + 1, -1, dtype=np.int64)
    for code, name in enumerate(names):
        recode[tags.sources.index(name)] = code
    scores = group_scores(
        run,
        qrels,
        recode[_source_codes_of(qrels, tags)],
        names,
        measures=measures,
        cutoffs=cutoffs,
        ties=ties,
        gain=gain,
    )
    if not scores.n_relevant.any(axis=1).all():
        name = names[int(scores.n_relevant.any(axis=1).argmin())]
        raise DataError(
            f"source {name!r} has no relevant document in the qrels, so it cannot be scored; "
            "give judgments for its documents (copies take the grade of their original)"
        )
    return scores


# What a source-blind ranker would score: every measure's mean over permuted source labels.
# The ranks of a query's relevant documents stay, and the labels of the two sources are exchanged
# among them, within one grade: a ranker that puts better documents first is not biased. What a
# source gets beyond that mean is skew.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChanceScores:
    """Skew of two sources beyond chance, per query and per relevant document retrieved.

    Only queries with relevant documents of both sources count; the others hold 0.

    Parameters
    ----------
    measures : tuple of str, length M
    both : bool array of shape (nq,)
        Queries with relevant documents of both sources.
    largest : float64 array of shape (M,)
        Largest value that a query can have.
    query, doc : int64 arrays of shape (h,)
        Query and document (indices into the qrels) of each hit.
    skew_terms : float64 array of shape (M, h)
        What each hit adds to (m₁ − e₁) − (m₂ − e₂) of its query, m the measure of a source and e
        its mean over permuted labels.
    base_terms : float64 array of shape (M, h)
        What each hit adds to (e₁ + e₂)/2 of its query.
    """

    measures: tuple[str, ...]
    both: npt.NDArray[np.bool_]
    largest: FloatArray
    query: IntArray
    doc: IntArray
    skew_terms: FloatArray
    base_terms: FloatArray

    def skew(self) -> FloatArray:
        """(m₁ − e₁) − (m₂ − e₂) per query, shape (M, nq)."""
        return self._per_query(self.skew_terms)

    def base(self) -> FloatArray:
        """(e₁ + e₂)/2 per query, shape (M, nq)."""
        return self._per_query(self.base_terms)

    def _per_query(self, terms: FloatArray) -> FloatArray:
        n = len(self.both)
        sums = [np.bincount(self.query, weights=row, minlength=n) for row in terms]
        return np.stack(sums).astype(np.float64)  # of no hits bincount gives whole numbers


def chance_scores(
    hits: Hits,
    qrels: Qrels,
    groups: IntArray,
    *,
    measures: Sequence[str],
    cutoffs: Sequence[int],
    gain: Gain = "linear",
) -> ChanceScores:
    """Compare what two sources score with what they would score under permuted labels.

    Parameters
    ----------
    hits : Hits
        Of a run (:func:`join`); those beyond all cutoffs may be missing.
    groups : int64 array of shape (len(qrels.doc_ids),)
        0 for documents of the first source, 1 for those of the second, -1 for all others: they
        keep their ranks.
    """
    labels = _Labels.of(hits, qrels, groups)
    cells = Cells.build(hits, qrels, groups, n_groups=2)
    inside = labels.both[cells.cell // 2]
    sign = np.where(cells.cell % 2 == 0, 1.0, -1.0)
    place = np.zeros(len(hits.query), dtype=np.int64)
    place[labels.hit] = np.arange(len(labels.hit))
    pairs = list(product(measures, cutoffs))
    skew, base = [], []
    for measure, k in pairs:
        scale = cells.scale(measure, k, gain=gain).reshape(-1, 2).T
        by_chance = labels.expected(measure, k, gain=gain) / scale[:, labels.query]
        terms = by_chance[1] - by_chance[0]
        own = (sign * cells.terms(measure, k, gain=gain))[inside]
        np.add.at(terms, place[cells.hit[inside]], own)
        skew.append(terms)
        base.append(by_chance.mean(axis=0))
    most = int(labels.n.sum(axis=2).max(initial=0))
    return ChanceScores(
        measures=tuple(f"{measure}@{k}" for measure, k in pairs),
        both=labels.both,
        largest=np.array([min(most, k) / k if measure == "P" else 1.0 for measure, k in pairs]),
        query=labels.query,
        doc=hits.doc[labels.hit],
        skew_terms=np.array(skew),
        base_terms=np.array(base),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Labels:
    """Hits of the two sources in queries that have both, by query and rank.

    ``n`` of shape (2, nq, G) counts relevant documents per source, query and grade; ``share`` of
    shape (2, h) is the chance that a hit carries each label; ``before`` and ``tied`` of shape
    (G, h) count hits of each grade in earlier blocks and in the hit's own block.
    """

    both: npt.NDArray[np.bool_]
    hit: IntArray
    query: IntArray
    grade: IntArray
    level: IntArray
    start: IntArray
    stop: IntArray
    n: IntArray
    share: FloatArray
    before: IntArray
    tied: IntArray

    @classmethod
    def of(cls, hits: Hits, qrels: Qrels, groups: IntArray) -> _Labels:
        group = groups[qrels.doc_codes]
        relevant = (qrels.grades > 0) & (group >= 0)
        levels = np.unique(qrels.grades[relevant])
        n_queries, n_levels = len(qrels.query_ids), max(len(levels), 1)
        key = (group * n_queries + qrels.query_codes) * n_levels + np.searchsorted(
            levels, qrels.grades
        )
        n = np.bincount(key[relevant], minlength=2 * n_queries * n_levels).reshape(
            2, n_queries, n_levels
        )
        both = np.all(n.sum(axis=2) > 0, axis=0)
        hit = np.flatnonzero((groups[hits.doc] >= 0) & both[hits.query])
        # by query and rank: hits of one query lie together, but in the order of the run's queries
        hit = hit[np.lexsort((hits.start[hit], hits.query[hit]))]
        query, start = hits.query[hit], hits.start[hit]
        level = np.searchsorted(levels, hits.grade[hit])
        bounds, block = _tie_blocks(query, start)
        first = np.searchsorted(query, query)
        # hits of each grade up to every one, from none
        upto = np.cumsum(level == np.arange(n_levels)[:, None], axis=1)
        upto = np.pad(upto, ((0, 0), (1, 0)))
        opens = upto[:, bounds[block]]
        of_level = n[:, query, level]
        return cls(
            both=both,
            hit=hit,
            query=query,
            grade=hits.grade[hit],
            level=level,
            start=start,
            stop=hits.stop[hit],
            n=n,
            share=of_level / np.maximum(of_level.sum(axis=0), 1),
            before=opens - upto[:, first],
            tied=upto[:, bounds[block + 1]] - opens,
        )

    def expected(self, measure: str, k: int, *, gain: Gain) -> FloatArray:
        """Return each hit's expected, unscaled term per source; shape (2, h)."""
        if measure == "NDCG":
            return self.share * (gains(self.grade, gain) * discounts(self.start, self.stop, k))
        if measure == "MAP":
            return np.stack([self._precision(s, k) for s in (0, 1)])
        if measure == "MRR":
            return np.stack([self._first(s, k) for s in (0, 1)])
        return self.share * (ranks_within(self.start, self.stop, k) / (self.stop - self.start))

    def _precision(self, source: int, k: int) -> FloatArray:
        """Expected precision at each hit's rank where both it and what is above carry the label."""
        size = self.stop - self.start
        total = self.n.sum(axis=0)
        above, slope = np.zeros(len(self.hit)), np.zeros(len(self.hit))
        for g in range(len(self.before)):
            mine, every = self.n[source][self.query, g], total[self.query, g]
            same = self.level == g
            # of two documents of one grade the second carries the label less often
            joint = (mine - same) / np.maximum(every - same, 1)
            above += joint * self.before[g]
            slope += joint * (self.tied[g] - same)
        slope /= np.maximum(size - 1, 1)
        at_start = 1 + above - (self.start + 1) * slope
        total = at_start * harmonic_sums(self.start, self.stop, k)
        total += slope * ranks_within(self.start, self.stop, k)
        return np.asarray(self.share[source] * total / size)

    def _first(self, source: int, k: int) -> FloatArray:
        """Expected reciprocal rank of the first hit with the label, shared within tie blocks."""
        from scipy.special import gammaln

        mine, total = self.n[source][self.query].T, self.n.sum(axis=0)[self.query].T

        def none_among(count: IntArray) -> FloatArray:
            """Probability that none of ``count`` documents per grade carries the label."""
            left = total - count - mine
            chance = (
                gammaln(total - count + 1.0)
                - gammaln(np.maximum(left, 0) + 1.0)
                - gammaln(total + 1.0)
                + gammaln(total - mine + 1.0)
            )
            return np.where(np.any(left < 0, axis=0), 0.0, np.exp(chance.sum(axis=0)))

        here = none_among(self.before) - none_among(self.before + self.tied)
        terms = np.where(self.stop <= k, here / self.stop, 0.0)
        for i in np.flatnonzero(self.stop - self.start > 1):
            terms[i] = self._first_in_block(source, int(i), k) / self.tied[:, i].sum()
        return terms

    def _first_in_block(self, source: int, i: int, k: int) -> float:
        """Expected reciprocal rank where the first hit with the label lies in hit i's tie block."""
        from math import comb

        counts = np.ones(1)
        for g in range(len(self.before)):
            mine = int(self.n[source, self.query[i], g])
            total = int(self.n[:, self.query[i], g].sum())
            before, tied = int(self.before[g, i]), int(self.tied[g, i])
            after = total - before - tied
            ways = [
                comb(tied, j) * comb(after, mine - j) if j <= mine else 0 for j in range(tied + 1)
            ]
            counts = np.convolve(counts, np.array(ways, dtype=np.float64) / comb(total, mine))
        start, size = int(self.start[i]), int(self.stop[i] - self.start[i])
        value = 0.0
        for j, chance in enumerate(counts):
            if j and chance:
                value += chance * sum(
                    comb(size - p, j - 1) / comb(size, j) / (start + p)
                    for p in range(1, min(size - j + 1, k - start) + 1)
                )
        return value


# Exposure of each source without judgments: who gets the attention.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exposure:
    """Share of attention per source and query.

    Parameters
    ----------
    sources : tuple of str
        Sources of the table, then ``""`` for untagged documents.
    shares : float64 array of shape (len(sources), nq)
        Each column sums to 1; queries without results are left out.
    query_index : int64 array of shape (nq,)
        Index into ``run.query_ids``.
    """

    sources: tuple[str, ...]
    shares: FloatArray
    query_index: npt.NDArray[np.int64]


def attention_weights(browsing: str, depth: int) -> FloatArray:
    """Attention on ranks 1 … depth; shape (depth,).

    Parameters
    ----------
    browsing : str
        ``"top-<k>"`` (equal attention on the first k), ``"dcg"`` (1/log2(rank + 1)), or
        ``"rbp-<p>"`` (p^(rank − 1), a reader who goes on with probability p;
        Moffat & Zobel 2008).
    """
    rank = np.arange(1, depth + 1)
    if browsing == "dcg":
        return 1 / np.log2(rank + 1)
    if match := re.fullmatch(r"top-([1-9]\d*)", browsing):
        return (rank <= int(match[1])).astype(np.float64)
    if (match := re.fullmatch(r"rbp-(0?\.\d+)", browsing)) and 0 < float(match[1]) < 1:
        return np.power(float(match[1]), rank - 1)
    raise DataError(
        f"unknown browsing model {browsing!r}; use 'top-<k>', 'dcg' or 'rbp-<p>' with 0 < p < 1"
    )


def exposure(run: Run, tags: TagTable, *, browsing: str = "dcg") -> Exposure:
    """Share of attention each source receives, over all retrieved documents.

    Documents of a tie block share its attention equally.

    Parameters
    ----------
    run : Run
        Queries without results are left out.
    tags : TagTable
        Sources of the documents; those that are not in it count as untagged.
    browsing : str
        Attention on the ranks, see :func:`attention_weights`.
    """
    return exposures(run, tags, [browsing])[0]


def exposures(run: Run, tags: TagTable, browsings: Sequence[str]) -> list[Exposure]:
    """Return :func:`exposure` for each of several models of attention."""
    depth = int(np.diff(run.offsets).max(initial=0))
    start, stop = rank_span(run, np.arange(len(run)), ties="expected")
    n_groups = len(tags.sources) + 1
    group = source_codes_for(run.doc_ids, tags)[run.doc_codes]
    group[group < 0] = n_groups - 1
    cell = run.query_codes * n_groups + group
    answered = np.flatnonzero(np.diff(run.offsets) > 0)
    found = []
    for browsing in browsings:
        reach = np.concatenate(([0.0], np.cumsum(attention_weights(browsing, depth))))
        total = np.bincount(
            cell,
            weights=(reach[stop] - reach[start]) / (stop - start),
            minlength=len(run.query_ids) * n_groups,
        ).reshape(len(run.query_ids), n_groups)
        found.append(
            Exposure(
                sources=(*tags.sources, ""),
                shares=(total[answered] / total[answered].sum(axis=1, keepdims=True)).T,
                query_index=answered,
            )
        )
    return found


def awrf(found: Exposure, target: Mapping[str, float]) -> FloatArray:
    """Attention-weighted rank fairness per query, shape (nq,), in [0, 1]; 1 is proportional.

    1 minus the Jensen–Shannon divergence (base 2) between the exposure shares and the target
    shares (Sapiezynski et al. 2019; Raj & Ekstrand 2022).

    Parameters
    ----------
    target : mapping of str to float
        Wanted share per source of the exposure, summing to 1; missing sources have 0.
    """
    goal = np.array([target.get(name, 0.0) for name in found.sources])
    middle = (found.shares + goal[:, None]) / 2

    def divergence(p: FloatArray) -> FloatArray:
        ratio = np.divide(p, middle, out=np.ones_like(middle), where=p > 0)
        return np.asarray(np.sum(p * np.log2(ratio), axis=0))

    return np.clip(1 - (divergence(found.shares) + divergence(goal[:, None])) / 2, 0.0, 1.0)


# Holes in judgments: what was retrieved and never judged, and what it may have been.


# Documents on neighbouring ranks are relevant about as often; the bins grow as ranks get further
# from the top, where few are judged.
_LAST_RANKS = (5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Retrieved:
    """The documents of a run that have a source, for queries that have judgments.

    Parameters
    ----------
    qrels : Qrels
        The judgments, with a vocabulary that holds all documents of the run too.
    sources : int64 array of shape (len(qrels.doc_ids),)
        Index of each document into the sources of the tags, -1 for none.
    query, doc : int64 arrays of shape (n,)
        Indices into the judgments.
    start, stop : int64 arrays of shape (n,)
        Ranks before and through which the tie block of each reaches.
    rank : int64 array of shape (n,)
        From 1.
    grade : int64 array of shape (n,)
        -1 where nobody judged.
    """

    qrels: Qrels
    sources: IntArray
    query: IntArray
    doc: IntArray
    start: IntArray
    stop: IntArray
    rank: IntArray
    grade: IntArray

    @classmethod
    def of(cls, run: Run, qrels: Qrels, tags: TagTable, *, ties: Ties = "expected") -> Retrieved:
        """Join a run with judgments and sources."""
        if ties == "trec":
            run = trec_order(run)
        known = _judged_places(run.doc_ids, qrels)
        new = np.flatnonzero(known < 0)
        doc_of = known.copy()
        doc_of[new] = len(qrels.doc_ids) + np.arange(len(new))
        query = np.repeat(places_of(run.query_ids, qrels.query_ids), np.diff(run.offsets))
        doc = doc_of[run.doc_codes]
        wider = replace(qrels, doc_ids=(*qrels.doc_ids, *(run.doc_ids[code] for code in new)))
        sources = source_codes_for(wider.doc_ids, tags)
        entries = np.flatnonzero((query >= 0) & (sources[doc] >= 0))
        query, doc = query[entries], doc[entries]
        start, stop = rank_span(run, entries, ties=ties)
        found, place = matched(query, doc, qrels.query_codes, qrels.doc_codes)
        grade = np.full(len(query), -1, dtype=np.int64)
        grade[found] = qrels.grades[place]
        return cls(
            qrels=wider,
            sources=sources,
            query=query,
            doc=doc,
            start=start,
            stop=stop,
            rank=run.ranks[entries].astype(np.int64),
            grade=grade,
        )

    @property
    def source(self) -> IntArray:
        """Index of each into the sources of the tags."""
        return self.sources[self.doc]

    @property
    def judged(self) -> BoolArray:
        """Whether each was judged."""
        return self.grade >= 0

    def share_judged(self, source: int, k: int) -> float | None:
        """Return Judged@k of a source: the share of its documents on the first k ranks.

        None where none of its documents stands there.
        """
        here = (self.source == source) & (self.rank <= k)
        return float(self.judged[here].mean()) if here.any() else None

    def judgments(self, grade: IntArray) -> Qrels:
        """Return the judgments, and grades above 0 of documents that were not judged."""
        holes = np.flatnonzero(~self.judged & (grade > 0))
        return replace(
            self.qrels,
            query_codes=_appended(self.qrels.query_codes, self.query[holes]),
            doc_codes=_appended(self.qrels.doc_codes, self.doc[holes]),
            grades=_appended(self.qrels.grades, grade[holes]),
        )

    def hits(self, grade: IntArray, k: int) -> Hits:
        """Return the relevant ones by these grades that may stand on the first k ranks."""
        kept = np.flatnonzero((grade > 0) & (self.start < k))
        return Hits(
            query=self.query[kept],
            doc=self.doc[kept],
            grade=grade[kept],
            start=self.start[kept],
            stop=self.stop[kept],
        )


def says_what_is_not_relevant(qrels: Qrels) -> bool:
    """Whether judgments hold documents that somebody found not relevant.

    Where they do not (BEIR keeps relevant documents alone), nobody knows which of the others were
    looked at, and holes cannot be told from documents that are not relevant.
    """
    return bool(np.any(qrels.grades == 0))


def filled(
    retrieved: Retrieved, rng: np.random.Generator, parts: IntArray | None = None
) -> IntArray | None:
    """Return a grade for every retrieved document with a source.

    A document that nobody judged gets the grade of one drawn from the judged documents of its
    source in its bin of ranks, or in the nearest bin above it that has any, else below (hot-deck
    imputation: Andridge & Little 2010).

    Parameters
    ----------
    parts : int64 array of shape (len(qrels.query_ids),), optional
        Grades are drawn within the part of a query alone, so that parts stay independent.

    Returns
    -------
    int64 array of shape (n,) or None
        None where no document of some source was judged, so that nothing is known of the others.
    """
    n_bins = len(_LAST_RANKS) + 1
    deck = retrieved.source
    if parts is not None:
        deck = deck + parts[retrieved.query] * (int(deck.max()) + 1)
    cell = deck * n_bins + np.searchsorted(_LAST_RANKS, retrieved.rank)
    # sorting small numbers takes no comparisons
    order = np.argsort(cell.astype(np.min_scalar_type(int(cell.max()))), kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=(int(deck.max()) + 1) * n_bins))[:-1]
    grade = retrieved.grade.copy()
    cells = np.split(order, ends)
    for first in range(0, len(cells), n_bins):
        bins = cells[first : first + n_bins]
        donors = [grade[each][grade[each] >= 0] for each in bins]
        for at, each in enumerate(bins):
            holes = each[grade[each] < 0]
            if not len(holes):
                continue
            # above it first, then below
            pool = next(filter(len, (*donors[at::-1], *donors[at + 1 :])), None)
            if pool is None:
                return None
            grade[holes] = rng.choice(pool, size=len(holes))
    return grade


def with_share(retrieved: Retrieved, share: float, rng: np.random.Generator) -> IntArray:
    """Return grades in which a share of what was not judged has the lowest relevant one."""
    grade = retrieved.grade.copy()
    holes = np.flatnonzero(~retrieved.judged)
    grade[holes[rng.random(len(holes)) < share]] = 1
    return grade


def _appended(judged: npt.NDArray[np.int32], new: IntArray) -> npt.NDArray[np.int32]:
    return np.concatenate([judged, new.astype(np.int32)])
