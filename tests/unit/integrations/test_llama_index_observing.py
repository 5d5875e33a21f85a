"""Observing LlamaIndex through its dispatcher: what counts, once, and what is left untouched."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
    RouterRetriever,
)
from llama_index.core.schema import (
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import RetrieverTool
from llama_index_instrumentation.dispatcher import instrument_tags

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import hash_query
from rag_sourcebias.observe.observers import CollectingObserver, CountingObserver
from rag_sourcebias.observe.recorder import Recorder, instrument
from rag_sourcebias_integrations.llama_index.embeddings import DebiasPostprocessor, EncoderEmbedding
from rag_sourcebias_integrations.llama_index.observe import (
    InstrumentedRetriever,
    SourceBiasEventHandler,
    SourceBiasSpanHandler,
)

pytestmark = pytest.mark.frameworks

NODES = [
    TextNode(id_=f"n{i}", text=f"word{i} river", metadata={"rsb_source": "human"}) for i in range(6)
]


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


@pytest.fixture
def own_loop() -> Iterator[None]:
    """LlamaIndex's sync methods take the thread's event loop, and would leave one behind."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


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
    observer = CollectingObserver()
    retriever = make_index().as_retriever(similarity_top_k=3)
    with instrument("llama-index", observer, query_key=b"k" * 16):
        result = retriever.retrieve(QueryBundle("word2 river"))
    (event,) = observer.events
    assert list(event.ranked.doc_ids) == [found.node_id for found in result]
    assert event.ranked.scores is not None
    assert event.ranked.scores.tolist() == pytest.approx([found.score for found in result])
    assert event.labels == {"retriever": "VectorIndexRetriever"}
    assert event.query_hash == hash_query("word2 river", key=b"k" * 16)


def test_results_are_the_objects_of_the_retriever() -> None:
    retriever = Fixed(*scored("a", "b"))
    before = [found.model_dump() for found in retriever.found]
    with instrument("llama-index", CollectingObserver()):
        result = retriever.retrieve("x")
    assert [a is b for a, b in zip(result, retriever.found, strict=True)] == [True, True]
    assert [found.model_dump() for found in retriever.found] == before


def test_a_missing_score_leaves_the_scores_out() -> None:
    observer = CollectingObserver()
    retriever = Fixed(*scored("a"), NodeWithScore(node=TextNode(id_="b", text="b")))
    with instrument(retriever, observer):
        retriever.retrieve("x")
    assert names(observer) == [["a", "b"]]
    assert observer.events[0].ranked.scores is None


def test_the_source_document_can_be_the_id() -> None:
    observer = CollectingObserver()
    node = TextNode(id_="chunk", text="t")
    node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="report.pdf")
    retriever = Fixed(NodeWithScore(node=node, score=1.0))
    with instrument(retriever, observer, doc_id=lambda found: found.node.ref_doc_id):
        retriever.retrieve("x")
    assert names(observer) == [["report.pdf"]]


def test_later_changes_of_the_nodes_do_not_reach_the_event() -> None:
    observer = CollectingObserver()
    retriever = Fixed(*scored("a", "b"))
    retriever.found[0].node.metadata["rsb_source"] = "human"
    with instrument(retriever, observer) as handle:
        result = retriever.retrieve("x")
        result[0].node.metadata["rsb_source"] = "llm:other"
        result.reverse()
        assert handle.flush(10)
    assert names(observer) == [["a", "b"]]
    assert observer.events[0].tags[0].source == "human"


def test_tags_of_the_application_become_labels_only_by_name() -> None:
    observer = CollectingObserver()
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
    assert observer.events[1].labels == {"retriever": "Fixed", "collection": "kb"}


def test_sixteen_labels_of_the_user_leave_no_room_and_lose_nothing() -> None:
    observer = CollectingObserver()
    given = {f"key{i}": "v" for i in range(16)}
    retriever = Fixed(*scored("a"))
    with instrument(retriever, observer, labels=given):
        retriever.retrieve("x")
    assert observer.events[0].labels == given


# Once


@pytest.mark.parametrize("use_async", [False, True])
def test_fusion_counts_once(use_async: bool, own_loop: None) -> None:
    observer = CollectingObserver()
    parts = Fixed(*scored("a", "b")), Fixed(*scored("c"))
    both = fusion(*parts, mode="simple", use_async=use_async)
    with instrument("llama-index", observer) as handle:
        first = both.retrieve("x")
        second = asyncio.get_event_loop().run_until_complete(both.aretrieve("x"))
        assert handle.dropped.total == 0
    assert names(observer) == [[n.node_id for n in first], [n.node_id for n in second]]
    assert {event.labels["retriever"] for event in observer.events} == {"QueryFusionRetriever"}


@pytest.mark.skipif(
    "copy_context" not in inspect.getsource(asyncio_run),
    reason="this llama-index-core starts that thread without the context: nobody can tell it nests",
)
def test_sync_fusion_inside_a_running_loop_counts_once() -> None:
    """LlamaIndex then runs the inner retrievers on another thread."""
    observer = CollectingObserver()
    both = fusion(Fixed(*scored("a")), Fixed(*scored("b")), use_async=True)

    async def application() -> None:
        both.retrieve("x")

    with instrument("llama-index", observer):
        asyncio.run(application())
    assert len(observer.events) == 1


def test_fusion_of_fusions_and_wrappers_counts_once() -> None:
    observer = CollectingObserver()
    inner = fusion(Fixed(*scored("a")), Fixed(*scored("b")), use_async=False)
    outer = fusion(InstrumentedRetriever(inner, observer), Fixed(*scored("c")), use_async=False)
    with instrument("llama-index", observer):
        result = outer.retrieve("x")
    assert names(observer) == [[found.node_id for found in result]]


def test_router_counts_once() -> None:
    class Selecting(MockLLM):
        def complete(self, prompt: Any, formatted: bool = False, **kwargs: Any) -> Any:
            from llama_index.core.llms import CompletionResponse

            return CompletionResponse(text='[{"choice": 1, "reason": "first"}]')

    observer = CollectingObserver()
    tools = [RetrieverTool.from_defaults(Fixed(*scored("a")), description="only one")]
    llm = Selecting()
    router = RouterRetriever(LLMSingleSelector.from_defaults(llm=llm), tools, llm=llm)
    with instrument("llama-index", observer):
        router.retrieve("x")
    assert [(e.labels["retriever"], e.ranked.doc_ids) for e in observer.events] == [
        ("RouterRetriever", ("a",))
    ]


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
    observer = CollectingObserver()
    with instrument("llama-index", observer):
        merging.retrieve("word1")
    assert names(observer) == [["parent"]]


def test_an_index_node_that_leads_to_another_retriever_counts_once() -> None:
    leaf = Fixed(*scored("deep"))
    node = IndexNode(id_="link", text="go there", index_id="leaf", obj=leaf)
    outer = Fixed(NodeWithScore(node=node, score=1.0))
    observer = CollectingObserver()
    with instrument("llama-index", observer):
        assert [found.node_id for found in outer.retrieve("x")] == ["deep"]
    assert names(observer) == [["deep"]]


def test_query_engines_count_once_streaming_or_not() -> None:
    observer = CollectingObserver()
    retriever = Fixed(*scored("a", "b"))
    with instrument("llama-index", observer):
        plain = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
        streaming = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(), streaming=True)
        plain.query("x")
        assert "".join(streaming.query("x").response_gen)
        asyncio.run(plain.aquery("x"))
    assert names(observer) == [["a", "b"]] * 3


def test_gathered_queries_and_threads_count_exactly() -> None:
    observer = CountingObserver()
    retriever = Fixed(*scored("a", "b"))

    async def application() -> None:
        await asyncio.gather(*(retriever.aretrieve(f"q{i}") for i in range(100)))

    with instrument("llama-index", observer) as handle:
        asyncio.run(application())
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(retriever.retrieve, ["q"] * 800))
        assert handle.dropped.total == 0
    assert (observer.n_events, observer.n_documents) == (900, 1800)


def test_a_handler_that_is_there_already_does_not_count_twice() -> None:
    observer, other = CollectingObserver(), CollectingObserver()
    retriever = Fixed(*scored("a"))
    with (
        instrument("llama-index", observer),
        instrument("llama_index", observer, queue=False),
        instrument(retriever, observer),
        instrument(retriever, other),
    ):
        InstrumentedRetriever(retriever, observer).retrieve("x")
        retriever.retrieve("x")
    assert len(observer.events) == 2
    assert len(other.events) == 2


def test_a_retriever_over_an_instrumented_chroma_collection_counts_once() -> None:
    chromadb = pytest.importorskip("chromadb")
    from llama_index.vector_stores.chroma import ChromaVectorStore

    collection = chromadb.EphemeralClient().get_or_create_collection(
        "nested", embedding_function=None
    )
    store = ChromaVectorStore(chroma_collection=collection)
    index = VectorStoreIndex(
        NODES,
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=EncoderEmbedding(HashingEncoder()),
    )
    observer = CollectingObserver()
    with instrument(collection, observer), instrument("llama-index", observer):
        result = index.as_retriever(similarity_top_k=3).retrieve("word1")
    assert names(observer) == [[found.node_id for found in result]]


# One object


def test_only_the_given_retriever_counts() -> None:
    observer = CollectingObserver()
    mine, other = Fixed(*scored("mine")), Fixed(*scored("other"))
    with instrument(mine, observer):
        mine.retrieve("x")
        other.retrieve("x")
        fusion(mine, other, use_async=False).retrieve("x")
    assert names(observer) == [["mine"], ["mine"]]


def test_a_query_engine_counts_what_is_retrieved_for_it() -> None:
    observer = CollectingObserver()
    retriever = fusion(Fixed(*scored("a")), Fixed(*scored("b")), use_async=False)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    with instrument(engine, observer):
        engine.query("x")
        asyncio.run(engine.aquery("x"))
        retriever.retrieve("x")  # not for the engine
        RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query("x")
    assert len(observer.events) == 2


def test_an_index_counts_the_retrievers_made_from_it() -> None:
    observer = CollectingObserver()
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


def test_a_property_graph_index_counts_once(own_loop: None) -> None:
    from llama_index.core.graph_stores import EntityNode, Relation, SimplePropertyGraphStore
    from llama_index.core.indices.property_graph import LLMSynonymRetriever, PropertyGraphIndex

    graph = SimplePropertyGraphStore()
    graph.upsert_nodes([EntityNode(name="river"), EntityNode(name="meadow")])
    graph.upsert_relations([Relation(label="floods", source_id="river", target_id="meadow")])
    index = PropertyGraphIndex.from_existing(
        graph, llm=MockLLM(), embed_model=EncoderEmbedding(HashingEncoder()), embed_kg_nodes=False
    )
    parts = [LLMSynonymRetriever(graph, llm=MockLLM(), include_text=False) for _ in range(2)]
    observer = CollectingObserver()
    with instrument(index, observer):
        index.as_retriever(sub_retrievers=parts).retrieve("river")
        parts[0].retrieve("river")
    assert [event.labels["retriever"] for event in observer.events] == [
        "PGRetriever",
        "LLMSynonymRetriever",
    ]


def test_a_task_that_outlives_the_query_still_belongs_to_it() -> None:
    observer = CollectingObserver()
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


def test_what_cannot_be_instrumented_is_said() -> None:
    with pytest.raises(DataError, match="a LlamaIndex retriever, query engine or index"):
        instrument(NODES[0], CollectingObserver())


# Failures


def test_failed_and_cancelled_retrievals_hide_nothing_afterwards() -> None:
    observer = CollectingObserver()
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


def test_a_cancelled_fusion_hides_nothing_in_its_own_task() -> None:
    observer = CollectingObserver()
    waiting = fusion(Fixed(*scored("a")), Fixed(*scored("b")), use_async=True)

    async def application() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await waiting.aretrieve("wait")
        await waiting.aretrieve("x")

    with instrument("llama-index", observer):
        asyncio.run(application())
    assert len(observer.events) == 1


def test_nodes_that_cannot_be_read_are_counted_not_swallowed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """LlamaIndex itself would swallow the error without a word."""
    observer = CollectingObserver()
    retriever = Fixed(*scored("secret"))

    def doc_id(found: Any) -> str:
        raise KeyError(found.node_id)

    with (
        caplog.at_level(logging.WARNING, "rag_sourcebias"),
        instrument(retriever, observer, doc_id=doc_id) as handle,
    ):
        assert retriever.retrieve("x") == retriever.found
        assert dict(handle.dropped.by_reason) == {"result could not be read": 1}
    assert observer.events == ()
    assert "secret" not in caplog.text


def test_nothing_is_kept_of_closed_instrumentations() -> None:
    retriever = Fixed(*scored("a"))
    observer = CollectingObserver()
    handle = instrument(retriever, observer)
    retriever.retrieve("x")
    handle.close()
    gone = weakref.ref(retriever)
    del retriever, handle
    gc.collect()
    assert gone() is None


def test_closing_in_any_order_removes_only_its_own_handlers() -> None:
    root = get_dispatcher()
    retriever = Fixed(*scored("a"))
    observers = [CollectingObserver() for _ in range(3)]
    handles = [instrument(retriever, observer) for observer in observers]
    events, spans = list(root.event_handlers), list(root.span_handlers)
    handles[1].close()
    assert root.event_handlers == [h for h in events if h is not events[-2]]
    assert root.span_handlers == [h for h in spans if h is not spans[-2]]
    retriever.retrieve("x")
    handles[2].close()
    handles[0].close()
    assert [len(observer.events) for observer in observers] == [1, 0, 1]


# Reranking


def test_reranked_lists_are_recorded_only_when_asked_for() -> None:
    observer = CollectingObserver()
    reverse = DebiasPostprocessor(lambda query, *, doc_ids, **_: list(range(len(doc_ids))))
    engine = RetrieverQueryEngine.from_args(
        Fixed(*scored("a", "b")), llm=MockLLM(), node_postprocessors=[reverse]
    )
    with instrument("llama-index", observer):
        engine.query("x")
    assert names(observer) == [["a", "b"]]
    root = get_dispatcher()
    recorder = Recorder(observer)
    spans = SourceBiasSpanHandler(engine)
    handlers = [
        SourceBiasEventHandler(recorder, reranks=True),
        SourceBiasEventHandler(recorder, spans=spans, reranks=True),
    ]
    root.event_handlers, before = [*root.event_handlers, *handlers], root.event_handlers
    root.span_handlers, spans_before = [*root.span_handlers, spans], root.span_handlers
    try:
        engine.query("x")
    finally:
        root.event_handlers, root.span_handlers = before, spans_before
    assert recorder.flush(10)
    assert [(e.labels, list(e.ranked.doc_ids)) for e in observer.events[1:]] == [
        ({"retriever": "Fixed"}, ["a", "b"]),
        ({"stage": "rerank"}, ["b", "a"]),
    ]
