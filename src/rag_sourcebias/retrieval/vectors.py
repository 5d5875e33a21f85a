"""Vectors of a corpus and of queries, checked and normalised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.types.documents import Corpus, Query

__all__ = ["DocumentVectors", "Similarity", "encode_corpus", "query_vectors"]

Similarity = Literal["cosine", "dot"]
FloatArray = npt.NDArray[np.float32]

_REPORT_EVERY = 256  # texts between two calls of progress


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
    distinct: FloatArray = field(repr=False)
    row_of_doc: npt.NDArray[np.int64] = field(repr=False)
    similarity: Similarity

    @property
    def per_document(self) -> FloatArray:
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

    ``progress`` is told ``(done, total)`` texts.

    Raises
    ------
    DataError
        If the encoder returns an array of another shape, or a number that is not finite.
    """
    row_of_text: dict[str, int] = {}
    rows = [row_of_text.setdefault(text, len(row_of_text)) for text in corpus.texts]
    first_doc = dict(zip(reversed(rows), reversed(corpus.doc_ids), strict=True))
    vectors = _checked(
        _encode(encoder, list(row_of_text), progress),
        what=f"encoder {encoder.name!r}, documents",
        names=[first_doc[row] for row in range(len(row_of_text))],
    )
    return DocumentVectors(
        doc_ids=corpus.doc_ids,
        distinct=_normalized(vectors) if similarity == "cosine" else vectors,
        row_of_doc=np.array(rows, dtype=np.int64),
        similarity=similarity,
    )


def query_vectors(
    encoder: Encoder, queries: Sequence[Query], *, similarity: Similarity
) -> FloatArray:
    """Encode queries, normalised for cosine similarity; shape ``(len(queries), dimension)``.

    Raises
    ------
    DataError
        As :func:`encode_corpus`.
    """
    vectors = _checked(
        encoder.encode_queries([query.text for query in queries]),
        what=f"encoder {encoder.name!r}, queries",
        names=[query.query_id for query in queries],
    )
    return _normalized(vectors) if similarity == "cosine" else vectors


def _encode(
    encoder: Encoder, texts: Sequence[str], progress: Callable[[int, int], None] | None
) -> FloatArray:
    if progress is None or not texts:
        return encoder.encode_documents(texts)
    parts = []
    for start in range(0, len(texts), _REPORT_EVERY):
        parts.append(encoder.encode_documents(texts[start : start + _REPORT_EVERY]))
        progress(min(start + _REPORT_EVERY, len(texts)), len(texts))
    return np.concatenate(parts)


def _checked(vectors: FloatArray, *, what: str, names: Sequence[str]) -> FloatArray:
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


def _normalized(vectors: FloatArray) -> FloatArray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)
