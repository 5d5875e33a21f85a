"""The handle of an instrumentation; blocks with a deadline."""

from __future__ import annotations

import threading

import pytest

from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import Attachment, Instrumentation, Recorder
from rag_sourcebias.observe.runs import outermost


def test_closing_detaches_once_and_waits_for_what_was_seen() -> None:
    observer, detached = CollectingObserver(), []
    rec = Recorder(observer)
    handle = Instrumentation(rec, Attachment("target", lambda: detached.append(1)))
    with handle as entered:
        assert entered is handle
        assert handle.target == "target"
        rec.record(["a"])
    assert (detached, len(observer.events)) == ([1], 1)
    handle.close()
    assert detached == [1]
    assert handle.dropped is rec.dropped


def test_an_error_inside_the_block_passes_and_still_detaches() -> None:
    detached: list[int] = []
    with (
        pytest.raises(ZeroDivisionError),
        Instrumentation(
            Recorder(CollectingObserver()), Attachment(None, lambda: detached.append(1))
        ),
    ):
        raise ZeroDivisionError
    assert detached == [1]


def test_what_cannot_be_removed_is_counted_not_raised() -> None:
    def detach() -> None:
        raise RuntimeError("somebody else patched it")

    handle = Instrumentation(Recorder(CollectingObserver()), Attachment(None, detach))
    handle.close()
    handle.close()
    assert dict(handle.dropped.by_reason) == {"instrumentation could not be removed": 1}


def test_flush_and_close_give_up_in_time() -> None:
    release = threading.Event()

    class Waiting:
        def observe(self, event: RetrievalEvent) -> None:
            release.wait(30)

    rec = Recorder(Waiting())
    handle = Instrumentation(rec, Attachment(None, lambda: None))
    rec.record(["a"])
    assert not handle.flush(0.01)
    handle.close(timeout=0.01)
    release.set()
    assert handle.flush(30)


class TestDeadlines:
    def test_a_block_hides_nothing_after_its_time(self) -> None:
        owner = object()
        with outermost(owner, lasts=60), outermost(owner) as inner:
            assert not inner
        with outermost(owner, lasts=0.0), outermost(owner) as inner:
            assert inner

    def test_the_one_around_still_counts(self) -> None:
        owner = object()
        with outermost(owner), outermost(owner, lasts=0.0), outermost(owner) as inner:
            assert not inner

    def test_a_block_may_be_entered_again(self) -> None:
        block = outermost(None, lasts=0.0)
        for _ in range(2):
            with block as first:
                assert first
