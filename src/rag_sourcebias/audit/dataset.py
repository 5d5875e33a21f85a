"""The verb: retrieve with given retrievers, then measure source bias."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rag_sourcebias.audit.cells import sole_corpus_checks
from rag_sourcebias.audit.data_summary import data_warnings, summarise_dataset
from rag_sourcebias.audit.dependence import Dependence, merge_llms
from rag_sourcebias.audit.source import assemble
from rag_sourcebias.audit.source_texts import source_text_statistics
from rag_sourcebias.audit.system import Variant, measure_system, require_sources, settings_row
from rag_sourcebias.errors import DataError
from rag_sourcebias.measures import match_lengths, score_run, source_codes_for
from rag_sourcebias.protocols import ApproximateRetriever, RetrieverSpec
from rag_sourcebias.retrieval import BM25Spec, RerankedSpec
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import Corpus, Query
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.reports import (
    AuditConfig,
    SettingSkew,
    SkewReport,
    SoleCorpusCheck,
    SystemSkew,
)

__all__ = ["agreement", "audit_source"]


def audit_source(
    dataset: Dataset,
    retrievers: Sequence[RetrieverSpec],
    *,
    config: AuditConfig | None = None,
    depth: int = 100,
    sole_corpus: bool = True,
    length_matched: bool = True,
    rerank_controls: bool = False,
    text_statistics: bool = False,
    settings_strip: bool = True,
    clusters: Mapping[str, str] | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> SkewReport:
    """Retrieve from the mixed corpus with every retriever and measure source bias.

    Parameters
    ----------
    retrievers : sequence of RetrieverSpec
        Names must differ.
    depth : int
        Documents retrieved per query; at least the largest cutoff.
    sole_corpus : bool
        Also retrieve from the corpus of each source alone ([K] Table 2).
    length_matched : bool
        Also retrieve from a corpus whose pairs are cut to equal length; needs paired documents.
    rerank_controls : bool
        Make these two controls for rerankers too; each costs about one more reranking of all
        queries.
    text_statistics : bool
        Also describe the texts of each source ([K] Fig. 3).
    settings_strip : bool
        Also retrieve with other usual settings of BM25: its verdict may turn with k1 and b.
    clusters : mapping of str to str, optional
        Topic, paraphrase group or user session of each judged query: queries of one cluster may
        depend on one another.
    on_stage : callable, optional
        Told what begins, for progress display.

    Returns
    -------
    SkewReport
        A retriever with an approximate index has a second entry, variant ``"exact"``, when exact
        search with the same vectors returns something else.
    """
    config = config or AuditConfig()
    if depth < max(config.cutoffs):
        raise DataError(
            f"depth {depth} is smaller than the largest cutoff {max(config.cutoffs)}; retrieve at "
            "least that many documents"
        )
    names = [spec.name for spec in retrievers]
    if not names or len(set(names)) != len(names):
        raise DataError(f"give one or more retrievers with different names, got {names}")
    separate = dataset.corpus.tags
    if config.merge_llms:
        merged = replace(dataset.corpus, tags=merge_llms(separate))
        dataset = replace(dataset, corpus=merged)
    require_sources(dataset.corpus.tags, config)
    dependence = Dependence.of(
        dataset.qrels,
        dataset.corpus.tags,
        clusters,
        merged_from=separate if config.merge_llms else None,
    )
    paired = bool(np.any(dataset.corpus.tags.pair_codes >= 0))
    work = _Work(dataset, config, depth, dependence, on_stage or (lambda _: None))
    systems: list[SystemSkew] = []
    for spec in retrievers:
        controls = rerank_controls or not isinstance(spec, RerankedSpec)
        systems += work.mixed(
            spec, with_sole_corpus=sole_corpus and controls, with_strip=settings_strip
        )
        if length_matched and paired and controls:
            systems.append(work.length_matched(spec))
    data = summarise_dataset(dataset)
    warnings = data_warnings(data, dataset.qrels, dataset.corpus.tags, config)
    report = assemble(systems, data, config, warnings=warnings)
    if not text_statistics:
        return report
    work.on_stage("describing texts")
    found = source_text_statistics(
        dataset.corpus,
        config.baseline_source,
        confidence_level=config.confidence_level,
        rng=config.seed,
    )
    return replace(report, text_statistics=found)


BM25_SETTINGS = ((0.9, 0.4), (1.2, 0.75), (1.5, 0.0), (1.5, 0.75), (1.5, 1.0), (2.0, 0.75))
"""Values of k1 and b in use (Anserini, Lucene, this library, the paper) and the ends of b."""


class _Work:
    """One audit in progress."""

    def __init__(
        self,
        dataset: Dataset,
        config: AuditConfig,
        depth: int,
        dependence: Dependence,
        on_stage: Callable[[str], None],
    ) -> None:
        self.dataset = dataset
        self.config = config
        self.depth = depth
        self.dependence = dependence
        self.on_stage = on_stage

    def mixed(
        self, spec: RetrieverSpec, *, with_sole_corpus: bool, with_strip: bool
    ) -> list[SystemSkew]:
        corpus = self.dataset.corpus
        self.on_stage(f"{spec.name}: indexing {len(corpus):,} documents")
        retriever = spec.build(corpus)
        self.on_stage(f"{spec.name}: retrieving for {len(self.dataset.queries):,} queries")
        run = retriever.retrieve(self.dataset.queries, self.depth)
        checks = self._sole_corpus(spec) if with_sole_corpus else ()
        notes: list[str] = []
        systems: list[SystemSkew] = []
        if isinstance(retriever, ApproximateRetriever):
            self.on_stage(f"{spec.name}: exact search for comparison")
            full = retriever.exact().retrieve(self.dataset.queries, self.depth)
            top = max(self.config.cutoffs)
            share = agreement(run, full, top)
            notes.append(f"the approximate index returned {share:.1%} of the exact top {top}")
            if share < 1:
                systems.append(self._measure(full, spec, corpus, variant="exact"))
        self.on_stage(f"{spec.name}: measuring")
        deployed = self._measure(run, spec, corpus, sole_corpus=checks, notes=notes)
        if with_strip and isinstance(spec, BM25Spec):
            deployed = replace(deployed, strip=self._strip(spec))
        return [deployed, *systems]

    def _strip(self, spec: BM25Spec) -> tuple[SettingSkew, ...]:
        """Measure what other usual settings of BM25 would have given."""
        found: list[SettingSkew] = []
        for k1, b in BM25_SETTINGS:
            if (k1, b) == (spec.k1, spec.b):
                continue
            name = f"k1={k1:g}, b={b:g}"
            self.on_stage(f"{spec.name}: with {name}")
            run = self._search(replace(spec, k1=k1, b=b), self.dataset.corpus)
            tags = self.dataset.corpus.tags
            found += settings_row(
                run, self.dataset.qrels, tags, self.config, dependence=self.dependence, name=name
            )
        return tuple(found)

    def length_matched(self, spec: RetrieverSpec) -> SystemSkew:
        self.on_stage(f"{spec.name}: pairs cut to equal length")
        corpus = match_lengths(self.dataset.corpus)
        run = self._search(spec, corpus)
        return self._measure(run, spec, corpus, variant="length-matched")

    def _measure(
        self,
        run: Run,
        spec: RetrieverSpec,
        corpus: Corpus,
        *,
        variant: Variant = "mixed",
        sole_corpus: tuple[SoleCorpusCheck, ...] = (),
        notes: Sequence[str] = (),
    ) -> SystemSkew:
        return measure_system(
            replace(run, name=spec.name),
            self.dataset.qrels,
            corpus.tags,
            self.config,
            dependence=self.dependence,
            corpus=corpus,
            settings=spec.settings,
            variant=variant,
            sole_corpus=sole_corpus,
            notes=notes,
        )

    def _sole_corpus(self, spec: RetrieverSpec) -> tuple[SoleCorpusCheck, ...]:
        corpus, qrels = self.dataset.corpus, self.dataset.qrels
        codes = source_codes_for(qrels.doc_ids, corpus.tags)[qrels.doc_codes]
        alone = {}
        for code, source in enumerate(corpus.tags.sources):
            self.on_stage(f"{spec.name}: {source} documents alone")
            run = self._search(spec, corpus.of_source(source))
            alone[source] = score_run(
                run,
                qrels.take(codes == code),
                measures=self.config.measures,
                cutoffs=self.config.cutoffs,
                ties=self.config.ties,
                gain=self.config.gain,
            )
        return sole_corpus_checks(alone, self.config)

    def _search(self, spec: RetrieverSpec, corpus: Corpus) -> Run:
        queries: Sequence[Query] = self.dataset.queries
        return spec.build(corpus).retrieve(queries, self.depth)


def agreement(run: Run, exact: Run, k: int) -> float:
    """Share of the exact top-k documents that the run's top k holds, over all queries."""
    found = {(r.query_id, d) for r in run.top(k) for d in r.doc_ids}
    wanted = [(r.query_id, d) for r in exact.top(k) for d in r.doc_ids]
    return sum(pair in found for pair in wanted) / max(len(wanted), 1)
