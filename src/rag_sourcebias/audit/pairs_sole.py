"""Corpora of paired documents searched alone, and whether they are equally hard ([K] Table 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rag_sourcebias.audit.cells import sole_corpus_checks
from rag_sourcebias.audit.pairs_criteria import PairRows
from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference import adjust_p_values
from rag_sourcebias.inference.equivalence import equivalence_test
from rag_sourcebias.measures import score_run
from rag_sourcebias.protocols import RetrieverSpec
from rag_sourcebias.types.arrays import BoolArray
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.pair_report import PairCheckConfig
from rag_sourcebias.types.pair_tests import SoleCorpusTest
from rag_sourcebias.types.reports import AuditConfig, SoleCorpusCheck, SourceScores

__all__ = ["adjusted_tests", "shared_queries", "sole_corpus_tests"]


def shared_queries(dataset: Dataset, rows: PairRows) -> BoolArray:
    """Which judged queries have a text and a relevant document among both versions; shape (nq,)."""
    qrels = dataset.qrels
    doc_rows = dataset.corpus.tags.rows_for(qrels.doc_ids)[qrels.doc_codes]
    with_text = {query.query_id for query in dataset.queries}
    found = np.array([query_id in with_text for query_id in qrels.query_ids], dtype=np.bool_)
    for side in (rows.baseline, rows.other):
        relevant = np.zeros(len(qrels.query_ids), dtype=np.bool_)
        relevant[qrels.query_codes[(qrels.grades > 0) & np.isin(doc_rows, side)]] = True
        found &= relevant
    return found


def sole_corpus_tests(
    dataset: Dataset,
    rows: PairRows,
    retrievers: Sequence[RetrieverSpec],
    config: PairCheckConfig,
    *,
    sources: tuple[str, str],
    n_tests: int,
    on_stage: Callable[[str], None],
) -> list[SoleCorpusTest]:
    """Search the paired documents of each source alone and compare, query by query.

    Only documents with a counterpart are searched, so that both corpora are of one size, and only
    queries with a relevant document in both are compared; in a one-to-one corpus these are all.

    Parameters
    ----------
    sources : (str, str)
        Baseline and other.
    n_tests : int
        In the whole report, for the queries needed after correction.
    """
    kept = shared_queries(dataset, rows)
    wanted = {q for q, keep in zip(dataset.qrels.query_ids, kept, strict=True) if keep}
    queries = [query for query in dataset.queries if query.query_id in wanted]
    if not queries:
        return []
    doc_rows = dataset.corpus.tags.rows_for(dataset.qrels.doc_ids)[dataset.qrels.doc_codes]
    found = []
    for spec in retrievers:
        alone: dict[str, SourceScores] = {}
        for source, side in zip(sources, (rows.baseline, rows.other), strict=True):
            corpus = dataset.corpus.take(side)
            on_stage(f"{spec.name}: {len(corpus):,} documents of {source} alone")
            run = spec.build(corpus).retrieve(queries, config.depth)
            scores = score_run(
                run,
                dataset.qrels.take(np.isin(doc_rows, side)),
                measures=config.measures,
                cutoffs=config.cutoffs,
                ties=config.ties,
                gain=config.gain,
            )
            alone[source] = _only(scores, kept)
        checks = sole_corpus_checks(alone, _audit_config(config, sources[0]))
        found += [_test(spec.name, check, alone, config, n_tests=n_tests) for check in checks]
    return found


def adjusted_tests(
    tests: Sequence[SoleCorpusTest],
) -> tuple[SoleCorpusTest, ...]:
    """Adjust both kinds of tests by Holm, each over all that were made."""
    different = adjust_p_values([test.p_different for test in tests])
    equivalent = adjust_p_values([test.p_equivalent for test in tests])
    return tuple(
        replace(test, p_different_adjusted=d, p_equivalent_adjusted=e)
        for test, d, e in zip(tests, different, equivalent, strict=True)
    )


def _test(
    system: str,
    check: SoleCorpusCheck,
    alone: dict[str, SourceScores],
    config: PairCheckConfig,
    *,
    n_tests: int,
) -> SoleCorpusTest:
    first, second = (alone[s].of(check.measure, "all") for s in (check.baseline, check.other))
    test, needed, refusal = None, None, None
    try:
        test = equivalence_test(first, second, margin=config.margin, level=config.level)
        # Holm asks of the smallest p-value that it passes at the level over the number of tests.
        needed = equivalence_test(
            first, second, margin=config.margin, level=config.level / n_tests
        ).n_needed
    except InsufficientDataError as error:
        refusal, needed = str(error), error.n_needed
    return SoleCorpusTest(
        system=system,
        other=check.other,
        measure=check.measure,
        mean_baseline=check.mean_baseline,
        mean_other=check.mean_other,
        difference=check.difference,
        p_different=check.p_value,
        margin=config.margin,
        level=config.level,
        p_equivalent=None if test is None else test.p_value,
        n_queries=len(first),
        n_needed=needed,
        note=None if test is None else test.note,
        refusal=refusal,
    )


def _only(scores: SourceScores, kept: BoolArray) -> SourceScores:
    return replace(
        scores,
        query_ids=tuple(q for q, keep in zip(scores.query_ids, kept, strict=True) if keep),
        values=np.ascontiguousarray(scores.values[:, :, kept]),
        n_relevant=np.ascontiguousarray(scores.n_relevant[:, kept]),
    )


def _audit_config(config: PairCheckConfig, baseline: str) -> AuditConfig:
    return AuditConfig(
        baseline_source=baseline,
        cutoffs=config.cutoffs,
        measures=config.measures,
        confidence_level=config.confidence_level,
        resamples=config.resamples,
        seed=config.seed,
    )
