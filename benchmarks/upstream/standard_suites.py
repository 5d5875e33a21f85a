"""LangChain's standard tests on a retriever and on vector stores; on our wrappers where asked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)
from upstream_plugin import OBSERVED, dropped, observers

from rag_sourcebias import DocTags
from rag_sourcebias.observe.observers import CountingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias_integrations.langchain import InstrumentedRetriever, TaggedVectorStore

WRAPPED = OBSERVED == "wrapped"
if WRAPPED:
    observers["wrapped"] = CountingObserver()


def human(*_: Any) -> DocTags:
    return DocTags(source="human")


def tagged(store: Any) -> Any:
    """The store, or a wrapper that keeps tags beside it: in the metadata they would be seen."""
    if not WRAPPED:
        return store
    wrapper = TaggedVectorStore(store, human, tags=MemoryTagStore())
    observed = instrument(wrapper, observers["wrapped"])
    dropped.extend((wrapper.dropped, observed.dropped))
    return wrapper


def retriever(k: int = 3, *, mmr: bool = False) -> Any:
    """A retriever over ten documents."""
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=6))
    store.add_documents([Document(f"text {i}", id=str(i)) for i in range(10)])
    kind = "mmr" if mmr else "similarity"
    made = store.as_retriever(search_type=kind, search_kwargs={"k": k})
    if not WRAPPED:
        return made
    wrapper = InstrumentedRetriever(made, observers["wrapped"])
    dropped.append(wrapper.dropped)
    return wrapper


class TestSimilarity(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> Any:
        return retriever

    @property
    def retriever_query_example(self) -> str:
        return "a question"


class TestMaximalMarginalRelevance(TestSimilarity):
    @property
    def retriever_constructor(self) -> Any:
        return partial(retriever, mmr=True)


class TestInMemory(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> Any:
        return tagged(InMemoryVectorStore(self.get_embeddings()))


class TestChroma(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> Iterator[Any]:
        store = Chroma(embedding_function=self.get_embeddings())
        yield tagged(store)
        store.delete_collection()
