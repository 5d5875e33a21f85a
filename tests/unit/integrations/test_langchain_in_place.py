"""Objects observed in place stay what they are to the application."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.load import dumps
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_parts import FaissStore, FixedRetriever, QdrantStore, documents, embeddings, ids

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler

pytestmark = pytest.mark.frameworks
STORES = {"memory": InMemoryVectorStore, "faiss": FaissStore, "qdrant": QdrantStore}


@pytest.fixture
def observer() -> CollectingObserver:
    return CollectingObserver()


@pytest.fixture
def fixed() -> FixedRetriever:
    return FixedRetriever(found=documents())


def filled(store: Any) -> Any:
    store.add_documents(documents())
    return store


# retrievers


def test_an_observed_retriever_passes_for_itself(fixed, observer) -> None:
    plain = fixed.model_copy()
    shown = (repr(fixed), str(fixed), fixed.model_dump(), dumps(fixed), fixed.get_name())
    with instrument(fixed, observer) as handle:
        assert handle.target is fixed
        assert (repr(fixed), str(fixed), fixed.model_dump(), dumps(fixed), fixed.get_name()) == (
            shown
        )
        assert fixed.__class__ is FixedRetriever
        assert type(fixed).__name__ == "FixedRetriever"
        assert type(fixed).__doc__ == FixedRetriever.__doc__
        assert isinstance(fixed, BaseRetriever)
        assert fixed == plain
        assert plain == fixed
        assert hash(type(fixed)) is not None
        fixed.tags = ["changed"]
        assert fixed.tags == ["changed"]
        assert fixed.get_input_jsonschema() == plain.get_input_jsonschema()
    assert type(fixed) is FixedRetriever
    assert fixed.tags == ["changed"]


def test_copies_and_pickles_are_of_the_original_class(fixed, observer) -> None:
    with instrument(fixed, observer):
        others = [
            copy.copy(fixed),
            copy.deepcopy(fixed),
            fixed.model_copy(update={"tags": ["x"]}),
            *(pickle.loads(pickle.dumps(fixed, protocol)) for protocol in range(2, 6)),
        ]
        assert [type(other) for other in others] == [FixedRetriever] * 7
        assert all(ids(other.invoke("q")) == ids(fixed.found) for other in others)
        store = filled(InMemoryVectorStore(embeddings()))
        with instrument(store, observer):
            copied = copy.copy(store)
            assert type(copied) is InMemoryVectorStore
            assert type(pickle.loads(pickle.dumps(store))) is InMemoryVectorStore
    assert observer.events == ()


def test_callbacks_of_the_application_are_called_as_before(fixed, observer) -> None:
    class Own(BaseCallbackHandler):
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def on_retriever_start(self, serialized: Any, query: str, **kw: Any) -> None:
            self.seen.append((query, kw["name"], kw["tags"], kw["metadata"], kw["parent_run_id"]))

    def ask(own: Own) -> None:
        # the retriever inherits the callbacks of the chain around it, with no config of its own
        chain = RunnableLambda(lambda q: fixed.invoke(q + ""))
        chain.invoke("q", config={"callbacks": [own], "tags": ["t"], "metadata": {"m": 1}})
        fixed.invoke("q", config={"callbacks": [own], "run_name": "named"})

    before, during = Own(), Own()
    ask(before)
    with instrument(fixed, observer):
        ask(during)
    assert len(observer.events) == 2
    assert [run[:4] for run in during.seen] == [run[:4] for run in before.seen]
    assert [run[4] is None for run in during.seen] == [run[4] is None for run in before.seen]


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
    class Outer(BaseRetriever):
        inner: Any

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [*self.inner.batch([query, query])[0]]

        async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            found = await asyncio.gather(self.inner.ainvoke(query), self.inner.ainvoke(query))
            return [*found[0]]

    outer, handler = Outer(inner=fixed), SourceBiasCallbackHandler(observer)
    with instrument(outer, observer), instrument(fixed, observer):
        outer.invoke("q")
        outer.invoke("q", config={"callbacks": [handler]})
        asyncio.run(outer.ainvoke("q", config={"callbacks": [handler]}))
        assert len(observer.events) == 3
        fixed.invoke("q", config={"callbacks": [handler]})
        assert len(observer.events) == 4
    with instrument(fixed, observer):  # the outer one is known by its callbacks only
        outer.invoke("q", config={"callbacks": [handler]})
        asyncio.run(outer.ainvoke("q", config={"callbacks": [handler]}))
    assert len(observer.events) == 6
    assert {event.labels["retriever"] for event in observer.events[-2:]} == {"Outer"}


def test_a_retrieval_that_fails_or_is_cancelled_leaves_nothing_behind(observer) -> None:
    class Slow(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            if query == "bad":
                raise ValueError("no such index")
            return documents()

        async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            await asyncio.sleep(60 if query == "slow" else 0)
            return documents()

    slow = Slow()

    async def ask() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slow.ainvoke("slow"), 0.01)
        await slow.ainvoke("q")

    with instrument(slow, observer) as handle:
        with pytest.raises(ValueError, match="no such index"):
            slow.invoke("bad")
        slow.invoke("q")
        asyncio.run(ask())
        assert handle.dropped.total == 0
    assert len(observer.events) == 2


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


def test_an_observed_store_passes_for_itself(observer) -> None:
    store = filled(InMemoryVectorStore(embeddings()))
    attributes = dict(vars(store))
    with instrument(store, observer):
        assert isinstance(store, VectorStore)
        assert store.__class__ is InMemoryVectorStore
        assert vars(store) == attributes
        assert store.as_retriever().tags == ["InMemoryVectorStore", "EncoderEmbeddings"]
        store.add_documents([Document("new text", id="new")])
        assert ids(store.get_by_ids(["new"])) == ["new"]
    assert type(store) is InMemoryVectorStore
    assert "new" in store.store
