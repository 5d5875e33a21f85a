"""What a lexical retriever sees: query words in both versions, and what mixing does to weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray, IntArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.values import Histogram, Interval
from rag_sourcebias.explain.data import LexicalShift, TermShift, TextComparison
from rag_sourcebias.stats.clusters import clustered_difference, clustered_mean
from rag_sourcebias.stats.texts import words

# Counts of values between edges, for plots.


_TAIL = 0.005  # of the values on either side, which share the outer bins
_NARROWEST = 1e-6


def histogram(values: FloatArray, edges: FloatArray) -> Histogram:
    """Count values between edges; NaN is left out.

    Parameters
    ----------
    values : float64 array of shape (n,)
    edges : float64 array of shape (bins + 1,)
        Rising. Values outside are counted in the first and the last bin.

    Raises
    ------
    DataError
        If edges do not rise.
    InsufficientDataError
        If no value is finite.
    """
    if len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise DataError(f"edges {np.asarray(edges).tolist()!s:.80} must be two or more and rise")
    finite = values[np.isfinite(values)]
    if not len(finite):
        raise InsufficientDataError("there is no finite value to count", n=0, n_needed=1)
    counts, _ = np.histogram(np.clip(finite, edges[0], edges[-1]), edges)
    return Histogram(
        edges=np.asarray(edges, dtype=np.float64),
        counts=counts.astype(np.int64),
        mean=float(finite.mean()),
        median=float(np.median(finite)),
    )


def unit_edges(*columns: FloatArray, bins: int = 40) -> FloatArray:
    """Edges up to 1 for values of at most 1, from the twentieth below the lowest value.

    Shape (bins + 1,). Used for cosines, which often lie in a small part of [−1, 1].
    """
    lowest = min((float(column.min()) for column in columns if len(column)), default=0.0)
    start = max(math.floor(20 * lowest) / 20, -1.0)
    return np.linspace(min(start, 0.95), 1.0, bins + 1)


def shared_edges(*columns: FloatArray, bins: int = 40) -> FloatArray:
    """Edges that hold all but the outermost values of all columns; shape (bins + 1,).

    Raises
    ------
    InsufficientDataError
        If no value is finite.
    """
    joint = np.concatenate([column[np.isfinite(column)] for column in columns])
    if not len(joint):
        raise InsufficientDataError("there is no finite value to count", n=0, n_needed=1)
    low, high = np.quantile(joint, (_TAIL, 1 - _TAIL))
    if high - low < _NARROWEST:  # all alike: a bin around them
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)


# Distinct words of many texts as numbers, so that 100,000 documents fit in memory.


Vocabulary = dict[str, int]
_PAIRS_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class WordSets:
    """Distinct words of texts (:func:`rag_sourcebias.stats.texts.words`).

    Parameters
    ----------
    n_words : int64 array of shape (n,)
        Words per text, repeats included.
    offsets : int64 array of shape (n + 1,)
        Codes of text i are ``codes[offsets[i]:offsets[i + 1]]``.
    codes : int32 array
        Rising within a text.
    """

    n_words: IntArray = field(repr=False)
    offsets: IntArray = field(repr=False)
    codes: npt.NDArray[np.int32] = field(repr=False)

    def __len__(self) -> int:
        return len(self.n_words)

    @property
    def sizes(self) -> IntArray:
        """Distinct words per text, shape (n,)."""
        return np.diff(self.offsets)

    def of(self, row: int) -> npt.NDArray[np.int32]:
        """Codes of one text, rising; shape (its distinct words,)."""
        return self.codes[self.offsets[row] : self.offsets[row + 1]]

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> WordSets:
        """Return the texts asked for, in that order."""
        sizes = self.sizes[rows]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        return WordSets(
            n_words=self.n_words[rows],
            offsets=offsets,
            codes=self.codes[np.repeat(self.offsets[:-1][rows], sizes) + within],
        )

    def frequencies(self, n_codes: int) -> IntArray:
        """Texts that hold each word; shape (n_codes,)."""
        return np.bincount(self.codes, minlength=n_codes).astype(np.int64)


def word_sets(texts: Sequence[str], vocabulary: Vocabulary) -> WordSets:
    """Split texts into words; new words get the next codes of ``vocabulary``."""
    n_words = np.empty(len(texts), np.int64)
    rows: list[npt.NDArray[np.int32]] = []
    for row, text in enumerate(texts):
        found = words(text)
        n_words[row] = len(found)
        codes = sorted({vocabulary.setdefault(word, len(vocabulary)) for word in found})
        rows.append(np.array(codes, dtype=np.int32))
    offsets = np.concatenate(([0], np.cumsum([len(codes) for codes in rows], dtype=np.int64)))
    joint = np.concatenate(rows) if rows else np.empty(0, np.int32)
    return WordSets(n_words=n_words, offsets=offsets.astype(np.int64), codes=joint)


def count_shared(first: WordSets, second: WordSets) -> IntArray:
    """Distinct words that both texts of a row hold; shape (n,).

    Raises
    ------
    DataError
        If there are not as many texts on both sides.
    """
    if len(first) != len(second):
        raise DataError(f"{len(first)} and {len(second)} texts; need as many")
    shared = np.zeros(len(first), np.int64)
    for start, keys, other_keys, width in _keys(first, second):
        both = np.intersect1d(keys, other_keys, assume_unique=True)
        counts = np.bincount(both // width)
        shared[start : start + len(counts)] = counts
    return shared


def _keys(first: WordSets, second: WordSets) -> Iterator[tuple[int, IntArray, IntArray, int]]:
    """Numbers that tell (row, word) apart, for blocks of rows."""
    width = 1 + int(max(first.codes.max(initial=0), second.codes.max(initial=0)))
    for start in range(0, len(first), _PAIRS_AT_ONCE):
        end = min(start + _PAIRS_AT_ONCE, len(first))
        keys = [
            np.repeat(np.arange(end - start, dtype=np.int64), side.sizes[start:end]) * width
            + side.codes[side.offsets[start] : side.offsets[end]]
            for side in (first, second)
        ]
        yield start, keys[0], keys[1], width


# Words that one source uses more than the other.


def shifted_terms(
    human: WordSets, other: WordSets, *, vocabulary: Vocabulary, terms: int = 15
) -> tuple[tuple[TermShift, ...], tuple[TermShift, ...]]:
    """Find the words whose log odds differ most, in standard errors.

    For each word, the odds of a document to hold it, other over human, with Jeffreys' ½ added to
    all four counts; its standard error is √Σ 1/count (Woolf 1955; Haldane 1956). Ranked by their
    ratio, so that a word of two documents does not lead the list. Documents of a source are taken
    to be independent, though not those of a pair: the order is what counts, no test is made.

    Returns
    -------
    more_human, more_other : tuple of TermShift
        Strongest first, at most ``terms`` each; ties by word.
    """
    n = [len(side) for side in (human, other)]
    held = [side.frequencies(len(vocabulary)) for side in (human, other)]
    cells = [
        column + 0.5
        for count, size in zip(held, n, strict=True)
        for column in (count, size - count)
    ]
    log_odds = np.log(cells[2] / cells[3]) - np.log(cells[0] / cells[1])
    z = log_odds / np.sqrt(sum(1 / cell for cell in cells))
    names = np.array(list(vocabulary), dtype=object)

    def strongest(sign: int) -> tuple[TermShift, ...]:
        rows = np.flatnonzero(sign * z > 0)
        best = sorted(rows.tolist(), key=lambda row: (-sign * z[row], names[row]))[:terms]
        return tuple(
            TermShift(
                term=str(names[row]),
                n_human=int(held[0][row]),
                n_other=int(held[1][row]),
                log_odds=float(log_odds[row]),
            )
            for row in best
        )

    return strongest(-1), strongest(1)


# Both versions of documents as texts: length and shared words ([K] Table 1, Fig. 3).


_EDGES = np.linspace(0.0, 1.0, 41)


def log_length_ratios(human: WordSets, other: WordSets) -> FloatArray:
    """Log of the other version's words over those of the human one; shape (n,).

    Raises
    ------
    DataError
        If there are not as many texts on both sides, or one has no word.
    """
    if len(human) != len(other):
        raise DataError(f"{len(human)} and {len(other)} texts; need as many")
    for name, side in (("human", human), ("other", other)):
        if len(empty := np.flatnonzero(side.n_words == 0)):
            raise DataError(f"{name} text {empty[0]} has no word, so no length; leave it out")
    return np.log(other.n_words / human.n_words)


def compare_texts(
    human: WordSets, other: WordSets, *, confidence_level: float = 0.95
) -> TextComparison:
    """Compare lengths and words of both versions of documents.

    Parameters
    ----------
    human, other : WordSets
        Of one vocabulary; row i of both is one pair.

    Raises
    ------
    DataError
        As :func:`log_length_ratios`.
    InsufficientDataError
        If there are fewer than 2 pairs.
    """
    ratios = log_length_ratios(human, other)
    if (n := len(human)) < 2:
        raise InsufficientDataError(f"{n} pair(s); at least 2 are needed", n=n, n_needed=2)
    shared = count_shared(human, other)
    ours, theirs = np.unique(human.codes), np.unique(other.codes)
    return TextComparison(
        mean_words_human=float(human.n_words.mean()),
        mean_words_other=float(other.n_words.mean()),
        log_length_ratio=_mean(ratios, confidence_level),
        jaccard=histogram(shared / (human.sizes + other.sizes - shared), _EDGES),
        overlap=histogram(shared / human.sizes, _EDGES),
        vocabulary_human=len(ours),
        vocabulary_other=len(theirs),
        vocabulary_shared=len(np.intersect1d(ours, theirs, assume_unique=True)),
    )


def _mean(values: FloatArray, level: float) -> Interval:
    try:
        return clustered_mean(values, np.arange(len(values)), confidence_level=level)
    except InsufficientDataError:
        # Copies, for instance: all ratios are the same, and so is their mean.
        same = float(values[0])
        return Interval(
            estimate=same,
            lower=same,
            upper=same,
            confidence_level=level,
            method="all alike",
            n_labeled=len(values),
            notes=(f"all {len(values)} pairs have the same ratio: nothing is known of others",),
        )


# What a lexical retriever sees: query words in both versions, and what mixing does to weights.


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
    return np.log1p((n_documents - document_frequency + 0.5) / (document_frequency + 0.5))


def _joined(parts: list[tuple[FloatArray, IntArray]]) -> tuple[FloatArray, IntArray]:
    if not parts:
        return np.empty(0), np.empty(0, np.int64)
    values, owners = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(owners).astype(np.int64)
