"""Encoders and rerankers behind a cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rag_sourcebias.protocols import Encoder, Reranker
from rag_sourcebias.retrieval.cache import VectorCache, fill

__all__ = ["CachedEncoder", "CachedReranker"]

FloatArray = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]


class CachedEncoder:
    """An encoder that computes each text once, also across processes and restarts.

    Parameters
    ----------
    batch_size : int
        Texts encoded between two commits.
    progress : callable, optional
        Told ``(texts done, texts)``.
    """

    def __init__(
        self,
        encoder: Encoder,
        cache: VectorCache,
        *,
        batch_size: int = 64,
        progress: Progress | None = None,
    ) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._cache = cache
        self._batch_size = batch_size
        self._progress = progress

    @property
    def fingerprint(self) -> str:
        """Identity of the encoder."""
        return self._encoder.fingerprint

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the encoder."""
        return self._encoder.settings

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        """Encode the query side, shape (len(texts), dimension)."""
        return self._encode(texts, "query", self._encoder.encode_queries)

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Encode the document side, shape (len(texts), dimension)."""
        return self._encode(texts, "document", self._encoder.encode_documents)

    def _encode(
        self, texts: Sequence[str], side: str, encode: Callable[[Sequence[str]], FloatArray]
    ) -> FloatArray:
        return fill(
            self._cache,
            [self._cache.key(self.fingerprint, side, text) for text in texts],
            lambda part: encode([texts[p] for p in part]),
            order=sorted(range(len(texts)), key=lambda p: -len(texts[p])),
            batch_size=self._batch_size,
            progress=self._progress,
        )


class CachedReranker:
    """A reranker that scores each (query, text) pair once."""

    def __init__(
        self,
        reranker: Reranker,
        cache: VectorCache,
        *,
        batch_size: int = 64,
        progress: Progress | None = None,
    ) -> None:
        self.name = reranker.name
        self._reranker = reranker
        self._cache = cache
        self._batch_size = batch_size
        self._progress = progress

    @property
    def fingerprint(self) -> str:
        """Identity of the reranker."""
        return self._reranker.fingerprint

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the reranker."""
        return self._reranker.settings

    def score(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Score pairs, in the given order; shape (len(pairs),)."""
        if not pairs:
            return np.empty(0, dtype=np.float32)
        rows = fill(
            self._cache,
            # The passage is the text, the query part of the side: batches then share passages.
            [self._cache.key(self.fingerprint, f"pair:{query}", text) for query, text in pairs],
            lambda part: self._reranker.score([pairs[p] for p in part])[:, None],
            order=sorted(range(len(pairs)), key=lambda p: (-len(pairs[p][1]), pairs[p][1])),
            batch_size=self._batch_size,
            progress=self._progress,
        )
        return rows[:, 0]
