"""Several observers as one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rag_sourcebias.core.data import RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.log.event_log import EventLog
from rag_sourcebias.monitor.log.reading import log_summary
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.observers import (
    CollectingObserver,
    CountingObserver,
    ExposureObserver,
    ObserverGroup,
)
from rag_sourcebias.observe.recorder import Recorder


def event(*doc_ids: str) -> RetrievalEvent:
    return RetrievalEvent(ranked=RankedList(query_id="", doc_ids=doc_ids))


class Raising:
    inline = True

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def observe(self, event: RetrievalEvent) -> None:
        raise self.error


class Slow:
    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def observe(self, event: RetrievalEvent) -> None:
        self.threads.append(threading.current_thread())


def test_every_observer_is_told_in_order() -> None:
    first, second, count = CollectingObserver(), CollectingObserver(), CountingObserver()
    group = ObserverGroup(first, second, count)
    told = [event("a"), event("b", "c")]
    for one in told:
        group.observe(one)
    assert list(first.events) == list(second.events) == told
    assert (count.n_events, count.n_documents) == (2, 3)
    assert group.observers == (first, second, count)


def test_what_one_raises_keeps_nothing_from_the_others() -> None:
    before, after = CountingObserver(), CountingObserver()
    group = ObserverGroup(
        before, Raising(RuntimeError("text of a user")), Raising(ValueError()), after
    )
    for _ in range(3):
        group.observe(event("a"))
    assert (before.n_events, after.n_events) == (3, 3)
    assert group.dropped.by_reason == {"observer raised": 6}


def test_what_must_end_a_program_passes() -> None:
    group = ObserverGroup(Raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        group.observe(event("a"))


def test_a_group_is_quick_when_all_are() -> None:
    quick, slow = ExposureObserver(), Slow()
    assert ObserverGroup(quick).inline is True
    assert ObserverGroup(quick, slow).inline is False
    assert ObserverGroup(quick, ObserverGroup(slow)).inline is False
    assert ObserverGroup(quick, ObserverGroup(CountingObserver())).inline is True
    slow.inline = "yes"
    assert ObserverGroup(slow).inline is False


def test_a_quick_group_is_told_on_the_thread_of_the_application() -> None:
    slow = Slow()
    recorder = Recorder(ObserverGroup(CountingObserver(), slow))
    recorder.record(["a"])
    assert recorder.flush(60)
    slow.inline = True
    count = CountingObserver()
    Recorder(ObserverGroup(count, slow)).record(["a"])
    assert count.n_events == 1  # without a flush
    assert slow.threads[0] is not threading.current_thread()
    assert slow.threads[1] is threading.current_thread()


def test_totals_are_exact_between_threads() -> None:
    members = [CountingObserver(), ExposureObserver(), Raising(RuntimeError())]
    group = ObserverGroup(*members)

    def tell() -> None:
        for _ in range(200):
            group.observe(event("a"))

    threads = [threading.Thread(target=tell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert members[0].n_events == members[1].counts().n_retrievals == 1600
    assert group.dropped.total == 1600


def test_a_log_and_a_monitor_see_the_same(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log.sqlite")
    monitor = SkewMonitor(labels=("collection",))
    recorder = Recorder(ObserverGroup(log, monitor), labels={"collection": "docs"})

    def retrieve() -> None:
        for i in range(150):
            tagged = {"rsb_source": "human" if i % 3 else "llm:gpt"}
            found = ["a", "b"] if i % 5 else []
            recorder.record(found, metadata=[tagged for _ in found])

    threads = [threading.Thread(target=retrieve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.close(60)
    (snapshot,) = monitor.snapshot()
    assert log_summary(log.path).n_kept == snapshot.n_retrievals == 600
    assert (snapshot.n_empty, snapshot.n_documents) == (120, 960)
    assert recorder.dropped.total == log.dropped.total == monitor.dropped.total == 0


@pytest.mark.parametrize(
    ("observers", "message"),
    [
        ((), "needs at least one"),
        ((object(),), "is not an observer; expected an object with observe"),
        ((CountingObserver,), "is not an observer; expected an object with observe"),
    ],
)
def test_what_is_no_observer(observers: tuple, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ObserverGroup(*observers)


def test_the_same_one_twice() -> None:
    count = CountingObserver()
    with pytest.raises(DataError, match="given twice; it would count every retrieval twice"):
        ObserverGroup(count, CountingObserver(), count)
