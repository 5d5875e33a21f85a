"""One retrieval for each question, whatever the design; stages and labels of a request."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
    ParentDocumentRetriever,
    TimeWeightedVectorStoreRetriever,
)
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.stores import InMemoryStore
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_parts import FixedRetriever, documents, embeddings, ids
from langchain_text_splitters import CharacterTextSplitter

import rag_sourcebias as rsb
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler
from rag_sourcebias_integrations.langchain.retriever import InstrumentedRetriever

pytestmark = pytest.mark.frameworks


@pytest.fixture
def observer() -> CollectingObserver:
    return CollectingObserver()


@contextmanager
def observed(how: str, target: Any, observer: Any, **options: Any) -> Iterator[dict[str, Any]]:
    """Observe in one of the forms; give the config of calls."""
    if how == "handler":
        handle: Any = SourceBiasCallbackHandler(observer, **options)
        yield {"callbacks": [handle]}
        handle.close()
    else:
        with instrument(
            target if how == "in place" else "langchain", observer, **options
        ) as handle:
            yield {}
    assert handle.dropped.total == 0


FORMS = ("handler", "in place", "everything")


def one(name: str = "one") -> FixedRetriever:
    return FixedRetriever(found=documents(), name=name)


def store() -> InMemoryVectorStore:
    found = InMemoryVectorStore(embeddings())
    found.add_documents(documents())
    return found


class Pooled(BaseRetriever):
    """Asks others as people write it: in a pool of its own, handing nothing on."""

    inner: Any
    hand_on: bool = False

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        config = {"callbacks": run_manager.get_child()} if self.hand_on else None
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(lambda text: self.inner.invoke(text, config), [query, f"{query}?"])
        return [document for part in found for document in part]


class Scored(InMemoryVectorStore):
    def _select_relevance_score_fn(self) -> Any:
        return self._cosine_relevance_score_fn


def newest() -> TimeWeightedVectorStoreRetriever:
    made = TimeWeightedVectorStoreRetriever(vectorstore=Scored(embeddings()))
    made.add_documents(documents())
    return made


def parents() -> ParentDocumentRetriever:
    made = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(embeddings()),
        docstore=InMemoryStore(),
        child_splitter=CharacterTextSplitter(chunk_size=10, chunk_overlap=0),
    )
    made.add_documents(documents(), ids=[d.id for d in documents()])
    return made


def several() -> MultiQueryRetriever:
    return MultiQueryRetriever.from_llm(retriever=one(), llm=FakeListLLM(responses=["a\nb\nc"]))


RETRIEVERS: dict[str, Callable[[], BaseRetriever]] = {
    "ensemble": lambda: EnsembleRetriever(retrievers=[one(), one()], weights=[0.5, 0.5]),
    "several queries": several,
    "merger": lambda: MergerRetriever(retrievers=[one(), one()]),
    "parent documents": parents,
    "newest first": newest,
    "pool": lambda: Pooled(inner=one()),
    "pool, handed on": lambda: Pooled(inner=several(), hand_on=True),
    "composite of composites": lambda: MergerRetriever(
        retrievers=[Pooled(inner=several()), EnsembleRetriever(retrievers=[one(), parents()])]
    ),
}


@pytest.mark.parametrize("how", FORMS)
@pytest.mark.parametrize("name", RETRIEVERS)
def test_one_retrieval_for_each_question(observer, name, how) -> None:
    retriever = RETRIEVERS[name]()
    chain = RunnableLambda(lambda question: question) | retriever
    by_context = RunnableLambda(lambda question: [*retriever.invoke(question)])
    with observed(how, retriever, observer) as config:
        found = [
            retriever.invoke("the cat", config),
            chain.invoke("the cat", config),
            asyncio.run(chain.ainvoke("the cat", config)),
            *chain.batch(["the cat"] * 3, config),
            *asyncio.run(chain.abatch(["the cat"] * 2, config)),
            *chain.stream("the cat", config),
            by_context.invoke("the cat", config),  # as people write it
        ]
    assert len(found) == 10
    assert [list(event.ranked.doc_ids) for event in observer.events] == [
        [document.id for document in answer] for answer in found
    ]
    assert {event.stage for event in observer.events} == {"retrieved"}
    retriever.invoke("the cat")
    assert len(observer.events) == 10


def test_designs_around_retrievers(observer) -> None:
    first, second = one("first"), one("second")
    router = RunnableLambda(lambda question: first if "cat" in question else second)
    parallel = RunnableParallel(a=first, b=second)
    agent = RunnableLambda(lambda question: [tool.invoke(question), tool.invoke(f"{question}?")])
    tool = create_retriever_tool(first, "search", "finds")
    fuse = RunnableLambda(lambda question: first.batch([question, f"{question}?"])[0])
    for how in ("handler", "everything"):
        for chain, n in ((router, 1), (parallel, 2), (agent, 2), (fuse, 2)):
            before = len(observer.events)
            with observed(how, None, observer) as config:
                chain.invoke("the cat", config)
            assert len(observer.events) == before + n, chain


def test_a_function_that_fuses_is_one_retrieval_where_it_is_observed(observer) -> None:
    """Only the application knows that four searches answer one question."""
    inner = one()

    def fuse(question: str) -> list[Document]:
        return inner.batch([question] * 4)[0]

    with instrument("langchain", observer), instrument(fuse, observer) as fused:
        RunnableLambda(fused.target).invoke("the cat")
    assert [event.ranked.doc_ids for event in observer.events] == [tuple(ids(documents()))]


def test_a_thread_of_ones_own_counts_by_itself(observer) -> None:
    """The control of what is carried: a bare thread has neither the context nor a pool."""

    class Bare(BaseRetriever):
        inner: Any

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            thread = threading.Thread(target=self.inner.invoke, args=(query,))
            thread.start()
            thread.join()
            return []

    with instrument("langchain", observer):
        Bare(inner=one()).invoke("the cat")
    assert [len(event.ranked) for event in observer.events] == [5, 0]


# stages


class Reverse(BaseDocumentCompressor):
    """Reranks, and writes into the documents, as rerankers do."""

    n: int = 2

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        if query == "fail":
            raise LookupError("no reranker")
        for document in documents:
            document.metadata["rsb_source"] = "llm:reranker"
        return list(reversed(documents))[: self.n]


def compressed(base: Any, compressor: Any = None) -> ContextualCompressionRetriever:
    return ContextualCompressionRetriever(
        base_compressor=compressor or Reverse(), base_retriever=base
    )


BASES: dict[str, Callable[[], Any]] = {
    "retriever": one,
    "ensemble": lambda: EnsembleRetriever(retrievers=[one(), one()]),
    "bound": lambda: one().with_config(tags=["t"]),
    "function": lambda: RunnableLambda(lambda question: one().invoke(question)),
}


@pytest.mark.parametrize("how", FORMS)
@pytest.mark.parametrize("base", BASES)
def test_what_a_compressor_leaves_takes_the_place_of_what_was_retrieved(
    observer, base, how
) -> None:
    retriever = compressed(BASES[base](), DocumentCompressorPipeline(transformers=[Reverse()]))
    with observed(how, retriever, observer) as config:
        retriever.invoke("q", config)
        asyncio.run(retriever.ainvoke("q", config))
    whole = tuple(ids(documents()))
    stages = [(event.stage, event.ranked.doc_ids) for event in observer.events]
    assert stages == [("retrieved", whole), ("reranked", whole[:2:-1])] * 2
    first, second, third, fourth = observer.events
    assert (second.earlier, fourth.earlier) == (first, third)
    assert first.request == second.request != third.request == fourth.request
    assert [tags.source for tags in first.tags][:2] == ["llm:x", "human"]  # as they were then
    assert first.labels == second.labels


def test_no_stage_where_nothing_reached_the_reader_or_a_composite_is_around(observer) -> None:
    with instrument("langchain", observer):
        with pytest.raises(LookupError):
            compressed(one()).invoke("fail")
        assert observer.events == ()
        compressed(one()).with_fallbacks([one("other")]).invoke("fail")
        MergerRetriever(retrievers=[compressed(one()), one()]).invoke("q")
        compressed(FixedRetriever(found=[])).invoke("q")
        Reverse().compress_documents(documents(), "q")
    assert [(event.stage, len(event.ranked)) for event in observer.events] == [
        ("retrieved", 5), ("retrieved", 7), ("retrieved", 0),
    ]  # fmt: skip


def test_a_wrapper_with_scores_sees_the_stages_too(observer) -> None:
    wrapper = InstrumentedRetriever(compressed(one()), observer)
    wrapper.invoke("q")
    wrapper.close()
    wrapper.invoke("q")
    assert [event.stage for event in observer.events] == ["retrieved", "reranked"]


# labels of a request


@pytest.mark.parametrize("how", FORMS)
def test_labels_are_taken_from_the_config(observer, how) -> None:
    retriever = one()
    chain = RunnableLambda(lambda question: [*retriever.invoke(question)])
    names = ("thread_id", "session", "user", "part")
    with observed(how, retriever, observer, take_labels=names) as config:
        given = {"metadata": {"session": "s1", "other": "x"}, "configurable": {"thread_id": "t1"}}
        chain.invoke("q", {**config, **given})
        asyncio.run(chain.abatch(["q"], {**config, **given}))
        retriever.invoke("q", {**config, "metadata": {"session": "s2", "user": 7}})
        retriever.metadata = {"part": "docs", "session": "static"}
        retriever.invoke("q", {**config, "configurable": {"thread_id": "t2"}})
        retriever.invoke("q", config)
    around = {"retriever": "one", "thread_id": "t1", "session": "s1"}
    static = {"retriever": "one", "part": "docs", "session": "static"}
    assert [event.labels for event in observer.events] == [
        around,
        around,
        {"retriever": "one", "session": "s2", "user": "7"},
        {**static, "thread_id": "t2"},
        static,
    ]


def test_labels_reach_a_direct_search_and_a_wrapper(observer) -> None:
    searched = store()
    wrapper = InstrumentedRetriever(searched, observer, take_labels=["session"], labels={"a": "b"})
    chain = RunnableLambda(
        lambda question: (searched.similarity_search(question), wrapper.invoke(question))
    )
    with instrument(searched, observer, take_labels=["session"]):
        chain.invoke("q", {"metadata": {"session": "s1"}})
        wrapper.invoke("q", {"metadata": {"session": "s2"}})
    assert [event.labels.get("session") for event in observer.events] == ["s1", "s1", "s2"]
    assert [event.labels.get("a") for event in observer.events] == [None, "b", "b"]


def test_a_handler_sees_a_store_that_its_chain_searches_and_leaves_nothing_behind(observer) -> None:
    searched = store()
    chain = RunnableLambda(lambda question: searched.similarity_search(question, k=2))
    with instrument("langchain", CollectingObserver()):
        pass  # puts back what handlers of other tests left
    before = vars(BaseRetriever)["invoke"], ThreadPoolExecutor.submit
    with observed("handler", None, observer) as config:
        chain.invoke("q", config)
        searched.as_retriever().invoke("q", config)
        searched.similarity_search("q")
        assert vars(BaseRetriever)["invoke"] is not before[0]
    assert [event.labels["store"] for event in observer.events] == ["InMemoryVectorStore"] * 2
    assert (vars(BaseRetriever)["invoke"], ThreadPoolExecutor.submit) == before


def test_a_graph_whose_nodes_retrieve_rerank_and_answer(observer) -> None:
    graphs = pytest.importorskip("langgraph.graph", reason="langgraph is not installed")
    retriever = one()

    def rerank(state: Mapping[str, Any]) -> dict[str, Any]:
        return {"found": rsb.shown(list(reversed(state["found"]))[:2])}

    graph = graphs.StateGraph(dict)
    graph.add_node("retrieve", lambda state: {"found": retriever.invoke(state["question"])})
    graph.add_node("rerank", rerank)
    graph.add_edge(graphs.START, "retrieve")
    graph.add_edge("retrieve", "rerank")
    application = graph.compile()
    for how in FORMS:
        before = len(observer.events)
        with observed(how, retriever, observer, take_labels=["thread_id"]) as config:
            config["configurable"] = {"thread_id": how}
            application.invoke({"question": "q"}, config)
            asyncio.run(application.ainvoke({"question": "q"}, config))
        new = observer.events[before:]
        assert [event.stage for event in new] == ["retrieved", "shown"] * 2
        assert [len(event.ranked) for event in new] == [5, 2] * 2
        assert [event.labels["thread_id"] for event in new] == [how] * 4
        assert new[1].earlier is new[0]


# other handlers


class Counts(BaseCallbackHandler):
    """Counts every event with what comes with it, on whatever thread; inline or not."""

    def __init__(self, run_inline: bool) -> None:
        self.run_inline = run_inline
        self.seen: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("on_"):
            return super().__getattribute__(name)
        parts = ("name", "tags", "metadata")
        return lambda *_, **kw: self.seen.update([f"{name} {[kw.get(part) for part in parts]}"])


def counted(*more: Any) -> list[Counter[str]]:
    """Ask models, retrievers and chains in each way; return what two other handlers saw."""
    counts = [Counts(False), Counts(True)]
    for mine in ([counts[0]], [counts[1]], counts):
        config: Any = {"callbacks": [*mine, *more], "tags": ["t"], "metadata": {"m": 1}}
        for runnable in (
            FakeListLLM(responses=["yes"]),
            FakeListChatModel(responses=["yes"]),
            compressed(one()),
            RunnableLambda(lambda question: question) | several(),
        ):
            runnable.invoke("q", config)
            asyncio.run(runnable.ainvoke("q", config))
            runnable.batch(["q", "r"], config)
            asyncio.run(runnable.abatch(["q", "r"], config))
            list(runnable.stream("q", config))
    return [each.seen for each in counts]


def test_other_handlers_see_what_they_saw(observer) -> None:
    plain = counted()
    events = {event.partition(" ")[0] for event in plain[0]}
    assert {"on_llm_start", "on_chat_model_start", "on_retriever_end"} <= events
    assert counted(SourceBiasCallbackHandler(observer)) == plain
    with instrument("langchain", observer):
        assert counted() == plain
    inline = SourceBiasCallbackHandler(observer)
    inline.run_inline = True  # the control: LangChain then tells others of no model that starts
    assert counted(inline) != plain
