"""Two days of retrievals, one a second: memory stays flat, and nothing is lost."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from monitor_streams import event

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.monitor.cusum import KEPT
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import CorpusShare, PoolShare

pytestmark = pytest.mark.slow
HOUR = 3_600
SECONDS = 48 * HOUR
SETTINGS: dict[str, dict[str, Any]] = {
    "each second": {
        "baseline": CorpusShare({"human": 0.3}),
    },
    "pool": {
        "baseline": PoolShare(3),
        "topics": "collection",
    },
}
APART = {"each second": 4, "pool": 15}  # seconds: the others are slower


def retrievals(seed: int) -> list[Any]:
    """A few thousand different ones: sources, collections and queries beyond every cap."""
    rng, found = np.random.default_rng(seed), []
    for i in range(3_000):
        one = event(*["human"] * 4, query=f"q{i}", collection=f"c{rng.integers(20)}", user=f"u{i}")
        names = [("human", "x", f"llm:{rng.integers(500)}")[c] for c in rng.integers(0, 3, 4)]
        tags = tuple(DocTags(source=name) for name in names)
        object.__setattr__(one, "tags", tags)
        found.append(replace(one))
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_memory_stays_flat(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_sourcebias.monitor.settings.MOST_GROUPS", 4)
    monkeypatch.setattr("rag_sourcebias.monitor.monitor._MOST_LABEL_SETS", 5)
    monitor = SkewMonitor(**SETTINGS[name])
    given, apart = retrievals(1), APART[name]
    order = np.random.default_rng(2).integers(0, len(given), SECONDS).tolist()

    def feed(start: int, stop: int) -> int:
        for second in range(start, stop, apart):
            monitor.record(given[order[second]], at=float(second))
            if second % HOUR == 0:  # two days pass in seconds here: it must not fall behind
                monitor.flush()
        monitor.flush()
        gc.collect()
        # Tables of half-days fill up to their cap: that is no growth.
        cusums = [watch.cusum for watch in monitor._watches.values() if watch.cusum is not None]
        assert cusums
        assert max(len(cusum.rows) for cusum in cusums) <= KEPT
        return tracemalloc.get_traced_memory()[0] - sum(cusum.rows.nbytes for cusum in cusums)

    tracemalloc.start()
    try:
        early = feed(0, 6 * HOUR)
        late = feed(6 * HOUR, SECONDS)
    finally:
        tracemalloc.stop()
    assert late - early < 200_000, (early, late)
    snapshots = monitor.snapshot()
    assert len(snapshots) == 5 + 1
    assert sum(s.n_retrievals for s in snapshots) == SECONDS // apart
    assert sum(s.n_documents for s in snapshots) == SECONDS // apart * (3 if name == "pool" else 4)
    assert sum(c.documents for s in snapshots for c in s.counts) == sum(
        s.n_documents for s in snapshots
    )
    assert monitor.dropped.total == 0
