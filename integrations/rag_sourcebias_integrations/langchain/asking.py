"""Ask a LangChain retriever, and read the ids off what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore

from rag_sourcebias.errors import DataError

__all__ = ["document_id", "search"]


def search(obj: object) -> Callable[[str], Iterable[Any]] | None:
    """Return what asks a retriever or a chain around one, or a vector store; else None."""
    found: Callable[[str], Iterable[Any]] | None = None
    if isinstance(obj, VectorStore):
        found = obj.similarity_search
    elif isinstance(obj, Runnable):
        found = obj.invoke
    return found


def document_id(document: Any, key: str | None) -> str:  # noqa: ANN401 - a Document
    """Return what stands under ``key`` in the metadata, or else the id, or else ``"id"`` there.

    Raises
    ------
    DataError
        If there is none of these.
    """
    found = document.id if key is None else None
    found = found or document.metadata.get(key or "id")
    if not found:
        where = "neither an id nor 'id'" if key is None else f"no {key!r}"
        raise DataError(f"a LangChain document has {where} in its metadata")
    return str(found)
