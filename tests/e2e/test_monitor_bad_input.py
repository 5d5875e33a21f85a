"""Odd input to the monitor, through its commands: counted, told, and never a page."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import inside, succeed

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.monitor import ReferenceWindow, SkewMonitor
from rag_sourcebias.observe import document_stores
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog

HUMAN, LLM, DAY = DocTags(source="human"), DocTags(source="llm:x"), 86_400.0
START, N = 1_800_000_000.0, 3_000


def event(rng: np.random.Generator, **labels: str) -> RetrievalEvent:
    tags = tuple(HUMAN if rng.random() < 0.5 else LLM for _ in range(10))
    return RetrievalEvent(
        ranked=RankedList(query_id="", doc_ids=("",) * 10),
        tags=tags,
        labels={"collection": "docs"} | labels,
    )


def written(path: Path, times: np.ndarray, *, labels: bool = False, twice: int = 0) -> None:
    """Log retrievals half of whose documents are human; the first ``twice`` come two times."""
    rng = np.random.default_rng(1)
    with EventLog(path) as log:
        for i, at in enumerate(times.tolist()):
            one = event(rng, **({"tenant": f"t{i}"} if labels else {}))
            for _ in range(1 + (i < twice)):
                log.record(one, at=at)


def replayed(folder: Path, *args: str) -> dict[str, Any]:
    code, output, messages = inside("monitor", "replay", "log.db", *args, "--json", "-", cwd=folder)
    assert code == 0, messages
    return dict(json.loads(output))


def even(days: float = 30.0) -> np.ndarray:
    return START + np.arange(N) * days * DAY / N


def test_jumps_of_the_clock_and_repeats_are_told(tmp_path: Path) -> None:
    times = even()
    times[1_400:] += 400 * DAY  # forward by more than a year, and back again
    times[2_950:] -= 400 * DAY
    written(tmp_path / "log.db", times, twice=40)
    found = replayed(tmp_path, "--baseline", "reference:200")
    assert found["alarms"] == []
    assert found["retrievals"] == N + 40
    (snapshot,) = found["snapshots"]
    assert snapshot["odd"]["clock set forward"] == 1
    assert snapshot["odd"]["repeated"] == 40
    assert 40 < snapshot["watch"]["half_days"] < 65  # those in which retrievals came
    text = succeed("monitor", "replay", "log.db", "--baseline", "reference:200", cwd=tmp_path)
    assert "counted all the same: clock set forward 1, repeated 40" in text


def test_late_events_count_in_the_application(caplog: pytest.LogCaptureFixture) -> None:
    rng, monitor = np.random.default_rng(2), SkewMonitor(baseline=ReferenceWindow(200))
    times = even()
    times[200::100] -= 3_600  # late by an hour
    times[240] -= 3 * DAY
    for at in times.tolist():
        monitor.record(event(rng), at=at)
    (snapshot,) = monitor.snapshot()
    assert monitor.alarms == ()
    assert snapshot.odd == {"late": 28, "clock set back": 1}
    assert not caplog.records


def test_a_label_that_is_new_every_time_costs_no_memory_and_pages_nobody(tmp_path: Path) -> None:
    written(tmp_path / "log.db", even(), labels=True)
    found = replayed(tmp_path, "--baseline", "reference:200", "--split-by", "collection,tenant")
    assert found["alarms"] == []
    assert len(found["snapshots"]) <= 101
    assert sum(one["n_retrievals"] for one in found["snapshots"]) == N
    assert found["snapshots"][0]["overflowed"]["tenant"] == N - 100
    assert "too many values" in succeed("start", "log.db", cwd=tmp_path)


def test_a_baseline_that_names_unknown_sources_is_told(tmp_path: Path) -> None:
    written(tmp_path / "log.db", even())
    baseline = ("--baseline", "shares:human=0.5,llm:typo=0.5")
    found = replayed(tmp_path, *baseline)
    assert found["alarms"] == []
    assert found["snapshots"][0]["unseen"] == ["llm:typo"]
    text = succeed("monitor", "replay", "log.db", *baseline, cwd=tmp_path)
    assert "the baseline names llm:typo, of which no document came; human, other did" in text


class Growing:
    """A store into which documents come while it is counted, for ever or for a while."""

    name = "growing store"

    def __init__(self, rounds: int) -> None:
        self.n, self.left, self.counted = 1_000, rounds, 0

    def __len__(self) -> int:
        return self.n

    def tags(self) -> Iterator[tuple[str, DocTags]]:
        self.counted += 1
        i = 0
        while i < self.n:
            if i == 500 and self.left:
                self.left -= 1
                self.n += 10
            yield f"d{i}", (HUMAN, LLM)[i % 2]
            i += 1


@pytest.mark.parametrize(("rounds", "counted"), [(0, 1), (1, 2), (99, 3)])
def test_a_store_that_changes_while_it_is_counted_is_counted_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    rounds: int,
    counted: int,
) -> None:
    store = Growing(rounds)
    monkeypatch.setattr(document_stores, "open_document_store", lambda _: store)
    written(tmp_path / "log.db", even())
    with caplog.at_level(logging.WARNING, logger="rag_sourcebias"):
        found = replayed(tmp_path, "--baseline", "store:growing:x")
    assert found["alarms"] == []
    assert store.counted == counted
    told = [r for r in caplog.records if "changes while it is counted" in r.getMessage()]
    assert len(told) == (rounds == 99)


def test_a_store_that_cannot_be_counted_is_told_and_blames_nobody() -> None:
    def broken() -> dict[str, float]:
        raise OSError("gone")

    rng = np.random.default_rng(3)
    monitor = SkewMonitor(baseline=ReferenceWindow(200), store=broken, labels=())
    monitor.look()
    for i, at in enumerate(even().tolist()):
        tags = tuple(HUMAN if rng.random() < (0.5, 0.2)[i > 2_400] else LLM for _ in range(10))
        ranked = RankedList(query_id="", doc_ids=("",) * 10)
        monitor.record(RetrievalEvent(ranked=ranked, tags=tags), at=at)
    (alarm,) = monitor.alarms
    assert alarm.rule == "shift"
    assert alarm.parts == ()
    assert "what was added to the store and what was deployed" in alarm.next_step
    assert monitor.dropped.by_reason == {"the store could not be counted": 2}


def test_shares_are_those_of_all_retrievals_however_queries_repeat() -> None:
    """Queries that come often find more human text: more of what is shown than of the queries."""
    rng, n = np.random.default_rng(5), 6_000
    weights = 1 / np.arange(1, 2_001)
    query = rng.choice(2_000, n, p=weights / weights.sum())
    chance = np.where(np.arange(2_000) < 25, 0.6, 0.45)
    rows = (rng.random((2_000, 10)) < chance[:, None])[query]
    monitor = SkewMonitor(baseline=ReferenceWindow(500), labels=())
    for i, row in enumerate(rows):
        ranked = RankedList(query_id=f"{query[i]:016x}", doc_ids=("",) * 10)
        tags = tuple(HUMAN if one else LLM for one in row)
        monitor.record(RetrievalEvent(ranked=ranked, tags=tags), at=START + i * 10 * DAY / n)
    (snapshot,) = monitor.snapshot()
    shares = {g.measure: g for g in snapshot.groups if g.group == "human"}
    discount = 1 / np.log2(np.arange(2, 12))
    shown = rows @ discount / discount.sum()
    once = shown[np.unique(query, return_index=True)[1]].mean()
    assert shown.mean() - once > 0.02  # the case tells them apart
    assert shares["exposure"].share == pytest.approx(shown.mean(), abs=1e-9)
    assert shares["first"].share == pytest.approx(rows[:, 0].mean(), abs=1e-9)
    assert shares["exposure"].lower < shown.mean() < shares["exposure"].upper
    assert monitor.alarms == ()
