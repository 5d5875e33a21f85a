"""An encoder of this library as a ragas embedding."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from ragas.embeddings.base import BaseRagasEmbedding

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder
from rag_sourcebias_integrations.ragas.batching import JoinedCalls

__all__ = ["EncoderEmbedding"]

Vector = list[float]


class EncoderEmbedding(BaseRagasEmbedding):
    """Embed with an encoder, in every metric of ragas that embeds; texts arrive unaltered.

    ragas' similarity metrics know no query side: texts are encoded as documents. Only
    ``embed_query``, which the legacy answer relevancy calls, encodes a query. The async methods
    use a thread, and join concurrent calls into one of the encoder. To keep vectors between
    runs give it a :class:`rag_sourcebias.retrieval.CachedEncoder`: the key of a ragas cache does
    not name the model.

    Parameters
    ----------
    encoder : Encoder

    Raises
    ------
    DataError
        If ``encoder`` is none.
    """

    def __init__(self, encoder: Encoder) -> None:
        if not isinstance(encoder, Encoder):
            raise DataError(
                f"an object of type {type(encoder).__qualname__} is no encoder; expected one with "
                "name, fingerprint, settings, encode_queries and encode_documents"
            )
        super().__init__(cache=None)
        self.encoder = encoder
        self._joined = JoinedCalls(encoder.encode_documents)

    def __repr__(self) -> str:
        return f"EncoderEmbedding({self.encoder.name!r})"

    def embed_text(self, text: str, **kwargs: Any) -> Vector:  # noqa: ANN401
        """Embed one text."""
        return self.embed_texts([text], **kwargs)[0]

    def embed_texts(self, texts: Sequence[str], **kwargs: Any) -> list[Vector]:  # noqa: ANN401, ARG002
        """Embed texts in one call of the encoder; one vector for each, in order."""
        given = _texts(texts)
        if not given:
            return []
        return cast("list[Vector]", self.encoder.encode_documents(given).tolist())

    async def aembed_text(self, text: str, **kwargs: Any) -> Vector:  # noqa: ANN401
        """Embed one text without blocking the event loop."""
        return (await self.aembed_texts([text], **kwargs))[0]

    async def aembed_texts(self, texts: Sequence[str], **kwargs: Any) -> list[Vector]:  # noqa: ANN401, ARG002
        """Embed texts without blocking the event loop; one vector for each, in order."""
        given = _texts(texts)
        if not given:
            return []
        return cast("list[Vector]", (await self._joined(given)).tolist())

    embed_documents = embed_texts
    aembed_documents = aembed_texts

    def embed_query(self, text: str) -> Vector:
        """Embed one query."""
        return cast("Vector", self.encoder.encode_queries([text])[0].tolist())

    async def aembed_query(self, text: str) -> Vector:
        """Embed one query without blocking the event loop."""
        return await asyncio.to_thread(self.embed_query, text)


def _texts(texts: Sequence[str]) -> list[str]:
    """Return a list; ragas too takes a single text for one of one."""
    return [texts] if isinstance(texts, str) else list(texts)
