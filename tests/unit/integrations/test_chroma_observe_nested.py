"""A framework's retriever over an observed collection: one event per observer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("chromadb")
pytest.importorskip("langchain_chroma")
pytest.importorskip("llama_index.vector_stores.chroma")

import chromadb
from chroma_texts import fill, new_collection, vector
from langchain_chroma import Chroma
from langchain_core.embeddings import Embeddings
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.vector_stores.chroma import ChromaVectorStore

from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.testing.contract import DOCUMENTS, QUERY

pytestmark = pytest.mark.frameworks


class LangChainVectors(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return vector(text).tolist()


class LlamaIndexVectors(BaseEmbedding):
    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(query).tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(query).tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text).tolist()


@pytest.fixture
def collection() -> Any:
    made = new_collection(chromadb.EphemeralClient())
    fill(made, DOCUMENTS)
    return made


def langchain_store(collection: Any, client: Any = None) -> Chroma:
    return Chroma(
        collection.name,
        client=client or chromadb.EphemeralClient(),
        embedding_function=LangChainVectors(),
    )


def llama_index_retriever(collection: Any) -> Any:
    store = ChromaVectorStore(chroma_collection=collection)
    index = VectorStoreIndex.from_vector_store(store, embed_model=LlamaIndexVectors())
    return index.as_retriever(similarity_top_k=3)


def test_langchain_over_an_observed_collection_counts_once(collection) -> None:
    observer, lower = CollectingObserver(), CollectingObserver()
    store = langchain_store(collection)
    with (
        instrument(store._collection, observer),
        instrument(store._collection, lower),
        instrument("langchain", observer) as handle,
    ):
        retriever = store.as_retriever(search_kwargs={"k": 3})
        found = retriever.invoke(QUERY)
        assert len(asyncio.run(retriever.ainvoke(QUERY))) == 3
        store.similarity_search(QUERY, k=2)  # no callback fires: the collection sees it
        assert handle.flush(10)
        assert handle.dropped.total == 0
    assert [len(event.ranked) for event in observer.events] == [3, 3, 2]
    assert list(observer.events[0].ranked.doc_ids) == [document.id for document in found]
    assert [len(event.ranked) for event in lower.events] == [3, 3, 2]


def test_llama_index_over_an_observed_collection_counts_once(collection) -> None:
    observer, lower = CollectingObserver(), CollectingObserver()
    retriever = llama_index_retriever(collection)
    with (
        instrument(collection, observer),
        instrument(collection, lower),
        instrument("llama-index", observer) as handle,
    ):
        found = retriever.retrieve(QUERY)
        assert len(asyncio.run(retriever.aretrieve(QUERY))) == 3
        assert handle.flush(10)
        assert handle.dropped.total == 0
    assert [len(event.ranked) for event in observer.events] == [3, 3]
    assert list(observer.events[0].ranked.doc_ids) == [node.node_id for node in found]
    assert [len(event.ranked) for event in lower.events] == [3, 3]


def test_a_client_is_enough_to_observe_what_langchain_asks(collection) -> None:
    observer = CollectingObserver()
    client = chromadb.EphemeralClient()
    with instrument(client, observer):
        store = langchain_store(collection, client)
        store.similarity_search(QUERY, k=4)
        store.reset_collection()
        assert store.similarity_search(QUERY) == []
    assert [len(event.ranked) for event in observer.events] == [4, 0]
