"""A dashboard over a log of made-up retrievals, served on a free port from a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.monitor.dashboard.server import DashboardServer
from rag_sourcebias.monitor.dashboard.source import DashboardSource
from rag_sourcebias.monitor.follow import LogFollower
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import CorpusShare
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog

__all__ = ["MARKUP", "N_EVENTS", "served", "write_log"]

MARKUP = "<img src=x onerror=document.title='owned'>"
"""Something that a page must show and not obey."""
N_EVENTS = 3_000
_HUMAN, _LLM = DocTags(source="human", style="0"), DocTags(source="llm", style="3")


def write_log(path: Path, *, hours: float = 6.0) -> None:
    """Log 3,000 retrievals of the last hours: docs prefers llm, the other tenant nothing."""
    rng = np.random.default_rng(8)
    start = time.time() - hours * 3_600
    if hours > 24:  # half-days of the monitor hold the same retrievals at whatever hour this runs
        start -= (start - 21_600) % 43_200
    with EventLog(path, documents="plain") as log:
        for i in range(N_EVENTS):
            tenant, share = ("docs", 0.35) if i % 3 else (MARKUP, 0.5)
            human = rng.random(5) < share
            tags = [_HUMAN if one else _LLM for one in human]
            if i % 10 == 0:
                tags[4] = DocTags(source=MARKUP)
            ids = tuple(f"d{rank}-{MARKUP}" for rank in range(1, 6))
            event = RetrievalEvent(
                ranked=RankedList(query_id=f"{i:016x}", doc_ids=ids),
                tags=tuple(tags),
                labels={"tenant": tenant},
            )
            log.record(event, at=start + i * hours * 3_600 / N_EVENTS)
        assert log.flush(60)


@contextmanager
def served(log: Path, *, token: str | None = None) -> Iterator[DashboardServer]:
    """Serve the dashboard of a log whose retrievals a monitor has read."""
    baseline = CorpusShare({"human": 0.5, "llm": 0.5})
    with LogFollower(log, SkewMonitor(baseline=baseline, labels=("tenant",))) as follower:
        follower.step()
        source = DashboardSource(log, follower=follower)
        server = DashboardServer(source, token=token)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield server
        finally:
            server.stop()
            thread.join()
