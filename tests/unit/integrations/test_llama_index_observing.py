"""Observing LlamaIndex through its dispatcher: what counts, once, and what is left untouched."""

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from hashing_encoder import HashingEncoder

pytest.importorskip("llama_index.core")

from llama_index.core import StorageContext, SummaryIndex, VectorStoreIndex
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
)
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index_instrumentation.dispatcher import instrument_tags

from rag_sourcebias.observe.events import RetrievalEvent, hash_query
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding

pytestmark = pytest.mark.frameworks

NODES = [
    TextNode(id_=f"n{i}", text=f"word{i} river", metadata={"rsb_source": "human"}) for i in range(6)
]


class Retrievals(CollectingObserver):
    """Keeps what was retrieved; later stages have tests of their own."""

    def observe(self, event: RetrievalEvent) -> None:
        if event.stage == "retrieved":
            super().observe(event)


class Fixed(BaseRetriever):
    """Returns what it was given, after one turn of the event loop."""

    def __init__(self, *found: NodeWithScore) -> None:
        super().__init__()
        self.found = list(found)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if query_bundle.query_str == "fail":
            raise LookupError("no such index")
        return self.found

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        await asyncio.sleep(60 if query_bundle.query_str == "wait" else 0)
        return self._retrieve(query_bundle)


def scored(*names: str) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=n, text=n), score=0.5) for n in names]


def make_index() -> VectorStoreIndex:
    return VectorStoreIndex(NODES, embed_model=EncoderEmbedding(HashingEncoder()))


def fusion(*retrievers: Any, **options: Any) -> QueryFusionRetriever:
    return QueryFusionRetriever(list(retrievers), llm=MockLLM(), num_queries=1, **options)


@pytest.fixture(autouse=True)
def handlers_are_restored() -> Iterator[None]:
    root = get_dispatcher()
    before = (list(root.event_handlers), list(root.span_handlers))
    yield
    assert (root.event_handlers, root.span_handlers) == before


def names(observer: CollectingObserver) -> list[list[str]]:
    return [list(event.ranked.doc_ids) for event in observer.events]


# What is recorded


def test_ids_scores_and_the_class_of_the_retriever_are_recorded() -> None:
    observer = Retrievals()
    retriever = make_index().as_retriever(similarity_top_k=3)
    with instrument("llama-index", observer, query_key=b"k" * 16):
        result = retriever.retrieve(QueryBundle("word2 river"))
    (event,) = observer.events
    assert list(event.ranked.doc_ids) == [found.node_id for found in result]
    assert event.ranked.scores is not None
    assert event.ranked.scores.tolist() == pytest.approx([found.score for found in result])
    assert event.labels == {"retriever": "VectorIndexRetriever"}
    assert event.query_hash == hash_query("word2 river", key=b"k" * 16)


def test_a_missing_score_leaves_the_scores_out() -> None:
    observer = Retrievals()
    retriever = Fixed(*scored("a"), NodeWithScore(node=TextNode(id_="b", text="b")))
    with instrument(retriever, observer):
        retriever.retrieve("x")
    assert names(observer) == [["a", "b"]]
    assert observer.events[0].ranked.scores is None


def test_the_source_document_can_be_the_id() -> None:
    observer = Retrievals()
    node = TextNode(id_="chunk", text="t")
    node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="report.pdf")
    retriever = Fixed(NodeWithScore(node=node, score=1.0))
    with instrument(retriever, observer, doc_id=lambda found: found.node.ref_doc_id):
        retriever.retrieve("x")
    assert names(observer) == [["report.pdf"]]


def test_tags_of_the_application_become_labels_only_by_name() -> None:
    observer = Retrievals()
    retriever = Fixed(*scored("a"))
    given = {f"key{i}": "v" for i in range(14)} | {"retriever": "mine"}
    with (
        instrument("llama-index", observer, labels=given),
        instrument_tags({"collection": "kb", "tenant": 7, "user": "someone@example.org"}),
    ):
        retriever.retrieve("x")
    with (
        instrument("llama-index", observer),
        instrument_tags({"collection": "kb", "tenant": 7, "user": "someone@example.org"}),
    ):
        retriever.retrieve("x")
    assert observer.events[0].labels == given | {"collection": "kb"}
    assert observer.events[1].labels == {"retriever": "Fixed", "collection": "kb", "tenant": "7"}


# Once


@pytest.mark.skipif(
    "copy_context" not in inspect.getsource(asyncio_run),
    reason="this llama-index-core starts that thread without the context: nobody can tell it nests",
)
def test_sync_fusion_inside_a_running_loop_counts_once() -> None:
    """LlamaIndex then runs the inner retrievers on another thread."""
    observer = Retrievals()
    both = fusion(Fixed(*scored("a")), Fixed(*scored("b")), use_async=True)

    async def application() -> None:
        both.retrieve("x")

    with instrument("llama-index", observer):
        asyncio.run(application())
    assert len(observer.events) == 1


def test_auto_merging_counts_once_with_the_merged_nodes() -> None:
    parent = TextNode(id_="parent", text="word0 word1 word2")
    leaves = [TextNode(id_=f"leaf{i}", text=f"word{i}") for i in range(3)]
    parent.relationships[NodeRelationship.CHILD] = [n.as_related_node_info() for n in leaves]
    for leaf in leaves:
        leaf.relationships[NodeRelationship.PARENT] = parent.as_related_node_info()
    docstore = SimpleDocumentStore()
    docstore.add_documents([parent, *leaves])
    storage = StorageContext.from_defaults(docstore=docstore)
    index = VectorStoreIndex(
        leaves, storage_context=storage, embed_model=EncoderEmbedding(HashingEncoder())
    )
    merging = AutoMergingRetriever(index.as_retriever(similarity_top_k=3), storage)
    observer = Retrievals()
    with instrument("llama-index", observer):
        merging.retrieve("word1")
    assert names(observer) == [["parent"]]


# One object


def test_only_the_given_retriever_counts() -> None:
    observer = Retrievals()
    mine, other = Fixed(*scored("mine")), Fixed(*scored("other"))
    with instrument(mine, observer):
        mine.retrieve("x")
        other.retrieve("x")
        fusion(mine, other, use_async=False).retrieve("x")
    assert names(observer) == [["mine"], ["mine"]]


def test_a_query_engine_counts_what_is_retrieved_for_it() -> None:
    observer = Retrievals()
    retriever = fusion(Fixed(*scored("a")), Fixed(*scored("b")), use_async=False)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    with instrument(engine, observer):
        engine.query("x")
        asyncio.run(engine.aquery("x"))
        retriever.retrieve("x")  # not for the engine
        RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query("x")
    assert len(observer.events) == 2


def test_an_index_counts_the_retrievers_made_from_it() -> None:
    observer = Retrievals()
    index, other = make_index(), make_index()
    with instrument(index, observer) as handle:
        assert handle.target is index
        index.as_retriever(similarity_top_k=2).retrieve("word1")
        index.as_query_engine(llm=MockLLM()).query("word1")
        other.as_retriever().retrieve("word1")
        fusion(index.as_retriever(), other.as_retriever(), mode="simple", use_async=False).retrieve(
            "x"
        )
    assert len(observer.events) == 3
    listed = SummaryIndex(NODES)
    with instrument(listed, observer):
        listed.as_retriever().retrieve("x")
    assert len(observer.events) == 4


def test_a_task_that_outlives_the_query_still_belongs_to_it() -> None:
    observer = Retrievals()
    retriever = Fixed(*scored("a"))
    tasks = []

    class Prefetching(RetrieverQueryEngine):
        async def _aquery(self, query_bundle: QueryBundle) -> Any:
            response = await super()._aquery(query_bundle)
            tasks.append(asyncio.create_task(retriever.aretrieve("more")))
            return response

    engine = Prefetching.from_args(retriever, llm=MockLLM())

    async def application() -> None:
        await engine.aquery("x")
        await asyncio.gather(*tasks)

    with instrument(engine, observer):
        asyncio.run(application())
    assert len(observer.events) == 2


# Failures


def test_failed_and_cancelled_retrievals_hide_nothing_afterwards() -> None:
    observer = Retrievals()
    retriever = Fixed(*scored("a"))

    async def application() -> None:
        task = asyncio.create_task(retriever.aretrieve("wait"))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(LookupError):
            await retriever.aretrieve("fail")
        await retriever.aretrieve("x")

    with instrument("llama-index", observer) as handle:
        asyncio.run(application())
        with pytest.raises(LookupError, match="no such index"):
            retriever.retrieve("fail")
        retriever.retrieve("x")
        assert handle.dropped.total == 0
    assert names(observer) == [["a"], ["a"]]
