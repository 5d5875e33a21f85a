"""Simulated traffic through the monitor: what it says is what its test says, and rarely wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import binomtest

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.monitor import ReferenceWindow, SkewMonitor
from rag_sourcebias.monitor.blocks import BlockTest
from rag_sourcebias.observe.events import RetrievalEvent

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parents[2] / "benchmarks" / "monitor"
HUMAN, LLM = DocTags(source="human"), DocTags(source="llm:a")
START = 1_790_000_000.0 // 86_400 * 86_400
LEARN = 1_000


@pytest.fixture(scope="module")
def streams() -> ModuleType:
    spec = importlib.util.spec_from_file_location("traffic_streams", FOLDER / "streams.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def by_monitor(one) -> SkewMonitor:
    monitor = SkewMonitor(
        baseline=ReferenceWindow(LEARN), groups=("human", "llm:a"), clock=lambda: 0.0
    )
    users = [{}] * len(one.at) if one.user is None else [{"user": str(u)} for u in one.user]
    monitor.record_many(
        (
            RetrievalEvent(
                ranked=RankedList(query_id="", doc_ids=("",) * len(row)),
                tags=tuple(HUMAN if human else LLM for human in row),
                labels={"collection": "docs"} | user,
            ),
            START + at,
        )
        for row, at, user in zip(one.human, one.at.tolist(), users, strict=True)
    )
    return monitor


@pytest.mark.parametrize("world", ["sessions of 10", "daily cycle ±.10", "heavy-tailed users"])
def test_the_monitor_says_what_its_test_says(streams: ModuleType, world: str) -> None:
    for seed in range(3):
        one = streams.traffic(np.random.default_rng(seed), world, shift=-0.4)
        test = BlockTest(2, learn=LEARN)
        units = None if one.user is None else one.user.tolist()
        told = test.add_many(one.values(), START + one.at, units=units)
        monitor = by_monitor(one)
        assert [(a.n - 1, a.evidence) for a in monitor.alarms] == [
            (row, pytest.approx(shift.evidence, rel=1e-6)) for row, shift in told
        ]
        names = {"page": "shift"}
        assert [a.rule for a in monitor.alarms] == [names.get(s.kind, s.kind) for _, s in told]
        for alarm in monitor.alarms:  # complementary sources and both measures are one alarm
            assert len(alarm.moves) >= 2
            if alarm.rule != "resolved":
                assert not alarm.lower <= alarm.baseline <= alarm.upper
                assert alarm.next_step in alarm.message
                assert alarm.n_since > 0


@pytest.mark.parametrize(
    "world",
    [
        "independent",
        "sessions of 50",
        "AR(1), φ = .99",
        "daily cycle ±.10",
        "weekends −.20",
        "Zipf repeats",
    ],
)
def test_pages_without_a_shift_are_rare(streams: ModuleType, world: str) -> None:
    """All worlds and 2,000 streams each: benchmarks/monitor/blocks.py."""
    rng, n, pages, notices = np.random.default_rng(42), 60, 0, 0
    for _ in range(n):
        one = streams.traffic(rng, world)
        kinds = [s.kind for _, s in BlockTest(2, learn=LEARN).add_many(one.values(), one.at)]
        pages += "page" in kinds
        notices += "notice" in kinds
    assert binomtest(pages, n, 0.05, alternative="greater").pvalue >= 0.001
    if world == "weekends −.20":  # the first one may be
        assert notices > n / 10
    else:
        assert binomtest(notices, n, 0.10, alternative="greater").pvalue >= 0.001


@pytest.mark.parametrize("world", ["sessions of 10", "weekends −.20"])
def test_shifts_are_found(streams: ModuleType, world: str) -> None:
    rng, n, found = np.random.default_rng(43), 40, 0
    for _ in range(n):
        one = streams.traffic(rng, world, shift=-0.2)
        told = BlockTest(2, learn=LEARN).add_many(one.values(), one.at)
        found += any(row >= streams.SHIFT_AT and s.kind != "resolved" for row, s in told)
    assert binomtest(found, n, 0.80, alternative="less").pvalue >= 0.001


@pytest.mark.parametrize(("shift", "told"), [(-0.1, True), (0.0, False)])
def test_a_known_baseline_that_is_a_point_off_hides_no_shift(shift: float, told: bool) -> None:
    """Ten days a point above it, which may be told, and two days elsewhere."""
    rng, n, found, day = np.random.default_rng(45), 40, 0, 86_400.0
    for _ in range(n):
        start = START + rng.random() * 7 * day
        at = start + np.concatenate([np.linspace(0, 10, 3_000), np.linspace(10.1, 12, 600)]) * day
        values = rng.normal(0.01, 0.15, (3_600, 2))
        values[3_000:] += shift
        test = BlockTest(2, known=True)
        found += any(row >= 3_000 for row, _ in test.add_many(values, at))
    bar, way = (0.8, "less") if told else (0.2, "greater")
    assert binomtest(found, n, bar, alternative=way).pvalue >= 0.001


@pytest.mark.parametrize(
    ("world", "over"), [("independent", 0.9), ("sessions of 10", 0.35), ("Zipf repeats", 0.9)]
)
def test_after_a_shift_has_ended_pages_are_rare(
    streams: ModuleType, world: str, over: float
) -> None:
    """All in the rest of the stream counts, and "resolved" is told; while it lasts it is not."""
    rng, n, end, pages, resolved, early = np.random.default_rng(44), 60, 3_600, 0, 0, 0
    held = all_of_it = 0
    for _ in range(n):
        one = streams.traffic(rng, world, shift=-0.2, end=end)
        test = BlockTest(2, learn=LEARN)
        told = test.add_many(one.values(), one.at)
        pages += any(row >= end and s.kind == "page" for row, s in told)
        if any(row >= end and s.kind == "resolved" for row, s in told):
            levels = test.levels()
            assert levels is not None
            mean, reach = levels[1].mean[0], levels[1].upper[0] - levels[1].mean[0]
            resolved += 1
            held += abs(mean - 0.5) <= reach
            all_of_it += abs(one.values()[:, 0].mean() - 0.5) <= reach
        early += any(row < end and s.kind == "resolved" for row, s in told)
    assert binomtest(pages, n, 0.05, alternative="greater").pvalue >= 0.001
    assert binomtest(resolved, n, over, alternative="less").pvalue >= 0.001
    assert binomtest(early, n, 0.05, alternative="greater").pvalue >= 0.001
    if over != 0.9 or world == "independent":  # the level of Zipf's repeats is its stream's own
        assert binomtest(held, resolved, 0.95, alternative="less").pvalue >= 0.001
        assert binomtest(all_of_it, resolved, 0.95, alternative="less").pvalue < 0.001
