"""Ask a Chroma collection, and read what it answers."""

from collections.abc import Callable, Iterable
from typing import Any

from chromadb import Collection

from rag_sourcebias.retrieval.rerank import Held
from rag_sourcebias_integrations.chroma.tagging import ChromaStore
from rag_sourcebias_integrations.python.asking import describe

__all__ = ["describe", "held", "search"]

_USUAL = 10  # what Chroma returns where nothing is said


def search(obj: object, depth: int | None = None) -> Callable[[str], Iterable[Any]] | None:
    """Return what asks a collection by its own embedding function; None where it is none."""
    if not isinstance(obj, Collection):
        return None

    def ask(text: str) -> list[dict[str, Any]]:
        found = obj.query(
            query_texts=[text],
            n_results=min(depth or _USUAL, max(obj.count(), 1)),
            include=["documents", "metadatas", "distances"],
        )
        names = ("ids", "documents", "metadatas", "distances")
        return [
            {"id": id_, "text": text, "metadata": metadata or {}, "score": -distance}
            for id_, text, metadata, distance in zip(
                *((found[name] or [[]])[0] for name in names), strict=True
            )
        ]

    return ask


def held(obj: object) -> Held | None:
    """Return id, text and metadata of all that a collection holds; None of others."""
    return ChromaStore(obj).documents() if isinstance(obj, Collection) else None
