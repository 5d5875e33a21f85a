"""Events and the small observers."""

from __future__ import annotations

import copy
import pickle
import time
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import RetrievalEvent, hash_query
from rag_sourcebias.observe.observers import CollectingObserver, CountingObserver

KEY = bytes(range(16))


def event(*ids: str, query_id: str = "", **labels: str) -> RetrievalEvent:
    return RetrievalEvent(ranked=RankedList(query_id=query_id, doc_ids=ids), labels=labels)


def test_an_event_carries_ids_labels_and_time() -> None:
    before = time.monotonic()
    labels = {"collection": "kb"}
    e = RetrievalEvent(ranked=RankedList(query_id="", doc_ids=("a", "b")), labels=labels)
    labels["collection"] = "changed by the host"
    assert e.ranked.doc_ids == ("a", "b")
    assert e.labels == {"collection": "kb"}
    assert e.query_hash is None
    assert before <= e.monotonic <= time.monotonic()
    with pytest.raises(AttributeError):
        e.labels = {}  # type: ignore[misc]


def test_bad_labels_are_refused() -> None:
    ranked = RankedList(query_id="", doc_ids=())
    with pytest.raises(DataError, match=r"label 'k' of an event must map text to text.*int"):
        RetrievalEvent(ranked=ranked, labels={"k": 3})  # type: ignore[dict-item]
    with pytest.raises(DataError, match="at most 16 labels, got 17"):
        RetrievalEvent(ranked=ranked, labels={str(i): "" for i in range(17)})


def test_query_hashes_join_equal_queries_under_one_key_only() -> None:
    one = hash_query("what is a grebe?", key=KEY)
    assert one == hash_query("what is a grebe?", key=KEY)
    assert one != hash_query("what is a coot?", key=KEY)
    assert one != hash_query("what is a grebe?", key=KEY[::-1])
    assert len(one) == 16
    assert int(one, 16) >= 0
    assert hash_query("\ud800", key=KEY)  # a lone surrogate is no reason to lose the event
    assert event("a", query_id=one).query_hash == one
    with pytest.raises(DataError, match="16 to 64 bytes, got 3"):
        hash_query("q", key=b"abc")


def test_counting() -> None:
    counting = CountingObserver()
    for e in (event("a", "b"), event(), event("a")):
        counting.observe(e)
    assert (counting.n_events, counting.n_documents, counting.n_empty) == (3, 3, 1)


def test_collecting_keeps_the_latest() -> None:
    collecting = CollectingObserver(capacity=2)
    for name in "abc":
        collecting.observe(event(name))
    assert [e.ranked.doc_ids for e in collecting.events] == [("b",), ("c",)]
    with pytest.raises(DataError, match="capacity must be at least 1, got -1"):
        CollectingObserver(capacity=-1)


def recorded() -> RetrievalEvent:
    ranked = RankedList(query_id="q", doc_ids=("a", "b"), scores=np.array([1.0, 0.5], np.float32))
    tags = (DocTags(source="human"), DocTags())
    return RetrievalEvent(ranked=ranked, tags=tags, labels={"route": "search"}, monotonic=3.0)


@pytest.mark.parametrize(
    "made_again",
    [
        lambda event: event,
        copy.copy,
        copy.deepcopy,
        lambda event: pickle.loads(pickle.dumps(event)),
        lambda event: replace(event, labels={"route": "search"}),
    ],
)
def test_a_recorded_event_is_an_event_like_any_other(made_again):
    event = made_again(recorded())
    assert isinstance(event, RetrievalEvent)
    assert event.ranked.doc_ids == ("a", "b")
    assert event.ranked is event.ranked
    assert event.ranked.scores.dtype == np.float32
    assert event.ranked.scores.tolist() == [1.0, 0.5]
    assert event.query_hash == "q"
    assert event.tags == (DocTags(source="human"), DocTags())
    assert (event.labels, event.monotonic) == ({"route": "search"}, 3.0)
    assert repr(event).startswith("RetrievalEvent(ranked=RankedList(query_id='q'")
    with pytest.raises(FrozenInstanceError):
        event.ranked = None
