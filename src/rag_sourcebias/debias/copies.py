"""Find copies among documents: neighbours in a space, from which distance on, and a check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Float32Array, FloatArray, IntArray
from rag_sourcebias.measure.texts import compared_words

# How alike two texts are by their words: the cosine of tf-idf vectors. Words are hashed, so that
# what an index has to keep is one array, and a text that comes later is measured like the others.


_WIDTH = 1 << 18
# Words of more than a twentieth of the texts tell copies from other texts on the same subject no
# better than chance, and make up nearly all of the work.
_COMMON_SHARE, _COMMON_COUNT = 0.05, 20
_IDF_TEXTS = 20_000


class TextOverlap(NamedTuple):
    """Weights of words, and what is needed to compare two texts by them.

    Parameters
    ----------
    idf : float32 array
        Weight of each hashed word; 0 for words that are common.
    """

    idf: Float32Array

    @classmethod
    def of(cls, texts: Sequence[str]) -> TextOverlap:
        """Weigh words by how few of the texts have them."""
        sample = texts[:: max(1, len(texts) // _IDF_TEXTS)]
        count = np.zeros(_WIDTH, dtype=np.int64)
        for codes, _ in _counted(sample):
            count[codes] += 1
        idf = np.log((1 + len(sample)) / (1 + count))
        idf[count > max(_COMMON_SHARE * len(sample), _COMMON_COUNT)] = 0
        return cls(idf=idf.astype(np.float32))

    def vectors(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - a csr_array
        """Return one sparse row of length 1 for each text; 0 for one without a rare word."""
        from scipy.sparse import csr_array

        rows = list(_counted(texts))
        values = [(1 + np.log(n)) * self.idf[codes] for codes, n in rows]
        norms = [float(np.linalg.norm(v)) or 1.0 for v in values]
        return csr_array(
            (
                np.concatenate([v / n for v, n in zip(values, norms, strict=True)] or [_NOTHING]),
                np.concatenate([codes for codes, _ in rows] or [_NO_ROWS]).astype(np.int32),
                np.cumsum([0, *(len(codes) for codes, _ in rows)]),
            ),
            shape=(len(texts), _WIDTH),
            dtype=np.float32,
        )


_NOTHING = np.empty(0)
_NO_ROWS = np.empty(0, dtype=np.int64)


def _counted(texts: Sequence[str]) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the hashed words of each text and how often it has them."""
    code_of: dict[str, int] = {}
    for text in texts:
        words = compared_words(text)
        for word in words:
            if word not in code_of:
                code_of[word] = crc32(word.encode("utf-8", "surrogatepass")) % _WIDTH
        codes, counts = np.unique([code_of[word] for word in words], return_counts=True)
        yield codes.astype(np.int64), counts.astype(np.int64)


# From which similarity on two documents are copies, read off the neighbours without any label.
# The neighbours of a document that has copies fall into copies and others, with a gap between. The
# nearest of the others say what similarity is reached without being a copy.


_SAMPLE = 2_000
_LEFT_OUT = 0.05
_NEIGHBOURS = 64
MOST_COPIES = 100
"""Documents with more neighbours than this share a template, not an original."""
EXACT = 0.9999
"""Cosine from which on vectors are those of one text, whatever the encoder's precision."""
_BLOCK_ROWS, _BLOCK_COLUMNS = 512, 4096


class Neighbours(NamedTuple):
    """Nearest neighbours of a sample of documents.

    Parameters
    ----------
    nearest : float64 array of shape (s,)
        Similarity of the nearest document.
    last : float64 array of shape (s,)
        Similarity of the last one before the largest gap: the least alike of the copies.
    other : float64 array of shape (s,)
        Similarity of the first one behind the largest gap: the nearest that is no copy.
    gap : float64 array of shape (s,)
        The largest gap, as a multiple of what the ten next ones lead to expect.
    returned : bool array of shape (s,)
        Whether the nearest document has this one before its own largest gap.
    """

    nearest: FloatArray
    last: FloatArray
    other: FloatArray
    gap: FloatArray
    returned: npt.NDArray[np.bool_]


def sample_neighbours(vectors: Any, rng: np.random.Generator) -> Neighbours:  # noqa: ANN401
    """Return the neighbours of up to 2,000 documents, drawn at random.

    Parameters
    ----------
    vectors : array or sparse array of shape (n, dimension)
        Of length 1; n at least 2.
    """
    documents = np.sort(rng.permutation(vectors.shape[0])[:_SAMPLE]).astype(np.int64)
    place, value = _nearest(vectors, documents)
    behind = _behind_gap(value)
    row = np.arange(len(place))
    inside = np.maximum(behind - 1, 0)
    # Spacings of extremes: the j-th times j is the same for all, on average (Rényi 1953)
    steps = np.arange(1, _STEPS + 1)
    later = np.minimum(behind[:, None] + np.arange(_STEPS + 1), value.shape[1] - 1)
    spacing = np.take_along_axis(value, later, axis=1)
    usual = np.mean(steps * (spacing[:, :-1] - spacing[:, 1:]), axis=1)
    theirs, their_value = _nearest(vectors, place[:, 0])
    before_gap = np.arange(theirs.shape[1]) < _behind_gap(their_value)[:, None]
    return Neighbours(
        nearest=value[:, 0],
        last=value[row, inside],
        other=value[row, behind],
        gap=(value[row, inside] - value[row, behind]) / np.maximum(usual, 1e-9),
        returned=np.any((theirs == documents[:, None]) & before_gap, axis=1),
    )


_STEPS = 10


def _nearest(vectors: Any, documents: IntArray) -> tuple[IntArray, FloatArray]:  # noqa: ANN401
    """Return the neighbours of documents, nearest first, and how near they are."""
    depth = min(_NEIGHBOURS, vectors.shape[0] - 1)
    places, values = [], []
    for start in range(0, len(documents), _BLOCK_ROWS):
        rows = documents[start : start + _BLOCK_ROWS]
        product = vectors[rows] @ vectors.T
        scores = np.asarray(product if isinstance(product, np.ndarray) else product.toarray())
        scores[np.arange(len(rows)), rows] = -np.inf
        best = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
        found = np.take_along_axis(scores, best, axis=1)
        order = np.argsort(-found, axis=1, kind="stable")
        places.append(np.take_along_axis(best, order, axis=1))
        values.append(np.take_along_axis(found, order, axis=1))
    return np.concatenate(places).astype(np.int64), np.concatenate(values).astype(np.float64)


def _behind_gap(value: FloatArray) -> IntArray:
    """Return the place behind the largest gap of each row; 0 where there is one neighbour."""
    if value.shape[1] < 2:
        return np.zeros(len(value), dtype=np.int64)
    last: IntArray = np.argmax(value[:, :-1] - value[:, 1:], axis=1).astype(np.int64)
    return last + 1


_RETURNED = 0.96  # measured where copies are: .98 to 1; where none are, .5 to .95
_GAP = 4.0  # measured by words where copies are: 10 to 75; where none are, 1.5 to 3


def copy_threshold(found: Neighbours, *, error: float, by_words: bool) -> float | None:
    """Return the similarity from which on a nearest neighbour is a copy.

    Documents are copies from the lowest similarity on at which at most the share ``error`` of
    those that reach it would do so by a neighbour that is no copy, and nearly all are neighbours
    of their neighbours. The threshold lies halfway between there and where 95 of 100 copies are: a
    corpus in which fewer documents have copies has as many neighbours that are none. None where no
    similarity tells the two apart: few documents have copies, or none.

    Parameters
    ----------
    by_words : bool
        Whether similarity is overlap in words; then nothing else checks the pairs, and the gap
        behind the copies must be larger than chance makes one.
    """
    order = np.argsort(-found.nearest, kind="stable")
    rising, other = found.nearest[order][::-1], np.sort(found.other)
    tried = np.unique(np.concatenate((found.nearest, found.last)))
    reached = len(rising) - np.searchsorted(rising, tried)
    by_others = len(other) - np.searchsorted(other, tried)
    returned = np.concatenate(([0], np.cumsum(found.returned[order])))[reached]
    held = ((by_others + 1) <= error * reached) & (returned >= _RETURNED * reached)
    if not held.any():
        return None
    first = int(np.flatnonzero(held)[0])
    copies = order[: int(reached[first])]
    if by_words and np.median(found.gap[copies]) < _GAP:
        return None
    usual = np.quantile(found.last[copies], _LEFT_OUT)
    return float(max(tried[first], (tried[first] + usual) / 2))


# All pairs of documents that are alike: a product in blocks, each pair once.


class Pairs(NamedTuple):
    """Pairs of rows, ``first < second``."""

    first: IntArray
    second: IntArray
    similarity: FloatArray

    def take(self, kept: npt.NDArray[np.bool_]) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.first[kept], self.second[kept], self.similarity[kept])


def alike_pairs(
    vectors: Any,  # noqa: ANN401 - dense or sparse
    threshold: float,
) -> tuple[Pairs, int]:
    """Return the pairs that reach a similarity, and how many documents reach it too often.

    Documents with more than 100 neighbours are left alone: they share a template.

    Parameters
    ----------
    vectors : float32 array or sparse array of shape (n, dimension)
        Of length 1.
    """
    n = vectors.shape[0]
    counts = np.zeros(n, dtype=np.int64)
    parts = [Pairs(_NO_ROWS, _NO_ROWS, _NOTHING)]
    for pairs in _exact(vectors, threshold):
        counts += np.bincount(pairs.first, minlength=n) + np.bincount(pairs.second, minlength=n)
        # left out at once, so that a template of many documents fills no memory
        parts.append(pairs.take(_most(counts, pairs) <= MOST_COPIES))
    every = Pairs(*map(np.concatenate, zip(*parts, strict=True)))
    crowded = int(np.count_nonzero(counts > MOST_COPIES))
    return every.take(_most(counts, every) <= MOST_COPIES), crowded


def _most(counts: IntArray, pairs: Pairs) -> IntArray:
    return np.maximum(counts[pairs.first], counts[pairs.second])


def _exact(vectors: Any, threshold: float) -> Iterator[Pairs]:  # noqa: ANN401
    n = vectors.shape[0]
    columns = _BLOCK_COLUMNS if isinstance(vectors, np.ndarray) else n
    for start in range(0, n, _BLOCK_ROWS):
        rows = vectors[start : start + _BLOCK_ROWS]
        # Half of the product: the other half is its mirror image
        for left in range(start, n, columns):
            product = rows @ vectors[left : left + columns].T
            if isinstance(product, np.ndarray):
                row, column = np.nonzero(product >= threshold)
                value = product[row, column]
            else:
                entries = product.tocoo()
                kept = entries.data >= threshold
                row, column, value = entries.row[kept], entries.col[kept], entries.data[kept]
            first, second = row.astype(np.int64) + start, column.astype(np.int64) + left
            yield Pairs(first, second, value.astype(np.float64)).take(first < second)
