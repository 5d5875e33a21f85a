"""Ask a LlamaIndex retriever, and read what it answers."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from rag_sourcebias.retrieval.application import Hit
from rag_sourcebias.retrieval.rerank import Held


def search(obj: Any, depth: int | None = None) -> Callable[[str], Iterable[Any]] | None:  # noqa: ANN401
    """Return what asks a retriever, a query engine's retriever, an index or its store; else None.

    A store is asked with the embedding model of LlamaIndex's settings.
    """
    if isinstance(obj, BaseQueryEngine):
        return lambda text: _ordered(obj.retrieve(QueryBundle(text)))
    if isinstance(obj, BasePydanticVectorStore):
        obj = VectorStoreIndex.from_vector_store(obj)
    if isinstance(obj, BaseIndex):
        deep = depth is not None and isinstance(obj, VectorStoreIndex)
        obj = obj.as_retriever(similarity_top_k=depth) if deep else obj.as_retriever()
    return (lambda text: _ordered(obj.retrieve(text))) if isinstance(obj, BaseRetriever) else None


def _ordered(nodes: list[NodeWithScore]) -> list[Any]:
    """Return nodes without scores that do not fall: postprocessors may reorder and leave these."""
    scores = [node.score for node in nodes]
    falling = all(None not in pair and pair[0] >= pair[1] for pair in pairwise(scores))
    return nodes if falling else [node.node for node in nodes]


def held(obj: Any) -> Held | None:  # noqa: ANN401
    """Return id, text and metadata of all nodes of an index or its store; None of others."""
    nodes: Iterable[Any] = ()
    if isinstance(obj, BaseIndex):
        nodes, obj = obj.docstore.docs.values(), getattr(obj, "vector_store", None)
    if not nodes and getattr(obj, "stores_text", False):  # texts lie in either of the two
        # many stores cannot list what they hold; the oldest adapter of Chroma asks for no ids
        with suppress(NotImplementedError, ValueError):
            nodes = obj.get_nodes(None)
    return [(node.node_id, node.get_content(), node.metadata) for node in nodes] or None


def describe(found: Any) -> Hit:  # noqa: ANN401 - a node, with a score or not
    """Read a node: the id of the document that it was split off, or else its own; its text."""
    scored = isinstance(found, NodeWithScore)
    node = found.node if scored else found
    return Hit(
        doc_id=node.ref_doc_id or node.node_id,
        text=node.get_content(),
        metadata={"node_id": node.node_id, **node.metadata},
        score=found.score if scored else None,
    )
