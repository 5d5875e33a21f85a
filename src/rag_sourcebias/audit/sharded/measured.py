"""From what was found to the entries of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_sourcebias.audit.cells import sole_corpus_checks
from rag_sourcebias.audit.dataset import agreement
from rag_sourcebias.audit.sharded.retriever import ShardedRetriever
from rag_sourcebias.audit.sharded.search import MIXED
from rag_sourcebias.audit.sharded.work import Found
from rag_sourcebias.audit.system import Variant, measure_system
from rag_sourcebias.io import ShardedDataset, assemble_judged, rows_as_judged
from rag_sourcebias.measures import score_run, source_codes_for
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.types.documents import TagTable
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels
from rag_sourcebias.types.reports import AuditConfig, SoleCorpusCheck, SystemSkew

__all__ = ["Measured", "judgments_of"]


def judgments_of(dataset: ShardedDataset, found: Found) -> Qrels:
    """Judgments of the documents that were read, in the order of a data set in memory."""
    doc_ids = found.excerpt.corpus.doc_ids
    return assemble_judged(
        dataset.judged,
        query_ids=[query.query_id for query in dataset.queries],
        doc_ids=doc_ids,
        rows=rows_as_judged(doc_ids, dataset.corpus.judged_as),
        where=dataset.where,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Measures the runs of one retriever over one excerpt.

    Parameters
    ----------
    found : Found
    qrels : Qrels
        Of the documents of the excerpt.
    """

    found: Found
    qrels: Qrels
    dataset: ShardedDataset
    retriever: ShardedRetriever
    encoder: Encoder | None
    config: AuditConfig
    depth: int

    @property
    def tags(self) -> TagTable:
        """Tags of the excerpt, with the counts of the whole corpus."""
        return self.found.excerpt.corpus.tags

    def run(self, view: str = MIXED, *, depth: int | None = None) -> Run:
        """Run of a view, cut at the depth of the audit."""
        queries = [query.query_id for query in self.dataset.queries]
        run = self.found.excerpt.run(
            self.found.best[view], query_ids=queries, name=self.retriever.name
        )
        return run.top(depth or self.depth)

    def system(
        self,
        run: Run,
        *,
        variant: Variant = "mixed",
        sole_corpus: tuple[SoleCorpusCheck, ...] = (),
        notes: Sequence[str] = (),
    ) -> SystemSkew:
        """Measure one run."""
        corpus = self.found.excerpt.corpus
        return measure_system(
            run,
            self.qrels,
            corpus.tags,
            self.config,
            corpus=corpus,
            settings=self.retriever.settings(self.encoder),
            variant=variant,
            sole_corpus=sole_corpus,
            notes=notes,
        )

    def deployed(self, approximate: Measured | None, *, alone: bool) -> Iterator[SystemSkew]:
        """Measure what an index found beside what exact search finds."""
        checks = self._alone() if alone else ()
        full = self.run()
        if approximate is None:
            yield self.system(full, sole_corpus=checks)
            return
        run = approximate.run()
        top = max(self.config.cutoffs)
        share = agreement(run, full, top)
        note = f"the approximate index returned {share:.1%} of the exact top {top}"
        yield approximate.system(run, sole_corpus=checks, notes=[note])
        if share < 1:
            yield self.system(full, variant="exact")

    def _alone(self) -> tuple[SoleCorpusCheck, ...]:
        tags = self.found.excerpt.corpus.tags
        codes = source_codes_for(self.qrels.doc_ids, tags)[self.qrels.doc_codes]
        alone = {
            source: score_run(
                self.run(source),
                self.qrels.take(codes == code),
                measures=self.config.measures,
                cutoffs=self.config.cutoffs,
                ties=self.config.ties,
                gain=self.config.gain,
            )
            for code, source in enumerate(tags.sources)
        }
        return sole_corpus_checks(alone, self.config)
