"""Exact dense search over any encoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.retrieval.topk import run_from_scores
from rag_sourcebias.types.documents import Corpus, Query
from rag_sourcebias.types.rankings import Run

__all__ = ["DenseRetriever", "DenseSpec", "Similarity", "unit_rows"]

Similarity = Literal["cosine", "dot"]
FloatArray = npt.NDArray[np.float32]
_BLOCK_VALUES = 16_000_000  # scores held at once, 64 MB


class DenseSpec:
    """Exact search: every document is scored for every query.

    Parameters
    ----------
    encoder : Encoder
    name : str, optional
        ``"dense:<encoder>"`` by default.
    similarity : {"cosine", "dot"}
    """

    def __init__(
        self, encoder: Encoder, *, name: str | None = None, similarity: Similarity = "cosine"
    ) -> None:
        self.name = name or f"dense:{encoder.name}"
        self._encoder = encoder
        self._similarity: Similarity = similarity

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {**self._encoder.settings, "similarity": self._similarity, "search": "exact"}

    def build(self, corpus: Corpus) -> DenseRetriever:
        """Encode a corpus."""
        return DenseRetriever(
            self._encoder,
            self._encoder.encode_documents(corpus.texts),
            doc_ids=corpus.doc_ids,
            name=self.name,
            similarity=self._similarity,
        )


class DenseRetriever:
    """Exact search over given document vectors.

    Parameters
    ----------
    vectors : float32 array of shape (documents, dimension)
    doc_ids : tuple of str
    """

    def __init__(
        self,
        encoder: Encoder,
        vectors: FloatArray,
        *,
        doc_ids: tuple[str, ...],
        name: str,
        similarity: Similarity = "cosine",
    ) -> None:
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise DataError(
                f"{name}: the vector of document {doc_ids[bad[0]]!r} holds NaN or infinity "
                f"({len(bad)} such documents); check the model's dtype and the text"
            )
        self.name = name
        self._encoder = encoder
        self._cosine = similarity == "cosine"
        self._vectors = unit_rows(vectors) if self._cosine else vectors
        self._doc_ids = doc_ids

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return the best ``depth`` documents for each query."""
        return run_from_scores(
            self._scores(queries),
            queries=queries,
            doc_ids=self._doc_ids,
            depth=depth,
            name=self.name,
        )

    def _scores(self, queries: Sequence[Query]) -> Iterator[FloatArray]:
        if not queries:
            return
        encoded = self._encoder.encode_queries([query.text for query in queries])
        if self._cosine:
            encoded = unit_rows(encoded)
        rows = max(1, _BLOCK_VALUES // max(len(self._doc_ids), 1))
        for start in range(0, len(encoded), rows):
            yield encoded[start : start + rows] @ self._vectors.T


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Scale rows to length 1; zero rows stay zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: FloatArray = vectors / np.where(length > 0, length, 1).astype(np.float32)
    return scaled
