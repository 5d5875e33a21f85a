"""The rule "change" of a monitor: one alarm for a lasting change, and what it is held against."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from monitor_streams import HALF, event, stream

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import PoolShare, ReferenceWindow
from rag_sourcebias.observe.events import RetrievalEvent

WATCHED: dict[str, Any] = {
    "groups": ("human", "llm:a"),
    "change_run_length": 10_000,
    "change_window": 500,
}


def changes(monitor: SkewMonitor, group: str = "human", measure: str = "exposure") -> list[Any]:
    found = ("change", group, measure)
    return [a for a in monitor.alarms if (a.rule, a.group, a.measure) == found]


@pytest.mark.parametrize("baseline", [HALF, ReferenceWindow(500)])
def test_a_lasting_shift_is_one_change_and_going_back_another(baseline: Any) -> None:
    monitor = SkewMonitor(baseline=baseline, **WATCHED)
    monitor.observe_many(stream(5, 1_500))
    assert monitor.alarms == ()
    monitor.observe_many(stream(6, 2_538, share=0.65))
    monitor.observe_many(stream(7, 2_000, share=0.5))
    for group, level in (("human", 0.65), ("llm:a", 0.35)):
        one, two = changes(monitor, group)
        assert 1_500 < one.n < 1_700
        assert 4_038 < two.n < 4_500
        assert one.baseline == pytest.approx(0.5, abs=0.03)
        assert two.baseline == pytest.approx(level, abs=0.04)  # learnt after the first
        assert "changed (baseline 0." in one.message
        assert "changed (level since the change before 0." in two.message
    # the rule "baseline" stays as it is: once, against the baseline
    rest = [a for a in monitor.alarms if a.rule == "baseline"]
    assert len(rest) == len({(a.group, a.measure) for a in rest})
    assert {a.baseline for a in rest if baseline is HALF} <= {0.5}
    assert all(len(changes(monitor, g, "first")) <= 2 for g in ("human", "llm:a"))


def pools(seed: int, n: int, skew: float) -> list[RetrievalEvent]:
    """Ten candidates each, of which 3 to 7 are human and the more skewed to the end."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        human = np.arange(10) < rng.integers(3, 8)
        order = np.argsort(rng.random(10) + skew * human)
        found.append(event(*("human" if h else "llm:a" for h in human[order])))
    return found


def test_changes_against_the_pool_are_those_of_the_difference() -> None:
    monitor = SkewMonitor(baseline=PoolShare(3), measures=("exposure",), **WATCHED)
    monitor.observe_many(pools(1, 800, 0.0))
    assert monitor.alarms == ()
    monitor.observe_many(pools(2, 1_800, 0.3))
    monitor.observe_many(pools(3, 1_000, 0.0))
    one, two = changes(monitor)
    assert 800 < one.n < 900
    assert 2_600 < two.n < 2_700
    assert one.baseline == pytest.approx(0.5, abs=0.03)  # of the pools
    assert two.baseline == pytest.approx(0.22, abs=0.05)  # share of human after the first


@pytest.mark.parametrize("window", [1, 100_001])
def test_the_window_is_checked(window: int) -> None:
    with pytest.raises(DataError, match=f"must be 2 to 100000 observations, got {window}"):
        SkewMonitor(baseline=HALF, change_run_length=100.0, change_window=window)
