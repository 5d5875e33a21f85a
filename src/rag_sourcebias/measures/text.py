"""Length and lexical overlap of texts and their rewrites ([K] Fig. 3)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.documents import Corpus

__all__ = [
    "cut_to_words",
    "jaccard",
    "match_lengths",
    "mean_words",
    "overlap",
    "word_counts",
    "words",
]

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Lower-cased runs of letters, digits and underscores, in any script."""
    return _WORD.findall(text.lower())


def word_counts(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """Words per text, shape (len(texts),)."""
    return np.fromiter((len(_WORD.findall(t)) for t in texts), np.int64, count=len(texts))


def jaccard(first: str, second: str) -> float:
    """|A ∩ B| / |A ∪ B| over distinct words, in [0, 1] ([K] Fig. 3a); 1 when both are empty."""
    a, b = set(words(first)), set(words(second))
    return len(a & b) / len(a | b) if a | b else 1.0


def overlap(rewrite: str, original: str) -> float:
    """|A ∩ B| / |B|: share of the original's words that the rewrite keeps ([K] Fig. 3b)."""
    a, b = set(words(rewrite)), set(words(original))
    return len(a & b) / len(b) if b else 1.0


def mean_words(corpus: Corpus) -> dict[str, float]:
    """Mean document length in words per source."""
    counts = word_counts(corpus.texts)
    codes = corpus.tags.source_codes
    return {
        source: float(counts[codes == code].mean())
        for code, source in enumerate(corpus.tags.sources)
        if np.any(codes == code)  # a sub-corpus keeps the names of sources it no longer holds
    }


def match_lengths(corpus: Corpus) -> Corpus:
    """Cut every version of a document to the length of its shortest version, in words.

    Documents without a pair stay as they are. Used to see how much of a skew is length.

    Raises
    ------
    DataError
        If no documents are paired.
    """
    codes = corpus.tags.pair_codes
    if not np.any(codes >= 0):
        raise DataError("no document has a pair_id, so lengths cannot be matched")
    counts = word_counts(corpus.texts)
    shortest = np.full(len(corpus.tags.pair_ids), np.iinfo(np.int64).max)
    np.minimum.at(shortest, codes[codes >= 0], counts[codes >= 0])
    texts = list(corpus.texts)
    for row in np.flatnonzero((codes >= 0) & (counts > shortest[codes])):
        texts[row] = cut_to_words(texts[row], int(shortest[codes[row]]))
    return Corpus(texts=tuple(texts), tags=corpus.tags)


def cut_to_words(text: str, n_words: int) -> str:
    """Return a text up to the end of its ``n_words``-th word; nothing if it has fewer words."""
    for i, match in enumerate(_WORD.finditer(text), start=1):
        if i == n_words:
            return text[: match.end()]
    return ""
