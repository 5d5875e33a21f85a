"""The adapter contract against the real LlamaIndex: its own store, Chroma, and the wrapper."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from hashing_encoder import HashingEncoder

pytest.importorskip("llama_index.core")
pytest.importorskip("chromadb")

import chromadb
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.llm import LLMChatStartEvent, LLMCompletionStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import TextNode
from llama_index.vector_stores.chroma import ChromaVectorStore
from pydantic import Field

from rag_sourcebias.core.tags import METADATA_KEYS
from rag_sourcebias.observe.recorder import Instrumentation
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
from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding
from rag_sourcebias_integrations.llama_index.observe import ShadowedRetriever
from rag_sourcebias_integrations.llama_index.tagging import SourceTagger

pytestmark = pytest.mark.frameworks


def make_nodes(documents: Sequence[ContractDocument]) -> list[TextNode]:
    return [
        TextNode(
            id_=d.doc_id,
            text=d.text,
            metadata=d.tagged_metadata(),
            excluded_embed_metadata_keys=list(METADATA_KEYS),
            excluded_llm_metadata_keys=list(METADATA_KEYS),
        )
        for d in documents
    ]


class FailingRetriever(BaseRetriever):
    def _retrieve(self, query_bundle: Any) -> list[Any]:
        raise ContractFailure(f"no answer to {query_bundle.query_str!r}")


class NothingRetriever(BaseRetriever):
    """What is found where nothing is stored (llama-index-core 0.13 fails on its own store)."""

    def _retrieve(self, query_bundle: Any) -> list[Any]:
        return []


class LlamaIndexRetrieval(RetrievalContract):
    unsupported: ClassVar = {"batch": "LlamaIndex retrievers have no batch method"}

    def build(self, documents: Sequence[ContractDocument]) -> Any:
        if not documents:
            return NothingRetriever()
        index = VectorStoreIndex(
            make_nodes(documents), embed_model=EncoderEmbedding(HashingEncoder())
        )
        return index.as_retriever(similarity_top_k=10)

    def build_failing(self) -> Any:
        return FailingRetriever()

    def build_nested(self, retriever: Any) -> Any:
        return QueryFusionRetriever(
            [retriever, retriever],
            llm=MockLLM(),
            num_queries=1,
            mode="reciprocal_rerank",
            similarity_top_k=10,
            use_async=False,
        )

    def search(self, target: Any, query: str) -> Any:
        return target.retrieve(query)

    async def asearch(self, target: Any, query: str) -> Any:
        return await target.aretrieve(query)

    def doc_ids(self, result: Any) -> list[str]:
        return [found.node.node_id for found in result]

    def content(self, result: Any) -> Any:
        return [found.model_dump() for found in result]


class TestRetriever(LlamaIndexRetrieval):
    pass


class TestShadowedRetriever(LlamaIndexRetrieval):
    """One that answers while another is compared with it is a retriever like any other."""

    def build(self, documents: Sequence[ContractDocument]) -> Any:
        return ShadowedRetriever(super().build(documents), NothingRetriever())

    def build_failing(self) -> Any:
        return ShadowedRetriever(FailingRetriever(), NothingRetriever())


class TestProcess(LlamaIndexRetrieval):
    def attach(self, target: Any, observer: Any, **options: Any) -> Instrumentation:
        handle = super().attach("llama-index", observer, **options)
        handle.target = target
        return handle


class TestChromaStore(LlamaIndexRetrieval):
    def build(self, documents: Sequence[ContractDocument]) -> Any:
        client = chromadb.EphemeralClient()
        for known in client.list_collections():
            client.delete_collection(known.name)
        collection = client.create_collection("contract", embedding_function=None)
        index = VectorStoreIndex(
            make_nodes(documents),
            storage_context=StorageContext.from_defaults(
                vector_store=ChromaVectorStore(chroma_collection=collection)
            ),
            embed_model=EncoderEmbedding(HashingEncoder()),
        )
        return index.as_retriever(similarity_top_k=10)


class TestQueryEngine(LlamaIndexRetrieval):
    """What a query engine retrieves while it answers."""

    def build(self, documents: Sequence[ContractDocument]) -> Any:
        return RetrieverQueryEngine.from_args(super().build(documents), llm=MockLLM())

    def build_failing(self) -> Any:
        return RetrieverQueryEngine.from_args(super().build_failing(), llm=MockLLM())

    def build_nested(self, retriever: Any) -> Any:
        return RetrieverQueryEngine.from_args(
            super().build_nested(retriever.retriever), llm=MockLLM()
        )

    def search(self, target: Any, query: str) -> Any:
        return target.query(query).source_nodes

    async def asearch(self, target: Any, query: str) -> Any:
        return (await target.aquery(query)).source_nodes


class _Prompts(BaseEventHandler):
    seen: list[str] = Field(default_factory=list)

    def handle(self, event: Any, **kwargs: Any) -> None:
        if isinstance(event, LLMCompletionStartEvent):
            self.seen.append(event.prompt)
        elif isinstance(event, LLMChatStartEvent):
            self.seen.append("\n".join(str(message.content) for message in event.messages))


class TestTagging(TaggingContract):
    def ingest(self, encoder: SidedEncoder, tagger: Any) -> Any:
        collection = chromadb.EphemeralClient().get_or_create_collection(
            "tagged" if tagger else "bare", embedding_function=None
        )
        if collection.count():
            collection.delete(ids=collection.get()["ids"])
        store = ChromaVectorStore(chroma_collection=collection)
        embedding = EncoderEmbedding(encoder)
        steps = [embedding] if tagger is None else [SourceTagger(tagger), embedding]
        IngestionPipeline(transformations=steps, vector_store=store).run(
            nodes=[
                TextNode(id_=d.doc_id, text=d.text, metadata=dict(d.metadata)) for d in DOCUMENTS
            ]
        )
        return store

    def stored(self, store: Any) -> Mapping[str, Mapping[str, object]]:
        nodes = store.get_nodes(node_ids=[d.doc_id for d in DOCUMENTS])
        return {node.node_id: node.metadata for node in nodes}

    def prompt(self, store: Any) -> str:
        index = VectorStoreIndex.from_vector_store(
            store, embed_model=EncoderEmbedding(SidedEncoder())
        )
        prompts = _Prompts()
        root = get_dispatcher()
        root.add_event_handler(prompts)
        try:
            index.as_query_engine(llm=MockLLM(), similarity_top_k=10).query(QUERY)
        finally:
            root.event_handlers = [h for h in root.event_handlers if h is not prompts]
        return "\n".join(prompts.seen)


class TestEncoder(EncoderContract):
    def wrap(self, encoder: Any) -> Any:
        return EncoderEmbedding(encoder)

    def embed_documents(self, native: Any, texts: Sequence[str]) -> Any:
        return native.get_text_embedding_batch(list(texts))

    def embed_query(self, native: Any, text: str) -> Any:
        return native.get_query_embedding(text)

    async def aembed_documents(self, native: Any, texts: Sequence[str]) -> Any:
        return await native.aget_text_embedding_batch(list(texts))

    async def aembed_query(self, native: Any, text: str) -> Any:
        return await native.aget_query_embedding(text)
