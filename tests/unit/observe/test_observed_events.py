"""Events, and what is lost of them: counted, said once, and kept from the host."""

import asyncio
import logging
import time

import pytest

from rag_sourcebias.core.data import RankedList
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import DroppedEvents, RetrievalEvent, guarded, hash_query
from rag_sourcebias.observe.observers import CollectingObserver

LOGGER = "rag_sourcebias.observe"


def test_an_exception_is_swallowed_and_counted() -> None:
    dropped = DroppedEvents()
    with guarded(dropped, "observer raised"):
        raise OSError("disk full")
    assert dropped.by_reason == {"observer raised": 1}
    with guarded(dropped, "observer raised"):
        pass
    assert dropped.total == 1


@pytest.mark.parametrize(
    "kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]
)
def test_what_ends_a_program_or_a_task_passes(kind: type[BaseException]) -> None:
    dropped = DroppedEvents()
    with pytest.raises(kind), guarded(dropped, "observer raised"):
        raise kind
    assert dropped.total == 0


def test_one_line_per_reason_and_one_per_tenfold(caplog: pytest.LogCaptureFixture) -> None:
    dropped = DroppedEvents()
    with caplog.at_level(logging.INFO, LOGGER):
        for _ in range(1000):
            dropped.add("queue is full")
        dropped.add("queue is closed")
    assert [record.args[2] for record in caplog.records] == [1, 10, 100, 1000, 1]
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert "queue is full: 1000 event(s) dropped" in caplog.records[3].getMessage()


def test_the_line_names_type_and_place_but_no_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER), guarded(DroppedEvents(), "convert"):
        raise ValueError("what is my diagnosis?")
    assert "ValueError at " in caplog.text
    assert "test_observed_events.py:" in caplog.text
    assert "diagnosis" not in caplog.text


class Reentrant(logging.Handler):
    """Loses an event while it logs one, then breaks."""

    def __init__(self, dropped: DroppedEvents) -> None:
        super().__init__()
        self.dropped = dropped

    def emit(self, record: logging.LogRecord) -> None:
        if record.args[0] == "first":
            self.dropped.add("second")
        raise RuntimeError("broken handler")


def test_a_broken_log_handler_that_observes_reaches_nobody() -> None:
    dropped = DroppedEvents()
    handler = Reentrant(dropped)
    logging.getLogger(LOGGER).addHandler(handler)
    try:
        with guarded(dropped, "first"):
            raise ValueError
    finally:
        logging.getLogger(LOGGER).removeHandler(handler)
    assert dropped.by_reason == {"first": 1, "second": 1}


# Events and the small observers


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


def test_collecting_keeps_the_latest() -> None:
    collecting = CollectingObserver(capacity=2)
    for name in "abc":
        collecting.observe(event(name))
    assert [e.ranked.doc_ids for e in collecting.events] == [("b",), ("c",)]
    with pytest.raises(DataError, match="capacity must be at least 1, got -1"):
        CollectingObserver(capacity=-1)
