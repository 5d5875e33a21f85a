"""The encoder contract against the real ragas."""

import os
from collections.abc import Sequence
from typing import Any

import pytest

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
pytest.importorskip("ragas")

from ragas.embeddings.base import BaseRagasEmbedding

from rag_sourcebias.testing.contract import EncoderContract
from rag_sourcebias_integrations.ragas.metrics import EncoderEmbedding

pytestmark = pytest.mark.frameworks


class TestEncoder(EncoderContract):
    def wrap(self, encoder: Any) -> BaseRagasEmbedding:
        return EncoderEmbedding(encoder)

    def embed_documents(self, native: Any, texts: Sequence[str]) -> Any:
        return native.embed_texts(list(texts))

    def embed_query(self, native: Any, text: str) -> Any:
        return native.embed_query(text)

    async def aembed_documents(self, native: Any, texts: Sequence[str]) -> Any:
        return await native.aembed_texts(list(texts))

    async def aembed_query(self, native: Any, text: str) -> Any:
        return await native.aembed_query(text)


class TestSingleTexts(TestEncoder):
    """One text at a time, as ragas' own metrics embed, and by the names of LangChain."""

    def embed_documents(self, native: Any, texts: Sequence[str]) -> Any:
        return [native.embed_text(text) for text in texts]

    async def aembed_documents(self, native: Any, texts: Sequence[str]) -> Any:
        assert await native.aembed_documents(texts) == native.embed_documents(texts)
        return [await native.aembed_text(text) for text in texts]
