"""Retrievers that raise or return something else, and stores that are closed while observed.

The application must see what it would have seen; what is lost is counted and named.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias_integrations import _require, adapters
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler

pytest.importorskip("llama_index.core")  # without the warnings of its oldest version

from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery
from llama_index.core.vector_stores.types import VectorStoreQueryResult

pytestmark = pytest.mark.frameworks

FOUND = [Document(id="a", page_content="x", metadata={"rsb_source": "human"})]
NODES = [NodeWithScore(node=TextNode(id_="a", text="x", metadata={"rsb_source": "human"}))]


def raising(error: BaseException) -> Callable[[], Any]:
    def result() -> Any:
        raise error

    return result


# What a retriever returns, how many retrievals are recorded of it, and how many are lost.
RESULTS: dict[str, tuple[Callable[[], Any], int, int]] = {
    "list": (lambda: list(FOUND), 1, 0),
    "tuple": (lambda: tuple(FOUND), 1, 0),
    "empty": (list, 1, 0),
    "error": (raising(LookupError("no index")), 0, 0),
    "interrupt": (raising(KeyboardInterrupt("stop")), 0, 0),
    "none": (lambda: None, 0, 1),
    "generator": (lambda: (each for each in FOUND), 0, 1),
    "iterator": (lambda: iter(FOUND), 0, 1),
    "number": (lambda: 5, 0, 1),
    "text": (lambda: "text", 0, 1),
    "dict": (lambda: {"documents": FOUND}, 0, 1),
    "texts": (lambda: ["a", "b"], 0, 1),
    "with none": (lambda: [*FOUND, None], 0, 1),
}


def seen(search: Callable[[], Any]) -> tuple[str, Any]:
    """What the application sees of one search: a type, and what is in it or what it says."""
    try:
        found = search()
    except BaseException as error:  # noqa: BLE001 - whatever the application would see
        return type(error).__name__, str(error)
    return type(found).__name__, list(found) if hasattr(found, "__next__") else found


class Odd(BaseRetriever):
    make: Callable[[], Any]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
        return self.make()


@pytest.mark.parametrize("how", ["handler", "in place", "everything"])
@pytest.mark.parametrize("what", RESULTS)
def test_what_a_langchain_retriever_returns(what: str, how: str) -> None:
    make, n_recorded, n_lost = RESULTS[what]
    retriever, observer = Odd(make=make), CollectingObserver()

    def searches(config: Any = None) -> list[tuple[str, Any]]:
        return [
            seen(lambda: retriever.invoke("q", config)),
            seen(lambda: asyncio.run(retriever.ainvoke("q", config))),
        ]

    bare = searches()
    handle: Any
    if how == "handler":
        handle = SourceBiasCallbackHandler(observer)
        assert searches({"callbacks": [handle]}) == bare
    else:
        handle = instrument(retriever if how == "in place" else "langchain", observer)
        assert searches() == bare
    handle.close()
    assert len(observer.events) == 2 * n_recorded
    assert handle.dropped.total == 2 * n_lost
    assert set(handle.dropped.by_reason) <= {"result could not be read"}


@pytest.mark.parametrize("how", ["in place", "everything"])
@pytest.mark.parametrize("what", RESULTS)
def test_what_a_langchain_store_returns(what: str, how: str) -> None:
    make, n_recorded, n_lost = RESULTS[what]

    class Store(InMemoryVectorStore):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> Any:
            return make()

    store, observer = Store(DeterministicFakeEmbedding(size=3)), CollectingObserver()
    bare = seen(lambda: store.similarity_search("q"))
    with instrument(store if how == "in place" else "langchain", observer) as handle:
        assert seen(lambda: store.similarity_search("q")) == bare
    assert (len(observer.events), handle.dropped.total) == (n_recorded, n_lost)


# What a vector store of LlamaIndex returns; how many are recorded of it, and how many are lost.
STORED: dict[str, tuple[Callable[[], Any], int, int]] = {
    "nodes": (lambda: VectorStoreQueryResult(nodes=[NODES[0].node], similarities=[0.5]), 1, 0),
    "ids": (lambda: VectorStoreQueryResult(ids=["a"]), 1, 0),
    "empty": (lambda: VectorStoreQueryResult(nodes=[], ids=[], similarities=[]), 1, 0),
    "nothing": (VectorStoreQueryResult, 1, 0),
    "error": (raising(LookupError("no index")), 0, 0),
    "interrupt": (raising(KeyboardInterrupt("stop")), 0, 0),
    "none": (lambda: None, 0, 1),
    "generator": (lambda: (each for each in NODES), 0, 1),
    "number": (lambda: 5, 0, 1),
    "list": (lambda: list(NODES), 0, 1),
    "with none": (lambda: VectorStoreQueryResult(nodes=[None]), 0, 1),  # type: ignore[list-item]
    "ids as a generator": (lambda: Unlisted(ids=(each for each in "ab")), 0, 1),
    "nodes as a generator": (lambda: Unlisted(nodes=(n.node for n in NODES)), 0, 1),
}


class Unlisted:
    """A result that can be read once; equal to one of which as much can be read."""

    def __init__(self, **given: Any) -> None:
        self.nodes = self.ids = self.similarities = None
        vars(self).update(given)

    def __eq__(self, other: object) -> bool:
        mine, theirs = ([list(v) for v in vars(r).values() if v] for r in (self, other))
        return mine == theirs != [[]]

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("use_async", [False, True])
@pytest.mark.parametrize("what", STORED)
def test_what_a_llama_index_store_returns(what: str, use_async: bool) -> None:
    make, n_recorded, n_lost = STORED[what]

    class Store(SimpleVectorStore):
        def query(self, query: Any, **kwargs: Any) -> Any:
            return make()

        async def aquery(self, query: Any, **kwargs: Any) -> Any:
            return make()

    store, query, observer = Store(), VectorStoreQuery(query_str="q"), CollectingObserver()

    def ask() -> tuple[str, Any]:
        return seen(lambda: asyncio.run(store.aquery(query)) if use_async else store.query(query))

    bare = ask()
    with instrument("llama-index", observer) as handle:
        assert ask() == bare
        assert handle.flush(10)
    assert (len(observer.events), handle.dropped.total) == (n_recorded, n_lost)
    assert set(handle.dropped.by_reason) <= {"result could not be read"}


@pytest.mark.parametrize(
    ("what", "package"),
    [("langchain", "langchain-core"), ("llama-index", "llama-index-core"), ("chroma", "chromadb")],
)
@pytest.mark.parametrize("version", ["0.1.0", "99.0"])
def test_a_framework_outside_the_tested_versions_is_observed_and_named(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    what: str,
    package: str,
    version: str,
) -> None:
    observer, retriever = CollectingObserver(), Odd(make=lambda: FOUND)
    with monkeypatch.context() as patched:
        patched.setattr(_require, "version", lambda name: version)
        _require.outside.cache_clear()
        for _ in range(2):
            with instrument(what, observer) as handle:
                assert retriever.invoke("q") == FOUND
                assert handle.flush(10)
                (note,) = handle.coverage.notes
    _require.outside.cache_clear()
    assert note.startswith(f"{package} {version} is ")
    assert note in str(handle.coverage)
    assert [r.message for r in caplog.records].count(note) == 1
    assert len(observer.events) == (2 if what == "langchain" else 0)
    other = CollectingObserver()
    with instrument(what, other) as handle:  # the version is asked for again
        assert handle.coverage.notes == ()


@pytest.mark.parametrize("version", ["1.2.0", "99.0"])
def test_a_framework_without_what_is_observed_goes_on_unobserved(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    from rag_sourcebias_integrations.langchain import observe as langchain

    observer, retriever = CollectingObserver(), Odd(make=lambda: FOUND)
    with monkeypatch.context() as patched:
        patched.setattr(_require, "version", lambda name: version)
        patched.delattr(langchain._stores, "_base")  # as a class that is gone
        _require.outside.cache_clear()
        with instrument("langchain", observer) as handle:
            assert retriever.invoke("q") == FOUND
            assert handle.target == "langchain"
        assert handle.dropped.by_reason == {"framework cannot be observed": 1}
        assert handle.coverage.dropped == 1
        assert "cannot be observed" in str(handle.coverage)
    _require.outside.cache_clear()


def test_the_tested_versions_are_those_of_the_extras() -> None:
    import tomllib

    extras = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for adapter in (adapters.LANGCHAIN, adapters.LLAMA_INDEX, adapters.CHROMA):
        wanted = f"{adapter.package}>={adapter.at_least},<{adapter.below}"
        assert wanted in extras[adapter.extra]
