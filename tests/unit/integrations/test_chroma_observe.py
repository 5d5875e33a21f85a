"""Observed Chroma: results as asked, each query vector one event, also of a server."""

import asyncio
import copy
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("chromadb")
pytest.importorskip("langchain_chroma")
pytest.importorskip("llama_index.vector_stores.chroma")

import chromadb
import httpx
from chroma_server import chroma_server
from chroma_texts import TextVectors, fill, new_collection, vector
from langchain_chroma import Chroma
from llama_index.core import VectorStoreIndex
from llama_index.vector_stores.chroma import ChromaVectorStore

from rag_sourcebias.observe.events import hash_query
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias.testing.contract import DOCUMENTS, QUERY, SidedEncoder
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding

pytestmark = pytest.mark.frameworks


FIELDS = ("metadatas", "documents", "distances", "embeddings", "uris", "data")
KEY = b"0123456789abcdef"


@pytest.fixture
def collection() -> Any:
    made = new_collection(chromadb.EphemeralClient())
    fill(made, DOCUMENTS)
    return made


def plain(result: Any) -> Any:
    """Make a result comparable: embeddings are arrays."""
    return {
        name: [np.asarray(part).tolist() for part in value]
        if name == "embeddings" and value is not None
        else value
        for name, value in result.items()
    }


@pytest.mark.parametrize("tags", [None, MemoryTagStore()])
def test_every_choice_of_fields_gives_what_it_gave(collection, tags) -> None:
    observer = CollectingObserver()
    choices = [list(c) for n in range(7) for c in itertools.combinations(FIELDS, n)]
    asked = {"query_texts": ["river", "meadow"], "n_results": 3}
    bare = []
    for choice in choices:
        given = list(choice)
        bare.append((plain(collection.query(**asked, include=given)), given))
    with instrument(collection, observer, tags=tags) as handle:
        for choice, (expected, expected_list) in zip(choices, bare, strict=True):
            given = list(choice)
            result = collection.query(**asked, include=given)
            assert plain(result) == expected
            assert result["included"] is given
            assert given == expected_list  # Chroma adds "uris" to "data", we add nothing
            assert list(result) == list(expected)
        assert handle.flush(10)
        assert handle.dropped.total == 0
    assert len(observer.events) == 2 * len(choices)
    scored = [event.ranked.scores is not None for event in observer.events[::2]]
    assert scored == ["data" not in c or "distances" in c for c in choices]


@pytest.mark.parametrize(("space", "top"), [("cosine", 1.0), ("ip", 1.0), ("l2", 0.0)])
def test_scores_are_higher_for_better_documents(space, top) -> None:
    made = new_collection(chromadb.EphemeralClient(), configuration={"hnsw": {"space": space}})
    fill(made, DOCUMENTS)
    observer = CollectingObserver()
    with instrument(made, observer):
        distances = made.query(query_texts=["river"])["distances"][0]
    (event,) = observer.events
    np.testing.assert_allclose(event.ranked.scores, top - np.array(distances), rtol=1e-6)
    assert np.all(np.diff(event.ranked.scores) <= 0)


def test_each_query_vector_is_one_event_with_the_hash_of_its_text(collection) -> None:
    observer = CollectingObserver()
    with instrument(collection, observer, query_key=KEY, labels={"route": "qa"}):
        collection.query(query_texts=["river", "meadow"], n_results=2)
        collection.query(query_texts="snow", n_results=1)
        collection.query(query_embeddings=[vector("river")] * 3, n_results=2)
    assert [event.query_hash for event in observer.events] == [
        *(hash_query(text, key=KEY) for text in ("river", "meadow", "snow")),
        *[None] * 3,
    ]
    assert dict(observer.events[0].labels) == {"collection": collection.name, "route": "qa"}


def test_a_label_of_the_user_wins(collection) -> None:
    observer = CollectingObserver()
    with instrument(collection, observer, labels={"collection": "kb"}):
        collection.query(query_texts=["river"])
    assert dict(observer.events[0].labels) == {"collection": "kb"}


def test_with_a_store_metadata_is_not_asked_for(collection, monkeypatch) -> None:
    asked: list[list[str]] = []
    inner = type(collection._client)._query

    def query(self: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(list(kwargs["include"]))
        return inner(self, *args, **kwargs)

    monkeypatch.setattr(type(collection._client), "_query", query)
    for tags in (MemoryTagStore(), None):
        with instrument(collection, CollectingObserver(), tags=tags):
            collection.query(query_texts=["river"], include=["documents"])
    assert asked == [["documents", "distances"], ["documents", "metadatas", "distances"]]


class TestFailures:
    def test_errors_of_the_caller_are_the_same_and_not_counted(self, collection) -> None:
        observer = CollectingObserver()
        wrong: list[dict[str, Any]] = [
            {},
            {"query_texts": ["a"], "include": ["texts"]},
            {"query_texts": ["a"], "include": "documents"},
            {"query_texts": ["a"], "include": None},
            {"query_texts": ["a"], "n_results": 0},
            {"query_embeddings": [[1.0, 2.0]], "include": []},
            {"query_texts": ["a"], "where": {"a": 1, "b": 2}, "include": ["documents"]},
            {"nonsense": 1},
        ]
        for arguments in wrong:
            with pytest.raises(Exception) as bare:  # noqa: PT011
                collection.query(**arguments)
            with instrument(collection, observer) as handle, pytest.raises(Exception) as seen:  # noqa: PT011
                collection.query(**arguments)
            assert type(seen.value) is type(bare.value)
            assert str(seen.value) == str(bare.value)
            assert seen.value.__context__ is None or bare.value.__context__ is not None
            assert handle.dropped.total == 0
        assert observer.events == ()

    def test_a_failing_encoder_is_asked_once(self) -> None:
        calls = []

        class Refusing(TextVectors):
            def __call__(self, input: list[str]) -> list[Any]:
                calls.append(input)
                return super().__call__(input)

        vectors = Refusing()
        made = new_collection(chromadb.EphemeralClient(), vectors)
        vectors.error = RuntimeError("rate limit")
        with instrument(made, CollectingObserver()) as handle, pytest.raises(RuntimeError):
            made.query(query_texts=["river"], include=["documents"])
        assert (calls, handle.dropped.total) == ([["river"]], 0)

    @pytest.mark.parametrize("error", [KeyError("segment"), chromadb.errors.InternalError("x")])
    def test_a_store_that_cannot_give_metadata_still_answers(
        self, collection, monkeypatch, error
    ) -> None:
        inner = type(collection._client)._query

        def query(self: Any, *args: Any, **kwargs: Any) -> Any:
            if "metadatas" in kwargs["include"]:
                return _query(error)
            return inner(self, *args, **kwargs)

        def _query(error: Exception) -> Any:
            raise error

        bare = collection.query(query_texts=["river"], include=["documents"])
        monkeypatch.setattr(type(collection._client), "_query", query)
        observer = CollectingObserver()
        with instrument(collection, observer) as handle:
            assert collection.query(query_texts=["river"], include=["documents"]) == bare
            assert dict(handle.dropped.by_reason) == {"query with added fields failed": 1}
            collection.query(query_texts=["river"], include=["distances"])
            assert handle.dropped.total == 2
        assert observer.events == ()

    def test_an_unreadable_answer_is_returned_as_it_is(self, collection, monkeypatch) -> None:
        answer = object()
        monkeypatch.setattr(type(collection), "query", lambda self, **_: answer)
        with instrument(collection, CollectingObserver()) as handle:
            assert collection.query(include=["documents"]) is answer
            assert collection.query() is answer
        assert handle.dropped.by_reason["result could not be read"] == 2


class TestAttaching:
    def test_a_collection_stays_one_and_is_restored(self, collection) -> None:
        observer = CollectingObserver()
        before = dict(vars(collection))
        with instrument(collection, observer) as handle:
            assert handle.target is collection
            assert isinstance(collection, chromadb.Collection)
            assert type(collection).__name__ == "Collection"
            twin = copy.copy(collection)
            twin.query(query_texts=["river"])
            collection.query(query_texts=["river"])
            assert handle.flush(10)
            assert len(observer.events) == 1
        assert type(collection) is chromadb.Collection
        assert vars(collection) == before
        twin.query(query_texts=["river"])
        assert len(observer.events) == 1

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
    @pytest.mark.parametrize("everything", [True, False])
    def test_several_observers_leave_in_any_order(self, collection, order, everything) -> None:
        original = chromadb.Collection.query
        observers = [CollectingObserver() for _ in range(3)]
        handles = [instrument("chroma" if everything else collection, o) for o in observers]
        collection.query(query_texts=["river"], include=["documents"])
        for index in order:
            handles[index].close()
            handles[index].close()
            collection.query(query_texts=["river"])
        assert [len(o.events) for o in observers] == [order.index(i) + 1 for i in range(3)]
        assert chromadb.Collection.query is original
        assert type(collection) is chromadb.Collection

    def test_one_observer_at_two_places_counts_once(self, collection) -> None:
        observer = CollectingObserver()
        with instrument("chroma", observer), instrument(collection, observer):
            collection.query(query_texts=["river"])
        assert len(observer.events) == 1

    def test_another_tool_may_patch_the_class_in_between(self, collection) -> None:
        original = chromadb.Collection.query
        observer = CollectingObserver()
        handle = instrument("chromadb", observer)
        ours = chromadb.Collection.query

        def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
            return ours(self, *args, **kwargs)

        chromadb.Collection.query = theirs
        try:
            handle.close()
            collection.query(query_texts=["river"])
            assert chromadb.Collection.query is theirs
            with instrument("chroma", observer):
                collection.query(query_texts=["river"])
            assert handle.flush(10)
            assert len(observer.events) == 1
            chromadb.Collection.query = ours  # they leave, and restore what they found
            with instrument("chroma", observer):
                collection.query(query_texts=["river"])
            assert chromadb.Collection.query is original
        finally:
            chromadb.Collection.query = original
        assert len(observer.events) == 2

    def test_a_client_stands_for_the_collections_obtained_from_it(self) -> None:
        client, other = chromadb.EphemeralClient(), chromadb.EphemeralClient()
        observer = CollectingObserver()
        name = new_collection(client).name
        fill(client.get_collection(name, embedding_function=TextVectors()), DOCUMENTS)
        kind = type(client)
        with instrument(client, observer) as handle:
            assert handle.target is client
            assert isinstance(client, kind)
            obtained = [
                client.get_collection(name, embedding_function=TextVectors()),
                client.get_or_create_collection(name, embedding_function=TextVectors()),
                next(c for c in client.list_collections() if c.name == name),
                new_collection(client),
            ]
            for one in obtained:
                one.query(query_embeddings=[vector("river")])
            other.get_collection(name, embedding_function=TextVectors()).query(
                query_embeddings=[vector("river")]
            )
        assert [len(event.ranked) for event in observer.events] == [10, 10, 10, 0]
        assert type(client) is kind
        assert {type(one) for one in obtained} == {chromadb.Collection}
        obtained[0].query(query_embeddings=[vector("river")])
        assert len(observer.events) == 4

    def test_the_signature_stays(self, collection) -> None:
        import inspect

        before = inspect.signature(collection.query)
        with instrument(collection, CollectingObserver()):
            assert inspect.signature(collection.query) == before


# A framework's retriever over an observed collection: one event per observer


class Vectors(SidedEncoder):
    """The vectors of Chroma's own embedding function, wherever a text is embedded."""

    def _encode(self, texts: Sequence[str], prefix: str) -> np.ndarray:
        return np.array([vector(text) for text in texts])


def langchain_store(collection: Any, client: Any = None) -> Chroma:
    return Chroma(
        collection.name,
        client=client or chromadb.EphemeralClient(),
        embedding_function=EncoderEmbeddings(Vectors()),
    )


def llama_index_retriever(collection: Any) -> Any:
    store = ChromaVectorStore(chroma_collection=collection)
    index = VectorStoreIndex.from_vector_store(store, embed_model=EncoderEmbedding(Vectors()))
    return index.as_retriever(similarity_top_k=3)


def test_langchain_over_an_observed_collection_counts_once(collection) -> None:
    observer, lower = CollectingObserver(), CollectingObserver()
    store = langchain_store(collection)
    with (
        instrument(store._collection, observer),
        instrument(store._collection, lower),
        instrument("langchain", observer) as handle,
    ):
        retriever = store.as_retriever(search_kwargs={"k": 3})
        found = retriever.invoke(QUERY)
        assert len(asyncio.run(retriever.ainvoke(QUERY))) == 3
        store.similarity_search(QUERY, k=2)  # no callback fires: the collection sees it
        assert handle.flush(10)
        assert handle.dropped.total == 0
    assert [len(event.ranked) for event in observer.events] == [3, 3, 2]
    assert list(observer.events[0].ranked.doc_ids) == [document.id for document in found]
    assert [len(event.ranked) for event in lower.events] == [3, 3, 2]


def test_llama_index_over_an_observed_collection_counts_once(collection) -> None:
    observer, lower = CollectingObserver(), CollectingObserver()
    retriever = llama_index_retriever(collection)
    with (
        instrument(collection, observer),
        instrument(collection, lower),
        instrument("llama-index", observer) as handle,
    ):
        found = retriever.retrieve(QUERY)
        assert len(asyncio.run(retriever.aretrieve(QUERY))) == 3
        assert handle.flush(10)
        assert handle.dropped.total == 0
    assert [len(event.ranked) for event in observer.events] == [3, 3]
    assert list(observer.events[0].ranked.doc_ids) == [node.node_id for node in found]
    assert [len(event.ranked) for event in lower.events] == [3, 3]


# Observed collections of a server: it answers, it is too slow, it dies


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with chroma_server(tmp_path_factory.mktemp("observed")) as port:
        yield port


def filled(client: Any) -> Any:
    collection = new_collection(client)
    fill(collection, DOCUMENTS)
    return collection


def ask(collection: Any) -> Any:
    return collection.query(query_texts=["river"], n_results=3, include=["documents"])


@pytest.mark.server
def test_a_server_that_dies(tmp_path: Path) -> None:
    observer = CollectingObserver()
    with chroma_server(tmp_path) as port:
        client = chromadb.HttpClient(host="127.0.0.1", port=port)
        collection = filled(client)
        handle = instrument(collection, observer)
        ask(collection)
        session = client._server._session
        transport = httpx.HTTPTransport()
        session._transport, kept = transport, session._transport
        kept.close()
    client._server._session = httpx.Client()
    with client._server._session, pytest.raises(httpx.ConnectError):
        ask(collection)
    handle.close()
    assert (len(observer.events), handle.dropped.total) == (1, 0)


@pytest.mark.server
def test_the_asynchronous_client_and_everything_at_once(port) -> None:
    collection = filled(chromadb.HttpClient(host="127.0.0.1", port=port))
    original = type(collection).query
    observer, everything = CollectingObserver(), CollectingObserver()

    async def main() -> Any:
        client = await chromadb.AsyncHttpClient(host="127.0.0.1", port=port)
        kind = type(client)
        with instrument(client, observer), instrument("chroma", everything):
            obtained = await client.get_collection(
                collection.name, embedding_function=TextVectors()
            )
            assert asyncio.iscoroutinefunction(obtained.query)
            found = await asyncio.gather(*(ask(obtained) for _ in range(10)))
            task = asyncio.create_task(ask(obtained))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await obtained.query(query_texts=["a", "b"])
        assert type(client) is kind
        await client._server._cleanup()
        return found

    found = asyncio.run(main())
    bare = ask(collection)
    assert found == [bare] * 10
    for seen in (observer, everything):
        assert [len(event.ranked) for event in seen.events] == [3] * 10 + [10] * 2
    assert type(collection).query is original
