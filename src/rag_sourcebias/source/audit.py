"""Source audits: of finished runs, or of retrievers that are run on a data set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import numpy as np

from rag_sourcebias.core.codec import environment
from rag_sourcebias.core.data import Corpus, Dataset, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError, InsufficientDataError, if_enough
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.core.protocols import ApproximateRetriever, RetrieverSpec
from rag_sourcebias.infer.decide import SkewCode, queries_for_verdict, skew_code
from rag_sourcebias.infer.dependence import Dependence
from rag_sourcebias.infer.means import clustered_difference, difference_test
from rag_sourcebias.infer.texts import TextStatistic, text_statistics
from rag_sourcebias.infer.verified import (
    Slots,
    p_of,
    relevant_slots,
    tag_quality,
    verified_delta,
)
from rag_sourcebias.io.verified import Verification, side
from rag_sourcebias.measure.relevance import score_run, source_codes_for
from rag_sourcebias.measure.texts import (
    TEXT_STATISTICS,
    DataSummary,
    Design,
    cut_to_words,
    data_warnings,
    require_sources,
    summarise,
    summarise_dataset,
    word_counts,
)
from rag_sourcebias.retrieval.application import ApplicationRetriever, ApplicationSpec, FinishedRun
from rag_sourcebias.retrieval.rerank import RerankedSpec
from rag_sourcebias.retrieval.search import BM25Spec
from rag_sourcebias.source.data import (
    AuditConfig,
    CentredDelta,
    SettingSkew,
    SkewCell,
    SoleCorpusCheck,
    SystemSkew,
    Variant,
)
from rag_sourcebias.source.findings import SourceCode
from rag_sourcebias.source.page import SkewReport
from rag_sourcebias.source.system import adjusted, evidence_of, measure_system, settings_row

# The verb: measure source bias from runs and judgments.


#: Source of all documents by language models once they are merged.
MERGED = "llm"


def merge_llms(tags: TagTable) -> TagTable:
    """Merge all sources by language models into ``"llm"``.

    Raises
    ------
    DataError
        If there are fewer than two.
    """
    models = [name for name in tags.sources if name.startswith("llm:")]
    if len(models) < 2:
        raise DataError(
            f"merging needs at least two sources named 'llm:<model>'; sources are "
            f"{list(tags.sources)}"
        )
    return tags.merge_sources({MERGED: models})


def measure_source_bias(
    runs: Run | Sequence[Run],
    qrels: Qrels,
    tags: TagTable,
    *,
    config: AuditConfig | None = None,
    corpus: Corpus | None = None,
    name: str = "data",
    design: Design = "unknown",
    settings: Mapping[str, Mapping[str, str]] | None = None,
    clusters: Mapping[str, str] | None = None,
    verified: Verification | None = None,
) -> SkewReport:
    """Measure whether rankings favour a source, from finished runs ([K] §3.1).

    Parameters
    ----------
    runs : Run or sequence of Run
        Retrieved from the mixed corpus; names must differ.
    qrels : Qrels
    tags : TagTable
        Sources of all documents of the corpus (their shares are the exposure baseline).
    config : AuditConfig, optional
    corpus : Corpus, optional
        Texts, for length and overlap. Its tags must be ``tags``.
    name : str
        Name of the data, for the report.
    design : {"rewrites", "independent", "unknown"}
        What documents of different sources have in common, see :class:`Dataset`.
    settings : mapping of str to mapping, optional
        Settings to state per run name.
    clusters : mapping of str to str, optional
        Topic, paraphrase group or user session of each judged query: queries of one cluster may
        depend on one another.
    verified : Verification, optional
        Where tags are guesses: documents that people verified (``tag verify``), by which
        Relative Δ is corrected for wrong tags. Measures must add up over documents (NDCG, P).

    Returns
    -------
    SkewReport

    Raises
    ------
    InsufficientDataError
        If fewer than 50 documents were verified, or fewer than 5 of either kind.

    Examples
    --------
    >>> from rag_sourcebias import DocTags
    >>> run = Run.from_dict({f"q{i}": {"h": 2.0, "l": 1.0} for i in range(9)})
    >>> qrels = Qrels.from_dict({f"q{i}": {"h": 1, "l": 1} for i in range(9)})
    >>> tags = TagTable.from_tags(
    ...     [("h", DocTags(source="human")), ("l", DocTags(source="llm:x"))]
    ... )
    >>> report = measure_source_bias(run, qrels, tags)
    >>> report.system("run").cell("NDCG@1", "llm:x").relative_delta
    200.0
    """
    config = config or AuditConfig()
    many = [runs] if isinstance(runs, Run) else list(runs)
    if not many:
        raise DataError("no run was given; give at least one")
    names = [run.name for run in many]
    if len(set(names)) != len(names):
        raise DataError(f"run names must differ, got {names}")
    if verified is not None:
        tag_quality(verified)  # too few, or all of one kind: refused before there is a figure
        config, tags = corrected_config(config), of_two_sources(tags, config.baseline_source)
    separate, tags = tags, merge_llms(tags) if config.merge_llms else tags
    if corpus is not None and config.merge_llms:
        corpus = replace(corpus, tags=tags)
    dependence = Dependence.of(
        qrels, tags, clusters, merged_from=separate if config.merge_llms else None
    )
    systems = [
        measure_system(
            run,
            qrels,
            tags,
            config,
            dependence=dependence,
            corpus=corpus,
            settings=(settings or {}).get(run.name),
        )
        for run in many
    ]
    if verified is not None:
        systems = [
            corrected(system, run, qrels, config, dependence=dependence, verified=verified)
            for system, run in zip(systems, many, strict=True)
        ]
    systems = [
        replace(system, evidence=evidence_of(system, run, qrels, tags, config, corpus=corpus))
        for system, run in zip(systems, many, strict=True)
    ]
    dataset = summarise(name=name, design=design, qrels=qrels, tags=tags, corpus=corpus)
    findings = data_warnings(dataset, qrels, tags, config, guessed=verified is not None)
    if verified is not None:
        findings = (_about_tags(verified), *findings)
    return assemble(systems, dataset, config, findings=findings)


# Relative Δ from guessed tags, corrected by documents that people verified.


def corrected_config(config: AuditConfig) -> AuditConfig:
    """Return the settings with the measures that verified documents can correct.

    Raises
    ------
    DataError
        If the baseline is not human text, or no measure, or not the primary one, adds up over
        documents.
    """
    kept = tuple(measure for measure in config.measures if measure in ("NDCG", "P"))
    primary = (config.primary or "").partition("@")[0]
    if not kept or config.baseline_source != "human" or primary not in ("", *kept):
        raise DataError(
            "verified documents correct measures that add up over documents, NDCG and P, of human "
            f"against LLM text; asked for {config.primary or ', '.join(config.measures)} with "
            f"baseline {config.baseline_source!r}"
        )
    return replace(config, measures=kept, merge_llms=False)


def of_two_sources(tags: TagTable, baseline: str) -> TagTable:
    """Merge all sources but the baseline into ``"llm"``."""
    models = [name for name in tags.sources if name != baseline]
    return tags.merge_sources({MERGED: models}) if models else tags


def corrected(
    system: SystemSkew,
    run: Run,
    qrels: Qrels,
    config: AuditConfig,
    *,
    dependence: Dependence,
    verified: Verification,
) -> SystemSkew:
    """Replace figures by tags that may be wrong by those that verified documents correct."""
    cells = []
    for cell in system.cells:
        measure, _, cutoff = cell.measure.partition("@")
        slots = relevant_slots(run, qrels, measure, int(cutoff), ties=config.ties, gain=config.gain)
        intervals: list[Interval | None] = []
        refusal: Finding | None = None
        for centred in (False, True):
            try:
                intervals.append(
                    verified_delta(
                        slots,
                        qrels.doc_ids,
                        verified,
                        centred=centred,
                        units=dependence.units(),
                        what=dependence.what,
                        confidence_level=config.confidence_level,
                    )
                )
            except InsufficientDataError as error:
                intervals.append(None)
                refusal = error.finding
        cells.append(_corrected_cell(cell, slots, intervals, refusal, config))
    notes = (*system.notes, SourceCode.CORRECTED())
    return replace(system, cells=tuple(cells), notes=notes)


def _corrected_cell(
    cell: SkewCell,
    slots: Slots,
    intervals: Sequence[Interval | None],
    refusal: Finding | None,
    config: AuditConfig,
) -> SkewCell:
    plain, centred = intervals
    half = float(slots.plain.sum()) / cell.n_queries / 2
    lead = (plain.estimate if plain else 0.0) / 200
    several = np.unique(slots.query[np.bincount(slots.query)[slots.query] > 1])
    found = CentredDelta(
        value=centred.estimate if centred else None,
        expected_baseline=half,
        expected_other=half,
        interval=centred,
        refusal=None if centred else refusal,
        n_queries=len(several),
    )
    p_value = None if centred is None else p_of(centred)
    undecided = skew_code(centred, p_value, margin=config.margin) is SkewCode.CANNOT_TELL
    return replace(
        cell,
        mean_baseline=half * (1 + lead),
        mean_other=half * (1 - lead),
        relative_delta=plain.estimate if plain else None,
        interval=plain,
        refusal=None if plain else refusal,
        p_value=p_value,
        n_needed=queries_for_verdict(centred, margin=config.margin)
        if undecided and centred
        else None,
        centred=found,
    )


def _about_tags(verified: Verification) -> Finding:
    truth = verified.truth
    return SourceCode.VERIFIED(
        severity="warning",
        n_declared=len(verified.tags) - len(verified.chance),
        n_detected=len(verified.chance) - len(truth),
        n_verified=len(truth),
        n_wrong=sum(side(source) != side(verified.tags[doc]) for doc, source in truth.items()),
    )


def assemble(
    systems: Sequence[SystemSkew],
    data: DataSummary,
    config: AuditConfig,
    *,
    findings: Sequence[Finding],
) -> SkewReport:
    """Adjust p-values over the report's family and put the report together."""
    done, n_tests = adjusted(systems, config)
    empty = (
        SourceCode.EMPTY(severity="warning", system=system.name, n=system.n_empty)
        for system in systems
        if system.n_empty and system.variant == "mixed"
    )
    return SkewReport(
        data=data,
        config=config,
        systems=done,
        n_tests=n_tests,
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        findings=(*findings, *empty),
    )


# What distinguishes the texts of each source before any retriever sees them ([K] Fig. 3).


def match_lengths(corpus: Corpus) -> Corpus:
    """Cut every version of a document to the length of its shortest version, in words.

    Documents without a pair stay as they are. Used to see how much of a skew is length.

    Raises
    ------
    DataError
        If no documents are paired.
    """
    codes = corpus.tags.pair_codes
    if not np.any(codes >= 0):
        raise DataError("no document has a pair_id, so lengths cannot be matched")
    counts = word_counts(corpus.texts)
    shortest = np.full(len(corpus.tags.pair_ids), np.iinfo(np.int64).max)
    np.minimum.at(shortest, codes[codes >= 0], counts[codes >= 0])
    texts = list(corpus.texts)
    for row in np.flatnonzero((codes >= 0) & (counts > shortest[codes])):
        texts[row] = cut_to_words(texts[row], int(shortest[codes[row]]))
    return Corpus(texts=tuple(texts), tags=corpus.tags)


def source_text_statistics(
    corpus: Corpus,
    baseline: str,
    *,
    statistics: Sequence[str] = TEXT_STATISTICS,
    confidence_level: float = 0.95,
    sample: int = 2_000,
    rng: np.random.Generator | int = 0,
) -> tuple[TextStatistic, ...]:
    """Summarise the texts of each source, and what rewrites keep of the baseline's texts.

    Parameters
    ----------
    corpus : Corpus
        Untagged documents are left out.
    baseline : str
        The source whose documents are the originals. A document of another source is compared
        with its twins there (the most similar counts); without one it counts for words only.
    statistics, confidence_level, sample, rng
        As for :func:`~rag_sourcebias.infer.texts.text_statistics`.

    Returns
    -------
    tuple of TextStatistic
        The baseline first, then by name of the source.

    Raises
    ------
    DataError
        If no document has the baseline source.
    MissingExtraError
        If documents are paired and the library of a statistic is not installed.
    """
    tags = corpus.tags
    if baseline not in tags.sources:
        raise DataError(
            f"no document has source {baseline!r}; sources are {', '.join(tags.sources) or 'none'}"
        )
    base = tags.sources.index(baseline)
    originals: dict[int, list[str]] = defaultdict(list)
    for row in np.flatnonzero((tags.source_codes == base) & (tags.pair_codes >= 0)):
        originals[int(tags.pair_codes[row])].append(corpus.texts[row])
    held = {
        tags.sources[code]: np.flatnonzero(tags.source_codes == code)
        for code in sorted(range(len(tags.sources)), key=lambda code: code != base)
    }
    if not len(held[baseline]):  # a sub-corpus keeps the names of sources it no longer holds
        raise DataError(f"no document has source {baseline!r} any more in this part of the corpus")
    return text_statistics(
        {source: [corpus.texts[row] for row in rows] for source, rows in held.items() if len(rows)},
        {
            source: [originals.get(int(tags.pair_codes[row]), []) for row in rows]
            for source, rows in held.items()
            if len(rows)
        },
        original=baseline,
        statistics=statistics,
        confidence_level=confidence_level,
        sample=sample,
        rng=rng,
    )


# The verb: retrieve with given retrievers, then measure source bias.


def audit_source(
    dataset: Dataset,
    retrievers: Sequence[RetrieverSpec],
    *,
    config: AuditConfig | None = None,
    depth: int = 100,
    sole_corpus: bool = True,
    length_matched: bool | None = None,
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
    length_matched : bool, optional
        Also retrieve from a corpus whose pairs are cut to equal length; needs paired documents. By
        default with BM25, and with others up to 5,000 documents: half of all texts are encoded
        again.
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
    require_plan([spec.name for spec in retrievers], depth, config)
    separate = dataset.corpus.tags
    if config.merge_llms:
        dataset = replace(dataset, corpus=replace(dataset.corpus, tags=merge_llms(separate)))
    require_sources(dataset.corpus.tags, config.baseline_source)
    dependence = Dependence.of(
        dataset.qrels,
        dataset.corpus.tags,
        clusters,
        merged_from=separate if config.merge_llms else None,
    )
    paired = bool(np.any(dataset.corpus.tags.pair_codes >= 0))
    work = _Work(dataset, config, depth, dependence, on_stage or (lambda _: None))
    systems: list[SystemSkew] = []
    left_out = False
    for spec in retrievers:
        controls = rerank_controls or not isinstance(spec, RerankedSpec)
        controls &= not isinstance(
            spec, ApplicationSpec | FinishedRun
        )  # it holds the documents that it holds
        systems += work.mixed(
            spec, with_sole_corpus=sole_corpus and controls, with_strip=settings_strip
        )
        small = isinstance(spec, BM25Spec) or len(dataset.corpus) <= LENGTH_MATCHED_UP_TO
        if paired and controls and (small if length_matched is None else length_matched):
            systems.append(work.length_matched(spec))
        left_out |= paired and controls and length_matched is None and not small
    data = summarise_dataset(dataset)
    findings = list(data_warnings(data, dataset.qrels, dataset.corpus.tags, config))
    for spec in retrievers:
        first = spec.first if isinstance(spec, RerankedSpec) else spec
        foreign = first.language_warning(dataset.corpus) if isinstance(first, BM25Spec) else None
        if foreign is not None:
            findings.append(foreign)
    if left_out:
        findings.append(SourceCode.NOT_REPEATED(severity="warning"))
    report = assemble(systems, data, config, findings=findings)
    if not text_statistics:
        return report
    work.on_stage("describing texts")
    return replace(
        report,
        text_statistics=source_text_statistics(
            dataset.corpus,
            config.baseline_source,
            confidence_level=config.confidence_level,
            rng=config.seed,
        ),
    )


def require_plan(names: Sequence[str], depth: int, config: AuditConfig) -> None:
    """Refuse too few documents per query, and retrievers that names do not tell apart."""
    if depth < max(config.cutoffs):
        raise DataError(
            f"depth {depth} is smaller than the largest cutoff {max(config.cutoffs)}; retrieve at "
            "least that many documents"
        )
    if not names or len(set(names)) != len(names):
        raise DataError(f"give one or more retrievers with different names, got {names}")


LENGTH_MATCHED_UP_TO = 5_000
"""Documents up to which encoding half of them again is a matter of a minute or two."""


def alone_checks(
    search: Callable[[str], Run], qrels: Qrels, tags: TagTable, config: AuditConfig
) -> tuple[SoleCorpusCheck, ...]:
    """Compare quality on the corpus of each source alone ([K] Table 2), paired per query."""
    codes = source_codes_for(qrels.doc_ids, tags)[qrels.doc_codes]
    alone = {
        source: score_run(
            search(source),
            qrels.take(codes == code),
            measures=config.measures,
            cutoffs=config.cutoffs,
            ties=config.ties,
            gain=config.gain,
        )
        for code, source in enumerate(tags.sources)
    }
    base = alone.pop(config.baseline_source)
    checks = []
    for other, scores in alone.items():
        for measure in base.measures:
            of_base, of_other = base.of(measure, "all"), scores.of(measure, "all")
            gaps = of_base - of_other
            queries = np.arange(len(gaps))
            checks.append(
                SoleCorpusCheck(
                    measure=measure,
                    baseline=config.baseline_source,
                    other=other,
                    mean_baseline=float(of_base.mean()),
                    mean_other=float(of_other.mean()),
                    difference=if_enough(
                        clustered_difference,
                        gaps,
                        queries,
                        confidence_level=config.confidence_level,
                    ),
                    p_value=difference_test(gaps, queries),
                )
            )
    return tuple(checks)


BM25_SETTINGS = ((0.9, 0.4), (1.2, 0.75), (1.5, 0.0), (1.5, 0.75), (1.5, 1.0), (2.0, 0.75))
"""Values of k1 and b in use (Anserini, Lucene, this library, the paper) and the ends of b."""


@dataclass(frozen=True, slots=True)
class _Work:
    dataset: Dataset
    config: AuditConfig
    depth: int
    dependence: Dependence
    on_stage: Callable[[str], None]

    def mixed(
        self, spec: RetrieverSpec, *, with_sole_corpus: bool, with_strip: bool
    ) -> list[SystemSkew]:
        corpus = self.dataset.corpus
        self.on_stage(f"{spec.name}: indexing {len(corpus):,} documents")
        retriever = spec.build(corpus)
        self.on_stage(f"{spec.name}: retrieving for {len(self.dataset.queries):,} queries")
        run = retriever.retrieve(self.dataset.queries, self.depth)
        checks = (
            alone_checks(partial(self._alone, spec), self.dataset.qrels, corpus.tags, self.config)
            if with_sole_corpus
            else ()
        )
        notes = [*retriever.notes] if isinstance(retriever, ApplicationRetriever) else []
        systems: list[SystemSkew] = []
        if isinstance(retriever, ApproximateRetriever):
            self.on_stage(f"{spec.name}: exact search for comparison")
            full = retriever.exact().retrieve(self.dataset.queries, self.depth)
            top = max(self.config.cutoffs)
            share = agreement(run, full, top)
            notes.append(SourceCode.APPROXIMATE(share=share, cutoff=top))
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
            found += settings_row(
                self._search(replace(spec, k1=k1, b=b), self.dataset.corpus),
                self.dataset.qrels,
                self.dataset.corpus.tags,
                self.config,
                dependence=self.dependence,
                name=name,
            )
        return tuple(found)

    def length_matched(self, spec: RetrieverSpec) -> SystemSkew:
        self.on_stage(f"{spec.name}: pairs cut to equal length")
        corpus = match_lengths(self.dataset.corpus)
        return self._measure(self._search(spec, corpus), spec, corpus, variant="length-matched")

    def _measure(
        self,
        run: Run,
        spec: RetrieverSpec,
        corpus: Corpus,
        *,
        variant: Variant = "mixed",
        sole_corpus: tuple[SoleCorpusCheck, ...] = (),
        notes: Sequence[Finding] = (),
    ) -> SystemSkew:
        system = measure_system(
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
        if variant != "mixed":
            return system
        return replace(
            system,
            evidence=evidence_of(
                system,
                run,
                self.dataset.qrels,
                corpus.tags,
                self.config,
                corpus=corpus,
                queries=self.dataset.queries,
            ),
        )

    def _alone(self, spec: RetrieverSpec, source: str) -> Run:
        self.on_stage(f"{spec.name}: {source} documents alone")
        return self._search(spec, self.dataset.corpus.of_source(source))

    def _search(self, spec: RetrieverSpec, corpus: Corpus) -> Run:
        return spec.build(corpus).retrieve(self.dataset.queries, self.depth)


def agreement(run: Run, exact: Run, k: int) -> float:
    """Share of the exact top-k documents that the run's top k holds, over all queries."""
    found = {(r.query_id, d) for r in run.top(k) for d in r.doc_ids}
    wanted = [(r.query_id, d) for r in exact.top(k) for d in r.doc_ids]
    return sum(pair in found for pair in wanted) / max(len(wanted), 1)
