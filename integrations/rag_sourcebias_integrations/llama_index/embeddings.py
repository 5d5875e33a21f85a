"""An encoder of this library as LlamaIndex's embedding model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder

__all__ = ["EncoderEmbedding"]

_SENT = ("model_name", "embed_batch_size", "num_workers")
_BATCH_SIZE = 64  # LlamaIndex's own default, 10, starves an encoder that batches by itself


class EncoderEmbedding(BaseEmbedding):
    """Queries and texts go to the two sides of an encoder; the async methods use a thread.

    Do not share one ``embeddings_cache`` between models: LlamaIndex's key is the text alone, so
    that even the query and the text side of one model mix there.

    Parameters
    ----------
    encoder : Encoder
        Its fingerprint is a field, so that the cache of an ``IngestionPipeline`` notices another
        encoder.
    **options
        As for ``BaseEmbedding``; ``embed_batch_size`` is 64 unless given.

    Raises
    ------
    DataError
        If ``encoder`` is none.
    """

    fingerprint: str
    _encoder: Any = PrivateAttr()

    def __init__(self, encoder: Encoder, **options: Any) -> None:  # noqa: ANN401
        if not isinstance(encoder, Encoder):
            raise DataError(
                f"an object of type {type(encoder).__qualname__} is no encoder; expected one with "
                "name, fingerprint, settings, encode_queries and encode_documents"
            )
        options.setdefault("embed_batch_size", _BATCH_SIZE)
        options.setdefault("model_name", encoder.name)
        super().__init__(fingerprint=encoder.fingerprint, **options)
        self._encoder = encoder

    @classmethod
    def class_name(cls) -> str:
        """Name that LlamaIndex shows."""
        return "EncoderEmbedding"

    def __reduce__(self) -> tuple[Callable[..., EncoderEmbedding], tuple[Any, ...]]:
        # LlamaIndex's way leaves out, silently, whatever does not pickle: here the encoder.
        return _rebuilt, (self._encoder, {name: getattr(self, name) for name in _SENT})

    def _get_query_embedding(self, query: str) -> list[float]:
        row: list[float] = self._encoder.encode_queries([query])[0].tolist()
        return row

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = self._encoder.encode_documents(texts).tolist()
        return rows

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


def _rebuilt(encoder: Encoder, options: Mapping[str, Any]) -> EncoderEmbedding:
    return EncoderEmbedding(encoder, **options)
