"""Quality in a real index: per query style, and per document style among all styles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from rag_sourcebias.audit.cells import published_delta
from rag_sourcebias.audit.style_corpora import StyleCorpora
from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference import (
    adjust_p_values,
    clustered_difference,
    clustered_mean,
    difference_test,
)
from rag_sourcebias.measures import group_scores, score_run
from rag_sourcebias.protocols import Retriever
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.style_report import StyleConfig, StyleIndexScore, StyleQuality

__all__ = ["index_depth", "index_scores", "style_quality"]

_NO_CHANGE = 1e-12


def index_depth(config: StyleConfig) -> int:
    """Documents to retrieve, so that ties across the largest cutoff are seen whole."""
    return max(100, 2 * max(config.cutoffs))


def style_quality(
    retriever: Retriever, corpora: StyleCorpora, config: StyleConfig
) -> tuple[StyleQuality, ...]:
    """NDCG and recall of every query style over an index of the original documents.

    A query's own document is the one that is relevant. Recall@1 is left out: with one relevant
    document it is NDCG@1, and would be tested twice.

    Parameters
    ----------
    retriever : Retriever
        Over ``corpora.originals``.
    """
    qrels = corpora.original_qrels
    depth = index_depth(config)
    values: dict[str, FloatArray] = {}
    measures: tuple[str, ...] = ()
    for form, queries in corpora.queries.items():
        scores = score_run(
            retriever.retrieve(queries, depth),
            qrels,
            measures=("NDCG", "Recall"),
            cutoffs=config.cutoffs,
        )
        measures = scores.measures
        values[form] = np.stack([scores.of(measure, "all") for measure in measures])
    rows = list(_quality_rows(values, measures, config))
    adjusted = adjust_p_values([row.p_value for row in rows], correction=config.correction)
    return tuple(replace(row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True))


def _quality_rows(
    values: dict[str, FloatArray], measures: Sequence[str], config: StyleConfig
) -> Iterator[StyleQuality]:
    level = config.confidence_level
    for form, table in values.items():
        for j, measure in enumerate(measures):
            if measure == "Recall@1":
                continue
            column, base = table[j], values[config.original_query][j]
            differs = bool(np.any(np.abs(column - base) > _NO_CHANGE))
            yield StyleQuality(
                query_style=form,
                measure=measure,
                mean=float(column.mean()),
                score=_share(column, level),
                change=_change(column - base, level) if differs else None,
                p_value=None
                if form == config.original_query
                else difference_test(column - base, np.arange(len(column))),
            )


def index_scores(
    run: Run, corpora: StyleCorpora, config: StyleConfig
) -> tuple[StyleIndexScore, ...]:
    """NDCG of each document style alone, and Relative Δ of the original against it ([K] §3.1).

    Parameters
    ----------
    run : Run
        Of the original queries, over ``corpora.versions``.
    """
    qrels, tags = corpora.style_qrels, corpora.versions.tags
    styles = corpora.styles
    column = np.array([styles.index(name) for name in tags.styles], dtype=np.int64)
    groups = column[tags.style_codes[tags.rows_for(qrels.doc_ids)]]
    scores = group_scores(run, qrels, groups, styles, measures=("NDCG",), cutoffs=config.cutoffs)
    found = []
    for style in styles:
        for measure in scores.measures:
            values = scores.of(measure, style)
            delta, interval = None, None
            if style != corpora.original:
                original = scores.of(measure, corpora.original)
                delta, interval, _ = published_delta(
                    original, values, confidence_level=config.confidence_level
                )
            found.append(
                StyleIndexScore(
                    doc_style=style,
                    measure=measure,
                    mean=float(values.mean()),
                    score=_share(values, config.confidence_level),
                    relative_delta=delta,
                    interval=interval,
                )
            )
    return tuple(found)


def _share(values: FloatArray, level: float) -> Interval | None:
    try:
        return clustered_mean(
            np.clip(values, 0.0, 1.0),
            np.arange(len(values)),
            confidence_level=level,
            bounds=(0.0, 1.0),
        )
    except InsufficientDataError:
        return None


def _change(difference: FloatArray, level: float) -> Interval | None:
    try:
        return clustered_difference(difference, np.arange(len(difference)), confidence_level=level)
    except InsufficientDataError:
        return None
