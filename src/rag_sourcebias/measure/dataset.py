"""What a data set holds of each source, and what of it limits a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from rag_sourcebias.core.data import Corpus, Dataset, Qrels, TagTable
from rag_sourcebias.core.errors import DataError, MissingTagsError
from rag_sourcebias.measure.relevance import source_codes_for
from rag_sourcebias.measure.texts import word_counts

Design = Literal["rewrites", "independent", "unknown"]


@dataclass(frozen=True, kw_only=True)
class DataSummary:
    """The data behind a report.

    Parameters
    ----------
    documents : mapping of str to int
        Number of documents per source; ``""`` counts untagged ones.
    n_pairs : int
        Groups of documents that are versions of one another across sources.
    mean_words : mapping of str to float
        Mean document length in words per source; empty when no texts were given.
    origins : mapping of str to int
        Documents by how their tags are known; empty where all are declared.
    """

    name: str
    design: Design
    n_queries: int
    n_judgments: int
    documents: Mapping[str, int]
    n_pairs: int
    mean_words: Mapping[str, float]
    license: str = ""
    attribution: str = ""
    origins: Mapping[str, int] = field(default_factory=dict)


def count_pairs(tags: TagTable) -> int:
    """Number of ``pair_id`` values shared by documents of more than one source."""
    paired = (tags.pair_codes >= 0) & (tags.source_codes >= 0)
    members = np.unique(np.stack((tags.pair_codes[paired], tags.source_codes[paired])), axis=1)
    return int(np.count_nonzero(np.bincount(members[0]) > 1))


def mean_words(corpus: Corpus) -> dict[str, float]:
    """Mean document length in words per source."""
    counts = word_counts(corpus.texts)
    codes = corpus.tags.source_codes
    return {
        source: float(counts[codes == code].mean())
        for code, source in enumerate(corpus.tags.sources)
        if np.any(codes == code)  # a sub-corpus keeps the names of sources it no longer holds
    }


def summarise(
    *,
    name: str,
    design: Design,
    qrels: Qrels,
    tags: TagTable,
    corpus: Corpus | None,
    license: str = "",
    attribution: str = "",
) -> DataSummary:
    """Describe the data of a report."""
    return DataSummary(
        name=name,
        design=design,
        n_queries=len(qrels.query_ids),
        n_judgments=len(qrels),
        documents=tags.counts(),
        origins=_origins(tags),
        n_pairs=count_pairs(tags),
        mean_words={} if corpus is None else mean_words(corpus),
        license=license,
        attribution=attribution,
    )


def _origins(tags: TagTable) -> dict[str, int]:
    found = Counter(filter(None, tags.origins or ()))
    return {} if found.keys() <= {"declared"} else {str(k): n for k, n in sorted(found.items())}


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


class Compared(Protocol):
    """Settings of a comparison of sources."""

    @property
    def baseline_source(self) -> str:
        """Source that the others are compared with."""

    @property
    def cutoffs(self) -> tuple[int, ...]:
        """Cutoffs k."""


def data_warnings(
    data: DataSummary,
    qrels: Qrels,
    tags: TagTable,
    config: Compared,
    *,
    length_adjusted: bool = True,
    guessed: bool = False,
) -> list[str]:
    """List what a reader must know about the data before trusting a number.

    Parameters
    ----------
    length_adjusted : bool
        Whether the report has such figures.
    guessed : bool
        Tags are of relevant documents only and may be wrong: nothing is said that rests on one.
    """
    warnings: list[str] = []
    elsewhere = ", see the length-adjusted figures" if length_adjusted else ""
    if untagged := data.documents.get("", 0):
        warnings.append(
            f"{untagged} of {tags.n_documents} documents have no source tag: they keep their ranks "
            "but belong to no source"
        )
    outside = np.count_nonzero(tags.rows_for(qrels.doc_ids) < 0)
    if outside and not guessed:
        warnings.append(f"{outside} judged documents have no tag row: they belong to no source")
    codes = source_codes_for(qrels.doc_ids, tags)[qrels.doc_codes]
    for code, source in enumerate(() if guessed else tags.sources):
        having = np.unique(qrels.query_codes[(qrels.grades > 0) & (codes == code)])
        if missing := len(qrels.query_ids) - len(having):
            warnings.append(
                f"{missing} of {len(qrels.query_ids)} queries have no relevant document of "
                f"{source}: they score 0 for it in the published Relative Δ, the centred one "
                "leaves them out"
            )
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


def require_sources(tags: TagTable, baseline: str) -> None:
    """Refuse tags that allow no comparison with the baseline.

    Raises
    ------
    MissingTagsError
        If no document has a source tag.
    DataError
        If the baseline, or any other source, is missing.
    """
    if not tags.sources:
        raise MissingTagsError(
            f"none of {tags.n_documents} documents has a source tag; tags name it for each id, as "
            '"human" or "llm:<model>"'
        )
    if baseline not in tags.sources:
        raise DataError(
            f"no document has the baseline source {baseline!r}; sources are {list(tags.sources)}"
        )
    if len(tags.sources) < 2:
        raise DataError(
            f"only source {tags.sources[0]!r} is tagged; a comparison needs a second source"
        )
