"""The recorder and its deliveries: what an adapter calls, none of which raises into it."""

import contextvars
import gc
import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest

import rag_sourcebias as rsb
from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import RetrievalEvent, hash_query
from rag_sourcebias.observe.observers import (
    CollectingObserver,
)
from rag_sourcebias.observe.recorder import (
    Attachment,
    Delivery,
    Instrumentation,
    Recorder,
    delivery_for,
)
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias.observe.unobserved import suppress

KEY = b"0123456789abcdef"


@pytest.fixture
def observer() -> CollectingObserver:
    return CollectingObserver()


def failing() -> Iterator[Any]:
    yield "a"
    raise RuntimeError("the native result is broken")


def test_wrong_options_are_refused(observer) -> None:
    for wrong in (object(), CollectingObserver, None):
        with pytest.raises(DataError, match=r"is not an observer; expected an object with observe"):
            Recorder(wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="query_key must have 16 to 64 bytes, got 65"):
        Recorder(observer, query_key=b"x" * 65)


@pytest.mark.parametrize("queue", [True, False])
def test_a_record_becomes_an_event(observer, queue) -> None:
    rec = Recorder(observer, labels={"a": "1", "b": "2"}, query_key=KEY, queue=queue)
    metadata: list[dict[str, object]] = [{"rsb_source": "human", "text": "secret"}]
    labels = {"b": "other", "c": "3"}
    rec.record(["d1", "d2"], metadata=[*metadata, None], scores=[1, 0.5], query="q", labels=labels)
    metadata[0]["rsb_source"] = "changed"
    labels["c"] = "changed"
    assert rec.flush(10)
    (event,) = observer.events
    assert event.ranked.doc_ids == ("d1", "d2")
    assert event.ranked.scores is not None
    assert event.ranked.scores.tolist() == [1.0, 0.5]
    assert event.tags == (DocTags(source="human"), DocTags())
    assert dict(event.labels) == {"a": "1", "b": "2", "c": "3"}
    assert event.query_hash == hash_query("q", key=KEY)
    assert rec.dropped.total == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"doc_ids": failing},
        {"doc_ids": ["a"], "metadata": failing},
        {"doc_ids": ["a"], "scores": failing},
        {"doc_ids": None},
        {"doc_ids": ["a"], "metadata": [{}, {}]},
        {"doc_ids": ["a"], "scores": ["best"]},
    ],
)
@pytest.mark.parametrize("queue", [True, False])
def test_what_cannot_be_read_is_counted(observer, arguments, queue) -> None:
    rec = Recorder(observer, queue=queue)
    rec.record(**{k: v() if v is failing else v for k, v in arguments.items()})
    rec.record(["next"])
    assert rec.flush(10)
    assert dict(rec.dropped.by_reason) == {"result could not be read": 1}
    assert [event.ranked.doc_ids for event in observer.events] == [("next",)]


class Odd:
    def __eq__(self, _: object) -> bool:
        raise RuntimeError("no")

    __hash__ = object.__hash__


def test_a_bad_tag_costs_that_tag(observer) -> None:
    rec = Recorder(observer)
    good = {"rsb_source": "human", "rsb_style": "plain"}
    bad = [
        {"rsb_source": 7, "rsb_style": "plain"},
        {**good, "rsb_confidence": "high", "rsb_origin": "rumour"},
        {"rsb_source": ["unhashable"]},
        {"rsb_source": Odd(), "rsb_style": "  "},
        ["no mapping"],
    ]
    for _ in range(2):  # what is remembered of good tags is not remembered of bad ones
        rec.record(map(str, range(6)), metadata=[good, *bad])
    assert rec.flush(10)
    assert not rec.dropped.total
    for event in observer.events:
        assert [(tag.source, tag.style) for tag in event.tags] == [
            *[("human", "plain"), (None, "plain"), ("human", "plain")],
            *[(None, None)] * 3,
        ]
        assert event.bad_tags == 1 + 2 + 1 + 2 + 5
        assert pickle.loads(pickle.dumps(event)).bad_tags == event.bad_tags


def test_where_metadata_is_read(observer) -> None:
    store = MemoryTagStore()
    assert Recorder(observer).reads_metadata
    assert not Recorder(observer, tags=store).reads_metadata
    assert Recorder(observer, tags=store, doc_id=str).reads_metadata


class TestBlocks:
    def test_direct_calls_nest(self, observer) -> None:
        rec, again = Recorder(observer), Recorder(observer)
        other = Recorder(CollectingObserver())
        with rec.retrieval() as first, again.retrieval() as second, other.retrieval() as third:
            assert (first, second, third) == (True, False, True)
        with pytest.raises(KeyError), rec.retrieval():
            raise KeyError
        with rec.retrieval() as first:
            assert first
        with suppress(), rec.retrieval() as first:
            assert not first
        with rec.retrieval(), suppress(), again.retrieval() as inner:
            assert not inner

    @pytest.mark.parametrize("first", ["run", "call"])
    def test_runs_and_direct_calls_nest(self, observer, first) -> None:
        rec, again = Recorder(observer), Recorder(observer)
        if first == "run":
            rec.begin("run")
            with again.retrieval() as counts:
                assert not counts
            assert rec.end("run")
        else:
            with again.retrieval() as counts:
                assert counts
                rec.begin("run")
                assert not rec.end("run")
        with again.retrieval() as counts:
            assert counts

    def test_a_suppressed_run_is_none(self, observer) -> None:
        rec = Recorder(observer)
        with suppress():
            rec.begin("run")
        assert not rec.end("run")


class Slow:
    """An observer that does not promise to be quick."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def observe(self, event: RetrievalEvent) -> None:
        self.threads.append(threading.current_thread().name)


def test_a_recorder_that_is_let_go_ends_its_thread() -> None:
    rec = Recorder(Slow())
    rec.record(["a"])
    assert rec.flush(10)
    queue = rec._delivery._queue
    assert queue is not None
    thread = queue._thread
    assert thread is not None
    del rec, queue
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_what_cannot_be_removed_is_counted_not_raised() -> None:
    def detach() -> None:
        raise RuntimeError("somebody else patched it")

    handle = Instrumentation(Recorder(CollectingObserver()), Attachment(None, detach))
    handle.close()
    handle.close()
    assert dict(handle.dropped.by_reason) == {"instrumentation could not be removed": 1}


# Deliveries: one per observer, tags from a store before tags from metadata


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

    def test_with_a_slow_store_the_queue_is_used(self) -> None:
        here = threading.current_thread()
        asked: list[threading.Thread] = []

        class Store(MemoryTagStore):
            inline = False

            def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
                asked.append(threading.current_thread())
                return super().get(doc_ids)

        observer = Noting(inline=True)
        rec = Recorder(observer, tags=Store())
        rec.record(["a"])
        assert rec.flush(10)
        assert asked == observer.threads
        assert here not in asked

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


class TestStages:
    def test_later_stages_join_the_request_of_their_context(self) -> None:
        observer = CollectingObserver()
        rec = Recorder(observer, labels={"route": "a"}, queue=False)
        metadata = [{"rsb_source": "human"}, {"rsb_source": "llm:x"}, None]
        request = rec.record(["a", "b", "c"], metadata=metadata, labels={"retriever": "R"})
        assert rsb.shown(["b", "d"]) == ["b", "d"]
        rec.record(["e"])
        first, shown, other = observer.events
        assert first.stage == "retrieved"
        assert first.request == shown.request == request != other.request
        assert shown.earlier is first
        assert shown.labels == first.labels == {"retriever": "R", "route": "a"}
        assert shown.tags == (DocTags(source="llm:x"), DocTags())

    def test_a_stage_in_another_context_is_found_by_its_documents(self) -> None:
        observer = CollectingObserver()
        rec = Recorder(observer, queue=False)
        contextvars.copy_context().run(rec.record, ["a", "b"])
        contextvars.copy_context().run(rec.record, ["x", "y"])
        contextvars.copy_context().run(rsb.shown, [{"id": "b"}], stage="reranked")
        contextvars.copy_context().run(rsb.shown, ["never retrieved"])
        assert [event.stage for event in observer.events] == ["retrieved", "retrieved", "reranked"]
        assert observer.events[2].earlier is observer.events[0]

    def test_a_stage_waits_behind_the_one_it_replaces(self) -> None:
        class Slow(CollectingObserver):
            inline = False

            def observe(self, event: RetrievalEvent) -> None:
                time.sleep(0.02)
                super().observe(event)

        class SlowStore(MemoryTagStore):
            inline = False

        observer, store = Slow(), SlowStore()
        store.put([("b", DocTags(source="human"))])
        rec = Recorder(observer, tags=store)
        rec.record(["a", "b"])
        rsb.shown(["b"])
        assert rec.flush(10)
        assert [event.stage for event in observer.events] == ["retrieved", "shown"]
        assert observer.events[1].tags == (DocTags(source="human"),)

    def test_nothing_that_is_shown_reaches_the_application_as_an_error(self) -> None:
        observer = CollectingObserver()
        rec = Recorder(observer, queue=False)
        rec.record(["a"])
        for strange in (None, 7, [object()], [{"no": "id"}], "a"):
            assert rsb.shown(strange) is strange
        assert len(observer.events) <= 2
        assert rec.dropped.total >= 3


class TestLabelsOfARequest:
    def test_they_follow_the_context_and_the_inner_block_wins(self, observer) -> None:
        rec = Recorder(observer, labels={"route": "fixed"}, queue=False)
        with rsb.labels(session="s1", user=UUID(int=7), route="lost"):
            rec.record(["a"])
            with rsb.labels(session=2, empty=None):
                rec.record(["a"])
        rec.record(["a"])
        labels = [dict(event.labels) for event in observer.events]
        assert labels == [
            {"route": "fixed", "session": "s1", "user": str(UUID(int=7))},
            {"route": "fixed", "session": "2", "user": str(UUID(int=7))},
            {"route": "fixed"},
        ]

    def test_what_is_no_text_is_left_out_and_noted_once(self, observer) -> None:
        rec = Recorder(observer, queue=False)
        with rsb.labels(session={"a": 1}, route="r"):
            rec.record(["a"])
            rec.record(["a"])
        assert [dict(event.labels) for event in observer.events] == [{"route": "r"}] * 2
        (note,) = [note for note in rec.coverage().notes if "session" in note]
        assert "of type dict" in note

    def test_a_callable_is_asked_and_names_are_taken(self, observer) -> None:
        rec = Recorder(
            observer, labels=lambda: {"user": "u1"}, take_labels=["thread_id"], queue=False
        )
        rec.record(["a"], carried={"thread_id": "t1", "secret": "x"})
        assert dict(observer.events[0].labels) == {"user": "u1", "thread_id": "t1"}
