"""Direct searches under a framework's name, other handlers untouched, and what coverage says."""

import asyncio
import gc
import logging
from collections.abc import Callable
from typing import Any

import chromadb
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_sourcebias import DocTags
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.testing.contract import SidedEncoder
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings

pytest.importorskip("llama_index.core")  # without the warnings of its oldest version

from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import (
    SimpleVectorStore,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.types import BasePydanticVectorStore

pytestmark = pytest.mark.frameworks

TAGS = {"rsb_source": "human"}


@pytest.fixture
def observer() -> CollectingObserver:
    return CollectingObserver()


def ids(observer: CollectingObserver) -> list[tuple[str, ...]]:
    return [tuple(event.ranked.doc_ids) for event in observer.events]


# LangChain: vector stores that are asked directly


def langchain_store(kind: type[InMemoryVectorStore] = InMemoryVectorStore) -> InMemoryVectorStore:
    store = kind(EncoderEmbeddings(SidedEncoder()))
    store.add_documents(
        [Document(id=name, page_content=f"{name} text", metadata=TAGS) for name in "abc"]
    )
    return store


SEARCHES: dict[str, Callable[[Any], Any]] = {
    "similarity": lambda s: s.similarity_search("text", k=2),
    "scored": lambda s: s.similarity_search_with_score("text", k=2),
    "by vector": lambda s: s.similarity_search_by_vector(s.embedding.embed_query("text"), k=2),
    "mmr": lambda s: s.max_marginal_relevance_search("text", k=2),
    "search": lambda s: s.search("text", "similarity", k=2),
    "async": lambda s: asyncio.run(s.asimilarity_search("text", k=2)),
    "async scored": lambda s: asyncio.run(s.asimilarity_search_with_score("text", k=2)),
    "retriever": lambda s: s.as_retriever(search_kwargs={"k": 2}).invoke("text"),
    "async retriever": lambda s: asyncio.run(
        s.as_retriever(search_kwargs={"k": 2}).ainvoke("text")
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_direct_search_counts_once_and_returns_what_it_did(observer, name) -> None:
    store, search = langchain_store(), SEARCHES[name]
    before = search(store)
    with instrument("langchain", observer) as handle:
        found = search(store)
        assert handle.flush(10)
        assert handle.dropped.total == 0
    assert repr(found) == repr(before)
    (event,) = observer.events
    assert [tag.source for tag in event.tags] == ["human", "human"]
    search(store)
    assert len(observer.events) == 1


def test_the_application_gets_the_very_objects(observer) -> None:
    documents = [Document(id="a", page_content="a")]
    nodes = VectorStoreQueryResult(ids=["a"], similarities=[1.0], nodes=[TextNode(id_="a")])

    class KeptDocuments(InMemoryVectorStore):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            return documents

    class KeptNodes(SimpleVectorStore):
        def query(self, query: VectorStoreQuery, **kwargs: Any) -> Any:
            return nodes

    store, other = langchain_store(KeptDocuments), KeptNodes()
    inside = (*documents, *nodes.nodes)
    with instrument("langchain", observer), instrument("llama-index", observer):
        assert store.similarity_search("text") is documents
        assert other.query(VectorStoreQuery(query_embedding=[1.0])) is nodes
    assert all(a is b for a, b in zip(inside, (*documents, *nodes.nodes), strict=True))
    assert ids(observer) == [("a",)] * 2


def test_stores_of_classes_made_later_count_and_everything_is_put_back(observer) -> None:
    gc.collect()  # handlers of other tests
    instrument("langchain", observer).close()
    before = {name: vars(VectorStore).get(name) for name in ("search", "__init_subclass__")}
    with instrument("langchain", observer), instrument("langchain", CollectingObserver()):

        class Later(InMemoryVectorStore):
            def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
                return super().similarity_search(query, k, **kwargs)[:1]

        langchain_store(Later).similarity_search("text")
    assert [len(found) for found in ids(observer)] == [1]
    assert {name: vars(VectorStore).get(name) for name in before} == before
    assert not hasattr(InMemoryVectorStore.similarity_search, "__wrapped__")
    assert not hasattr(Later.similarity_search, "__wrapped__")


def test_a_patch_of_somebody_else_on_top_stays_and_counts_once(observer, monkeypatch) -> None:
    store = langchain_store()
    handle = instrument("langchain", observer)
    ours = InMemoryVectorStore.similarity_search
    monkeypatch.setattr(
        InMemoryVectorStore, "similarity_search", lambda self, query: ours(self, query)[:1]
    )
    assert len(store.similarity_search("text")) == 1
    handle.close()
    assert len(store.similarity_search("text")) == 1
    with instrument("langchain", observer):
        assert len(store.similarity_search("text")) == 1
    assert len(observer.events) == 2


# LlamaIndex: vector stores that are asked directly


def llama_store() -> SimpleVectorStore:
    store = SimpleVectorStore()
    store.add(
        [
            TextNode(id_=name, text=name, embedding=[1.0, float(i)], metadata=TAGS)
            for i, name in enumerate("abc")
        ]
    )
    return store


def test_a_llama_index_store_asked_directly_counts_once(observer) -> None:
    store, query = llama_store(), VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=2)
    before = store.query(query)
    with instrument("llama-index", observer) as handle:
        assert store.query(query) == before
        assert asyncio.run(store.aquery(query=query)) == before
        assert handle.flush(10)
        assert handle.dropped.total == 0
    assert ids(observer) == [tuple(before.ids)] * 2
    assert list(observer.events[0].ranked.scores) == pytest.approx(before.similarities)
    store.query(query)
    assert len(observer.events) == 2
    assert not hasattr(BasePydanticVectorStore.aquery, "__wrapped__")


def test_a_store_with_texts_gives_its_tags_and_a_failing_one_its_error(observer) -> None:
    class Texts(SimpleVectorStore):
        def query(self, query: VectorStoreQuery, **kwargs: Any) -> Any:
            if query.query_str == "fail":
                raise LookupError("no index")
            found = super().query(query, **kwargs)
            found.nodes = [TextNode(id_=i, text=i, metadata=TAGS) for i in found.ids]
            return found

    store = Texts()
    store.add([TextNode(id_="a", text="a", embedding=[1.0])])
    with instrument("llama-index", observer):
        store.query(VectorStoreQuery(query_embedding=[1.0], query_str="q"))
        with pytest.raises(LookupError, match="no index"):
            store.query(VectorStoreQuery(query_embedding=[1.0], query_str="fail"))
    assert [event.tags for event in observer.events] == [(DocTags(source="human"),)]


# Chroma: search, which hosted Chroma has


def expressions() -> Any:
    made = pytest.importorskip("chromadb.execution.expression", reason="Chroma without search")
    if not (hasattr(chromadb.Collection, "search") and hasattr(made, "K")):
        pytest.skip("this Chroma has no search")
    return made


def hosted(client: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A collection whose server searches: exactly, over what the collection holds."""
    collection = client.create_collection("docs", embedding_function=None)
    collection.add(
        ids=["a", "b", "c"], embeddings=[[1.0, 0], [2.0, 0], [4.0, 0]], metadatas=[TAGS] * 3
    )

    def search(*, searches: list[Any], **_: Any) -> Any:
        held = collection.get(include=["embeddings", "metadatas"])
        found: dict[str, list[Any]] = {"ids": [], "scores": [], "metadatas": []}
        for each in searches:
            asked = each.to_dict()
            distance = [abs(v[0] - 1.9) for v in held["embeddings"]]
            best = sorted(range(3), key=distance.__getitem__)[:2]
            selected = "#metadata" in asked["select"]["keys"]
            found["ids"].append([held["ids"][i] for i in best])
            found["scores"].append([distance[i] for i in best])
            found["metadatas"].append([held["metadatas"][i] for i in best] if selected else None)
        return found

    monkeypatch.setattr(type(collection._client), "_search", lambda self, **kw: search(**kw))
    return collection


@pytest.mark.parametrize("what", ["chroma", "collection"])
def test_a_search_of_chroma_counts_each_that_ranks(observer, monkeypatch, what) -> None:
    made = expressions()
    K, Knn, Search = made.K, made.Knn, made.Search
    client = chromadb.EphemeralClient()
    try:
        collection = hosted(client, monkeypatch)
        ranked = Search().rank(Knn(query=[1.9, 0.0])).limit(2)
        asked = [ranked.select(K.METADATA, K.SCORE), ranked, Search().select(K.METADATA)]
        before = collection.search(asked)
        with instrument(what if what == "chroma" else collection, observer) as handle:
            assert collection.search(asked) == before
            assert handle.flush(10)
            assert handle.dropped.total == 0
        assert ids(observer) == [("b", "a"), ("b", "a")]
        assert [event.tags[0].source for event in observer.events] == ["human", None]
        assert observer.events[0].ranked.scores[0] > observer.events[0].ranked.scores[1]
        collection.search(asked)
        assert len(observer.events) == 2
    finally:
        client.delete_collection("docs")


# What coverage says


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "rag_sourcebias.observe"]


@pytest.mark.parametrize("n", [3, 100, 250])
def test_documents_without_tags_are_said_once(observer, caplog, n) -> None:
    with caplog.at_level(logging.WARNING), instrument(lambda query: ["a"], observer) as handle:
        for _ in range(n):
            handle.target("q")
        assert handle.flush(10)
        found = handle.coverage
    assert (found.retrievals, found.untagged, found.tagged) == (n, n, 0)
    (said,) = warnings_of(caplog)
    assert f"{min(n, 100)} retrievals recorded, and no document had a source or a style" in said
