"""One observer and what all its instrumentations share: queue, open runs, count of lost events."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace

from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.instrument.queue import EventQueue
from rag_sourcebias.instrument.runs import RunTable
from rag_sourcebias.instrument.tag_lookup import TagLookup
from rag_sourcebias.protocols import Observer
from rag_sourcebias.types.documents import DocTags

__all__ = ["Delivery", "delivery_for"]

_UNTAGGED = DocTags()


class Delivery:
    """Bring events to one observer.

    Parameters
    ----------
    observer : Observer of RetrievalEvent
        One whose attribute ``inline`` is True promises to take an event within microseconds and
        to wait for nothing. It is called on the application's thread: that costs less than
        handing the event to another thread, above all where retrievals are rare and the other
        thread has to be woken for each. Events whose tags come from a store go through the queue
        all the same, because the store is asked on its thread.
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
        self.runs = RunTable(observer, self.dropped)
        self._inline = getattr(observer, "inline", False) is True
        self._last_step = _LastStep(observer, self.dropped)
        self._queue: EventQueue[_Waiting] | None = None
        if queue:
            self._queue = EventQueue(self._last_step, self.dropped, capacity=capacity)
            # ends the thread of a delivery nobody holds any more
            weakref.finalize(self, self._queue.close, 0.0).atexit = False

    def sink(self, lookup: TagLookup | None = None) -> Callable[[RetrievalEvent], object]:
        """Return what takes one event; what it raises is the observer's.

        Parameters
        ----------
        lookup : TagLookup, optional
            Where tags are looked up.
        """
        if self._queue is not None and (lookup is not None or not self._inline):
            queue = self._queue
            return lambda event: queue.put((event, lookup))
        if lookup is None:
            return self.observer.observe
        last_step = self._last_step
        return lambda event: last_step.observe((event, lookup))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything put so far was observed; False when time ran out."""
        return self._queue is None or self._queue.flush(timeout)


_Waiting = tuple[RetrievalEvent, TagLookup | None]


class _LastStep:
    """Look tags up where that is asked for, then tell the observer."""

    def __init__(self, observer: Observer[RetrievalEvent], dropped: DroppedEvents) -> None:
        self._observer = observer
        self._looking_up = guarded(dropped, "tag store failed")

    def observe(self, event: _Waiting) -> None:
        """Take one event; when its tags cannot be looked up it is dropped and counted."""
        told, lookup = event
        if lookup is not None:
            tagged: RetrievalEvent | None = None
            with self._looking_up:
                tagged = _with_stored(told, lookup)
            if tagged is None:
                return
            told = tagged
        self._observer.observe(told)


def _with_stored(event: RetrievalEvent, lookup: TagLookup) -> RetrievalEvent:
    """Replace the tags that a document came with by those that the store has of it."""
    stored = lookup.get(event.ranked.doc_ids)
    return replace(
        event,
        tags=tuple(
            within if kept == _UNTAGGED else kept
            for kept, within in zip(stored, event.tags, strict=True)
        ),
        bad_tags=event.bad_tags + lookup.damaged(event.ranked.doc_ids),
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
