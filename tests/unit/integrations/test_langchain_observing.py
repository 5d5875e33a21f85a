"""Observing LangChain by callbacks and in place: each retrieval once, and nothing else changed."""

import asyncio
import contextlib
import copy
import pickle
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.documents import Document
from langchain_core.load import dumps
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_parts import FaissStore, FixedRetriever, documents, embeddings, ids

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import text_id
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler

pytestmark = pytest.mark.frameworks


KEY = b"0123456789abcdef"


@pytest.fixture
def observer() -> CollectingObserver:
    return CollectingObserver()


@pytest.fixture
def fixed() -> FixedRetriever:
    return FixedRetriever(found=documents())


class Slow(FixedRetriever):
    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        await asyncio.sleep(30 if query == "slow" else 0)
        return self.found


def seen(handler: SourceBiasCallbackHandler, observer: CollectingObserver) -> int:
    assert handler.flush(10)
    assert handler.dropped.total == 0
    return len(observer.events)


# ways of asking


def test_per_call_bound_and_among_the_callbacks_of_a_manager(fixed, observer) -> None:
    handler = SourceBiasCallbackHandler(observer)
    fixed.invoke("q", config={"callbacks": CallbackManager([handler])})
    fixed.with_config(callbacks=[handler]).invoke("q")
    assert seen(handler, observer) == 2


# ends


def test_a_retrieval_after_a_cancelled_one_in_the_same_task_counts(fixed, observer) -> None:
    """Such as a fallback after a timeout; LangChain announces no end of what was cancelled."""
    handler = SourceBiasCallbackHandler(observer)
    config = {"callbacks": [handler]}
    slow = Slow(found=[])

    async def ask() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await slow.ainvoke("slow", config=config)
        await fixed.ainvoke("q", config=config)

    asyncio.run(ask())
    assert seen(handler, observer) == 1


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
    config = {"callbacks": handlers, "metadata": {"user": "SECRET"}, "tags": ["SECRET"]}
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


# Objects observed in place stay what they are to the application


STORES = {"memory": InMemoryVectorStore, "faiss": FaissStore}


def filled(store: Any) -> Any:
    store.add_documents(documents())
    return store


# retrievers


def test_observed_objects_stay_what_they_are(fixed, observer) -> None:
    store = filled(InMemoryVectorStore(embeddings()))

    def shown(one: Any) -> Any:
        return type(one), repr(one), dict(vars(one)), dumps(one)

    before = shown(fixed), type(store), dict(vars(store)), fixed.get_input_jsonschema()
    with instrument(fixed, observer) as handle, instrument(store, observer):
        assert handle.target is fixed
        assert fixed == fixed.model_copy()
        during = shown(fixed), type(store), dict(vars(store)), fixed.get_input_jsonschema()
        assert during == before
        assert store.as_retriever().tags == ["InMemoryVectorStore", "EncoderEmbeddings"]
        others = [copy.deepcopy(fixed), fixed.model_copy(), pickle.loads(pickle.dumps(fixed))]
        assert [ids(other.invoke("q")) for other in others] == [ids(fixed.found)] * 3
        assert type(pickle.loads(pickle.dumps(store))) is InMemoryVectorStore
    assert observer.events == ()  # copies are not observed


def test_a_bound_retriever_is_found_and_a_chain_is_refused(fixed, observer) -> None:
    bound = fixed.with_config(tags=["a"]).with_retry()
    with instrument(bound, observer) as handle:
        assert handle.target is bound
        bound.invoke("q")
    assert type(fixed) is FixedRetriever
    assert len(observer.events) == 1
    for wrong in (fixed | RunnableLambda(len), RunnableLambda(len).with_config(tags=["a"])):
        with pytest.raises(DataError, match="a LangChain retriever or vector store"):
            instrument(wrong, observer)


def test_labels_are_the_name_of_the_run_and_the_class_of_the_store(fixed, observer) -> None:
    retriever = filled(InMemoryVectorStore(embeddings())).as_retriever()
    with (
        instrument(fixed, observer, labels={"route": "search"}),
        instrument(retriever, observer),
    ):
        fixed.invoke("q")
        fixed.invoke("q", config={"run_name": "named"})
        fixed.with_config(run_name="bound").invoke("q")
        fixed.name = "own"
        fixed.invoke("q")
        retriever.invoke("q")
    found = [event.labels for event in observer.events]
    assert [labels["retriever"] for labels in found] == [
        "FixedRetriever", "named", "bound", "own", "VectorStoreRetriever",
    ]  # fmt: skip
    assert [labels.get("route") for labels in found] == [*["search"] * 4, None]
    assert found[-1]["store"] == "InMemoryVectorStore"


def test_a_retrieval_inside_an_observed_one_does_not_count(fixed, observer) -> None:
    """Whichever form sees which of the two."""

    class Outer(BaseRetriever):
        inner: Any

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [*self.inner.batch([query, query])[0]]

        async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            found = await asyncio.gather(self.inner.ainvoke(query), self.inner.ainvoke(query))
            return [*found[0]]

    outer, config = Outer(inner=fixed), {"callbacks": [SourceBiasCallbackHandler(observer)]}
    with instrument(fixed, observer):
        outer.invoke("q", config)
        asyncio.run(outer.ainvoke("q", config))
        with instrument(outer, observer):
            outer.invoke("q")
            outer.invoke("q", config)
    assert [event.labels["retriever"] for event in observer.events] == ["Outer"] * 4


def test_a_cancelled_retrieval_leaves_nothing_behind(observer) -> None:
    slow = Slow(found=documents())

    async def ask() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slow.ainvoke("slow"), 0.01)
        await slow.ainvoke("q")

    with instrument(slow, observer) as handle:
        asyncio.run(ask())
        assert handle.dropped.total == 0
    assert len(observer.events) == 1


# vector stores


@pytest.mark.parametrize("kind", STORES)
def test_direct_searches_are_observed_with_scores(kind, observer) -> None:
    store = filled(STORES[kind](embeddings()))
    bare = [(d.id, float(s)) for d, s in store.similarity_search_with_score("the cat", k=3)]
    with instrument(store, observer) as handle:
        found = store.similarity_search("the cat", k=3)
        again = store.similarity_search_with_score("the cat", k=3)
        asyncio.run(store.asimilarity_search("the cat", k=3))
        asyncio.run(store.asearch("the cat", "similarity", k=3))
        assert handle.flush(10)
        assert handle.dropped.total == 0
    assert [(d.id, float(s)) for d, s in again] == bare
    assert len(observer.events) == 4
    assert {event.ranked.doc_ids for event in observer.events} == {tuple(ids(found))}
    assert {event.labels["store"] for event in observer.events} == {type(store).__name__}
    scores = [event.ranked.scores for event in observer.events]
    if kind == "memory":  # does not say what its scores mean
        assert scores == [None] * 4
    else:
        assert all(s is not None and (s[:-1] >= s[1:]).all() for s in scores)


@pytest.mark.filterwarnings("ignore:Relevance scores must be between")
def test_scores_that_contradict_the_order_are_left_out(observer) -> None:
    """LangChain's relevance of an inner product falls where the product rises."""

    class InnerProduct(InMemoryVectorStore):
        def _select_relevance_score_fn(self) -> Any:
            return self._max_inner_product_relevance_score_fn

    store = filled(InnerProduct(embeddings()))
    with instrument(store, observer) as handle:
        store.similarity_search("the cat", k=3)
        store.similarity_search_with_relevance_scores("the cat", k=3)
        assert handle.flush(10)
        assert handle.dropped.total == 0
    assert [event.ranked.scores for event in observer.events] == [None, None]
