"""The verb: is a paired corpus what an audit of source bias needs ([K] §2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rag_sourcebias.audit.data_summary import summarise, summarise_dataset
from rag_sourcebias.audit.environment import environment
from rag_sourcebias.audit.pairs_criteria import PairRows, criteria_of, pair_rows
from rag_sourcebias.audit.pairs_sole import adjusted_tests, sole_corpus_tests
from rag_sourcebias.audit.pairs_values import source_pairs
from rag_sourcebias.audit.pairs_warnings import pair_warnings
from rag_sourcebias.audit.system import require_sources
from rag_sourcebias.corpora.check_thresholds import threshold_reasons
from rag_sourcebias.corpora.checks import check_pairs
from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder, RetrieverSpec
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import Corpus, TagTable
from rag_sourcebias.types.pair_checks import PairChecks, PairThresholds
from rag_sourcebias.types.pair_report import PairCheckConfig, PairReport, SourcePairs
from rag_sourcebias.types.pair_tests import SoleCorpusTest
from rag_sourcebias.types.relevance import Qrels
from rag_sourcebias.types.reports import AuditConfig, DataSummary

__all__ = ["check_paired_corpus"]

_FAMILY = (
    "Holm correction over all retrievers × measures × cutoffs × sources, tests of no difference "
    "and tests of equivalence each among themselves"
)


def check_paired_corpus(
    data: Dataset | Corpus,
    *,
    baseline_source: str = "human",
    sources: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    retrievers: Sequence[RetrieverSpec] = (),
    thresholds: PairThresholds | None = None,
    config: PairCheckConfig | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_checks: Callable[[str, PairChecks], None] | None = None,
) -> PairReport:
    """Validate a paired corpus: the criteria of [K] §2, every pair, and each corpus alone.

    Parameters
    ----------
    data : Dataset or Corpus
        A corpus has no judgments: whether labels were copied is then not checked.
    baseline_source : str
    sources : sequence of str, optional
        Sources to check against the baseline; all others by default.
    encoder : Encoder, optional
        For the cosine of every pair ([K] Fig. 5); "unrelated" is judged by word overlap without.
    retrievers : sequence of RetrieverSpec
        Each searches the paired documents of the baseline alone and of the other source alone;
        differences and their equivalence within a margin are tested, paired by query ([K] Table
        2). Names must differ.
    thresholds : PairThresholds, optional
    config : PairCheckConfig, optional
    on_stage : callable, optional
        Told what begins, for progress display.
    on_checks : callable, optional
        Given each source and all values of its pairs, which the report itself does not keep.

    Returns
    -------
    PairReport

    Raises
    ------
    DataError
        If the baseline or a source is missing, no document has a counterpart, names of retrievers
        repeat, or retrievers are given without judgments.
    MissingTagsError
        If no document has a source.
    """
    config, thresholds = config or PairCheckConfig(), thresholds or PairThresholds()
    begin = on_stage or (lambda _: None)
    corpus, dataset = (data.corpus, data) if isinstance(data, Dataset) else (data, None)
    _check_retrievers(retrievers, dataset)
    rows = _rows_of(corpus.tags, baseline_source, sources)
    work = _Checks(
        corpus=corpus,
        qrels=None if dataset is None else dataset.qrels,
        encoder=encoder,
        thresholds=thresholds,
        config=config,
    )
    parts: list[SourcePairs] = []
    tests: list[SoleCorpusTest] = []
    for source, found in rows.items():
        begin(f"{source}: checking {len(found.baseline):,} pairs")
        checks, part = work.of_source(source, found)
        parts.append(part)
        if on_checks is not None:
            on_checks(source, checks)
        if dataset is not None and retrievers:
            tests += sole_corpus_tests(
                dataset, found, retrievers, config, sources=(baseline_source, source),
                n_tests=len(rows) * len(retrievers) * len(config.measures) * len(config.cutoffs),
                on_stage=begin,
            )  # fmt: skip
    return PairReport(
        data=_summary(data),
        baseline_source=baseline_source,
        config=config,
        sources=tuple(parts),
        thresholds=thresholds,
        threshold_reasons=threshold_reasons(thresholds),
        sole_corpus=adjusted_tests(tests),
        family=_FAMILY if tests else "",
        n_tests=sum(test.p_equivalent is not None for test in tests),
        encoder="" if encoder is None else encoder.name,
        settings=_settings(encoder, retrievers),
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        warnings=tuple(
            pair_warnings(dataset if retrievers else None, rows, parts, baseline_source)
        ),
    )


def _check_retrievers(retrievers: Sequence[RetrieverSpec], dataset: Dataset | None) -> None:
    names = [spec.name for spec in retrievers]
    if len(set(names)) < len(names):
        raise DataError(f"names of retrievers must differ, got {names}")
    if names and (dataset is None or not len(dataset.qrels)):
        raise DataError(
            f"retrievers {names} need queries and judgments, which this corpus does not have; "
            "give a data set with both, or no retriever"
        )


def _rows_of(tags: TagTable, baseline: str, sources: Sequence[str] | None) -> dict[str, PairRows]:
    require_sources(tags, AuditConfig(baseline_source=baseline))
    others = [name for name in tags.sources if name != baseline]
    wrong = [name for name in sources or () if name not in others]
    if wrong or (sources is not None and not sources):
        raise DataError(f"no other source {wrong or list(sources or ())}; there are {others}")
    chosen = others if sources is None else list(dict.fromkeys(sources))
    rows = {source: pair_rows(tags, baseline, source) for source in chosen}
    if not any(len(found.baseline) for found in rows.values()):
        first = [tags.doc_ids[rows[chosen[0]].baseline_alone[0]]]
        first += [tags.doc_ids[found.other_alone[0]] for found in rows.values()]
        raise DataError(
            f"no document of {baseline!r} has a counterpart in {', '.join(map(repr, chosen))}: "
            "versions of a document need the same _id in corpus/<source>.jsonl, or the same "
            f"pair_id; the first documents are {first}"
        )
    return rows


@dataclass(frozen=True, kw_only=True)
class _Checks:
    """How the pairs of every source are checked."""

    corpus: Corpus
    qrels: Qrels | None
    encoder: Encoder | None
    thresholds: PairThresholds
    config: PairCheckConfig

    def of_source(self, source: str, rows: PairRows) -> tuple[PairChecks, SourcePairs]:
        """Check the pairs of one source."""
        tags = self.corpus.tags
        baseline, other = (
            [self.corpus.texts[row] for row in side] for side in (rows.baseline, rows.other)
        )
        checks = check_pairs(
            baseline,
            other,
            pair_ids=[tags.pair_ids[code] for code in tags.pair_codes[rows.baseline]],
            encoder=self.encoder,
            thresholds=self.thresholds,
        )
        part = source_pairs(
            source,
            checks,
            (baseline, other),
            criteria_of(self.corpus, self.qrels, rows),
            config=self.config,
        )
        return checks, part


def _summary(data: Dataset | Corpus) -> DataSummary:
    if isinstance(data, Dataset):
        return summarise_dataset(data)
    return summarise(
        name="corpus", design="unknown", qrels=Qrels.from_rows(()), tags=data.tags, corpus=data,
        license="", attribution="",
    )  # fmt: skip


def _settings(
    encoder: Encoder | None, retrievers: Sequence[RetrieverSpec]
) -> dict[str, dict[str, str]]:
    found = {spec.name: dict(spec.settings) for spec in retrievers}
    return found if encoder is None else {encoder.name: dict(encoder.settings)} | found
