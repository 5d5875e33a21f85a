"""A monitor of skew: totals, shares, alarms, and the state that survives a restart."""

import gc
import json
import logging
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from monitor_streams import DOCS, EVERY, HALF, event, fed, group, mixed, stream, watched

from rag_sourcebias.core.data import DocTags, TagTable
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.core.protocols import Observer
from rag_sourcebias.monitor.data import Alarm
from rag_sourcebias.monitor.follow import replay
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import (
    CorpusShare,
    PoolShare,
    ReferenceWindow,
    corpus_share,
)
from rag_sourcebias.observe.tags import MemoryTagStore

HUMAN = CorpusShare({"human": 0.5})
SETTINGS: dict[str, dict[str, Any]] = {
    "corpus": {"baseline": CorpusShare({"human": 0.6, "llm:a": 0.1})},
    "pool": {"baseline": PoolShare(3), "topics": "collection", "users": ("collection",)},
    "reference": {"baseline": ReferenceWindow(40)},
}


def plain(monitor: SkewMonitor) -> str:
    return json.dumps(
        [[s.to_dict() for s in monitor.snapshot()], monitor.to_dict()], allow_nan=False
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_a_batch_gives_exactly_what_single_events_give(name: str) -> None:
    events = mixed(3, 1_200)
    whole = watched(events, **SETTINGS[name])
    single = SkewMonitor(clock=lambda: 0.0, **SETTINGS[name])
    for i, one in enumerate(events):
        single.record(one, at=EVERY * i)
        single.flush()
    assert plain(whole) == plain(single)
    assert sorted(map(repr, whole.alarms)) == sorted(map(repr, single.alarms))
    assert single.dropped.total == 0


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("cut", [15, 250, 1_000])
def test_a_restart_changes_nothing(name: str, cut: int) -> None:
    events = mixed(4, 1_200)
    whole, before = watched(events, **SETTINGS[name]), watched(events[:cut], **SETTINGS[name])
    stored = json.loads(json.dumps(before.to_dict(), allow_nan=False))
    after = SkewMonitor.from_dict(stored, clock=lambda: 0.0)
    for i, one in enumerate(events[cut:], cut):
        after.record(one, at=EVERY * i)
    assert plain(after) == plain(whole)
    assert after.alarms == whole.alarms  # those before the restart are kept


def test_an_alarm_tells_what_happened_and_comes_once_until_reset() -> None:
    told: list[Alarm] = []
    monitor = SkewMonitor(
        baseline=HUMAN,
        on_alarm=told.append,
    )
    fed(monitor, [event("human")] * 600)
    (alarm,) = monitor.alarms
    assert told == [alarm]
    assert (alarm.rule, alarm.group, alarm.measure, alarm.labels) == (
        "level",
        "human",
        "exposure",
        DOCS,
    )
    assert alarm.at == EVERY * (alarm.n - 1)
    assert alarm.statistic >= 1
    assert (alarm.share, alarm.baseline) == (1.0, 0.5)
    assert 0.5 < alarm.lower <= alarm.upper == 1.0
    assert (
        "collection docs: exposure of human is 1.000 [1.000, 1.000] since 1970-01-01"
        in alarm.message
    )
    assert group(monitor.snapshot()[0], "human").alarm
    monitor.reset()
    assert monitor.snapshot() == ()
    fed(monitor, [event("human")] * 600)
    assert len(monitor.alarms) == len(told) == 2


def test_a_source_that_never_came_has_share_0_after_an_alarm_too() -> None:
    baseline = CorpusShare({"human": 0.5, "llm:never": 0.3})
    monitor = watched([event("human")] * 600, baseline=baseline)
    assert monitor.alarms
    (snapshot,) = monitor.snapshot()
    never = group(snapshot, "llm:never")
    assert (never.share, never.baseline, never.alarm) == (0.0, 0.3, False)
    assert snapshot.unseen == ("llm:never",)


def test_the_pool_of_a_query_is_its_own_baseline() -> None:
    rng = np.random.default_rng(7)
    fair, unfair = (SkewMonitor(baseline=PoolShare(3)) for _ in range(2))
    for i in range(600):  # pools full of human documents are no reason for an alarm
        pool = ["human"] * 8 + ["llm:a"] * int(rng.integers(0, 8))
        rng.shuffle(pool)
        fair.record(event(*pool), at=EVERY * i)
        unfair.record(event(*sorted(pool, reverse=True)), at=EVERY * i)  # llm first
    assert fair.alarms == ()
    (alarm,) = unfair.alarms
    assert {move.group for move in alarm.moves} == {"human", "llm:a"}
    (snapshot,) = fair.snapshot()
    assert snapshot.n_documents == 1_800
    human = group(snapshot, "human")
    assert human.baseline is not None
    assert abs(human.share - human.baseline) < 0.03
    assert "first 3 shown" in snapshot.baseline


def test_groups_and_label_sets_beyond_the_cap_are_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_sourcebias.monitor.settings.MOST_GROUPS", 2)
    monkeypatch.setattr("rag_sourcebias.monitor.monitor._MOST_LABEL_SETS", 2)
    monitor = SkewMonitor()
    for name in ("a", "b", "c", "d", "a"):
        monitor.observe(event("human", "x", "y", "z", collection=name, user="u" + name))
    counts = {s.labels["collection"]: s.n_retrievals for s in monitor.snapshot()}
    assert counts == {"a": 2, "b": 1, "other": 2}
    found = next(s for s in monitor.snapshot() if s.labels == {"collection": "other"})
    assert {count.group: count.documents for count in found.counts} == {
        "human": 2,
        "x": 2,
        "other": 4,
    }


def test_totals_are_exact_under_threads() -> None:
    monitor = SkewMonitor(baseline=HALF)
    events = stream(11, 1_500)

    def feed() -> None:
        for i, one in enumerate(events):
            monitor.observe(one)
            if i % 400 == 0:
                monitor.snapshot()

    threads = [threading.Thread(target=feed) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (snapshot,) = monitor.snapshot()
    first = sum(one.tags[0].source == "human" for one in events)
    assert snapshot.n_retrievals == snapshot.n_observations == 8 * 1_500
    assert snapshot.n_documents == 5 * 8 * 1_500
    human = next(count for count in snapshot.counts if count.group == "human")
    assert human.ranks[0] == 8 * first
    assert sum(count.ranks[-1] for count in snapshot.counts) == snapshot.n_documents
    assert monitor.dropped.total == 0


def test_broken_events_and_callbacks_are_counted_and_cost_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(alarm: Alarm) -> None:
        raise RuntimeError(alarm.message)

    monitor = SkewMonitor(baseline=HUMAN, on_alarm=broken)
    poisoned: list[Any] = [
        None,
        replace(event("human"), monotonic=float("nan")),
        replace(event("human"), monotonic="late"),
        event(*["human"] * 5_000),  # not broken: a thousand count
    ]
    unhashable = event("human")
    object.__setattr__(unhashable, "tags", (type("Tags", (), {"source": []})(),))
    replay([*poisoned, unhashable], monitor)
    fed(monitor, [event("human")] * 600)
    deadline = time.monotonic() + 60  # the monitor's thread may be the one that tells
    while "on_alarm raised" not in monitor.dropped.by_reason and time.monotonic() < deadline:
        time.sleep(0.01)
    (snapshot,) = monitor.snapshot()
    assert (snapshot.n_retrievals, snapshot.n_documents) == (602, 1_601)
    assert snapshot.bad_tags == 1  # whose document is untagged
    assert snapshot.dropped == {
        "monitor could not read the event": 3,
        "on_alarm raised": 1,
    }
    assert len(monitor.alarms) == 1
    assert "dropped so far" in caplog.text


FORKED = """
import os
from rag_sourcebias.observe import RetrievalEvent
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.core.data import DocTags, RankedList
ranked = RankedList(query_id="", doc_ids=("a",))
event = RetrievalEvent(ranked=ranked, tags=(DocTags(source="human"),))
monitor = SkewMonitor()
for _ in range(300):
    monitor.observe(event)
with monitor._lock, monitor._working:  # as another thread could hold them
    child = os.fork()
for _ in range(7):
    monitor.observe(event)
counted = monitor.snapshot()[0].n_retrievals
if child == 0:
    os._exit(counted != 7)
assert os.waitpid(child, 0)[1] == 0
assert counted == 307
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_counts_its_own_retrievals_only() -> None:
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120)


def test_a_callback_may_ask_the_monitor() -> None:
    seen: list[int] = []

    def ask(alarm: Alarm) -> None:
        monitor.record(event("human"), at=alarm.at)
        seen.append(monitor.snapshot()[0].n_retrievals - alarm.n)

    monitor = SkewMonitor(baseline=HUMAN, on_alarm=ask)
    fed(monitor, [event("human")] * 600)
    assert len(monitor.alarms) == len(seen) == 1
    assert monitor.snapshot()[0].n_retrievals == 601
    assert monitor.dropped.total == 0


_BEFORE = 200  # the alarm comes within two half-days


@pytest.mark.parametrize("n", [100, 256])
def test_its_own_thread_processes_what_gathered(n: int) -> None:
    """A complete batch at once, another within a second or so."""
    told = threading.Event()
    where: list[str] = []

    def tell(_: Alarm) -> None:
        where.append(threading.current_thread().name)
        told.set()

    monitor = SkewMonitor(baseline=HALF, on_alarm=tell)
    assert isinstance(monitor, Observer)
    assert monitor.inline
    fed(monitor, [event("human")] * _BEFORE)
    for i in range(n):
        monitor.record(event("human"), at=EVERY * (_BEFORE + i))
    assert told.wait(60)
    assert set(where) == {"rag-sourcebias-monitor"}
    monitor.reset()
    told.clear()
    fed(monitor, [event("human")] * _BEFORE)
    for i in range(n):  # the thread goes on
        monitor.record(event("human"), at=EVERY * (_BEFORE + i))
    assert told.wait(60)


def test_the_thread_ends_with_the_monitor_and_outlives_a_failing_clock() -> None:
    failed = threading.Event()

    def clock() -> float:
        failed.set()
        raise RuntimeError("no time")

    monitor = SkewMonitor(clock=clock)
    wake = monitor._wake
    for _ in range(256):
        monitor.observe(event("human"))
    assert failed.wait(60)
    before = {thread for thread in threading.enumerate() if _watches(thread, wake)}
    assert len(before) == 1
    del monitor
    deadline = time.monotonic() + 60
    while any(thread.is_alive() for thread in before) and time.monotonic() < deadline:
        gc.collect()  # again: at first the thread may still have held the monitor
        time.sleep(0.01)
    assert not any(thread.is_alive() for thread in before)


def _watches(thread: threading.Thread, wake: object) -> bool:
    return any(argument is wake for argument in getattr(thread, "_args", ()))


def test_shares_of_a_tag_store() -> None:
    store = MemoryTagStore()
    rows = [
        ("a", "human", "plain"),
        ("b", "human", None),
        ("c", None, "plain"),
        ("d", "x", "plain"),
    ]
    table_rows = [(name, DocTags(source=source, style=style)) for name, source, style in rows]
    table = TagTable.from_tags(table_rows)
    store.put(table_rows)
    assert corpus_share(store).shares == {"": 0.25, "human": 0.5, "x": 0.25}
    assert corpus_share(table, by="style").shares == {"": 0.25, "plain": 0.75}
    with pytest.raises(DataError, match="holds no documents"):
        corpus_share(MemoryTagStore())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"labels": "collection"}, "labels must be a sequence of names, got 'collection'"),
        ({"users": "session"}, "users must be a sequence of names, got 'session'"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        SkewMonitor(**settings)


def test_baselines_are_checked() -> None:
    with pytest.raises(DataError, match=r"share nan of group 'a' must be a number in \[0, 1\]"):
        CorpusShare({"a": float("nan")})
    with pytest.raises(DataError, match="at least one group"):
        CorpusShare({})
    with pytest.raises(DataError, match="shown must be at least 1, got 0"):
        PoolShare(0)
    with pytest.raises(DataError, match="2 to 100000 observations, got 1"):
        ReferenceWindow(1)


def test_state_of_something_else_is_refused() -> None:
    data = watched(stream(12, 10), baseline=HALF).to_dict()
    with pytest.raises(UnsupportedVersionError, match="schema version 2 cannot be read; this rel"):
        SkewMonitor.from_dict(data | {"schema_version": 2})
    with pytest.raises(UnsupportedVersionError, match="monitor schema version None"):
        SkewMonitor.from_dict({"kind": "beta"})
    with pytest.raises(DataError, match=r"at 'settings\.by'"):
        SkewMonitor.from_dict(data | {"settings": {"by": 1}})
    with pytest.raises(DataError, match=r"missing required field 'groups' - at 'watches\[0\]'"):
        SkewMonitor.from_dict(data | {"watches": [{"labels": DOCS}]})
    for key, values in (("alarms", (None, [{"rule": "x"}], [7])), ("dropped", ([1], {"a": "b"}))):
        for value in values:
            with pytest.raises(DataError, match=f"at '{key}"):
                SkewMonitor.from_dict(data | {key: value})
    other = data | {"settings": data["settings"] | {"baseline": {"kind": "reference"}}}
    with pytest.raises(DataError, match="expected finite numbers of shape"):
        SkewMonitor.from_dict(other)
    with pytest.raises(DataError, match=r"no retrieval with labels \{'collection': 'b'\}"):
        watched(stream(12, 10)).reset({"collection": "b"})


# Counts by rank, alarms and losses that a monitor keeps; latency; log handlers that ask it


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
