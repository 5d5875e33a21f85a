"""Chroma collections with a small deterministic embedding function."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from chromadb.api.types import EmbeddingFunction

_numbers = itertools.count()


def vector(text: str) -> np.ndarray:
    """Return a vector that differs from text to text, so that no two distances are equal."""
    return np.random.default_rng(zlib.crc32(text.encode())).normal(size=16).astype(np.float32)


class TextVectors(EmbeddingFunction):
    """Raises ``error`` when it has one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def __call__(self, input: Sequence[str]) -> list[np.ndarray]:
        if self.error is not None:
            raise self.error
        return [vector(text) for text in input]

    @staticmethod
    def name() -> str:
        return "text_vectors_of_the_tests"

    def get_config(self) -> dict[str, Any]:
        return {}

    @staticmethod
    def build_from_config(config: Mapping[str, Any]) -> TextVectors:
        return TextVectors()

    def default_space(self) -> str:
        return "cosine"

    def supported_spaces(self) -> list[str]:
        return ["cosine", "l2", "ip"]


def new_collection(client: Any, vectors: TextVectors | None = None, **options: Any) -> Any:
    """Create an empty collection; clients in memory share theirs, so every name is new."""
    return client.create_collection(
        f"observed-{next(_numbers)}",
        embedding_function=TextVectors() if vectors is None else vectors,
        **options,
    )


def fill(collection: Any, documents: Sequence[Any]) -> Any:
    """Add contract documents; what an asynchronous collection returns is to be awaited."""
    return collection.add(
        ids=[document.doc_id for document in documents],
        documents=[document.text for document in documents],
        metadatas=[document.tagged_metadata() for document in documents],
    )
