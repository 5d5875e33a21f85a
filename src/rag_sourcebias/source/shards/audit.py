"""The verb: measure source bias on a corpus that is worked on shard by shard."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rag_sourcebias.core.data import Qrels, Run, TagTable
from rag_sourcebias.core.finding import Finding
from rag_sourcebias.core.protocols import Encoder, Engine
from rag_sourcebias.intake.beir import assemble_judged, rows_as_judged
from rag_sourcebias.measure.texts import CopyCode, DataSummary, data_warnings, mean_words
from rag_sourcebias.retrieval.search import best_run
from rag_sourcebias.retrieval.shards import ShardedDataset
from rag_sourcebias.source.audit import (
    LENGTH_MATCHED_UP_TO,
    alone_checks,
    assemble,
    measure_system,
    require_plan,
)
from rag_sourcebias.source.findings import AuditConfig, SourceCode, SystemSkew, Variant
from rag_sourcebias.source.page import SkewReport
from rag_sourcebias.source.shards.facts import AlignedCorpus, CorpusFacts, WorkFolder, cut
from rag_sourcebias.source.shards.work import (
    MIXED,
    Job,
    Known,
    LocalEngine,
    ShardedRetriever,
)

# From what was found to the entries of a report.


class Measured(NamedTuple):
    """What was measured of one retriever, and the judgments and tags of the excerpt it was on."""

    system: SystemSkew
    qrels: Qrels
    tags: TagTable


def measured(
    job: Job,
    known: Known,
    retriever: ShardedRetriever,
    encoder: Encoder | None,
    config: AuditConfig,
    *,
    alone: bool = False,
    variant: Variant = "mixed",
) -> Measured:
    """Search a corpus and measure what was found; its evidence has ids and ranks, no texts."""
    found = job.find(known, retriever, encoder, alone=alone)
    dataset, tags = job.dataset, found.corpus.tags
    query_ids = [query.query_id for query in dataset.queries]
    qrels = assemble_judged(  # in the order of a data set in memory
        dataset.judged,
        query_ids=query_ids,
        doc_ids=tags.doc_ids,
        rows=rows_as_judged(map(dataset.corpus.judged_as, tags.doc_ids)),
        where=dataset.where,
    )

    def run(view: str) -> Run:
        best = found.best[view]
        best = replace(best, row=np.searchsorted(found.rows, best.row))
        return best_run(best, query_ids=query_ids, doc_ids=tags.doc_ids, name=retriever.name)

    job.begin(f"{retriever.name}: measuring")
    system = measure_system(
        run(MIXED),
        qrels,
        tags,
        config,
        corpus=found.corpus,
        settings=retriever.settings(encoder),
        variant=variant,
        sole_corpus=alone_checks(run, qrels, tags, config) if alone else (),
    )
    return Measured(system, qrels, tags)


# The verb: measure source bias on a corpus that is worked on shard by shard.


SHARD_DOCUMENTS = 8_192


def audit_source_sharded(
    dataset: ShardedDataset,
    retrievers: Sequence[ShardedRetriever],
    *,
    work_folder: str | Path,
    engine: Engine | None = None,
    config: AuditConfig | None = None,
    depth: int = 100,
    shard_documents: int = SHARD_DOCUMENTS,
    sole_corpus: bool = True,
    length_matched: bool | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> SkewReport:
    """Measure source bias on a corpus of any size, a shard at a time or many at once.

    The numbers are those of :func:`~rag_sourcebias.source.audit_source` with the same encoder, to
    the last digit, whatever the engine, the number of workers and the size of the shards.

    Parameters
    ----------
    dataset : ShardedDataset
        See :func:`rag_sourcebias.intake.open_sharded`.
    retrievers : sequence of ShardedRetriever
        Names must differ.
    work_folder : path
        Where vectors and what was found are kept. An audit that was stopped goes on from there;
        one with another encoder reuses what does not depend on it. About 4 bytes per dimension and
        document. All workers must see it under this path.
    engine : Engine, optional
        :class:`LocalEngine` by default: one shard after another.
    config : AuditConfig, optional
    depth : int
        Documents retrieved per query; at least the largest cutoff.
    shard_documents : int
        Documents of a shard, rounded up to a multiple of 1,024; 8,192 by default.
    sole_corpus : bool
        Also search the documents of each source alone ([K] Table 2), exactly.
    length_matched : bool, optional
        Also measure with pairs cut to equal length, where documents are paired and vectors are not
        given. By default up to 5,000 documents: half of all texts are encoded again.
    on_stage : callable, optional
        Told what begins.
    on_done : callable, optional
        Told ``(done, total)`` shards of a stage.

    Raises
    ------
    DataError
        If the data, the sources or the settings do not allow a comparison, or the work folder
        cannot be used.
    """
    config = config or AuditConfig()
    require_plan([one.name for one in retrievers], depth, config)
    job = Job(
        dataset,
        WorkFolder.opened(Path(work_folder).absolute()),
        engine or LocalEngine(),
        depth,
        on_stage or (lambda _: None),
        on_done,
    )
    corpus = AlignedCorpus(dataset.corpus, shard_documents)
    known = job.scanned(corpus, "reading the corpus")
    facts = known.facts
    nothing = TagTable.from_tags([])
    excerpt = replace(nothing, sources=facts.sources, whole=facts.counts())
    excerpt.require_sources(config.baseline_source)
    given = [one.vectors is not None for one in retrievers]
    matching, left_out = _equal_lengths(length_matched, facts, given)
    systems: list[SystemSkew] = []
    for retriever in retrievers:
        # For queries and settings; every worker makes its own.
        encoder = None if retriever.make_encoder is None else retriever.make_encoder()
        deployed = measured(job, known, retriever, encoder, config, alone=sole_corpus)
        systems.append(deployed.system)
        if matching and retriever.vectors is None:
            shortest = job.scanned(
                cut(corpus, facts, known.folder.sub("words-kept")),
                f"{retriever.name}: pairs cut to equal length",
            )
            cut_short = measured(
                job, shortest, retriever, encoder, config, variant="length-matched"
            )
            systems.append(cut_short.system)
    data = DataSummary(
        name=dataset.name,
        design=dataset.design,
        n_queries=len(dataset.queries),
        n_judgments=len(deployed.qrels),
        documents=facts.counts(),
        n_pairs=facts.n_pairs(),
        mean_words=mean_words(facts.words, facts.sources, facts.source_codes),
        license=dataset.license,
        attribution=dataset.attribution,
    )
    findings = data_warnings(data, deployed.qrels, deployed.tags, config)
    if len(facts.sources) > 2:
        left_out.append(SourceCode.ONE_INDEX(severity="warning"))
    report = assemble(
        systems, data, config, findings=[*findings, CopyCode.NOT_COLLAPSED(), *left_out]
    )
    return replace(report, environment={**report.environment, **job.engine.settings})


def _equal_lengths(
    asked: bool | None, facts: CorpusFacts, given: Sequence[bool]
) -> tuple[bool, list[Finding]]:
    """Whether to repeat the audit at equal length, and what to say of retrievers left out."""
    if not np.any(facts.pair > 0):
        return False, []
    small = len(facts) <= LENGTH_MATCHED_UP_TO
    matching = small if asked is None else asked
    left_out = []
    if asked is None and not (small or all(given)):
        left_out.append(SourceCode.NOT_REPEATED(severity="warning"))
    if matching and any(given):
        left_out.append(SourceCode.NOT_CUT(severity="warning"))
    return matching, left_out
