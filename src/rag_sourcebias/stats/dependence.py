"""What a report says of the data it was measured on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rag_sourcebias.core.arrays import IntArray
from rag_sourcebias.core.data import Corpus, Dataset, Qrels, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.skew import AuditConfig, DataSummary
from rag_sourcebias.stats.ranking import source_codes_for
from rag_sourcebias.stats.texts import mean_words
from rag_sourcebias.stats.twins import count_pairs

# What makes observations depend on one another: queries, clusters, documents, rewriters.


MERGED = "llm"
"""Source of all documents by language models once they are merged."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dependence:
    """Factors that observations share.

    Parameters
    ----------
    query_ids : tuple of str, length nq
    documents : int64 array of shape (len(qrels.doc_ids),)
        Number of each judged document; versions of one document share it.
    rewriters : int64 array of shape (len(qrels.doc_ids),), optional
        Source of each judged document before sources were merged, -1 for those that were not.
    clusters : int64 array of shape (nq,), optional
        Cluster of each query, such as its topic or user session.
    """

    query_ids: tuple[str, ...]
    documents: IntArray
    rewriters: IntArray | None = None
    clusters: IntArray | None = None

    @classmethod
    def of(
        cls,
        qrels: Qrels,
        tags: TagTable,
        clusters: Mapping[str, str] | None,
        *,
        merged_from: TagTable | None = None,
    ) -> Dependence:
        """Gather the factors of judged documents and queries.

        Raises
        ------
        DataError
            If the clusters name queries without judgments or lack some, or hold one query each.
        """
        rows = tags.rows_for(qrels.doc_ids)
        known = rows >= 0
        pair = np.full(len(rows), -1, dtype=np.int64)
        pair[known] = tags.pair_codes[rows[known]]
        alone = len(tags.pair_ids) + np.arange(len(rows))
        rewriters = None
        if merged_from is not None:
            rewriters = np.full(len(rows), -1, dtype=np.int64)
            rewriters[known] = merged_from.source_codes[rows[known]]
            kept = np.array([name in tags.sources for name in merged_from.sources])
            rewriters[(rewriters >= 0) & kept[rewriters]] = -1
        return cls(
            query_ids=qrels.query_ids,
            documents=np.where(pair >= 0, pair, alone),
            rewriters=rewriters,
            clusters=None if clusters is None else _codes(qrels.query_ids, clusters),
        )

    def units(self, query_ids: Sequence[str] | None = None) -> IntArray:
        """Return the unit of each query that is independent of others: itself, or its cluster.

        Queries without judgments are units of their own.
        """
        if query_ids is None:
            query_ids = self.query_ids
        if self.clusters is None:
            return np.arange(len(query_ids))
        code = dict(zip(self.query_ids, self.clusters.tolist(), strict=True))
        beyond = len(self.query_ids)
        return np.array([code.get(q, beyond + i) for i, q in enumerate(query_ids)], dtype=np.int64)

    @property
    def what(self) -> str:
        """The units in words."""
        return "queries" if self.clusters is None else "clusters of queries"


def _codes(query_ids: tuple[str, ...], clusters: Mapping[str, str]) -> IntArray:
    judged = set(query_ids)
    if unknown := [q for q in clusters if q not in judged]:
        raise DataError(
            f"clusters are given for queries without judgments ({len(unknown)}), such as "
            f"{unknown[0]!r}; name those of the qrels"
        )
    if missing := [q for q in query_ids if q not in clusters]:
        raise DataError(
            f"the clusters lack {len(missing)} of {len(query_ids)} judged queries, such as "
            f"{missing[0]!r}; give each query a cluster"
        )
    names = [clusters[q] for q in query_ids]
    unique, codes = np.unique(names, return_inverse=True)
    if len(unique) == len(names) > 1:
        raise DataError(
            f"each of {len(names)} queries has a cluster of its own, which is the same as none; "
            "leave the clusters out, or give related queries one name"
        )
    return codes.astype(np.int64)


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


# What a report says of the data it was measured on.


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
