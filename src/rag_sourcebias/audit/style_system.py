"""Everything that the similarities of one encoder or retriever say about styles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.style_intervals import (
    StyleMatrixIntervals,
    matching_intervals,
    style_matrix_intervals,
)
from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference import compare_ranks, friedman_test
from rag_sourcebias.inference.style_finding import style_finding
from rag_sourcebias.measures import StyleMatrix, matching_effect, rank_versions, unfairness
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.style_parts import StyleFinding
from rag_sourcebias.types.style_report import StyleConfig, StyleGain, StyleRow, StyleSystem
from rag_sourcebias.types.tests import RankPair

__all__ = ["style_system"]


def style_system(
    name: str,
    similarity: FloatArray,
    *,
    query_ids: Sequence[str],
    query_styles: Sequence[str],
    doc_styles: Sequence[str],
    lengths: npt.NDArray[np.int64],
    config: StyleConfig,
    settings: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> StyleSystem:
    """Rank, compare and test the styles for one system.

    Parameters
    ----------
    similarity : float64 array of shape (n, q, d)
        No NaN.
    lengths : int64 array of shape (n, d)
        Words of every document version, at least 1.
    """
    matrix = StyleMatrix.from_scores(
        similarity,
        query_styles=query_styles,
        doc_styles=doc_styles,
        query_ids=query_ids,
        ties=config.ties,
    )
    # Friedman's test needs averaged ties, whatever the averages shown are made of.
    averaged = matrix.ranks if config.ties == "average" else rank_versions(similarity)
    intervals = _intervals(matrix, lengths, config)
    rows = _rows(matrix, averaged, intervals, config)
    return StyleSystem(
        name=name,
        settings=dict(settings or {}),
        query_ids=matrix.query_ids,
        ranks=matrix.ranks,
        rows=rows,
        pairs=_compare(matrix.row(config.original_query).ranks, matrix, config, seed=1),
        mean_unfairness=None if intervals is None else intervals.mean_unfairness,
        finding=_finding(matrix, rows, config),
        matching=_matching(matrix, config),
        notes=(*notes, *_notes(averaged, intervals)),
    )


def _intervals(
    matrix: StyleMatrix, lengths: npt.NDArray[np.int64], config: StyleConfig
) -> StyleMatrixIntervals | None:
    try:
        return style_matrix_intervals(
            matrix,
            lengths=lengths,
            ddof=config.ddof,
            confidence_level=config.confidence_level,
            resamples=config.resamples,
            rng=config.seed,
        )
    except InsufficientDataError:  # a single query
        return None


def _rows(
    matrix: StyleMatrix,
    averaged: FloatArray,
    intervals: StyleMatrixIntervals | None,
    config: StyleConfig,
) -> tuple[StyleRow, ...]:
    rows = []
    for at, form in enumerate(matrix.query_styles):
        ranks = matrix.ranks[:, at]
        against = _compare(ranks, matrix, config, seed=2, baseline=config.original)
        adjusted = intervals is not None and bool(intervals.adjusted_ranks)
        rows.append(
            StyleRow(
                query_style=form,
                average_ranks=(None,) * ranks.shape[1]
                if intervals is None
                else intervals.average_ranks[at],
                unfairness=unfairness(ranks, ddof=config.ddof),
                unfairness_interval=None if intervals is None else intervals.unfairness[at],
                friedman=friedman_test(averaged[:, at]),
                against_original=tuple(_turned(pair) for pair in against),
                adjusted_ranks=intervals.adjusted_ranks[at] if intervals and adjusted else (),
                length_slope=intervals.length_slopes[at] if intervals and adjusted else None,
            )
        )
    return tuple(rows)


def _compare(
    ranks: FloatArray,
    matrix: StyleMatrix,
    config: StyleConfig,
    *,
    seed: int,
    baseline: str | None = None,
) -> tuple[RankPair, ...]:
    return compare_ranks(
        ranks,
        matrix.doc_styles,
        baseline=baseline,
        correction=config.correction,
        confidence_level=config.confidence_level,
        resamples=config.resamples,
        rng=np.random.default_rng((config.seed, seed)),
    )


def _finding(matrix: StyleMatrix, rows: Sequence[StyleRow], config: StyleConfig) -> StyleFinding:
    """Verdict under the original query style."""
    at = matrix.query_styles.index(config.original_query)
    return style_finding(
        matrix.ranks[:, at],
        matrix.doc_styles,
        test=rows[at].friedman,
        against_original=rows[at].against_original,
        margin=config.margin,
        confidence_level=config.confidence_level,
        rng=np.random.default_rng((config.seed, 3)),
    )


def _turned(pair: RankPair) -> RankPair:
    """Return the pair the other way round: the style first, the original second."""
    interval = pair.interval
    return replace(
        pair,
        first=pair.second,
        second=pair.first,
        difference=-pair.difference,
        interval=None if interval is None else _negated(interval),
    )


def _negated(interval: Interval) -> Interval:
    return replace(
        interval, estimate=-interval.estimate, lower=-interval.upper, upper=-interval.lower
    )


def _matching(matrix: StyleMatrix, config: StyleConfig) -> tuple[StyleGain, ...]:
    """Gain of each style under queries of its own style, against all other query styles.

    The original wording is no style of its own: its row is compared with, never matched.
    """
    matches = {
        form: form
        for form in matrix.query_styles
        if form in matrix.doc_styles and form != config.original_query
    }
    if not matches or len(matrix.query_styles) < 2:
        return ()
    effect = matching_effect(matrix, matches=matches)
    try:
        found = matching_intervals(
            matrix, matches=matches, confidence_level=config.confidence_level
        )
    except InsufficientDataError:
        found = None
    gains = [
        StyleGain(style=s, mean=float(mean), gain=None if found is None else found.by_style[s])
        for s, mean in zip(effect.styles, effect.mean, strict=True)
    ]
    overall = None if found is None else found.overall
    return (*gains, StyleGain(style="", mean=float(effect.gains.mean()), gain=overall))


def _notes(averaged: FloatArray, intervals: StyleMatrixIntervals | None) -> list[str]:
    ordered = np.sort(averaged, axis=2)
    tied = np.diff(ordered, axis=2) == 0
    total = int(np.prod(averaged.shape[:2]))
    notes = []
    if some := int(np.count_nonzero(tied.any(axis=2))):
        whole = int(np.count_nonzero(tied.all(axis=2)))
        rest = f", {whole} of them tie every version" if whole else ""
        notes.append(f"{some} of {total} rankings (queries × query styles) hold ties{rest}")
    if intervals is None:
        notes.append("there are no intervals: they need at least 2 queries")
    elif not intervals.adjusted_ranks:
        notes.append(
            "no ranks at equal length: every style keeps its length relative to the others, so "
            "length and style cannot be told apart"
        )
    return notes
