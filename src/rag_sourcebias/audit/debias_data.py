"""What a reader must know about the data of a before/after comparison."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.data_summary import data_warnings, summarise_dataset
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.debias_report import DebiasConfig, DebiasOutcome, QualityChange
from rag_sourcebias.types.reports import AuditConfig

__all__ = ["debias_warnings", "judged_pairs", "seen_pairs"]


def judged_pairs(dataset: Dataset, baseline: str, other: str) -> IntArray:
    """Codes of the pairs that both sources have and of which a version is judged relevant."""
    tags, qrels = dataset.corpus.tags, dataset.qrels

    def codes(rows: npt.NDArray[np.bool_]) -> IntArray:
        found = tags.pair_codes[rows & (tags.pair_codes >= 0)]
        return np.unique(found).astype(np.int64)

    of_source = [tags.source_codes == tags.sources.index(name) for name in (baseline, other)]
    rows = tags.rows_for(qrels.doc_ids)[qrels.doc_codes[qrels.grades > 0]]
    relevant = np.zeros(len(tags), dtype=bool)
    relevant[rows[rows >= 0]] = True
    both = np.intersect1d(codes(of_source[0]), codes(of_source[1]), assume_unique=True)
    return np.intersect1d(both, codes(relevant & (of_source[0] | of_source[1])), assume_unique=True)


def seen_pairs(
    dataset: Dataset, baseline: str, pairs: IntArray, fitted_texts: Collection[str]
) -> int:
    """Number of pairs whose baseline version is among the texts that were fitted on."""
    if not fitted_texts or not len(pairs):
        return 0
    corpus = dataset.corpus
    tags = corpus.tags
    rows = np.flatnonzero(
        (tags.source_codes == tags.sources.index(baseline)) & np.isin(tags.pair_codes, pairs)
    )
    seen = [row for row in rows.tolist() if corpus.texts[row] in fitted_texts]
    return len(np.unique(tags.pair_codes[seen])) if seen else 0


def debias_warnings(
    dataset: Dataset, outcomes: Sequence[DebiasOutcome], config: DebiasConfig, *, n_pairs: int
) -> list[str]:
    """List what a reader must know before trusting the numbers of one data set."""
    warnings = data_warnings(
        summarise_dataset(dataset),
        dataset.qrels,
        dataset.corpus.tags,
        AuditConfig(baseline_source=config.baseline_source, cutoffs=config.cutoffs),
        length_adjusted=False,
    )
    seen = max(outcome.n_seen for outcome in outcomes)
    if seen:
        warnings.append(
            f"judged on pairs that a method was fitted on: {seen} of {n_pairs} judged pairs, so "
            "its figures here are optimistic"
        )
    with_text = {query.query_id for query in dataset.queries}
    missing = sum(query_id not in with_text for query_id in dataset.qrels.query_ids)
    if missing:
        warnings.append(
            f"{missing} of {len(dataset.qrels.query_ids)} judged queries have no text: they score "
            "0 and count"
        )
    for outcome in outcomes[1:]:
        undecided = [found for found in outcome.quality if _undecided(found)]
        if undecided:
            warnings.append(_too_few(outcome.name, undecided, config))
    return warnings


def _undecided(found: QualityChange) -> bool:
    """Whether more queries might show that the quality is kept."""
    test = found.test
    return (
        test is not None
        and not test.passed
        and test.n_needed is not None
        and test.n_needed > test.n_queries
        and test.change > -100 * test.relative_margin
    )


def _too_few(name: str, undecided: Sequence[QualityChange], config: DebiasConfig) -> str:
    n = max(found.test.n_queries for found in undecided if found.test is not None)
    needed = ", ".join(
        f"{found.quality} {found.test.n_needed:,}" for found in undecided if found.test is not None
    )
    return (
        f"{name}: {n} queries are too few to prove that NDCG@{config.quality_cutoff} lost less "
        f"than {100 * config.relative_margin:g} %; about so many are needed: {needed}"
    )
