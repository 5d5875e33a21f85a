"""Texts to numbers: hashed character and word n-grams, stylometry."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rag_sourcebias.core.data import BoolArray, FloatArray
from rag_sourcebias.core.errors import import_extra

# Measurable habits of writing: lengths, punctuation, function words, layout.


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’)\]]*(?=\s|$)|\n\s*\n")
_CONTRACTION = re.compile(r"[^\W_](?:n['’]t|['’](?:s|re|ve|ll|d|m))\b")
_LIST_LINE = re.compile(r"^\s*(?:[-*•·]|\d+[.)])\s", re.MULTILINE)
_HEADING = re.compile(r"^\s*#{1,6}\s", re.MULTILINE)
_MARKS = {
    "comma": ",", "period": ".", "semicolon": ";", "colon": ":", "question": "?",
    "exclamation": "!", "dash": "-–—", "parenthesis": "()[]", "double quote": "\"“”„«»",
    "apostrophe": "'’", "ellipsis": "…", "slash": "/",
}  # fmt: skip
_FUNCTION_WORDS = (
    "the", "a", "an", "of", "to", "in", "and", "or", "but", "so", "if", "because", "that",
    "which", "who", "this", "these", "it", "its", "i", "you", "he", "she", "we", "they", "my",
    "your", "their", "is", "are", "was", "were", "be", "been", "have", "has", "had", "do", "does",
    "not", "no", "can", "could", "will", "would", "may", "should", "as", "by", "for", "from",
    "with", "on", "at", "also", "however", "there", "very", "just", "than", "then", "while",
)  # fmt: skip
_SHAPE = (
    "log words", "log sentences", "sentence length", "sentence length sd", "lower-case sentences",
    "lines per sentence", "word length", "word length sd", "type-token ratio", "words once",
    "long words", "capitalised words", "upper-case words", "contractions", "capital letters",
    "digits", "symbols", "list lines", "headings", "bold marks",
)  # fmt: skip

#: Names of the columns of :func:`stylometry`.
STYLE_FEATURES = (
    *_SHAPE,
    *(f"mark {name}" for name in _MARKS),
    *(f"word {word}" for word in _FUNCTION_WORDS),
)


def stylometry(texts: Sequence[str]) -> FloatArray:
    """Stylometric features of texts.

    Rates are per word (function words, contractions, capitalised words), per character (marks,
    digits, capital letters) or per line (list lines, headings). The function words are English;
    in another language they are 0 and the remaining columns still count.

    Parameters
    ----------
    texts : sequence of str, length n

    Returns
    -------
    float64 array of shape (n, len(STYLE_FEATURES))
        Finite for every text, the empty one included.
    """
    return np.array([_one(text) for text in texts]).reshape(len(texts), len(STYLE_FEATURES))


def _one(text: str) -> list[float]:
    words = _WORD.findall(text)
    lower = text.lower()
    counts = Counter(_WORD.findall(lower))
    lengths = Counter(map(len, words))
    head = words[:200]  # the share of different words falls with length: the first ones only
    characters = Counter(text)
    sentences = [s for s in _SENTENCE_END.split(text) if s.strip()]
    n_words = max(len(words), 1)
    n_sentences = max(len(sentences), 1)
    n_chars = max(len(text), 1)
    n_lines = text.count("\n") + 1
    return [
        float(np.log1p(len(words))),
        float(np.log1p(len(sentences))),
        *_mean_and_sd(Counter(len(s.split()) for s in sentences)),
        sum(s.lstrip()[0].islower() for s in sentences) / n_sentences,
        sum(1 for line in text.split("\n") if line.strip()) / n_sentences,
        *_mean_and_sd(lengths),
        len(set(map(str.lower, head))) / max(len(head), 1),
        list(counts.values()).count(1) / n_words,
        sum(count for length, count in lengths.items() if length > 6) / n_words,
        sum(word[0].isupper() for word in words) / n_words,
        sum(map(str.isupper, words)) / n_words,
        len(_CONTRACTION.findall(lower)) / n_words,
        # once for each different character
        sum(k for c, k in characters.items() if c.isupper()) / n_chars,
        sum(k for c, k in characters.items() if c.isdigit()) / n_chars,
        # arrows, mathematics, dingbats, emoji
        sum(k for c, k in characters.items() if c > "\u2190" and not c.isalnum()) / n_chars,
        len(_LIST_LINE.findall(text)) / n_lines,
        len(_HEADING.findall(text)) / n_lines,
        text.count("**") / n_words,
        *(sum(characters[c] for c in group) / n_chars for group in _MARKS.values()),
        *(counts[word] / n_words for word in _FUNCTION_WORDS),
    ]


def _mean_and_sd(counts: Mapping[int, int]) -> tuple[float, float]:
    """Mean and standard deviation of numbers that are counted; 0 of none."""
    n = sum(counts.values())
    if not n:
        return 0.0, 0.0
    mean = sum(value * count for value, count in counts.items()) / n
    square = sum(value * value * count for value, count in counts.items()) / n
    return mean, math.sqrt(max(square - mean * mean, 0.0))


# Texts to numbers: hashed character and word n-grams, stylometry.


# N-grams are hashed into 2**16 columns each, so that nothing has to be learned or stored.
_COLUMNS = 2**16
_CHARACTERS = (2, 4)  # shortest and longest n-gram
_WORDS = (1, 2)
_MAX_CHARS = 20_000  # of a longer text only the beginning is read
N_HASHED = 2 * _COLUMNS
N_DENSE = len(STYLE_FEATURES)


class Features(NamedTuple):
    """Features of n texts.

    ``hashed`` is a scipy CSR matrix of shape (n, N_HASHED) whose two blocks have rows of length 1
    (0 for a text without n-grams); ``dense`` a float64 array of shape (n, N_DENSE).
    """

    hashed: Any
    dense: FloatArray

    def rows(self, chosen: BoolArray) -> Features:
        """Features of some of the texts."""
        return Features(self.hashed[np.flatnonzero(chosen)], self.dense[chosen])


def require_sklearn() -> None:
    """Raise where scikit-learn is not installed.

    Raises
    ------
    MissingExtraError
        If it is missing.
    """
    import_extra("sklearn", "scikit-learn", "detector", "a source or style detector")


def extract(texts: Sequence[str]) -> Features:
    """Features of texts.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    require_sklearn()
    from scipy import sparse
    from sklearn.feature_extraction.text import HashingVectorizer

    # Lone surrogates cannot be hashed as UTF-8.
    read = [text[:_MAX_CHARS].encode("utf-8", "replace").decode() for text in texts]
    common = {
        "norm": None, "alternate_sign": False, "lowercase": False, "n_features": _COLUMNS
    }  # fmt: skip
    vectorizers = (
        HashingVectorizer(analyzer="char_wb", ngram_range=_CHARACTERS, **common),
        HashingVectorizer(
            analyzer="word", token_pattern=r"(?u)\w+|[^\w\s]", ngram_range=_WORDS, **common
        ),
    )
    blocks = [_scaled(vectorizer.transform(read)) for vectorizer in vectorizers]
    return Features(sparse.hstack(blocks, format="csr"), stylometry(read))


def _scaled(counts: Any) -> Any:  # noqa: ANN401 - scipy matrix
    """Damp the counts and give every row length 1, so that long texts do not weigh more."""
    counts.data = np.log1p(counts.data)
    length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    counts.data /= np.repeat(np.where(length > 0, length, 1.0), np.diff(counts.indptr))
    return counts
