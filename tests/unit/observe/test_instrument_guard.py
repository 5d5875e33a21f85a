"""Nothing of ours reaches the host, and nothing is lost silently."""

from __future__ import annotations

import asyncio
import logging

import pytest

from rag_sourcebias.observe.events import DroppedEvents, guarded

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
    assert "test_instrument_guard.py:" in caplog.text
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
