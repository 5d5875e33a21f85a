"""Distinct words of many texts as numbers, so that 100,000 documents fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.text import words
from rag_sourcebias.types.arrays import IntArray

__all__ = ["Vocabulary", "WordSets", "count_shared", "word_sets"]

Vocabulary = dict[str, int]
_PAIRS_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class WordSets:
    """Distinct words of texts (:func:`rag_sourcebias.measures.text.words`).

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
