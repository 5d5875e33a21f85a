"""Simulated traffic through the monitor: pages for nothing are rare, and a change is told soon."""

from __future__ import annotations

import numpy as np
import pytest
from benchmark_modules import load
from scipy.stats import binomtest

pytestmark = pytest.mark.slow
REJECT = 0.001
(streams,) = load("monitor", "streams")


@pytest.mark.parametrize("world", ["office hours", "sessions, labelled"])
def test_pages_without_a_change_are_rare(world: str) -> None:
    """All worlds and more streams: benchmarks/monitor/streams.py."""
    make, bar = streams.WORLDS[world]
    rng, n = np.random.default_rng(42), 40
    pages = sum(bool(streams.watched(streams.columns(rng, make(rng))).alarms) for _ in range(n))
    assert binomtest(pages, n, bar, alternative="greater").pvalue >= REJECT


@pytest.mark.parametrize("world", ["independent", "stable heavy users"])
def test_ten_points_less_are_told_and_once(world: str) -> None:
    make, _ = streams.WORLDS[world]
    rng, n, days, once = np.random.default_rng(43), 20, [], 0
    start = streams.START + streams.CHANGED * streams.DAY
    for _ in range(n):
        alarms = streams.watched(streams.columns(rng, make(rng), shift=-0.1)).alarms
        told = [alarm for alarm in alarms if alarm.at > start]
        days.append((told[0].at - start) / streams.DAY if told else np.inf)
        once += len(told) == 1
        for alarm in told[:1]:
            assert alarm.rule == "shift"
            assert alarm.group == "human"
            assert {move.group for move in alarm.moves} == {"human", "llm:a"}
            assert not alarm.lower <= alarm.baseline <= alarm.upper
            assert "went down to" in alarm.message
            assert abs(alarm.since - start) < 4 * streams.DAY
    assert binomtest(int(np.isfinite(days).sum()), n, 0.95, alternative="less").pvalue >= REJECT
    assert np.median(days) <= 2.5
    assert binomtest(once, n, 0.8, alternative="less").pvalue >= REJECT


def test_lost_tags_are_told_as_that_and_blame_no_source() -> None:
    rng, n, told, blamed = np.random.default_rng(44), 20, 0, 0
    for _ in range(n):
        traffic = streams.independent(rng)
        rules = [
            a.rule for a in streams.watched(streams.columns(rng, traffic, untagged=0.28)).alarms
        ]
        told += rules[:1] == ["untagged"]
        blamed += "shift" in rules
    assert binomtest(told, n, 0.95, alternative="less").pvalue >= REJECT
    assert binomtest(blamed, n, 0.05, alternative="greater").pvalue >= REJECT


def test_a_rule_without_slots_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nights and weekends are compared with days, office hours page nearly always."""
    from rag_sourcebias.monitor import cusum

    monkeypatch.setattr(cusum, "slots", lambda half_day: np.zeros(len(half_day), np.int64))
    monkeypatch.setattr(cusum, "_LIMIT", 2.0)
    rng, n = np.random.default_rng(42), 20
    pages = 0
    for _ in range(n):
        traffic = streams.office_hours(rng)
        pages += bool(streams.watched(streams.columns(rng, traffic)).alarms)
    assert binomtest(pages, n, 0.05, alternative="greater").pvalue < REJECT
