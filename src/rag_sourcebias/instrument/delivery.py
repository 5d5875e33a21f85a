"""One observer and what all its instrumentations share: queue, tracker, count of lost events."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import RetrievalEvent, event_of, hash_query
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.instrument.queue import EventQueue
from rag_sourcebias.instrument.scope import outermost
from rag_sourcebias.instrument.tag_lookup import TagLookup
from rag_sourcebias.instrument.tracker import OutermostTracker
from rag_sourcebias.protocols import Observer
from rag_sourcebias.tagging.keys import make_tags
from rag_sourcebias.types.documents import DocTags

__all__ = ["Delivery", "Observation", "RawTags", "delivery_for"]

RawTags = tuple[object, ...]  # the values of the tag keys in a document's metadata
_UNTAGGED = DocTags()
_MOST_SEEN = 10_000


class Observation(NamedTuple):
    """What the application's thread saw; made into an event on the queue's thread."""

    doc_ids: tuple[str, ...]
    raw_tags: tuple[RawTags | None, ...]
    scores: tuple[float, ...] | None
    query: str | None
    query_key: bytes | None
    labels: dict[str, str]
    lookup: TagLookup | None
    monotonic: float


class Delivery:
    """Bring observations to one observer.

    Parameters
    ----------
    observer : Observer of RetrievalEvent
        One whose attribute ``inline`` is True promises to take an event within microseconds and
        to wait for nothing. It is called on the application's thread: that costs less than
        handing the event to another thread, above all where retrievals are rare and the other
        thread has to be woken for each. Tags from a store are looked up on the queue's thread all
        the same.
    queue : bool
        Observe on a thread of its own; otherwise while the application waits.
    capacity : int
        Events that may wait.
    """

    def __init__(
        self, observer: Observer[RetrievalEvent], *, queue: bool = True, capacity: int = 10_000
    ) -> None:
        self.observer = observer
        self.dropped = DroppedEvents()
        self.tracker = OutermostTracker(self.dropped)
        self.scopes: dict[Hashable, outermost] = {}  # of the runs that began and have not ended
        self._builder = _Builder(observer, self.dropped)
        self._observing = guarded(self.dropped, "observer raised")
        self._inline = getattr(observer, "inline", False) is True
        self._queue = EventQueue(self._builder, self.dropped, capacity=capacity) if queue else None
        if self._queue is not None:  # ends the thread of a delivery nobody holds any more
            weakref.finalize(self, self._queue.close, 0.0).atexit = False

    def put(self, observation: Observation) -> None:
        """Take one observation; never raises."""
        if self._queue is not None and not (self._inline and observation.lookup is None):
            self._queue.put(observation)
            return
        with self._observing:
            self._builder.observe(observation)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything put so far was observed; False when time ran out."""
        return self._queue is None or self._queue.flush(timeout)


class _Builder:
    """Turn observations into events for the observer."""

    def __init__(self, observer: Observer[RetrievalEvent], dropped: DroppedEvents) -> None:
        self._observer = observer
        self._looking_up = guarded(dropped, "tag store failed")
        self._reading = guarded(dropped, "result could not be read")
        self._seen: dict[RawTags, DocTags] = {}  # few different tags come again and again

    def observe(self, event: Observation) -> None:
        """Build one event; what cannot be built is dropped and counted."""
        built: RetrievalEvent | None = None
        stored: list[DocTags] = []
        if event.lookup is not None:
            looked_up = False
            with self._looking_up:
                stored = event.lookup.get(event.doc_ids)
                looked_up = True
            if not looked_up:
                return
        with self._reading:
            built = _event(event, self._tags(event, stored))
        if built is not None:
            self._observer.observe(built)

    def _tags(self, event: Observation, stored: Sequence[DocTags]) -> tuple[DocTags, ...]:
        inside = [_UNTAGGED if raw is None else self._tags_of(raw) for raw in event.raw_tags]
        if not (stored and inside):
            return tuple(stored or inside)
        return tuple(
            within if kept == _UNTAGGED else kept
            for kept, within in zip(stored, inside, strict=True)
        )

    def _tags_of(self, raw: RawTags) -> DocTags:
        try:
            return self._seen[raw]
        except (KeyError, TypeError):  # TypeError: a value that is no tag and not hashable either
            tags = make_tags(*raw)
        if len(self._seen) >= _MOST_SEEN:  # pair ids differ from document to document
            self._seen.clear()
        self._seen[raw] = tags
        return tags


def _event(event: Observation, tags: tuple[DocTags, ...]) -> RetrievalEvent:
    query_id = ""
    if event.query is not None and event.query_key is not None:
        query_id = hash_query(event.query, key=event.query_key)
    return event_of(
        event.doc_ids,
        tags,
        query_id=query_id,
        scores=None if event.scores is None else np.array(event.scores, np.float32),
        labels=event.labels,
        monotonic=event.monotonic,
    )


# By identity: an observer need not be hashable. A delivery holds its observer, so that an id is
# not used again while its delivery lives.
_deliveries: weakref.WeakValueDictionary[tuple[int, bool], Delivery] = weakref.WeakValueDictionary()


def delivery_for(observer: Observer[RetrievalEvent], *, queue: bool = True) -> Delivery:
    """Return the delivery of an observer.

    Everything that observes for one observer shares it, so that a retrieval that several of them
    see (a handler registered twice, a store instrumented under a retriever) counts once.
    """
    key = (id(observer), queue)
    found = _deliveries.get(key)
    if found is None:
        found = _deliveries[key] = Delivery(observer, queue=queue)
    return found
