"""Vectors of a corpus and of queries, checked and normalised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import Float32Array
from rag_sourcebias.core.data import Corpus, Query
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder

Similarity = Literal["cosine", "dot"]

ENCODED_TOGETHER = 1_024
"""Rows of a corpus that one call of an encoder gets: rows 0–1023, 1024–2047, …

Part of the definition of a run: a model's vectors differ in the last digits with the texts they
are computed beside, so a corpus is cut in the same places wherever it is encoded.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class DocumentVectors:
    """Vectors of a corpus, one per distinct text.

    Equal texts share one row, so that exact copies tie exactly: encoding or multiplying them in
    different batches would separate them by rounding, in the order of the corpus.

    Parameters
    ----------
    doc_ids : tuple of str, length n
    distinct : float32 array of shape (n_distinct, dimension)
        Normalised for cosine similarity.
    row_of_doc : int64 array of shape (n,)
        Row of ``distinct`` of each document.
    similarity : {"cosine", "dot"}
    """

    doc_ids: tuple[str, ...] = field(repr=False)
    distinct: Float32Array = field(repr=False)
    row_of_doc: npt.NDArray[np.int64] = field(repr=False)
    similarity: Similarity

    @property
    def per_document(self) -> Float32Array:
        """Vectors in the order of ``doc_ids``, shape ``(n, dimension)``."""
        return self.distinct[self.row_of_doc]


def encode_corpus(
    encoder: Encoder,
    corpus: Corpus,
    *,
    similarity: Similarity,
    progress: Callable[[int, int], None] | None = None,
) -> DocumentVectors:
    """Encode every distinct text of a corpus once.

    ``progress`` is told ``(done, total)`` documents.

    Raises
    ------
    DataError
        If the encoder returns an array of another shape, or a number that is not finite.
    """
    row_of_text: dict[str, int] = {}
    rows = [row_of_text.setdefault(text, len(row_of_text)) for text in corpus.texts]
    vectors = _encode(encoder, corpus, progress)
    return DocumentVectors(
        doc_ids=corpus.doc_ids,
        distinct=_normalized(vectors) if similarity == "cosine" else vectors,
        row_of_doc=np.array(rows, dtype=np.int64),
        similarity=similarity,
    )


def query_vectors(
    encoder: Encoder, queries: Sequence[Query], *, similarity: Similarity
) -> Float32Array:
    """Encode queries, normalised for cosine similarity; shape ``(len(queries), dimension)``.

    Raises
    ------
    DataError
        As :func:`encode_corpus`.
    """
    return checked_vectors(
        encoder.encode_queries([query.text for query in queries]),
        what=f"encoder {encoder.name!r}, queries",
        names=[query.query_id for query in queries],
        similarity=similarity,
    )


def _encode(
    encoder: Encoder, corpus: Corpus, progress: Callable[[int, int], None] | None
) -> Float32Array:
    """Encode every distinct text in the part of the corpus where it occurs first."""
    seen: set[str] = set()
    found: list[Float32Array] = []
    for start in range(0, max(len(corpus), 1), ENCODED_TOGETHER):
        stop = min(start + ENCODED_TOGETHER, len(corpus))
        if progress is not None:
            progress(start, len(corpus))
        names: dict[str, str] = {}
        for doc_id, text in zip(corpus.doc_ids[start:stop], corpus.texts[start:stop], strict=True):
            if text not in seen:
                names.setdefault(text, doc_id)
        seen.update(names)
        if names or not found:
            what = f"encoder {encoder.name!r}, documents"
            vectors = encoder.encode_documents(list(names))
            found.append(_checked(vectors, what=what, names=list(names.values())))
    if progress is not None:
        progress(len(corpus), len(corpus))
    return np.concatenate(found)


def checked_vectors(
    vectors: Float32Array, *, what: str, names: Sequence[str], similarity: Similarity
) -> Float32Array:
    """Return vectors as they are searched: checked, and normalised for cosine similarity.

    Parameters
    ----------
    vectors : float array of shape (len(names), dimension)
    what : str
        Whose vectors they are, for messages.
    names : sequence of str
        What each vector belongs to, for messages.

    Raises
    ------
    DataError
        If the array has another shape, or a number that is not finite.
    """
    checked = _checked(vectors, what=what, names=names)
    return _normalized(checked) if similarity == "cosine" else checked


def _checked(vectors: Float32Array, *, what: str, names: Sequence[str]) -> Float32Array:
    array = np.asarray(vectors, dtype=np.float32)
    if array.ndim != 2 or len(array) != len(names):
        raise DataError(
            f"{what}: returned shape {array.shape} for {len(names)} texts; expected "
            f"({len(names)}, dimension)"
        )
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise DataError(
            f"{what}: {len(bad)} vector(s) hold NaN or infinity, first for {names[bad[0]]!r}; a "
            "vector must be finite (bfloat16 or float16 overflow is a usual cause: use float32)"
        )
    return array


def _normalized(vectors: Float32Array) -> Float32Array:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)
