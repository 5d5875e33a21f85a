"""Pairs of a text and its rewrite out of a corpus, for what is fitted or trained on twins."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.twin_rows import (
    PairRows,
    complete_pairs,
    pair_codes,
    relevant_pairs,
    source_of,
)
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import Corpus, TagTable
from rag_sourcebias.types.relevance import Qrels

__all__ = ["TrainingPairs", "TwinTexts", "training_pairs", "twin_texts"]

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
