"""The queue never blocks, loses nothing silently, and survives a fork."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable

import pytest

from rag_sourcebias.core.data import RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import DroppedEvents, RetrievalEvent
from rag_sourcebias.observe.observers import CollectingObserver, CountingObserver
from rag_sourcebias.observe.recorder import EventQueue
from rag_sourcebias.observe.unobserved import is_suppressed

TEN = tuple(f"d{i}" for i in range(10))


def event(name: str = "") -> RetrievalEvent:
    return RetrievalEvent(ranked=RankedList(query_id=name, doc_ids=TEN))


class Calling:
    """An observer made of a function."""

    def __init__(self, function: Callable[[RetrievalEvent], object]) -> None:
        self.function = function

    def observe(self, event: RetrievalEvent) -> None:
        self.function(event)


def test_order_is_kept_and_no_thread_runs_before_the_first_event() -> None:
    collecting, dropped = CollectingObserver(), DroppedEvents()
    before = set(threading.enumerate())  # threads of other tests may end meanwhile
    queue = EventQueue(collecting, dropped)
    assert queue.flush(0)
    assert set(threading.enumerate()) <= before
    for i in range(500):
        queue.observe(event(str(i)))
    assert queue.flush(10)
    assert [e.query_hash for e in collecting.events] == [str(i) for i in range(500)]
    assert queue.close(10)
    assert dropped.total == 0


def test_a_full_queue_drops_at_once_and_counts() -> None:
    entered, release = threading.Event(), threading.Event()
    dropped, seen = DroppedEvents(), []

    def slow(e: RetrievalEvent) -> None:
        entered.set()
        assert release.wait(10)
        seen.append(e.query_hash)

    queue = EventQueue(Calling(slow), dropped, capacity=3)
    assert queue.put(event("0"))
    assert entered.wait(10)
    start = time.perf_counter()
    assert [queue.put(event(str(i))) for i in range(1, 6)] == [True, True, False, False, False]
    assert time.perf_counter() - start < 1
    assert dropped.by_reason == {"queue is full": 3}
    assert not queue.flush(0.01)
    release.set()
    assert queue.flush(10)
    assert queue.put(event("6"))
    assert queue.close(10)
    assert seen == ["0", "1", "2", "6"]


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
def test_an_observer_that_raises_loses_its_event_only(kind: type[BaseException]) -> None:
    dropped, seen = DroppedEvents(), []

    def observe(e: RetrievalEvent) -> None:
        if e.query_hash == "bad":
            raise kind
        seen.append(e.query_hash)

    queue = EventQueue(Calling(observe), dropped)
    for name in ("a", "bad", "b"):
        queue.put(event(name))
    assert queue.close(10)
    assert seen == ["a", "b"]
    assert dropped.by_reason == {"observer raised": 1}


def test_close_refuses_further_events_and_is_repeatable() -> None:
    dropped = DroppedEvents()
    queue = EventQueue(CountingObserver(), dropped)
    queue.put(event())
    thread = queue._thread
    assert queue.close(10)
    assert queue.close(10)
    assert thread is not None
    thread.join(10)
    assert not thread.is_alive()
    assert not queue.put(event())
    assert dropped.by_reason == {"queue is closed": 1}


def test_an_observer_runs_suppressed_and_does_not_wait_for_itself() -> None:
    seen: list[bool] = []
    queue = EventQueue(
        Calling(lambda e: seen.extend((is_suppressed(), queue.flush()))), DroppedEvents()
    )
    queue.put(event())
    assert queue.flush(10)
    assert seen == [True, False]
    assert not is_suppressed()
    queue.close(10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_restarts_the_thread_and_delivers_once() -> None:
    entered, release = threading.Event(), threading.Event()
    seen: list[str | None] = []
    dropped = DroppedEvents()

    def observe(e: RetrievalEvent) -> None:
        if e.query_hash == "block":
            entered.set()
            release.wait(10)
        seen.append(e.query_hash)

    queue = EventQueue(Calling(observe), dropped)
    queue.put(event("block"))
    assert entered.wait(10)
    queue.put(event("queued"))
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with queue._lock, dropped._lock:
            held.set()
            let_go.wait(10)

    holder = threading.Thread(target=hold)  # at the fork another thread has every lock
    holder.start()
    assert held.wait(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads, the point here
        pid = os.fork()
        if pid == 0:
            code = 1
            signal.alarm(20)  # a lock that stayed locked would block the child for ever
            try:
                put = queue.put(event("child"))
                ok = put and queue.flush(5) and seen == ["child"] and dropped.total == 0
                signal.alarm(0)
                code = 0 if ok else 2
            finally:
                os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    let_go.set()
    release.set()
    holder.join(10)
    assert queue.close(10)
    assert seen == ["block", "queued"]


def test_the_last_events_of_a_script_are_observed() -> None:
    script = """
import time
from rag_sourcebias.observe.events import DroppedEvents
from rag_sourcebias.observe.recorder import EventQueue
class Printing:
    def observe(self, event):
        time.sleep(0.02)
        print(event)
queue = EventQueue(Printing(), DroppedEvents())
for i in range(3):
    queue.put(i)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["0", "1", "2"]
    assert done.stderr == ""


def test_capacity_is_checked() -> None:
    with pytest.raises(DataError, match="capacity must be at least 1, got 0"):
        EventQueue(CountingObserver(), DroppedEvents(), capacity=0)
