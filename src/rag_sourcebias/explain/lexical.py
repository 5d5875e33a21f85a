"""What a lexical retriever sees: query words in both versions, and what mixing does to weights."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.explain.term_shift import shifted_terms
from rag_sourcebias.explain.word_sets import Vocabulary, WordSets
from rag_sourcebias.inference import clustered_difference, clustered_mean
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.explain_report import LexicalShift
from rag_sourcebias.types.intervals import Interval

__all__ = ["JudgedWords", "QueryWords", "judged_words", "lexical_shift"]


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedWords:
    """Queries and both versions of documents that are relevant to them.

    Parameters
    ----------
    queries : WordSets
    query_rows : int64 array of shape (m,)
        Row of ``queries``, one entry per relevant (query, pair).
    human, other : WordSets
        All documents of each source; of the same vocabulary as ``queries``.
    human_rows, other_rows : int64 arrays of shape (m,)
        Rows of both versions.
    """

    queries: WordSets
    query_rows: IntArray = field(repr=False)
    human: WordSets
    other: WordSets
    human_rows: IntArray = field(repr=False)
    other_rows: IntArray = field(repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryWords:
    """Shares of a query's weight that versions of relevant documents hold, one row per pair.

    Parameters
    ----------
    rows : int64 array of shape (n,)
        Rows of the judged pairs whose query has a word that some document holds.
    human, other : float64 arrays of shape (n,)
        Σ idf(w) over the query's words in the document / Σ idf(w) over the query's words, idf on
        the corpus of both sources.
    human_own, other_own : float64 arrays of shape (n,)
        The same with idf on the source's own corpus above the line; limited to 1.
    human_only, other_only : tuple of two float64/int64 arrays of shape (k,)
        For each query word that only the human (other) version of a pair holds: idf on the mixed
        corpus minus idf on the source's own, and the row of ``queries``.
    """

    rows: IntArray = field(repr=False)
    human: FloatArray = field(repr=False)
    other: FloatArray = field(repr=False)
    human_own: FloatArray = field(repr=False)
    other_own: FloatArray = field(repr=False)
    human_only: tuple[FloatArray, IntArray] = field(repr=False)
    other_only: tuple[FloatArray, IntArray] = field(repr=False)


def _among(words: npt.NDArray[np.int32], text: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Tell which words a text holds; its codes rise, and np.isin would sort them once more."""
    if not len(text):
        return np.zeros(len(words), np.bool_)
    held: npt.NDArray[np.bool_] = text.take(np.searchsorted(text, words), mode="clip") == words
    return held


def judged_words(judged: JudgedWords, *, n_codes: int) -> QueryWords:
    """Weigh the query words that both versions of relevant documents hold.

    idf(w) = ln(1 + (N − df + ½) / (df + ½)), as of BM25 in Lucene and in
    :class:`~rag_sourcebias.retrieval.BM25Spec`; words are lower-cased, not stemmed, and no stop
    words are removed (their idf is small). Words that no document holds are left out.

    Parameters
    ----------
    n_codes : int
        Words of the vocabulary.
    """
    counts = [side.frequencies(n_codes) for side in (judged.human, judged.other)]
    sizes = [len(judged.human), len(judged.other)]
    mixed = _idf(counts[0] + counts[1], sum(sizes))
    own = [_idf(count, size) for count, size in zip(counts, sizes, strict=True)]
    known = counts[0] + counts[1] > 0
    kept: list[int] = []
    shares: list[list[float]] = []
    only: tuple[list[tuple[FloatArray, IntArray]], ...] = ([], [])
    sides = (
        (judged.human, judged.human_rows, own[0]),
        (judged.other, judged.other_rows, own[1]),
    )
    for row, query in enumerate(judged.query_rows.tolist()):
        words = judged.queries.of(query)
        words = words[known[words]]
        if not len(words):
            continue
        held = [_among(words, side.of(int(rows[row]))) for side, rows, _ in sides]
        total = float(mixed[words].sum())
        by_mixed, by_own = (
            [
                float(weights[words[has]].sum()) / total
                for has, weights in zip(held, pair, strict=True)
            ]
            for pair in ((mixed, mixed), own)
        )
        kept.append(row)
        shares.append([*by_mixed, *by_own])
        for k, alone in enumerate((held[0] & ~held[1], held[1] & ~held[0])):
            change = mixed[words[alone]] - own[k][words[alone]]
            only[k].append((change, np.full(len(change), query)))
    columns = np.array(shares, dtype=np.float64).reshape(-1, 4).T
    return QueryWords(
        rows=np.array(kept, dtype=np.int64),
        human=columns[0],
        other=columns[1],
        human_own=np.minimum(columns[2], 1.0),
        other_own=np.minimum(columns[3], 1.0),
        human_only=_joined(only[0]),
        other_only=_joined(only[1]),
    )


def lexical_shift(
    judged: JudgedWords,
    found: QueryWords,
    *,
    vocabulary: Vocabulary,
    terms: int = 15,
    confidence_level: float = 0.95,
) -> LexicalShift:
    """Summarise query words by query, and name the words that distinguish the sources.

    Parameters
    ----------
    found : QueryWords
        What :func:`judged_words` returned for ``judged``.
    vocabulary : mapping of str to int
    terms : int
        Words named per list.

    Raises
    ------
    InsufficientDataError
        If fewer than 2 queries have relevant pairs.
    """
    queries = judged.query_rows[found.rows]
    n_queries = len(np.unique(queries))
    if n_queries < 2:
        raise InsufficientDataError(
            f"at least 2 judged queries with relevant pairs are needed, there are {n_queries}",
            n=n_queries,
            n_needed=2,
        )

    def share(values: FloatArray) -> Interval:
        return clustered_mean(
            np.clip(values, 0.0, 1.0),  # sums of the same weights in another order
            queries,
            confidence_level=confidence_level,
            bounds=(0.0, 1.0),
        )

    def change(column: tuple[FloatArray, IntArray]) -> Interval | None:
        try:
            return clustered_mean(*column, confidence_level=confidence_level)
        except InsufficientDataError:
            return None

    def gap(difference: FloatArray) -> Interval:
        # nearly every pair differs a little: far from the bounds of shares, where t holds
        try:
            return clustered_mean(difference, queries, confidence_level=confidence_level)
        except InsufficientDataError:
            return clustered_difference(difference, queries, confidence_level=confidence_level)

    more_human, more_other = shifted_terms(
        judged.human, judged.other, vocabulary=vocabulary, terms=terms
    )
    return LexicalShift(
        n_queries=n_queries,
        n_pairs=len(queries),
        coverage_human=share(found.human),
        coverage_other=share(found.other),
        coverage_gap=gap(found.other - found.human),
        idf_change_human_only=change(found.human_only),
        idf_change_other_only=change(found.other_only),
        gap_own_idf=gap(found.other_own - found.human_own),
        more_human=more_human,
        more_other=more_other,
    )


def _idf(document_frequency: IntArray, n_documents: int) -> FloatArray:
    weights: FloatArray = np.log1p(
        (n_documents - document_frequency + 0.5) / (document_frequency + 0.5)
    )
    return weights


def _joined(parts: list[tuple[FloatArray, IntArray]]) -> tuple[FloatArray, IntArray]:
    if not parts:
        return np.empty(0), np.empty(0, np.int64)
    values, owners = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(owners).astype(np.int64)
