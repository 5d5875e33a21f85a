"""Ask a LlamaIndex retriever, and read the ids off what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import NodeWithScore, QueryBundle

from rag_sourcebias.errors import DataError

__all__ = ["document_id", "search"]


def search(obj: object) -> Callable[[str], Iterable[Any]] | None:
    """Return what asks a retriever, a query engine's retriever or an index; else None."""
    if isinstance(obj, BaseQueryEngine):
        return lambda text: obj.retrieve(QueryBundle(text))
    retriever = obj.as_retriever() if isinstance(obj, BaseIndex) else obj
    found: Callable[[str], Iterable[Any]] | None = None
    if isinstance(retriever, BaseRetriever):
        found = retriever.retrieve
    return found


def document_id(found: Any, key: str | None) -> str:  # noqa: ANN401 - a node, with a score or not
    """Return what stands under ``key`` in the metadata, or else the id of the document.

    That is the document a node was split off; of a node without one it is the node's own.

    Raises
    ------
    DataError
        If the metadata lack ``key``.
    """
    node = found.node if isinstance(found, NodeWithScore) else found
    if key is None:
        return str(node.ref_doc_id or node.node_id)
    value = node.metadata.get(key)
    if not value:
        raise DataError(f"a LlamaIndex node has no {key!r} in its metadata")
    return str(value)
