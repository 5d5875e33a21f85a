"""The LangChain adapter keeps the contract, against the real framework."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from langchain_chroma import Chroma
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate, format_document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableBinding
from langchain_core.vectorstores import InMemoryVectorStore

from rag_sourcebias.observe.recorder import Attachment, Instrumentation, Recorder
from rag_sourcebias.testing.contract import (
    DOCUMENTS,
    QUERY,
    ContractDocument,
    ContractFailure,
    EncoderContract,
    RetrievalContract,
    SidedEncoder,
    TaggingContract,
)
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler
from rag_sourcebias_integrations.langchain.retriever import InstrumentedRetriever, ShadowedRetriever
from rag_sourcebias_integrations.langchain.vectorstore import SourceTagger, TaggedVectorStore

pytestmark = pytest.mark.frameworks


def native(documents: Sequence[ContractDocument]) -> list[Document]:
    return [
        Document(id=d.doc_id, page_content=d.text, metadata=d.tagged_metadata()) for d in documents
    ]


def filled_store(documents: Sequence[ContractDocument]) -> InMemoryVectorStore:
    store = InMemoryVectorStore(EncoderEmbeddings(SidedEncoder()))
    store.add_documents(native(documents))
    return store


class FailingRetriever(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        raise ContractFailure("no answer")


class RetrieverHooks(RetrievalContract):
    def build(self, documents: Sequence[ContractDocument]) -> Any:
        return filled_store(documents).as_retriever(search_kwargs={"k": max(len(documents), 1)})

    def build_failing(self) -> Any:
        return FailingRetriever()

    def build_nested(self, retriever: Any) -> Any:
        return EnsembleRetriever(retrievers=[retriever, retriever], weights=[0.7, 0.3])

    def search(self, target: Any, query: str) -> Any:
        return target.invoke(query)

    async def asearch(self, target: Any, query: str) -> Any:
        return await target.ainvoke(query)

    def search_batch(self, target: Any, queries: Sequence[str]) -> Sequence[Any]:
        return target.batch(queries)

    def doc_ids(self, result: Any) -> list[str]:
        return [document.id for document in result]

    def content(self, result: Any) -> Any:
        return [document.model_dump() for document in result]


class TestRetrieverInPlace(RetrieverHooks):
    pass


class TestEverything(RetrieverHooks):
    def attach(self, target: Any, observer: Any, **options: Any) -> Instrumentation:
        from rag_sourcebias.observe.recorder import instrument

        handle = instrument("langchain", observer, **options)
        handle.target = target
        return handle


class TestCallbackHandler(RetrieverHooks):
    def attach(self, target: Any, observer: Any, **options: Any) -> Instrumentation:
        handler = SourceBiasCallbackHandler(observer, **options)
        # with_config on a binding would replace the callbacks that are bound already
        bound = RunnableBinding(bound=target, config={"callbacks": [handler]})
        return Instrumentation(Recorder(observer), Attachment(bound, handler.close))


class TestInstrumentedRetriever(RetrieverHooks):
    def attach(self, target: Any, observer: Any, **options: Any) -> Instrumentation:
        recorder = Recorder(observer)
        wrapper = InstrumentedRetriever(target, observer, **options)
        return Instrumentation(recorder, Attachment(wrapper, wrapper.close))


class TestShadowedRetriever(RetrieverHooks):
    """One that answers while another is compared with it is a retriever like any other."""

    def build(self, documents: Sequence[ContractDocument]) -> Any:
        candidate = filled_store(DOCUMENTS[:1]).as_retriever()
        return ShadowedRetriever(super().build(documents), candidate)

    def build_failing(self) -> Any:
        return ShadowedRetriever(FailingRetriever(), filled_store(DOCUMENTS[:1]).as_retriever())


class TestVectorStore(RetrieverHooks):
    unsupported: ClassVar = {
        "batch": "a vector store has no batch method",
        "nested": "a vector store asks no other; a retriever over one is tested elsewhere",
    }

    def build(self, documents: Sequence[ContractDocument]) -> Any:
        return filled_store(documents)

    def build_failing(self) -> Any:
        class Failing(InMemoryVectorStore):
            def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
                raise ContractFailure("no answer")

        return Failing(EncoderEmbeddings(SidedEncoder()))

    def search(self, target: Any, query: str) -> Any:
        return target.similarity_search(query, k=10)

    async def asearch(self, target: Any, query: str) -> Any:
        return await target.asimilarity_search(query, k=10)


def prompt_of(store: Any) -> str:
    """What LangChain's stuff-documents chains send: the default document prompt."""
    template = PromptTemplate.from_template("{page_content}")
    found = store.similarity_search(QUERY, k=len(DOCUMENTS))
    return "\n\n".join(format_document(document, template) for document in found)


class TestTagger(TaggingContract):
    def ingest(self, encoder: SidedEncoder, tagger: Any) -> Any:
        store = InMemoryVectorStore(EncoderEmbeddings(encoder))
        documents = [
            Document(id=d.doc_id, page_content=d.text, metadata=dict(d.metadata)) for d in DOCUMENTS
        ]
        if tagger is not None:
            documents = SourceTagger(tagger).transform_documents(documents)
        store.add_documents(documents)
        return store

    def stored(self, store: Any) -> Any:
        return {d.id: d.metadata for d in store.get_by_ids([d.doc_id for d in DOCUMENTS])}

    def prompt(self, store: Any) -> str:
        return prompt_of(store)


class TestTaggedChroma(TestTagger):
    def ingest(self, encoder: SidedEncoder, tagger: Any) -> Any:
        store = Chroma(embedding_function=EncoderEmbeddings(encoder))
        store.reset_collection()  # in memory, clients share one place
        front = store if tagger is None else TaggedVectorStore(store, tagger)
        asyncio.run(
            front.aadd_texts(
                [d.text for d in DOCUMENTS],
                [dict(d.metadata) for d in DOCUMENTS],
                ids=[d.doc_id for d in DOCUMENTS],
            )
        )
        return front


class TestEmbeddings(EncoderContract):
    def wrap(self, encoder: Any) -> Any:
        return EncoderEmbeddings(encoder)

    def embed_documents(self, native: Any, texts: Sequence[str]) -> Any:
        return native.embed_documents(list(texts))

    def embed_query(self, native: Any, text: str) -> Any:
        return native.embed_query(text)

    async def aembed_documents(self, native: Any, texts: Sequence[str]) -> Any:
        return await native.aembed_documents(list(texts))

    async def aembed_query(self, native: Any, text: str) -> Any:
        return await native.aembed_query(text)
