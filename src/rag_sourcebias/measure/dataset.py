"""What a data set holds of each source, and what of it limits a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from rag_sourcebias.core.data import Corpus, Dataset, Qrels, TagTable
from rag_sourcebias.core.errors import DataError, MissingTagsError
from rag_sourcebias.core.finding import Code, Finding
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


class DataCode(Code, home="data"):
    """What limits a comparison of sources."""

    UNTAGGED = (
        "Documents without a source tag: {n} of {n_all}. They keep their ranks but belong to no "
        "source."
    )
    NOT_LISTED = "Judged documents without a tag row: {n}. They belong to no source."
    NO_RELEVANT = (
        "Queries without a relevant document of {source}: {n} of {n_all}. They score 0 for it in "
        "the published Relative Δ; the centred one leaves them out."
    )
    FEW_QUERIES = (
        "{n:query is|queries are} few: Relative Δ at cutoff {cutoff} is dominated by noise, read "
        "the intervals."
    )
    LENGTH = (
        "Documents of {source} have {ratio:2} times as many words as those of {baseline}: length "
        "alone can move a ranking."
    )
    INDEPENDENT = (
        "Documents of different sources are independent texts, not rewrites: a difference may be "
        "one of content or quality, so it is skew, not source bias proper."
    )
    UNPAIRED = (
        "Documents are not paired across sources: a difference may be one of content or quality."
    )


_FEW = 100  # queries below which one of them moves Relative Δ at a small cutoff by points
_LONGER = 0.1  # of the baseline's mean length, in either direction


def data_warnings(
    data: DataSummary, qrels: Qrels, tags: TagTable, config: Compared, *, guessed: bool = False
) -> tuple[Finding, ...]:
    """Return what a reader must know about the data before trusting a number.

    Parameters
    ----------
    guessed : bool
        Tags are of relevant documents only and may be wrong: nothing is said that rests on one.
    """
    found: list[Finding] = []
    untagged = data.documents.get("", 0)
    if untagged:
        found.append(DataCode.UNTAGGED(severity="warning", n=untagged, n_all=tags.n_documents))
    if not guessed:
        found += _about_tags(qrels, tags)
    found += _about_texts(data, config)
    return tuple(found)


def _about_tags(qrels: Qrels, tags: TagTable) -> Iterator[Finding]:
    outside = int(np.count_nonzero(tags.rows_for(qrels.doc_ids) < 0))
    if outside:
        yield DataCode.NOT_LISTED(severity="warning", n=outside)
    codes = source_codes_for(qrels.doc_ids, tags)[qrels.doc_codes]
    n_queries = len(qrels.query_ids)
    for code, source in enumerate(tags.sources):
        having = np.unique(qrels.query_codes[(qrels.grades > 0) & (codes == code)])
        if len(having) < n_queries:
            yield DataCode.NO_RELEVANT(
                severity="warning", source=source, n=n_queries - len(having), n_all=n_queries
            )


def _about_texts(data: DataSummary, config: Compared) -> Iterator[Finding]:
    if data.n_queries < _FEW:
        yield DataCode.FEW_QUERIES(severity="warning", n=data.n_queries, cutoff=min(config.cutoffs))
    baseline = config.baseline_source
    for source, mean in data.mean_words.items():
        ratio = mean / (data.mean_words.get(baseline) or mean or 1)
        if abs(ratio - 1) > _LONGER:
            yield DataCode.LENGTH(severity="warning", source=source, ratio=ratio, baseline=baseline)
    if data.design == "independent":
        yield DataCode.INDEPENDENT(severity="warning")
    elif data.design == "unknown" and not data.n_pairs:
        yield DataCode.UNPAIRED(severity="warning")


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
