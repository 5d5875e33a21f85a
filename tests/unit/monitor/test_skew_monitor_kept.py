"""Counts by rank, alarms and losses that a monitor keeps; latency; log handlers that ask it."""

from __future__ import annotations

import json
import logging
import threading

import numpy as np
import pytest
from monitor_streams import HALF, event, fed, mixed, watched

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.monitor.data import RANK_LIMITS, Alarm
from rag_sourcebias.monitor.follow import replay
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import PoolShare
from rag_sourcebias.observe.events import RetrievalEvent


def by_hand(events: list[RetrievalEvent], shown: int | None = None) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for one in events:
        for rank, tag in enumerate(one.tags[:shown], 1):
            counts = found.setdefault(tag.source or "", [0] * 9)
            counts[0] += 1
            for i, limit in enumerate(RANK_LIMITS, 1):
                counts[i] += rank <= limit
    return dict(sorted(found.items()))


def counted(monitor: SkewMonitor) -> dict[str, list[int]]:
    (found,) = monitor.snapshot()
    return {c.group: [c.documents, *c.ranks] for c in found.counts}


def test_documents_are_counted_by_rank() -> None:
    rng = np.random.default_rng(1)
    names = ("human", "llm:a", None)
    events = [event(*(names[c] for c in rng.integers(0, 3, n))) for n in range(130)]
    monitor = SkewMonitor()
    replay(events, monitor)
    assert counted(monitor) == by_hand(events)
    after = SkewMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    replay(events[:40], after)
    assert counted(after) == by_hand(events + events[:40])
    few = SkewMonitor(baseline=PoolShare(3))
    replay(events, few)
    assert counted(few) == by_hand(events, 3)


def test_alarms_and_losses_survive_a_restart() -> None:
    told: list[Alarm] = []
    before = watched(mixed(2, 3_000), baseline=HALF)
    before.observe(None)  # type: ignore[arg-type]
    assert len(before.alarms) > 1
    stored = json.loads(json.dumps(before.to_dict(), allow_nan=False))
    after = SkewMonitor.from_dict(stored, on_alarm=told.append)
    assert (after.alarms, told) == (before.alarms, [])
    assert after.dropped.by_reason == {"monitor could not take the event": 1}
    after.observe(None)  # type: ignore[arg-type]
    assert after.snapshot()[0].dropped == {"monitor could not take the event": 2}
    again = SkewMonitor.from_dict(after.to_dict())
    assert again.dropped.total == 2
    assert again.to_dict() == after.to_dict()


def test_states_of_another_version_or_without_sense_are_refused() -> None:
    data = watched(mixed(3, 50), baseline=HALF).to_dict()
    with pytest.raises(UnsupportedVersionError, match="version 2 cannot be read; this release"):
        SkewMonitor.from_dict(data | {"schema_version": 2})
    for changed in (
        {"alarms": None},
        {"alarms": [{"rule": "x"}]},
        {"alarms": [7]},
        {"dropped": [1]},
        {"dropped": {"a": "b"}},
    ):
        with pytest.raises(DataError, match=r"at '(alarms|dropped)"):
            SkewMonitor.from_dict(data | changed)


class _Asking(logging.Handler):
    """A handler that reads the monitor, as an exporter of logs and metrics might."""

    def __init__(self, monitor: SkewMonitor) -> None:
        super().__init__()
        self.monitor, self.seen = monitor, []  # type: ignore[var-annotated]

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append((record.getMessage(), self.monitor.snapshot()))


@pytest.mark.parametrize("way", ["snapshot", "flush", "batch", "full", "alarm"])
def test_a_log_handler_may_ask_the_monitor(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_sourcebias.monitor.monitor._CAPACITY", 300)

    def broken(_: Alarm) -> None:
        raise RuntimeError

    monitor = SkewMonitor(baseline=HALF, on_alarm=broken if way == "alarm" else None)
    handler, logger = _Asking(monitor), logging.getLogger("rag_sourcebias.observe")
    poisoned = event("human")
    object.__setattr__(poisoned, "labels", None)

    def work() -> None:
        if way == "alarm":
            fed(monitor, [event("human")] * 600)
        elif way == "full":
            with monitor._working:  # as while another thread processes
                for _ in range(300):
                    monitor.observe(event("human"))
            monitor.observe(event("human"))
        else:
            replay([poisoned, *[event("human")] * (255 if way == "batch" else 3)], monitor)
        if way == "snapshot":
            assert monitor.snapshot()[0].dropped == {"monitor could not read the event": 1}
        monitor.flush()

    logger.addHandler(handler)
    try:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    finally:
        logger.removeHandler(handler)
    ((message, (snapshot,)), *_) = handler.seen
    reason = {"full": "monitor is full", "alarm": "on_alarm raised"}
    assert reason.get(way, "monitor could not read the event") in message
    assert snapshot.n_retrievals > 0
    assert snapshot.dropped == monitor.dropped.by_reason
