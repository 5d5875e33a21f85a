"""Deliveries: one per observer, tags from a store before tags from metadata."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.observers import (
    CollectingObserver,
    CountingObserver,
    ExposureObserver,
)
from rag_sourcebias.observe.recorder import Delivery, Recorder, delivery_for
from rag_sourcebias.observe.tags import MemoryTagStore


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.events: list[RetrievalEvent] = []

    def observe(self, event: RetrievalEvent) -> None:
        self.events.append(event)


def test_one_delivery_per_observer_and_kind() -> None:
    one, other = Unhashable(), Unhashable()
    shared = delivery_for(one)
    assert delivery_for(one) is shared
    assert delivery_for(one, queue=False) is not shared
    assert delivery_for(other) is not shared


class Raising:
    def observe(self, event: RetrievalEvent) -> None:
        raise OSError("disk full")


@pytest.mark.parametrize("queue", [True, False])
def test_an_observer_that_raises_is_counted(queue) -> None:
    rec = Recorder(Raising(), queue=queue)
    for _ in range(3):
        rec.record(["a"])
    assert rec.flush(10)
    assert dict(rec.dropped.by_reason) == {"observer raised": 3}


def test_without_a_queue_the_event_is_there_at_once() -> None:
    observer = CollectingObserver()
    Recorder(observer, queue=False).record(["a"])
    assert len(observer.events) == 1
    assert Delivery(observer, queue=False).flush(0)


class Noting:
    """Notes on which thread it was told."""

    def __init__(self, *, inline: object) -> None:
        self.inline = inline
        self.threads: list[threading.Thread] = []

    def observe(self, event: RetrievalEvent) -> None:
        self.threads.append(threading.current_thread())


class TestInline:
    """Observers that promise to be quick are told on the application's thread."""

    @pytest.mark.parametrize("kind", [CollectingObserver, CountingObserver, ExposureObserver])
    def test_our_small_observers_promise_it(self, kind) -> None:
        rec = Recorder(kind())
        rec.record(["a"])
        assert rec._delivery._queue._thread is None
        assert rec.flush(0)

    def test_who_is_told_where(self) -> None:
        here = threading.current_thread()
        quick, other, odd = Noting(inline=True), Noting(inline=False), Noting(inline="yes")
        for observer in (quick, other, odd):
            rec = Recorder(observer)
            rec.record(["a"])
            assert rec.flush(10)
        assert quick.threads == [here]
        assert len(other.threads) == len(odd.threads) == 1
        assert here not in (*other.threads, *odd.threads)

    def test_with_a_store_the_queue_is_used(self) -> None:
        here = threading.current_thread()
        asked: list[threading.Thread] = []

        class Store(MemoryTagStore):
            def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
                asked.append(threading.current_thread())
                return super().get(doc_ids)

        observer = Noting(inline=True)
        rec = Recorder(observer, tags=Store())
        rec.record(["a"])
        assert rec.flush(10)
        assert asked == observer.threads
        assert here not in asked

    def test_one_that_raises_is_counted_and_harms_nothing(self) -> None:
        class Broken(Raising):
            inline = True

        rec, found = Recorder(Broken()), ["a", "b"]
        for run in range(3):
            rec.begin(run)
            if rec.end(run):
                rec.record(found)
        assert found == ["a", "b"]
        assert dict(rec.dropped.by_reason) == {"observer raised": 3}

    def test_what_ends_a_program_passes(self) -> None:
        class Interrupted:
            inline = True

            def observe(self, event: RetrievalEvent) -> None:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            Recorder(Interrupted()).record(["a"])


def test_a_store_wins_over_metadata_where_it_knows() -> None:
    observer = CollectingObserver()
    store = MemoryTagStore()
    store.put([("a", DocTags(source="human")), ("b", DocTags(source="llm:x"))])
    rec = Recorder(observer, tags=store, queue=False)
    rec.record(
        ["a", "b", "c", "d"],
        metadata=[{"rsb_source": "wrong"}, {}, {"rsb_source": "llm:y"}, None],
    )
    rec.record(["b"])
    assert [[tags.source for tags in event.tags] for event in observer.events] == [
        ["human", "llm:x", "llm:y", None],
        ["llm:x"],
    ]
