"""Log lines of alarms and states: one each, whatever stands in a label."""

from __future__ import annotations

import logging

import pytest
from monitor_states import alarm, share, snapshot

from rag_sourcebias.monitor.sinks import LoggingSink, Sink, SinkGroup


def test_an_alarm_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="rag_sourcebias.monitor"):
        LoggingSink().alarm(alarm())
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        (
            "rag_sourcebias.monitor",
            "WARNING",
            f"retrieval skew alarm (shift): {alarm().message}",
        )
    ]


def test_a_state_is_one_info_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="rag_sourcebias.monitor"):
        LoggingSink().snapshots([snapshot(), snapshot(7, labels={}, groups=())])
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        (
            "INFO",
            "retrieval skew by source: 100 retrieval(s), 1000 document(s), 10 empty, 3 event(s) "
            "dropped (collection=docs): untagged exposure 0.125 [0.075, 0.175]; human exposure "
            "0.250 [0.200, 0.300], corrected for tag errors 0.312, baseline 0.500, ALARM; llm:gpt "
            "exposure 0.625 [0.575, 0.675], corrected for tag errors 0.688, baseline 0.500; human "
            "share of first ranks 0.375 [0.325, 0.425], baseline 0.500",
        ),
        (
            "INFO",
            "retrieval skew by source: 7 retrieval(s), 70 document(s), 0 empty, 3 event(s) dropped",
        ),
    ]


@pytest.mark.parametrize("text", ["a\nCRITICAL root: forged", "a\r", "a\u2028b", "a\x1b[31m"])
def test_no_label_breaks_a_line(caplog: pytest.LogCaptureFixture, text: str) -> None:
    sink = LoggingSink()
    with caplog.at_level(logging.INFO, logger="rag_sourcebias.monitor"):
        sink.alarm(alarm(message=f"tenant {text}: exposure of {text} went up"))
        sink.snapshots([snapshot(labels={"tenant": text}, groups=(share(text, 0.5),))])
    lines = [record.getMessage() for record in caplog.records]
    assert [line.isprintable() for line in lines] == [True, True]
    assert f"a\\u{ord(text[1]):04x}" in lines[0]


def test_a_log_handler_that_raises_stays_away_from_the_monitor() -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("disk full")

    logger = logging.getLogger("rag_sourcebias.test_broken_handler")
    logger.propagate = False
    logger.addHandler(Broken())
    sink = LoggingSink(logger=logger)
    sink.alarm(alarm())
    assert sink.dropped.by_reason == {"log handler raised": 1}


class Collecting:
    def __init__(self) -> None:
        self.told: list[object] = []

    def alarm(self, alarm: object) -> None:
        self.told.append(alarm)

    def snapshots(self, snapshots: object) -> None:
        self.told.append(tuple(snapshots))

    def close(self) -> None:
        self.told.append("closed")


class Broken(Collecting):
    def alarm(self, alarm: object) -> None:
        raise RuntimeError("broken")

    snapshots = alarm

    def close(self) -> None:
        raise RuntimeError("broken")


def test_a_group_tells_every_sink_whatever_another_does() -> None:
    first, last = Collecting(), Collecting()
    group = SinkGroup(first, Broken())
    group.add(last)
    assert isinstance(group, Sink)
    group.alarm(alarm())
    group.snapshots(state for state in [snapshot()])
    group.close()
    assert first.told == last.told == [alarm(), (snapshot(),), "closed"]
    assert group.dropped.by_reason == {"sink raised": 3}
