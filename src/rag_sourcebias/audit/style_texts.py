"""The verb: encode or retrieve texts in several styles, then measure style bias."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rag_sourcebias.audit.style import assemble_styles, measure_systems
from rag_sourcebias.audit.style_corpora import StyleCorpora, build_corpora
from rag_sourcebias.audit.style_data import (
    columns_of,
    style_settings,
    take_queries,
    with_every_version,
)
from rag_sourcebias.audit.style_index import index_depth, index_scores, style_quality
from rag_sourcebias.audit.style_search import BM25Search, EncoderSearch, StyleSearch
from rag_sourcebias.audit.style_stack import StackSearch
from rag_sourcebias.audit.text_summaries import text_statistics as summarise_texts
from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.text_values import TEXT_STATISTICS, installed_statistics
from rag_sourcebias.protocols import Encoder, RetrieverSpec
from rag_sourcebias.retrieval import BM25Spec
from rag_sourcebias.types.style_data import StyledTexts
from rag_sourcebias.types.style_report import StyleConfig, StyleReport, StyleSystem

__all__ = ["audit_style"]

_SMALL_INDEX = 1000
Stage = Callable[[str], None]


def audit_style(
    texts: StyledTexts,
    *,
    encoders: Sequence[Encoder] = (),
    bm25: BM25Spec | None = None,
    retrievers: Sequence[RetrieverSpec] = (),
    config: StyleConfig | None = None,
    index: bool = True,
    text_statistics: bool = True,
    on_stage: Callable[[str], None] | None = None,
) -> StyleReport:
    """Measure which writing styles encoders, BM25 and whole retrievers favour ([W] §3–4).

    Parameters
    ----------
    texts : StyledTexts
    encoders : sequence of Encoder
        Versions are ranked by cosine similarity. Every distinct text is encoded once; a
        :class:`~rag_sourcebias.retrieval.CachedEncoder` keeps vectors and reports progress.
    bm25 : BM25Spec, optional
        Versions are ranked by their BM25 score, with idf over all versions.
    retrievers : sequence of RetrieverSpec
        Versions are ranked as each retriever ranks them in an index of all versions and
        distractors; a version that it does not return ranks below the others. At
        least 1,000 documents are asked for.
    config : StyleConfig, optional
        As in :func:`measure_style_bias`.
    index : bool
        Also measure quality in an index: NDCG and recall of every query style over the original
        documents and distractors (a query's own document is the one that is relevant), and NDCG
        of each document style where all are indexed together. Without it, distractors are not
        used.
    text_statistics : bool
        Also describe the texts (extra ``text``).
    on_stage : callable, optional
        Told what begins, for progress display.

    Returns
    -------
    StyleReport

    Raises
    ------
    DataError
        If no system was given, two have the same name, there are fewer than 2 document styles,
        or a version is missing and must not be.
    InsufficientDataError
        If no query has every version.
    """
    stage = on_stage or (lambda _: None)
    names = [encoder.name for encoder in encoders]
    names += [spec.name for spec in (*([bm25] if bm25 else []), *retrievers)]
    if not names or len(set(names)) != len(names):
        raise DataError(
            f"give one or more encoders, retrievers or BM25 with different names, got {names}"
        )
    config, warnings = style_settings(texts, config)
    keep = with_every_version(texts, config)
    complete = take_queries(texts, keep)
    corpora = build_corpora(
        complete if index else replace(complete, distractors=()), config.original
    )
    searches = _searches(corpora, encoders, bm25, retrievers, stage)
    systems = [_system(s, complete, corpora, config, index=index, stage=stage) for s in searches]
    report = assemble_styles(
        systems,
        complete,
        config,
        dropped=tuple(q for q, kept in zip(texts.query_ids, keep, strict=True) if not kept),
        warnings=(*warnings, *corpora.warnings, *(_index_warnings(corpora) if index else ())),
        n_distractors=corpora.n_distractors,
    )
    return _with_statistics(report, complete, stage) if text_statistics else report


def _searches(
    corpora: StyleCorpora,
    encoders: Sequence[Encoder],
    bm25: BM25Spec | None,
    retrievers: Sequence[RetrieverSpec],
    stage: Stage,
) -> Iterator[StyleSearch]:
    """One system after the other, so that only one holds its vectors."""
    if bm25 is not None:
        yield BM25Search(bm25, corpora)
    for encoder in encoders:
        yield EncoderSearch(encoder, corpora, stage)
    for spec in retrievers:
        yield StackSearch(spec, corpora, stage)


def _system(
    search: StyleSearch,
    complete: StyledTexts,
    corpora: StyleCorpora,
    config: StyleConfig,
    *,
    index: bool,
    stage: Stage,
) -> StyleSystem:
    similarity = search.similarity()
    stage(f"{search.name}: ranking {similarity.shape[2]} document styles")
    (system,) = measure_systems(
        {search.name: similarity},
        complete,
        config,
        {search.name: search.settings},
        notes={search.name: search.notes},
    )
    if not index:
        return system
    stage(f"{search.name}: searching an index of {len(corpora.originals):,} documents")
    quality = style_quality(search.originals(), corpora, config)
    stage(f"{search.name}: searching an index of {len(corpora.versions):,} versions")
    run = search.versions_run(config.original_query, index_depth(config))
    return replace(system, quality=quality, index_scores=index_scores(run, corpora, config))


def _index_warnings(corpora: StyleCorpora) -> tuple[str, ...]:
    size = len(corpora.originals)
    if size >= _SMALL_INDEX:
        return ()
    return (
        f"the index holds {size} documents ({corpora.n_distractors} of them distractors): finding "
        "the right one is easier than in a large index, so a loss of quality shows less",
    )


def _with_statistics(report: StyleReport, complete: StyledTexts, stage: Stage) -> StyleReport:
    """Describe the texts by the statistics whose library is installed; warn of the others."""
    stage("text statistics")
    config, statistics = report.config, installed_statistics()
    documents, queries = (
        summarise_texts(
            columns,
            columns[original],
            original=original,
            statistics=statistics,
            confidence_level=config.confidence_level,
            rng=config.seed,
        )
        for columns, original in (
            (columns_of(complete.documents), config.original),
            (columns_of(complete.queries), config.original_query),
        )
    )
    missing = [name for name in TEXT_STATISTICS if name not in statistics]
    warning = (f"no {', '.join(missing)}: install them with: pip install 'rag-sourcebias[text]'",)
    return replace(
        report,
        document_statistics=documents,
        query_statistics=queries,
        warnings=(*report.warnings, *(warning if missing else ())),
    )
