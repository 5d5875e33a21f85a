"""Small observers: count retrievals, keep the latest ones."""

from __future__ import annotations

import threading
from collections import deque

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.instrument.process import renews_after_fork

__all__ = ["CollectingObserver", "CountingObserver"]


class CountingObserver:
    """Count retrievals and documents; thread-safe.

    Attributes
    ----------
    n_events, n_documents, n_empty : int
        Retrievals, documents they returned, and retrievals that returned none.
    """

    inline = True  # see Delivery

    def __init__(self) -> None:
        self.n_events = 0
        self.n_documents = 0
        self.n_empty = 0
        self._lock = threading.RLock()
        renews_after_fork(self)

    def observe(self, event: RetrievalEvent) -> None:
        """Count one retrieval."""
        n = len(event.ranked)
        with self._lock:
            self.n_events += 1
            self.n_documents += n
            self.n_empty += n == 0

    def _after_fork(self) -> None:
        self._lock = threading.RLock()


class CollectingObserver:
    """Keep the latest events; thread-safe.

    Parameters
    ----------
    capacity : int
        Events kept, at least 1; older ones are forgotten.

    Raises
    ------
    DataError
        If ``capacity`` is below 1.
    """

    inline = True  # see Delivery

    def __init__(self, *, capacity: int = 10_000) -> None:
        if capacity < 1:
            raise DataError(f"capacity must be at least 1, got {capacity}")
        self._events: deque[RetrievalEvent] = deque(maxlen=capacity)

    @property
    def events(self) -> tuple[RetrievalEvent, ...]:
        """The events kept, oldest first."""
        return tuple(self._events.copy())

    def observe(self, event: RetrievalEvent) -> None:
        """Keep one event."""
        self._events.append(event)
