"""Where the vectors of a copied collection come from: texts encoded again, or stored vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import Float32Array
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.debias.projection import SourceProjection
from rag_sourcebias_integrations.chroma.collections import embedded_text
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction

Page = Mapping[str, Any]

CLOSE = 1e-2  # distance of unit vectors; another batch rounds differently, most at bfloat16
_EQUAL = 1e-4  # of what was only stored and read back


class Vectors(Protocol):
    """Gives the vectors of documents that are carried from one collection to another."""

    @property
    def reads(self) -> tuple[str, ...]:
        """What is read of both collections beside the content."""
        ...

    def vectors(self, page: Page, ids: Sequence[str]) -> Float32Array:
        """Vectors of these documents of a page of the original, shape (ids, d)."""
        ...

    def lacking(self, page: Page) -> list[str]:
        """Ids on a page of the original that no vector can be made of."""
        ...


class VectorSource(Vectors, Protocol):
    """Gives the vectors of a whole copy, page by page."""

    @property
    def function(self) -> EncoderEmbeddingFunction:
        """What encodes queries of the copy, and documents that come later."""
        ...

    def differ(self, page: Page, copied: Page) -> list[str]:
        """Ids on a page of the copy whose vector is not the one that this page calls for."""
        ...

    def require(self, page: Page) -> None:
        """Refuse a page of the original that vectors cannot be made of."""
        ...


@dataclass(frozen=True, slots=True)
class EncodedVectors:
    """Stored texts, encoded again."""

    function: EncoderEmbeddingFunction
    reads: tuple[str, ...] = ()

    def vectors(self, page: Page, ids: Sequence[str]) -> Float32Array:
        """Encode the texts."""
        return np.stack(self.function(texts_of(page, ids)))

    def differ(self, page: Page, copied: Page) -> list[str]:  # noqa: ARG002
        """Nothing: a sample is encoded again instead."""
        return []

    def require(self, page: Page) -> None:
        """Refuse documents without text."""
        without = self.lacking(page)
        if without:
            raise DataError(
                f"{len(without)} documents have no stored text to encode, among them "
                f"{without[:10]}; add their texts, or delete them, first"
            )

    def lacking(self, page: Page) -> list[str]:
        """Ids without text."""
        return _without(page, "documents")


@dataclass(frozen=True, slots=True)
class ProjectedVectors:
    """Stored vectors, projected; no text is encoded."""

    function: EncoderEmbeddingFunction
    projection: SourceProjection
    reads: tuple[str, ...] = ("embeddings",)

    def vectors(self, page: Page, ids: Sequence[str]) -> Float32Array:
        """Project the stored vectors."""
        stored = dict(zip(page["ids"], page["embeddings"], strict=True))
        return self.projection.apply(np.asarray([stored[doc_id] for doc_id in ids], np.float32))

    def differ(self, page: Page, copied: Page) -> list[str]:
        """Compare every vector with the projection of the stored one."""
        if not copied["ids"]:
            return []
        known = set(page["ids"])
        rows = [row for row, doc_id in enumerate(copied["ids"]) if doc_id in known]
        ids = [copied["ids"][row] for row in rows]
        found = np.asarray([copied["embeddings"][row] for row in rows], np.float32)
        wrong = far_apart(found, self.vectors(page, ids), _EQUAL)
        return [doc_id for doc_id, bad in zip(ids, wrong, strict=True) if bad]

    def require(self, page: Page) -> None:
        """Refuse documents without a vector, and vectors of another length."""
        without = self.lacking(page)
        if without:
            raise DataError(
                f"{len(without)} documents have no stored vector to project, among them "
                f"{without[:10]}; delete them, or use migrate_encoder, which encodes the texts"
            )
        dimension = len(page["embeddings"][0])
        if dimension != self.projection.dimension:
            raise DataError(
                f"the collection's vectors have {dimension} dimensions, the projection is for "
                f"{self.projection.dimension}; fit one on vectors of the collection's encoder"
            )

    def lacking(self, page: Page) -> list[str]:
        """Ids without a vector."""
        return _without(page, "embeddings")


@dataclass(frozen=True, slots=True)
class TextVectors:
    """Stored texts, embedded by what a collection or a caller embeds with."""

    embed: Callable[[list[str]], Sequence[Any]]
    reads: tuple[str, ...] = ()

    def vectors(self, page: Page, ids: Sequence[str]) -> Float32Array:
        """Embed the texts."""
        return np.asarray(self.embed(texts_of(page, ids)), np.float32)

    def lacking(self, page: Page) -> list[str]:
        """Ids without text."""
        return _without(page, "documents")


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Stored vectors as they are."""

    reads: tuple[str, ...] = ("embeddings",)

    def vectors(self, page: Page, ids: Sequence[str]) -> Float32Array:
        """Return the stored vectors."""
        stored = dict(zip(page["ids"], page["embeddings"], strict=True))
        return np.asarray([stored[doc_id] for doc_id in ids], np.float32)

    def lacking(self, page: Page) -> list[str]:
        """Ids without a vector."""
        return _without(page, "embeddings")


def texts_of(page: Page, ids: Sequence[str]) -> list[str]:
    """Texts that are embedded for documents of a page that have one."""
    metadata = page.get("metadatas") or [None] * len(page["ids"])
    rows = dict(zip(page["ids"], zip(page["documents"], metadata, strict=True), strict=True))
    return [embedded_text(i, str(rows[i][0]), rows[i][1] or {}) for i in ids]


def far_apart(
    first: npt.NDArray[Any], second: npt.NDArray[Any], limit: float
) -> npt.NDArray[np.bool_]:
    """Rows that are further apart than this share of the longer one, shape (n,)."""
    scale = np.maximum(np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1))
    return np.asarray(~(np.linalg.norm(first - second, axis=1) <= limit * scale))


def _without(page: Page, field: str) -> list[str]:
    values = page.get(field)
    if values is None:
        return list(page["ids"])
    return [doc_id for doc_id, value in zip(page["ids"], values, strict=True) if value is None]
