"""Which rows of a corpus are two versions of one document."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.errors import DataError, MissingTagsError
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.documents import Corpus, TagTable
from rag_sourcebias.types.relevance import Qrels

__all__ = [
    "PairRows",
    "complete_pairs",
    "pair_codes",
    "paired_sources",
    "relevant_pairs",
    "source_of",
]


def paired_sources(tags: TagTable, *, baseline: str = "human") -> tuple[str, ...]:
    """Sources that have a document with the pair id of a document of the baseline.

    Raises
    ------
    MissingTagsError
        If no document has a source.
    DataError
        If the data is one-sided: no document of the baseline, or none of another source.
    """
    if not tags.sources:
        raise MissingTagsError(
            "no document has a source tag; twins take documents of two sources, such as "
            f'"{baseline}" and "llm:<model>"'
        )
    if baseline not in tags.sources:
        raise DataError(
            f"one-sided data: no document has the baseline source {baseline!r}, sources are "
            f"{list(tags.sources)}; add its documents, or name one of these as baseline"
        )
    if len(tags.sources) == 1:
        raise DataError(
            f"one-sided data: {baseline!r} is the only source of {len(tags)} documents; add the "
            "rewrites of a language model, tagged with their source and the pair_id of the original"
        )
    paired = tags.pair_codes >= 0
    ours = np.zeros(len(tags.pair_ids) + 1, dtype=bool)
    ours[tags.pair_codes[paired & (tags.source_codes == tags.sources.index(baseline))]] = True
    codes = np.unique(tags.source_codes[paired & ours[tags.pair_codes]])
    return tuple(
        tags.sources[code] for code in codes if code >= 0 and tags.sources[code] != baseline
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairRows:
    """Pairs with a text in both versions.

    Parameters
    ----------
    codes : int64 array of shape (n,)
        Code of each pair in the tag table, rising.
    baseline, source : int64 arrays of shape (n,)
        Row of both versions in the corpus.
    n_incomplete : int
        Pairs with one version, or a blank one.
    n_repeated : int
        Further documents of one source with the same pair id.
    """

    codes: IntArray
    baseline: IntArray
    source: IntArray
    n_incomplete: int
    n_repeated: int


def source_of(tags: TagTable, source: str | None, baseline: str) -> str:
    """Return the source, or the only one with pairs where it is None.

    Raises
    ------
    MissingTagsError, DataError
        As :func:`paired_sources`; also if the source is unknown, has no pairs, or several could
        be meant.
    """
    paired = paired_sources(tags, baseline=baseline)
    if source is None:
        if len(paired) == 1:
            return paired[0]
        if paired:
            raise DataError(
                f"several sources have versions of {baseline!r} documents: {list(paired)}; name "
                "one of them as source"
            )
        raise DataError(_no_pairs(tags, baseline, "another source"))
    if source == baseline or source not in tags.sources:
        raise DataError(
            f"source {source!r} cannot be paired with baseline {baseline!r}; sources that have "
            f"pairs with it are {list(paired)}"
        )
    if source not in paired:
        raise DataError(_no_pairs(tags, baseline, repr(source)))
    return source


def _no_pairs(tags: TagTable, baseline: str, other: str) -> str:
    n = int(np.count_nonzero(tags.pair_codes >= 0))
    return (
        f"no document of {baseline!r} shares its pair_id with one of {other}: {n} of {len(tags)} "
        "documents have a pair_id; give a document and its rewrites the same one"
    )


def complete_pairs(corpus: Corpus, baseline: str, source: str) -> PairRows:
    """Find pairs of two sources; of several versions by one source the first one counts."""
    (ours, row, n), (theirs, other_row, m) = (
        _first_versions(corpus.tags, name) for name in (baseline, source)
    )
    codes, i, j = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    row, other_row = row[i], other_row[j]
    blank = np.fromiter((not t or t.isspace() for t in corpus.texts), bool, len(corpus))
    whole = ~(blank[row] | blank[other_row])
    n_complete = int(np.count_nonzero(whole))
    return PairRows(
        codes=codes[whole],
        baseline=row[whole],
        source=other_row[whole],
        n_incomplete=len(ours) + len(theirs) - len(codes) - n_complete,
        n_repeated=n + m,
    )


def _first_versions(tags: TagTable, source: str) -> tuple[IntArray, IntArray, int]:
    """Pairs of a source by code, the first row of each, and how many further rows there are."""
    rows = np.flatnonzero(
        (tags.source_codes == tags.sources.index(source)) & (tags.pair_codes >= 0)
    )
    codes, first = np.unique(tags.pair_codes[rows], return_index=True)
    return codes.astype(np.int64), rows[first], len(rows) - len(codes)


def pair_codes(tags: TagTable, pair_ids: Collection[str]) -> IntArray:
    """Codes of the pair ids that the table has."""
    index = {pair_id: code for code, pair_id in enumerate(tags.pair_ids)}
    return np.array([index[p] for p in pair_ids if p in index], dtype=np.int64)


def relevant_pairs(qrels: Qrels, tags: TagTable, *, min_grade: int) -> tuple[IntArray, IntArray]:
    """Query code and pair code of every relevant judgment of a paired document."""
    rows = tags.rows_for(qrels.doc_ids)
    pair_of_doc = np.append(tags.pair_codes, -1)[rows].astype(np.int64)
    pairs = pair_of_doc[qrels.doc_codes]
    wanted = (qrels.grades >= min_grade) & (pairs >= 0)
    return qrels.query_codes[wanted].astype(np.int64), pairs[wanted]
