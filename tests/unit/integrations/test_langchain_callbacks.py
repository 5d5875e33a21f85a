"""LangChain's callbacks: every way of asking is counted once, and nothing else is kept."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_classic.retrievers.multi_query import MultiQueryRetriever
from langchain_core.callbacks import CallbackManager
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_parts import FixedRetriever, documents, embeddings

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.observe.events import text_id
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias_integrations.langchain.embeddings import DebiasCompressor
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler

pytestmark = pytest.mark.frameworks
KEY = b"0123456789abcdef"


@pytest.fixture
def observer() -> CollectingObserver:
    return CollectingObserver()


@pytest.fixture
def fixed() -> FixedRetriever:
    return FixedRetriever(found=documents())


class Composite(BaseRetriever):
    """Asks another retriever, with or without handing callbacks on, maybe in a bare thread."""

    inner: Any
    hand_on: bool = True
    through: str = "call"

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        config = {"callbacks": run_manager.get_child()} if self.hand_on else None
        if self.through == "thread":
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(self.inner.invoke, query, config).result()
        if self.through == "chain in thread":
            chain = RunnableLambda(lambda q: q) | self.inner
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(chain.invoke, query, config).result()
        return self.inner.invoke(query, config)

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        config = {"callbacks": run_manager.get_child()} if self.hand_on else None
        return await self.inner.ainvoke(query, config)


class Slow(FixedRetriever):
    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        await asyncio.sleep(30)
        return self.found


def seen(handler: SourceBiasCallbackHandler, observer: CollectingObserver) -> int:
    assert handler.flush(10)
    assert handler.dropped.total == 0
    return len(observer.events)


# ways of asking


def test_per_call_bound_and_inside_a_chain(fixed, observer) -> None:
    handler = SourceBiasCallbackHandler(observer)
    config = {"callbacks": [handler]}
    fixed.invoke("q", config=config)
    fixed.invoke("q", config={"callbacks": CallbackManager([handler])})
    fixed.with_config(callbacks=[handler]).invoke("q")
    chain = {"ctx": fixed, "q": RunnablePassthrough()} | RunnableLambda(lambda d: len(d["ctx"]))
    assert chain.invoke("q", config=config) == 5
    assert chain.with_config(callbacks=[handler]).batch(["a", "b"]) == [5, 5]
    assert seen(handler, observer) == 6


def test_a_sync_handler_runs_on_the_loop_itself(fixed, observer) -> None:
    """Not in a thread pool, where order and context would be lost."""
    handler = SourceBiasCallbackHandler(observer, queue=False)
    threads = []
    handler._recorder.record = lambda *a, **k: threads.append(threading.current_thread())
    asyncio.run(fixed.ainvoke("q", config={"callbacks": [handler]}))
    assert threads == [threading.main_thread()]


# nesting


def test_composites_of_the_framework_count_once(fixed, observer) -> None:
    handler = SourceBiasCallbackHandler(observer)
    config = {"callbacks": [handler]}
    ensemble = EnsembleRetriever(retrievers=[fixed, fixed], weights=[0.5, 0.5])
    compressor = DebiasCompressor(lambda query, **_: None)
    compressed = ContextualCompressionRetriever(
        base_compressor=DocumentCompressorPipeline(transformers=[compressor]),
        base_retriever=ensemble,
    )
    several = MultiQueryRetriever.from_llm(
        retriever=fixed, llm=FakeListLLM(responses=["one\ntwo\nthree"])
    )
    for number, retriever in enumerate((ensemble, compressed, several), start=1):
        assert len(retriever.invoke("q", config=config)) == 5
        assert seen(handler, observer) == 2 * number - 1
        asyncio.run(retriever.ainvoke("q", config=config))
        assert seen(handler, observer) == 2 * number


@pytest.mark.parametrize("through", ["thread", "chain in thread"])
def test_a_bare_thread_inside_a_retriever_counts_once(fixed, observer, through) -> None:
    """The context is not copied there, but the callbacks name their parents."""
    handler = SourceBiasCallbackHandler(observer)
    Composite(inner=fixed, through=through).invoke("q", config={"callbacks": [handler]})
    assert seen(handler, observer) == 1
    assert handler.ignore_chain
    assert len(handler._recorder.open) == 0


# ends


@pytest.mark.parametrize("pause", [True, False])
def test_a_retrieval_after_a_cancelled_one_in_the_same_task_counts(fixed, observer, pause) -> None:
    """Such as a fallback after a timeout, which comes before the task has let go of the frames."""
    handler = SourceBiasCallbackHandler(observer)
    config = {"callbacks": [handler]}
    slow = Composite(inner=Composite(inner=Slow(found=[])))

    async def ask() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await slow.ainvoke("q", config=config)
        if pause:
            await asyncio.sleep(0)
            gc.collect()
            assert len(handler._recorder.open) == 0
        await Composite(inner=fixed, hand_on=False).ainvoke("q", config=config)

    asyncio.run(ask())
    assert seen(handler, observer) == 1
    gc.collect()
    assert len(handler._recorder.open) == 0


def test_a_retrieval_after_an_interrupted_one_counts(fixed, observer) -> None:
    class Interrupted(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            raise KeyboardInterrupt

    handler = SourceBiasCallbackHandler(observer)
    config = {"callbacks": [handler]}
    try:
        Interrupted().invoke("q", config=config)
    except KeyboardInterrupt as caught:
        kept = caught  # and with it the frames
    fixed.invoke("q", config=config)
    assert seen(handler, observer) == 1
    assert kept is not None


# what is recorded


def test_ids_fall_back_to_the_text_and_are_always_text(observer) -> None:
    class Numbered(Document):
        id: Any = None

    found = [
        Document("no id"),
        Document("empty", id=""),
        Numbered(page_content="number", id=7),
        Document("a", id="a"),
    ]
    handler = SourceBiasCallbackHandler(observer)
    FixedRetriever.model_construct(found=found).invoke("q", config={"callbacks": [handler]})
    assert seen(handler, observer) == 1
    assert observer.events[0].ranked.doc_ids == (text_id("no id"), text_id("empty"), "7", "a")


def test_ids_by_an_accessor_and_tags_from_a_store(fixed, observer) -> None:
    store = MemoryTagStore()
    store.put([("1.txt", DocTags(source="llm:y"))])
    handler = SourceBiasCallbackHandler(
        observer, doc_id=lambda d: d.metadata["source"], tags=store, query_key=KEY
    )
    fixed.invoke("secret", config={"callbacks": [handler]})
    assert seen(handler, observer) == 1
    (event,) = observer.events
    assert event.ranked.doc_ids == ("0.txt", "1.txt", "2.txt", "3.txt", "4.txt")
    assert [tags.source for tags in event.tags][:3] == ["llm:x", "llm:y", "llm:x"]
    assert event.query_hash is not None
    assert event.ranked.scores is None


def test_labels_name_retriever_and_store_and_no_metadata_of_the_user(observer) -> None:
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(embeddings())
    store.add_documents(documents())
    given = {"route": "search", "retriever": "mine"}
    handlers = [
        SourceBiasCallbackHandler(observer),
        SourceBiasCallbackHandler(CollectingObserver(), labels=given),
        SourceBiasCallbackHandler(
            CollectingObserver(), labels={f"label{n}": "x" for n in range(15)}
        ),
    ]
    config = {"callbacks": handlers, "metadata": {"tenant": "SECRET"}, "tags": ["SECRET"]}
    store.as_retriever().invoke("q", config=config)
    for handler in handlers:
        assert handler.flush(10)
        assert handler.dropped.total == 0
    labels = [handler._recorder.observer.events[0].labels for handler in handlers]
    assert labels[0] == {"retriever": "VectorStoreRetriever", "store": "InMemoryVectorStore"}
    assert labels[1] == {**given, "store": "InMemoryVectorStore"}
    assert len(labels[2]) == 16
    assert "SECRET" not in str(labels)


# the whole process


def test_closing_during_a_retrieval_records_nothing_more(observer) -> None:
    class Closing(FixedRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            handle.close()
            return self.found

    handle = instrument("langchain", observer)
    Closing(found=[]).invoke("q")
    with instrument("langchain", observer) as second:
        FixedRetriever(found=[]).invoke("q")
    assert second.flush(10)
    assert len(observer.events) == 1


def test_a_handler_in_a_copied_config_still_observes(fixed, observer) -> None:
    import copy

    handler = SourceBiasCallbackHandler(observer)
    config = copy.deepcopy({"callbacks": [handler]})
    copy.copy(fixed).invoke("q", config=config)
    assert seen(handler, observer) == 1
