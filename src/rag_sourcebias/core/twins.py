"""Pairs of a text and its rewrite out of a corpus, for what is fitted or trained on twins."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np

from rag_sourcebias.core.arrays import IntArray
from rag_sourcebias.core.data import Corpus, Dataset, Qrels, TagTable
from rag_sourcebias.core.errors import DataError, MissingTagsError

# Which rows of a corpus are two versions of one document.


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


# Pairs of a text and its rewrite out of a corpus, for what is fitted or trained on twins.


_SHOWN = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class TwinTexts:
    """Both versions of documents as columns, ordered by pair id.

    Parameters
    ----------
    baseline, source : str
        The two sources, such as ``"human"`` and ``"llm:llama-2"``.
    pair_ids, baseline_ids, source_ids, baseline_texts, source_texts : tuple of str, length n
    n_incomplete : int
        Pairs of which the corpus has only one of the two versions, or a blank one; left out.
    n_repeated : int
        Further documents of one source with a pair id that it already had; the first one counts.
    """

    baseline: str
    source: str
    pair_ids: tuple[str, ...] = field(repr=False)
    baseline_ids: tuple[str, ...] = field(repr=False)
    source_ids: tuple[str, ...] = field(repr=False)
    baseline_texts: tuple[str, ...] = field(repr=False)
    source_texts: tuple[str, ...] = field(repr=False)
    n_incomplete: int = 0
    n_repeated: int = 0

    def __len__(self) -> int:
        return len(self.pair_ids)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingPairs:
    """Queries with the twins that are relevant to them, one row per (query, pair).

    Parameters
    ----------
    query_ids, queries : tuple of str, length m
        Query of each row and its text; rows of one query are neighbours.
    rows : int64 array of shape (m,)
        Row of ``twins`` of each row.
    twins : TwinTexts
        Only pairs that are relevant to a query.
    """

    query_ids: tuple[str, ...] = field(repr=False)
    queries: tuple[str, ...] = field(repr=False)
    rows: IntArray = field(repr=False)
    twins: TwinTexts

    def __len__(self) -> int:
        return len(self.rows)


def twin_texts(
    corpus: Corpus,
    *,
    source: str | None = None,
    baseline: str = "human",
    qrels: Qrels | None = None,
    exclude: Collection[str] = (),
) -> TwinTexts:
    """Collect documents of the baseline and their versions by one other source.

    Parameters
    ----------
    source : str, optional
        May be left out where only one other source has pairs.
    qrels : Qrels, optional
        Only pairs of which a version (of any source) is judged relevant to some query.
    exclude : collection of str
        Pair ids to leave out, such as those that results are reported on.

    Raises
    ------
    MissingTagsError
        If no document has a source.
    DataError
        If the data is one-sided, a source is unknown, several could be meant, or no pair is left.
    """
    tags = corpus.tags
    source = source_of(tags, source, baseline)
    found = complete_pairs(corpus, baseline, source)
    kept = ~np.isin(found.codes, pair_codes(tags, exclude))
    n_excluded = int(np.count_nonzero(~kept))
    if qrels is not None:
        judged = np.zeros(len(tags.pair_ids), dtype=bool)
        judged[relevant_pairs(qrels, tags, min_grade=1)[1]] = True
        kept &= judged[found.codes]
    if not kept.any():
        reason = _nothing_left(found, n_excluded, tags, qrels)
        raise DataError(f"no pair of {baseline!r} and {source!r} is left: {reason}")
    pairs, ours, theirs = (
        part[kept].tolist() for part in (found.codes, found.baseline, found.source)
    )
    return TwinTexts(
        baseline=baseline,
        source=source,
        pair_ids=tuple(tags.pair_ids[code] for code in pairs),
        baseline_ids=tuple(tags.doc_ids[row] for row in ours),
        source_ids=tuple(tags.doc_ids[row] for row in theirs),
        baseline_texts=tuple(corpus.texts[row] for row in ours),
        source_texts=tuple(corpus.texts[row] for row in theirs),
        n_incomplete=found.n_incomplete,
        n_repeated=found.n_repeated,
    )


def training_pairs(
    dataset: Dataset,
    *,
    source: str | None = None,
    baseline: str = "human",
    min_grade: int = 1,
    exclude: Collection[str] = (),
) -> TrainingPairs:
    """Collect (query, relevant pair) rows; a pair is relevant where a version of it is.

    Judgments of queries that ``dataset.queries`` does not hold are not used.

    Parameters
    ----------
    source : str, optional
        May be left out where only one other source has pairs.
    baseline : str
        Source of the originals.
    min_grade : int
        Lowest grade that counts as relevant, at least 1.
    exclude : collection of str
        Pair ids to leave out, such as those that results are reported on.

    Raises
    ------
    MissingTagsError
        If no document has a source.
    DataError
        If the data is one-sided, a source is unknown, several could be meant, or no pair is left.
    """
    if min_grade < 1:
        raise DataError(f"min_grade is {min_grade}; at least 1, as 0 is judged not relevant")
    tags, qrels = dataset.corpus.tags, dataset.qrels
    position = {query.query_id: i for i, query in enumerate(dataset.queries)}
    known = np.fromiter(map(position.get, qrels.query_ids, repeat(-1)), np.int64)
    used = qrels.take((known[qrels.query_codes] >= 0) & (qrels.grades >= min_grade))
    if not len(used):
        raise DataError(
            f"data set {dataset.name!r}: none of {len(qrels)} judgments gives one of its "
            f"{len(dataset.queries)} queries a document of grade {min_grade} or more"
        )
    twins = twin_texts(
        dataset.corpus, source=source, baseline=baseline, qrels=used, exclude=exclude
    )
    row_of_pair = np.full(len(tags.pair_ids), -1, dtype=np.int64)
    row_of_pair[pair_codes(tags, twins.pair_ids)] = np.arange(len(twins))
    queries, pairs = relevant_pairs(used, tags, min_grade=min_grade)
    rows = row_of_pair[pairs]
    keys = np.unique(known[queries][rows >= 0] * len(twins) + rows[rows >= 0])
    of_query = [dataset.queries[i] for i in (keys // len(twins)).tolist()]
    return TrainingPairs(
        query_ids=tuple(query.query_id for query in of_query),
        queries=tuple(query.text for query in of_query),
        rows=keys % len(twins),
        twins=twins,
    )


def _nothing_left(found: PairRows, n_excluded: int, tags: TagTable, qrels: Qrels | None) -> str:
    n = len(found.codes)
    if not n:
        return f"{found.n_incomplete} pairs are incomplete or blank; add the missing versions"
    if n_excluded == n:
        return f"all {n} pairs are excluded; leave some to fit on"
    examples = [tags.pair_ids[code] for code in found.codes[:_SHOWN]]
    judged = [] if qrels is None else list(qrels.doc_ids[:_SHOWN])
    return (
        f"the judgments call no version of {n - n_excluded} pairs relevant; pairs are such as "
        f"{examples}, judged documents such as {judged}: give judgments with the document ids of "
        "this corpus"
    )
