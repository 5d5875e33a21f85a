"""Which of two versions of a document ranks higher, how often, and at equal length."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Corpus, FloatArray, IntArray, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError, InsufficientDataError, check_level
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.dependence import (
    Dependence,
    group_codes,
    independent_share,
    require_clusters,
)
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import clustered_mean, clustered_standardised_mean
from rag_sourcebias.infer.quantiles import expit, t_quantile
from rag_sourcebias.measure.relevance import Ties, places_of, rank_span, trec_order
from rag_sourcebias.measure.texts import overlap, word_counts
from rag_sourcebias.source.data import AuditConfig, TwinSkew
from rag_sourcebias.source.findings import SourceCode


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwinRanks:
    """Places of both versions of each relevant pair; arrays have one entry per (query, pair).

    Parameters
    ----------
    query : int64 array
        Index into ``qrels.query_ids``.
    baseline_row, other_row : int64 arrays
        Rows of the two documents in the tag table.
    baseline_rank, other_rank : float64 arrays
        Expected rank (mean of the tie block); NaN when not retrieved.
    baseline_score, other_score : float64 arrays
        NaN when not retrieved or when the run has no scores.
    above : float64 array
        1 when the other version ranks above the baseline's, 0 below, 0.5 tied. A version that
        was not retrieved ranks below one that was.
    n_unseen : int
        Pairs of which neither version was retrieved; they are left out.
    """

    query: IntArray
    baseline_row: IntArray
    other_row: IntArray
    baseline_rank: FloatArray
    other_rank: FloatArray
    baseline_score: FloatArray
    other_score: FloatArray
    above: FloatArray
    n_unseen: int


def other_above(
    baseline: npt.NDArray[np.number[Any]], other: npt.NDArray[np.number[Any]]
) -> FloatArray:
    """Compare scores of twins: 1 where the other is higher, 0 where lower, 0.5 where equal.

    Parameters
    ----------
    baseline, other : array of shape (n,)
        Scores in any unit, higher is better; entry i of both is one pair of versions.

    Returns
    -------
    float64 array of shape (n,)
        Its mean is the win rate.
    """
    return np.where(other > baseline, 1.0, np.where(other < baseline, 0.0, 0.5))


def twin_ranks(
    run: Run, qrels: Qrels, tags: TagTable, *, baseline: str, other: str, ties: Ties = "expected"
) -> TwinRanks:
    """Find where both versions of each relevant document stand.

    Only pairs of which both versions are relevant to the query count, so that relevance cannot
    explain the difference.

    Raises
    ------
    DataError
        If one source holds two documents with the same ``pair_id``.
    """
    rows = tags.rows_for(qrels.doc_ids)
    left = _pair_keys(qrels, tags, rows, baseline)
    right = _pair_keys(qrels, tags, rows, other)
    keys, i, j = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
    b_doc, o_doc = left[1][i], right[1][j]
    ordered = trec_order(run) if ties == "trec" else run
    b_place = _places(ordered, qrels, keys // max(len(tags.pair_ids), 1), b_doc)
    o_place = _places(ordered, qrels, keys // max(len(tags.pair_ids), 1), o_doc)
    seen = (b_place >= 0) | (o_place >= 0)
    b_place, o_place = b_place[seen], o_place[seen]
    b_span, o_span = (_span(ordered, place, ties) for place in (b_place, o_place))
    return TwinRanks(
        query=keys[seen] // max(len(tags.pair_ids), 1),
        baseline_row=rows[b_doc[seen]],
        other_row=rows[o_doc[seen]],
        baseline_rank=_mean_rank(b_span),
        other_rank=_mean_rank(o_span),
        baseline_score=_scores(ordered, b_place),
        other_score=_scores(ordered, o_place),
        above=other_above(-b_span[0], -o_span[0]),
        n_unseen=int(np.count_nonzero(~seen)),
    )


def _pair_keys(
    qrels: Qrels, tags: TagTable, rows: IntArray, source: str
) -> tuple[IntArray, IntArray]:
    """Unique (query, pair) keys of the relevant documents of a source, and their qrels doc."""
    if source not in tags.sources:
        raise DataError(f"no document has source {source!r}; sources are {list(tags.sources)}")
    doc = qrels.doc_codes.astype(np.int64)
    row = rows[doc]
    wanted = np.flatnonzero(
        (qrels.grades > 0)
        & (row >= 0)
        & (tags.source_codes[row] == tags.sources.index(source))
        & (tags.pair_codes[row] >= 0)
    )
    key = (
        qrels.query_codes[wanted].astype(np.int64) * len(tags.pair_ids)
        + tags.pair_codes[row[wanted]]
    )
    unique, first = np.unique(key, return_index=True)
    if len(unique) < len(key):
        pair = tags.pair_ids[
            int(key[np.setdiff1d(np.arange(len(key)), first)[0]]) % len(tags.pair_ids)
        ]
        raise DataError(
            f"source {source!r} holds more than one document with pair_id {pair!r}; a pair has "
            "one version per source"
        )
    return unique, doc[wanted][first]


def _places(run: Run, qrels: Qrels, query: IntArray, doc: IntArray) -> IntArray:
    """Entry of the run that holds each (query, document) of the qrels, -1 when not retrieved."""
    q_map = places_of(qrels.query_ids, run.query_ids)
    d_map = places_of(qrels.doc_ids, run.doc_ids)
    if not len(query) or not len(run):
        return np.full(len(query), -1, dtype=np.int64)
    width = len(run.doc_ids)
    keys = run.query_codes * width + run.doc_codes
    order = np.argsort(keys, kind="stable")
    wanted = np.where(
        (q_map[query] >= 0) & (d_map[doc] >= 0), q_map[query] * width + d_map[doc], -1
    )
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(keys[order][at] == wanted, order[at], -1)


def _span(run: Run, place: IntArray, ties: Ties) -> tuple[IntArray, IntArray]:
    """Tie block of each entry; an entry that was not retrieved starts beyond every rank."""
    beyond = np.iinfo(np.int64).max
    start, stop = np.full(len(place), beyond), np.full(len(place), beyond)
    found = place >= 0
    start[found], stop[found] = rank_span(run, place[found], ties=ties)
    return start, stop


def _mean_rank(span: tuple[IntArray, IntArray]) -> FloatArray:
    middle = (span[0].astype(np.float64) + 1 + span[1].astype(np.float64)) / 2
    return np.where(span[0] == np.iinfo(np.int64).max, np.nan, middle)


def _scores(run: Run, place: IntArray) -> FloatArray:
    return (
        np.full(len(place), np.nan)
        if run.scores is None or not len(run)
        else np.where(place >= 0, run.scores[place].astype(np.float64), np.nan)
    )


_MIN_EVENTS = 5  # with fewer the interval covered .90 (tests/statistics)
_CONSTANT = 1e-12
_MAX_COEFFICIENT = 15.0  # on standardised covariates: beyond it the classes are separated


def win_rate_at(
    wins: FloatArray,
    covariates: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    at: FloatArray,
    confidence_level: float = 0.95,
) -> Interval:
    """P(win) at chosen covariate values, with a cluster-robust interval.

    Fits logit P(win) = b₀ + b · (covariates − at) and reports the intercept on the probability
    scale.

    Parameters
    ----------
    wins : float64 array of shape (n,)
        1 won, 0 lost, 0.5 tied (quasi-likelihood).
    covariates : float64 array of shape (n, p)
    clusters : integer array of shape (n,)
    at : float64 array of shape (p,)

    Raises
    ------
    InsufficientDataError
        If there are too few clusters for the covariates, too few pairs that went one way, the
        outcome is separated, the clusters do not vary, or a covariate is constant at another
        value than ``at``.
    """
    check_level(confidence_level)
    n, p = covariates.shape
    if wins.shape != (n,) or clusters.shape != (n,) or at.shape != (p,):
        raise DataError("wins, covariates, clusters and at disagree in shape")
    code = group_codes(clusters)
    g = int(code.max(initial=-1)) + 1
    _require_enough(wins, n_clusters=g, n_covariates=p)
    scale = covariates.std(axis=0)
    used = scale > _CONSTANT
    if np.any(stuck := ~used & (np.abs(covariates.mean(axis=0) - at) > _CONSTANT)):
        column = int(np.argmax(stuck))
        raise InsufficientDataError(
            SourceCode.CONSTANT_COVARIATE(
                column=column, value=float(covariates[0, column]), at=float(at[column])
            ),
            n=g,
        )
    design = np.column_stack((np.ones(n), (covariates[:, used] - at[used]) / scale[used]))
    beta, fitted, bread = _fit(wins, design)
    sums = np.zeros((g, design.shape[1]))
    np.add.at(sums, code, design * (wins - fitted)[:, None])
    variance = float((bread @ (sums.T @ sums) @ bread)[0, 0]) * g / (g - 1)
    if variance < _CONSTANT**2:
        raise InsufficientDataError(SourceCode.ALL_AGREE(n=g), n=g)
    width = t_quantile(0.5 + confidence_level / 2, g - 1) * math.sqrt(variance)
    assumptions = [InferCode.QUERIES_SAMPLED, InferCode.ODDS_LINEAR]
    if np.any((at < covariates.min(axis=0)) | (covariates.max(axis=0) < at)):
        assumptions.append(InferCode.EXTRAPOLATED)
    return Interval(
        estimate=expit(beta[0]),
        lower=expit(beta[0] - width),
        upper=expit(beta[0] + width),
        confidence_level=confidence_level,
        method=InferCode.LOGISTIC(),
        n_labeled=g,
        assumptions=tuple(code() for code in assumptions),
    )


def _require_enough(wins: FloatArray, *, n_clusters: int, n_covariates: int) -> None:
    """Refuse a fit that so few clusters, or so one-sided an outcome, cannot support."""
    needed = 10 * (n_covariates + 1)
    if n_clusters < needed:
        raise InsufficientDataError(
            SourceCode.FEW_FOR_COVARIATES(n_covariates=n_covariates, n_needed=needed, n=n_clusters),
            n=n_clusters,
            n_needed=needed,
        )
    events = min(float(wins.sum()), float(len(wins) - wins.sum()))
    if events < _MIN_EVENTS:
        raise InsufficientDataError(
            SourceCode.ONE_WAY(events=events, n_pairs=len(wins), n_least=_MIN_EVENTS),
            n=n_clusters,
        )


def _fit(wins: FloatArray, design: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Newton's method; returns coefficients, fitted probabilities and the inverse information."""
    beta: FloatArray = np.zeros(design.shape[1])
    for _ in range(50):
        fitted = 1 / (1 + np.exp(-np.clip(design @ beta, -40, 40)))
        weight = fitted * (1 - fitted)
        information = (design * weight[:, None]).T @ design
        if np.linalg.cond(information) > 1e12:
            break
        bread: FloatArray = np.linalg.inv(information).astype(np.float64)
        step = bread @ (design.T @ (wins - fitted))
        beta = beta + step
        if np.max(np.abs(beta)) > _MAX_COEFFICIENT:
            break
        if np.max(np.abs(step)) < 1e-10:
            return beta, fitted, bread
    raise InsufficientDataError(SourceCode.SEPARATED(), n=len(wins))


def twins_of(
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    dependence: Dependence,
    corpus: Corpus | None,
    other: str,
) -> TwinSkew | None:
    """Compare both versions of each relevant pair; None where nothing is paired."""
    found = twin_ranks(
        run, qrels, tags, baseline=config.baseline_source, other=other, ties=config.ties
    )
    if not len(found.query) and not found.n_unseen:
        return None
    level = config.confidence_level
    unit = dependence.units()[found.query]
    log_ratio, kept = _pair_texts(found, corpus)
    both = ~np.isnan(found.baseline_score) & ~np.isnan(found.other_score)
    gap = (found.other_score - found.baseline_score)[both]
    computed: dict[str, Callable[[], Interval]] = {
        "win rate": lambda: _win_rate(found, unit, tags, level),
        "score margin": lambda: clustered_standardised_mean(
            gap, unit[both], confidence_level=level
        ),
    }
    if corpus is not None:
        covariates = np.column_stack((log_ratio, kept))
        mean_overlap = float(kept.mean()) if len(kept) else 0.0
        at = np.array([0.0, mean_overlap])
        computed["equal-length win rate"] = lambda: win_rate_at(
            found.above, covariates, unit, at=at, confidence_level=level
        )
    intervals: dict[str, Interval] = {}
    notes = []
    for name, compute in computed.items():
        try:
            intervals[name] = compute()
        except InsufficientDataError as error:
            notes.append(SourceCode.NOT_COMPUTED(figure=name, refusal=error.finding))
    return TwinSkew(
        baseline=config.baseline_source,
        other=other,
        n_pairs=len(found.query),
        n_unseen=found.n_unseen,
        win_rate=intervals.get("win rate"),
        margin=intervals.get("score margin"),
        win_rate_equal_length=intervals.get("equal-length win rate"),
        query_index=found.query,
        other_above=found.above,
        baseline_rank=found.baseline_rank,
        other_rank=found.other_rank,
        log_length_ratio=log_ratio,
        overlap=kept,
        notes=tuple(notes),
    )


def _win_rate(
    found: TwinRanks, unit: npt.NDArray[np.int64], tags: TagTable, level: float
) -> Interval:
    """P(other above baseline), with pairs that several queries share as a factor."""
    require_clusters(len(np.unique(unit)), InferCode.FEW_WITH_PAIRS)
    information = independent_share(
        found.above - found.above.mean(),
        unit,
        [tags.pair_codes[found.baseline_row].astype(np.int64)],
        confidence_level=level,
    )
    require_clusters(int(information * len(np.unique(unit)) + 1e-9), InferCode.FEW_OWN_PAIRS)
    return clustered_mean(
        found.above, unit, confidence_level=level, bounds=(0.0, 1.0), information=information
    )


def _pair_texts(
    found: TwinRanks, corpus: Corpus | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Ln length ratio and word overlap of each pair; empty without texts."""
    if corpus is None:
        return np.empty(0), np.empty(0)
    # A pair judged for many queries is compared once.
    pairs, where = np.unique(
        np.stack((found.baseline_row, found.other_row)), axis=1, return_inverse=True
    )
    base, other = ([corpus.texts[row] for row in rows] for rows in pairs)
    ratio = np.log(np.maximum(word_counts(other), 1) / np.maximum(word_counts(base), 1))
    kept = np.array([overlap(o, b) for o, b in zip(other, base, strict=True)], dtype=np.float64)
    return ratio[where.ravel()], kept[where.ravel()]
