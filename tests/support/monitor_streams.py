"""Retrievals made up for tests of monitors."""

from typing import Any

import numpy as np

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.monitor.data import GroupShare, MonitorSnapshot
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import CorpusShare
from rag_sourcebias.observe.events import RetrievalEvent

TAGS = {name: DocTags(source=name) for name in ("human", "llm:a", "llm:b", "x", "y", "z")}
HALF = CorpusShare({"human": 0.5, "llm:a": 0.5})
DOCS = {"collection": "docs"}
EVERY = 1_800.0
"""Seconds between retrievals: 24 in a half-day."""


def event(*sources: str | None, query: str = "", at: float = 0.0, **labels: str) -> RetrievalEvent:
    return RetrievalEvent(
        ranked=RankedList(query_id=query, doc_ids=tuple(f"d{i}" for i in range(len(sources)))),
        tags=tuple(DocTags() if s is None else TAGS[s] for s in sources),
        labels=labels or DOCS,
        monotonic=at,
    )


def stream(seed: int, n: int, *, share: float = 0.5) -> list[RetrievalEvent]:
    """Five documents each, human with this probability."""
    draws = np.random.default_rng(seed).random((n, 5)) < share
    return [FIVE[code] for code in (draws @ (1 << np.arange(5))).tolist()]


def mixed(seed: int, n: int) -> list[RetrievalEvent]:
    """Retrievals of all lengths, untagged documents and two collections."""
    rng = np.random.default_rng(seed)
    names = ("human", "llm:a", "llm:b", None)
    return [
        event(
            *(names[c] for c in rng.integers(0, 4, size=rng.integers(0, 12))),
            at=float(i),
            collection="ab"[rng.integers(2)],
        )
        for i in range(n)
    ]


FIVE = [event(*("human" if c >> i & 1 else "llm:a" for i in range(5))) for c in range(32)]


def watched(events: list[RetrievalEvent], **settings: Any) -> SkewMonitor:
    monitor = SkewMonitor(clock=lambda: 0.0, **settings)
    fed(monitor, events)
    return monitor


def fed(monitor: SkewMonitor, events: list[RetrievalEvent], *, start: int = 0) -> None:
    """Give a monitor retrievals every half hour."""
    monitor.record_many((one, EVERY * i) for i, one in enumerate(events, start))


def group(snapshot: MonitorSnapshot, name: str, measure: str = "exposure") -> GroupShare:
    (found,) = (g for g in snapshot.groups if (g.group, g.measure) == (name, measure))
    return found
