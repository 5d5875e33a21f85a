"""Observed Chroma queries: results exactly as asked, each query vector one event."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("chromadb")

import chromadb
from chroma_texts import TextVectors, fill, new_collection, vector

from rag_sourcebias.observe.events import hash_query
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias.testing.contract import DOCUMENTS

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


def test_the_encoder_is_given_the_same_texts() -> None:
    texts = []
    for observed in (False, True):
        vectors = TextVectors()
        made = new_collection(chromadb.EphemeralClient(), vectors)
        handle = instrument(made, CollectingObserver()) if observed else None
        fill(made, DOCUMENTS)
        made.query(query_texts=["river", "meadow"], include=["documents"])
        texts.append(vectors.texts)
        if handle is not None:
            handle.close()
    assert texts[0] == texts[1]
    assert len(texts[0]) == len(DOCUMENTS) + 2


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
