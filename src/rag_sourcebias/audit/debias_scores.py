"""What a system scores before or after a mitigation: five kinds of NDCG per query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rag_sourcebias.errors import DataError, MissingTagsError
from rag_sourcebias.measures import score_run, source_codes_for, source_scores
from rag_sourcebias.protocols import RetrieverSpec
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.debias_report import DebiasConfig
from rag_sourcebias.types.debias_scores import DebiasScores
from rag_sourcebias.types.documents import Corpus
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels

__all__ = ["other_sources", "score_debias", "two_sources"]


def score_debias(
    spec: RetrieverSpec,
    dataset: Dataset,
    config: DebiasConfig,
    *,
    other: str,
    depth: int = 100,
    on_stage: Callable[[str], None] | None = None,
) -> DebiasScores:
    """Retrieve from three corpora and score every judged query.

    The mixed corpus holds the documents of the baseline, of ``other`` and those of unknown source,
    which keep their ranks and are relevant to nothing. Documents of further sources are left out
    (:func:`two_sources`), so that every LLM source is compared in a mixed corpus of its own. The
    other two corpora hold one source each.

    Parameters
    ----------
    spec : RetrieverSpec
        Built three times.
    dataset : Dataset
    config : DebiasConfig
    other : str
        Source compared with ``config.baseline_source``.
    depth : int
        Documents retrieved per query; at least the largest cutoff.
    on_stage : callable, optional
        Told what begins, for progress display.

    Returns
    -------
    DebiasScores
        One column per judged query, in the order of the judgments. A query without results or
        without relevant documents of a source scores 0 there and counts.

    Raises
    ------
    DataError
        If ``depth`` is too small, a source is missing or has no relevant document, or no judged
        query has a text.
    """
    if depth < max(config.cutoffs):
        raise DataError(
            f"depth {depth} is smaller than the largest cutoff {max(config.cutoffs)}; retrieve at "
            "least that many documents"
        )
    data = two_sources(dataset, config.baseline_source, other)
    search = _Search(spec, data, depth, on_stage or (lambda _: None))
    tags, qrels = data.corpus.tags, data.qrels
    mixed = search("mixed documents", data.corpus)
    by_source = source_scores(
        mixed,
        qrels,
        tags,
        sources=(config.baseline_source, other),
        measures=("NDCG",),
        cutoffs=config.cutoffs,
        ties=config.ties,
        gain=config.gain,
    ).values
    source_of = source_codes_for(qrels.doc_ids, tags)[qrels.doc_codes]
    alone = []
    for source in (config.baseline_source, other):
        run = search(f"{source} documents alone", data.corpus.of_source(source))
        of_source = qrels.take(source_of == tags.sources.index(source))
        alone.append(_ndcg(run, of_source, config))
    both = _ndcg(mixed, qrels.take(source_of >= 0), config)
    return DebiasScores(
        name=spec.name,
        query_ids=qrels.query_ids,
        cutoffs=config.cutoffs,
        values=np.stack((by_source[:, 0], by_source[:, 1], *alone, both)),
        settings=dict(spec.settings),
    )


def two_sources(dataset: Dataset, baseline: str, other: str) -> Dataset:
    """Leave out the documents of all sources but two, and their judgments.

    Queries stay, also those that lose every relevant document, so that all comparisons of a data
    set average over the same queries. Documents of unknown source stay.

    Raises
    ------
    MissingTagsError
        If no document has a source tag.
    DataError
        If one of the two sources is missing.
    """
    tags = dataset.corpus.tags
    _require(dataset, baseline, other)
    wanted = sorted((baseline, other))
    if list(tags.sources) == wanted:
        return dataset
    recode = np.full(len(tags.sources) + 1, -1, dtype=np.int32)  # the last one for code -1
    for code, source in enumerate(wanted):
        recode[tags.sources.index(source)] = code
    rows = np.flatnonzero((recode[tags.source_codes] >= 0) | (tags.source_codes < 0))
    kept = dataset.corpus.take(rows)
    codes = recode[kept.tags.source_codes]
    left_out = np.ones(len(tags) + 1, dtype=bool)
    left_out[rows] = False
    left_out[-1] = False  # judged documents that the corpus does not have
    judged = tags.rows_for(dataset.qrels.doc_ids)[dataset.qrels.doc_codes]
    return replace(
        dataset,
        corpus=Corpus(
            texts=kept.texts, tags=replace(kept.tags, sources=tuple(wanted), source_codes=codes)
        ),
        qrels=dataset.qrels.take(~left_out[judged]),
    )


def other_sources(dataset: Dataset, baseline: str) -> tuple[str, ...]:
    """Sources of a data set that can be compared with the baseline, by name.

    Raises
    ------
    MissingTagsError
        If no document has a source tag.
    DataError
        If the baseline is missing, or is the only source.
    """
    counts = dataset.corpus.tags.counts()
    found = tuple(s for s in dataset.corpus.tags.sources if s != baseline and counts[s])
    _require(dataset, baseline, *found)
    if not found:
        raise DataError(
            f"data set {dataset.name!r} has only documents of {baseline!r}; a comparison needs a "
            "second source"
        )
    return found


def _require(dataset: Dataset, *sources: str) -> None:
    counts = dataset.corpus.tags.counts()
    present = [name for name, count in counts.items() if name and count]
    if not present:
        raise MissingTagsError(
            f"none of {len(dataset.corpus)} documents of data set {dataset.name!r} has a source "
            'tag; tag them as "human" or "llm:<model>"'
        )
    for source in sources:
        if source not in present:
            raise DataError(
                f"data set {dataset.name!r} has no document of source {source!r}; sources are "
                f"{present}"
            )
    if len(set(sources)) != len(sources):
        raise DataError(f"sources {list(sources)} must differ")


class _Search:
    """Retrieves for the judged queries from any corpus."""

    def __init__(
        self, spec: RetrieverSpec, data: Dataset, depth: int, on_stage: Callable[[str], None]
    ) -> None:
        judged = set(data.qrels.query_ids)
        self.queries = [query for query in data.queries if query.query_id in judged]
        if not self.queries:
            raise DataError(
                f"none of {len(data.queries)} queries of data set {data.name!r} is judged; "
                "queries and judgments must share ids"
            )
        self.spec = spec
        self.depth = depth
        self.on_stage = on_stage

    def __call__(self, what: str, corpus: Corpus) -> Run:
        self.on_stage(f"{self.spec.name}: {what} ({len(corpus):,})")
        return self.spec.build(corpus).retrieve(self.queries, self.depth)


def _ndcg(run: Run, qrels: Qrels, config: DebiasConfig) -> FloatArray:
    """NDCG of all documents of the judgments taken together, shape (cutoffs, queries)."""
    found: FloatArray = score_run(
        run,
        qrels,
        measures=("NDCG",),
        cutoffs=config.cutoffs,
        ties=config.ties,
        gain=config.gain,
    ).values[:, 0]
    return found
