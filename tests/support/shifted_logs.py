"""A log of retrievals in which more and more LLM text is shown from some day on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog

HUMAN, LLM = DocTags(source="human"), DocTags(source="llm:x")
START, EVERY = 1_800_000_000.0, 1_800.0


def write_log(path: Path, n: int = 1_200, *, shift_at: int = 800) -> Path:
    """Ten documents every half hour: half of each source, then eight of ten by the LLM."""
    rng = np.random.default_rng(0)
    ranked = RankedList(query_id="", doc_ids=tuple(f"d{i}" for i in range(10)))
    with EventLog(path) as log:
        for i in range(n):
            share = 0.5 if i < shift_at else 0.8
            tags = tuple(LLM if rng.random() < share else HUMAN for _ in range(10))
            event = RetrievalEvent(ranked=ranked, tags=tags, labels={"collection": "docs"})
            log.record(event, at=START + EVERY * i)
    return path
