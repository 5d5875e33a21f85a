"""The contract of adapters that offer one of our encoders to a framework."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from rag_sourcebias.protocols import Encoder
from rag_sourcebias.testing.documents import DOCUMENTS, QUERY
from rag_sourcebias.testing.kit import ContractKit

__all__ = ["EncoderContract", "SidedEncoder"]

_TEXTS = [document.text for document in DOCUMENTS]


class SidedEncoder:
    """A small deterministic encoder whose two sides differ and which keeps what it was given."""

    name = "sided"
    dimension = 16

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.documents: list[str] = []

    @property
    def fingerprint(self) -> str:
        """Identity of the encoder."""
        return "sided-16"

    @property
    def settings(self) -> Mapping[str, str]:
        """Nothing to state."""
        return {}

    def encode_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode the query side."""
        self.queries += texts
        return self._encode(texts, "query: ")

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode the document side."""
        self.documents += texts
        return self._encode(texts, "passage: ")

    def _encode(self, texts: Sequence[str], prefix: str) -> npt.NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            digest = blake2b((prefix + text).encode(), digest_size=self.dimension).digest()
            row[:] = np.frombuffer(digest, np.uint8) / 128.0 - 1.0
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        return rows


class EncoderContract(ContractKit):
    """Inherit and implement the hooks. Capability: "async" (the ``a…`` hooks)."""

    capabilities: ClassVar[frozenset[str]] = frozenset({"async"})

    @abstractmethod
    def wrap(self, encoder: Encoder) -> Any:  # noqa: ANN401
        """Return the framework's kind of embedding over an encoder."""

    @abstractmethod
    def embed_documents(self, native: Any, texts: Sequence[str]) -> Any:  # noqa: ANN401
        """Embed documents as the framework does on indexing; one vector for each."""

    @abstractmethod
    def embed_query(self, native: Any, text: str) -> Any:  # noqa: ANN401
        """Embed one query as the framework does on searching."""

    async def aembed_documents(self, native: Any, texts: Sequence[str]) -> Any:  # noqa: ANN401
        """Embed documents asynchronously."""
        pytest.fail(f"implement it, or name async in unsupported: {native!r}, {texts!r}")

    async def aembed_query(self, native: Any, text: str) -> Any:  # noqa: ANN401
        """Embed one query asynchronously."""
        pytest.fail(f"implement it, or name async in unsupported: {native!r}, {text!r}")

    def test_documents_keep_order_and_values(self) -> None:
        """Shape (n, d), finite, as the encoder gives them."""
        encoder = SidedEncoder()
        found = np.array(self.embed_documents(self.wrap(encoder), _TEXTS), np.float32)
        assert found.shape == (len(_TEXTS), encoder.dimension)
        np.testing.assert_allclose(found, SidedEncoder().encode_documents(_TEXTS), rtol=1e-6)

    def test_a_batch_equals_its_single_texts(self) -> None:
        """No text influences another."""
        native = self.wrap(SidedEncoder())
        batch = np.array(self.embed_documents(native, _TEXTS), np.float32)
        single = [np.array(self.embed_documents(native, [t]), np.float32)[0] for t in _TEXTS]
        np.testing.assert_allclose(batch, single, rtol=1e-6)

    def test_queries_and_documents_use_their_own_side(self) -> None:
        """A query is never encoded as a document, nor the reverse; texts arrive unaltered."""
        encoder = SidedEncoder()
        native = self.wrap(encoder)
        query = np.array(self.embed_query(native, QUERY), np.float32).reshape(-1)
        np.testing.assert_allclose(query, SidedEncoder().encode_queries([QUERY])[0], rtol=1e-6)
        assert (encoder.queries, encoder.documents) == ([QUERY], [])
        self.embed_documents(native, _TEXTS)
        assert (encoder.queries, encoder.documents) == ([QUERY], _TEXTS)

    def test_async_gives_the_same(self) -> None:
        """Both sides."""
        self.need("async")
        native = self.wrap(SidedEncoder())

        async def both() -> tuple[Any, Any]:
            return await self.aembed_documents(native, _TEXTS), await self.aembed_query(
                native, QUERY
            )

        documents, query = asyncio.run(both())
        np.testing.assert_allclose(documents, self.embed_documents(native, _TEXTS), rtol=1e-6)
        np.testing.assert_allclose(query, self.embed_query(native, QUERY), rtol=1e-6)
