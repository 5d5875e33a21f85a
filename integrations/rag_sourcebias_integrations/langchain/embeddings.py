"""Our encoders as LangChain embeddings."""

from __future__ import annotations

from typing import cast

from langchain_core.embeddings import Embeddings

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder


class EncoderEmbeddings(Embeddings):
    """Embed documents and queries with an encoder, each by its own method.

    The async methods run in a thread, as LangChain's own default does.

    Parameters
    ----------
    encoder : Encoder

    Raises
    ------
    DataError
        If it has no ``encode_queries`` and ``encode_documents``.
    """

    def __init__(self, encoder: Encoder) -> None:
        if not isinstance(encoder, Encoder):
            raise DataError(
                f"{encoder!r:.80} is not an encoder; expected an object with encode_queries and "
                "encode_documents, such as rag_sourcebias.neural.loading.SentenceEncoder"
            )
        self.encoder = encoder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts that are to be indexed; one vector for each, in order."""
        if not texts:
            return []
        return cast("list[list[float]]", self.encoder.encode_documents(list(texts)).tolist())

    def embed_query(self, text: str) -> list[float]:
        """Embed one query."""
        return cast("list[float]", self.encoder.encode_queries([text])[0].tolist())
