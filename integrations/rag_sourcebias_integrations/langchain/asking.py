"""Ask a LangChain retriever, and read what it answers."""

from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.application import Hit
from rag_sourcebias.retrieval.rerank import Held


def search(obj: Any, depth: int | None = None) -> Callable[[str], Iterable[Any]] | None:  # noqa: ANN401
    """Return what asks a retriever, a chain or tool around one, or a vector store; else None."""
    if isinstance(obj, VectorStore):
        return lambda text: obj.similarity_search(text, **({} if depth is None else {"k": depth}))
    if isinstance(obj, BaseTool):
        return lambda text: _documents_of(obj, text)
    if type(obj).__module__.startswith("langgraph."):
        raise DataError(
            "a graph or agent answers and returns no documents: pass the retriever or tool that it "
            "asks, its vector store, or a function from a question to the documents of its state"
        )
    return getattr(obj, "invoke", None) if isinstance(obj, Runnable) else None


def _documents_of(tool: BaseTool, text: str) -> Any:  # noqa: ANN401
    """Return the artifact beside the text that a model reads; that text where there is none."""
    call = {"type": "tool_call", "id": "", "name": tool.name, "args": {next(iter(tool.args)): text}}
    message = tool.invoke(call)
    return message.content if message.artifact is None else message.artifact


def held(obj: Any) -> Held | None:  # noqa: ANN401
    """Return id, text and metadata of all that a vector store holds; None where it cannot tell.

    A retriever of a store holds what that holds.
    """
    store = getattr(obj, "vectorstore", obj)
    if isinstance(store, InMemoryVectorStore):
        return [(id_, row["text"], row["metadata"]) for id_, row in store.store.items()]
    if hasattr(store, "index_to_docstore_id"):  # FAISS
        found = store.get_by_ids(list(store.index_to_docstore_id.values()))
        return [(document.id, document.page_content, document.metadata) for document in found]
    if isinstance(store, VectorStore) and hasattr(store, "get"):  # Chroma
        rows = store.get()
        return zip(rows["ids"], rows["documents"], rows["metadatas"], strict=True)
    return None


def describe(found: Any) -> Hit:  # noqa: ANN401 - a Document, or a tuple that begins with one
    """Read a document: its id, else ``"id"`` in its metadata, with its text."""
    document, score = (found, None) if isinstance(found, Document) else (found[0], found[1])
    return Hit(
        doc_id=document.id or document.metadata.get("id"),
        text=document.page_content,
        metadata=document.metadata,
        score=score,
    )
