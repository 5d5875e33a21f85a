"""Outermost retrievals among runs with parents."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument import DroppedEvents, OutermostTracker


def test_an_ensemble_counts_once_through_a_chain_between() -> None:
    tracker = OutermostTracker(DroppedEvents())
    tracker.start("app", None, is_retrieval=False)
    tracker.start("ensemble", "app")
    tracker.start("step", "ensemble", is_retrieval=False)
    tracker.start("a", "step")
    tracker.start("b", "step")
    ends = {run: tracker.end(run) for run in ("b", "a", "step", "ensemble", "app")}
    assert ends == {"b": False, "a": False, "step": False, "ensemble": True, "app": False}
    assert tracker.n_open == 0


def test_two_retrievals_of_one_chain_both_count() -> None:
    tracker = OutermostTracker(DroppedEvents())
    tracker.start("app", None, is_retrieval=False)
    tracker.start("first", "app")
    assert tracker.end("first")
    tracker.start("second", "app")
    assert tracker.end("second")


def test_a_handler_registered_twice_counts_once() -> None:
    tracker = OutermostTracker(DroppedEvents())
    for run, parent in (("outer", None), ("inner", "outer")):
        tracker.start(run, parent)
        tracker.start(run, parent)
    assert [tracker.end(r) for r in ("inner", "inner", "outer", "outer")] == [
        False,
        False,
        True,
        False,
    ]
    tracker.start("outer", None)  # announced late by the second registration
    assert not tracker.end("outer")
    assert tracker.n_open == 0


def test_a_span_becomes_a_retrieval_by_its_event() -> None:
    tracker = OutermostTracker(DroppedEvents())
    tracker.start("Fusion.retrieve-1", None, is_retrieval=False)  # the span
    tracker.start("Fusion.retrieve-1", None)  # RetrievalStartEvent in that span
    tracker.start("Fusion._retrieve-2", "Fusion.retrieve-1", is_retrieval=False)
    tracker.start("Vector.retrieve-3", "Fusion._retrieve-2", is_retrieval=False)
    tracker.start("Vector.retrieve-3", None)
    assert not tracker.end("Vector.retrieve-3")
    assert tracker.end("Fusion.retrieve-1")


def test_a_child_that_starts_after_its_parent_ended_is_nested() -> None:
    tracker = OutermostTracker(DroppedEvents())
    tracker.start("outer", None)
    assert tracker.end("outer")
    tracker.start("late", "outer")
    assert not tracker.end("late")


def test_runs_never_announced() -> None:
    tracker = OutermostTracker(DroppedEvents())
    assert not tracker.end("unknown")
    tracker.start("child", "parent of another library")
    assert tracker.end("child")


def test_memory_is_bounded_and_what_is_lost_is_counted() -> None:
    dropped = DroppedEvents()
    tracker = OutermostTracker(dropped, capacity=100)
    for i in range(1000):
        tracker.start(("chain", i), None, is_retrieval=False)  # never ends, loses nothing
    assert (tracker.n_open, dropped.total) == (100, 0)
    for i in range(300):
        tracker.start(i, None)
    assert tracker.n_open == 100
    assert dropped.by_reason == {"retrieval never ended": 200}
    assert [tracker.end(199), tracker.end(200)] == [False, True]
    for i in range(1000, 3000):
        tracker.start(i, None)
        assert tracker.end(i)
    assert len(tracker._ended) == 100


def test_threads_with_nested_runs_count_exactly() -> None:
    tracker = OutermostTracker(DroppedEvents())
    counts = [0] * 8

    def work(k: int) -> None:
        for _ in range(100):
            outer, inner = uuid4(), uuid4()
            for _ in range(2):
                tracker.start(outer, None)
            tracker.start(inner, outer)
            counts[k] += sum(tracker.end(run) for run in (inner, inner, outer, outer))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [100] * 8


def test_both_registrations_end_at_once() -> None:
    tracker = OutermostTracker(DroppedEvents())
    barrier = threading.Barrier(4)
    seen: list[bool] = []

    def work() -> None:
        for i in range(200):
            tracker.start(i, None)
            barrier.wait()
            seen.append(tracker.end(i))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(seen) == 200


def test_capacity_is_checked() -> None:
    with pytest.raises(DataError, match="capacity must be at least 1, got 0"):
        OutermostTracker(DroppedEvents(), capacity=0)
