"""Ask a LangChain retriever, and read what it answers."""

from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore

from rag_sourcebias.retrieval.application import Hit


def search(obj: Any, depth: int | None = None) -> Callable[[str], Iterable[Any]] | None:  # noqa: ANN401
    """Return what asks a retriever or a chain around one, or a vector store; else None."""
    if isinstance(obj, VectorStore):
        return lambda text: obj.similarity_search(text, **({} if depth is None else {"k": depth}))
    return getattr(obj, "invoke", None) if isinstance(obj, Runnable) else None


def describe(found: Any) -> Hit:  # noqa: ANN401 - a Document, or a tuple that begins with one
    """Read a document: its id, else ``"id"`` in its metadata, with its text."""
    document, score = (found, None) if isinstance(found, Document) else (found[0], found[1])
    return Hit(
        doc_id=document.id or document.metadata.get("id"),
        text=document.page_content,
        metadata=document.metadata,
        score=score,
    )
