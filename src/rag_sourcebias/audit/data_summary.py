"""What a report says of the data it was measured on."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rag_sourcebias.measures import count_pairs, mean_words, source_codes_for
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import Corpus, TagTable
from rag_sourcebias.types.relevance import Qrels
from rag_sourcebias.types.reports import (
    AuditConfig,
    DataSummary,
)

Design = Literal["rewrites", "independent", "unknown"]


def summarise(
    *,
    name: str,
    design: Design,
    qrels: Qrels,
    tags: TagTable,
    corpus: Corpus | None,
    license: str,
    attribution: str,
) -> DataSummary:
    """Describe the data of a report."""
    return DataSummary(
        name=name,
        design=design,
        n_queries=len(qrels.query_ids),
        n_judgments=len(qrels),
        documents=tags.counts(),
        n_pairs=count_pairs(tags),
        mean_words={} if corpus is None else mean_words(corpus),
        license=license,
        attribution=attribution,
    )


def summarise_dataset(dataset: Dataset) -> DataSummary:
    """Describe a data set."""
    return summarise(
        name=dataset.name,
        design=dataset.design,
        qrels=dataset.qrels,
        tags=dataset.corpus.tags,
        corpus=dataset.corpus,
        license=dataset.license,
        attribution=dataset.attribution,
    )


def data_warnings(
    data: DataSummary,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    length_adjusted: bool = True,
) -> list[str]:
    """List what a reader must know about the data before trusting a number.

    Parameters
    ----------
    length_adjusted : bool
        Whether the report has such figures.
    """
    warnings = []
    elsewhere = ", see the length-adjusted figures" if length_adjusted else ""
    if untagged := data.documents.get("", 0):
        warnings.append(
            f"{untagged} of {tags.n_documents} documents have no source tag: they keep their ranks "
            "but belong to no source"
        )
    outside = int(np.count_nonzero(tags.rows_for(qrels.doc_ids) < 0))
    if outside:
        warnings.append(f"{outside} judged documents have no tag row: they belong to no source")
    warnings += _coverage_warnings(qrels, tags)
    if data.n_queries < 100:
        warnings.append(
            f"{data.n_queries} queries are few: Relative Δ at cutoff {min(config.cutoffs)} is "
            "dominated by noise, read the intervals"
        )
    base = data.mean_words.get(config.baseline_source)
    for source, mean in data.mean_words.items():
        if base and source != config.baseline_source and abs(mean / base - 1) > 0.1:
            warnings.append(
                f"documents of {source} are {abs(mean / base - 1):.0%} "
                f"{'longer' if mean > base else 'shorter'} in words than those of "
                f"{config.baseline_source}: length alone can move a ranking{elsewhere}"
            )
    if data.design == "independent":
        warnings.append(
            "documents of different sources are independent texts, not rewrites: a difference may "
            "be one of content or quality, so it is skew, not source bias proper"
        )
    elif data.design == "unknown" and not data.n_pairs:
        warnings.append(
            "documents are not paired across sources: a difference may be one of content or quality"
        )
    return warnings


def _coverage_warnings(qrels: Qrels, tags: TagTable) -> list[str]:
    """Name sources without relevant documents for some queries."""
    codes = source_codes_for(qrels.doc_ids, tags)[qrels.doc_codes]
    relevant = qrels.grades > 0
    result = []
    for code, source in enumerate(tags.sources):
        having = len(np.unique(qrels.query_codes[relevant & (codes == code)]))
        missing = len(qrels.query_ids) - having
        if missing:
            result.append(
                f"{missing} of {len(qrels.query_ids)} queries have no relevant document of "
                f"{source}: they score 0 for it in the published Relative Δ, the centred one "
                "leaves them out"
            )
    return result
