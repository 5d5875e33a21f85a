"""Events as instrumentations record them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.observe.events import Filling, Recorded, RetrievalEvent


def event_of(
    doc_ids: tuple[str, ...],
    tags: tuple[DocTags, ...],
    *,
    query_id: str,
    scores: array[float] | None,
    labels: Mapping[str, str],
    monotonic: float,
) -> RetrievalEvent:
    event: Any = Filling()
    event._doc_ids, event.tags, event._query_id = doc_ids, tags, query_id
    event.labels, event.monotonic, event.bad_tags = labels, monotonic, 0
    if scores is not None:
        event._scores = scores
    event.__class__ = Recorded
    return event
