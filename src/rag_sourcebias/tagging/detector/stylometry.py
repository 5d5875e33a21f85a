"""Measurable habits of writing: lengths, punctuation, function words, layout."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from rag_sourcebias.types.arrays import FloatArray

__all__ = ["STYLE_FEATURES", "stylometry"]


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
_FIRST_SYMBOL = "\u2190"  # arrows, mathematics, dingbats, emoji
_TTR_WORDS = 200  # the ratio falls with length: taken over the first words only


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
    rows = np.zeros((len(texts), len(STYLE_FEATURES)))
    for row, text in enumerate(texts):
        rows[row] = _one(text)
    return rows


def _one(text: str) -> list[float]:
    words = _WORD.findall(text)
    lower = text.lower()
    counts = Counter(_WORD.findall(lower))
    characters = Counter(text)
    n_words, n_chars = max(len(words), 1), max(len(text), 1)
    return [
        *_sentences(text, len(words)),
        *_words(words, counts, lower),
        *_characters(characters, n_chars),
        *_layout(text, n_words),
        *(sum(characters[c] for c in group) / n_chars for group in _MARKS.values()),
        *(counts[word] / n_words for word in _FUNCTION_WORDS),
    ]


def _sentences(text: str, n_words: int) -> list[float]:
    sentences = [s for s in _SENTENCE_END.split(text) if s.strip()]
    n = max(len(sentences), 1)
    return [
        float(np.log1p(n_words)),
        float(np.log1p(len(sentences))),
        *_mean_and_sd(Counter(len(s.split()) for s in sentences)),
        sum(s.lstrip()[0].islower() for s in sentences) / n,
        sum(1 for line in text.split("\n") if line.strip()) / n,
    ]


def _words(words: Sequence[str], counts: Counter[str], lower: str) -> list[float]:
    n = max(len(words), 1)
    lengths = Counter(map(len, words))
    head = words[:_TTR_WORDS]
    return [
        *_mean_and_sd(lengths),
        len(set(map(str.lower, head))) / max(len(head), 1),
        list(counts.values()).count(1) / n,
        sum(count for length, count in lengths.items() if length > 6) / n,
        sum(word[0].isupper() for word in words) / n,
        sum(map(str.isupper, words)) / n,
        len(_CONTRACTION.findall(lower)) / n,
    ]


def _characters(characters: Counter[str], n: int) -> list[float]:
    # once for each different character
    capital = sum(k for c, k in characters.items() if c.isupper())
    digits = sum(k for c, k in characters.items() if c.isdigit())
    other = sum(k for c, k in characters.items() if c > _FIRST_SYMBOL and not c.isalnum())
    return [capital / n, digits / n, other / n]


def _layout(text: str, n_words: int) -> list[float]:
    n_lines = text.count("\n") + 1
    return [
        len(_LIST_LINE.findall(text)) / n_lines,
        len(_HEADING.findall(text)) / n_lines,
        text.count("**") / n_words,
    ]


def _mean_and_sd(counts: Mapping[int, int]) -> tuple[float, float]:
    """Mean and standard deviation of numbers that are counted; 0 of none."""
    n = sum(counts.values())
    if not n:
        return 0.0, 0.0
    mean = sum(value * count for value, count in counts.items()) / n
    square = sum(value * value * count for value, count in counts.items()) / n
    return mean, math.sqrt(max(square - mean * mean, 0.0))
