"""Hand events to an observer on another thread, so that a retrieval never waits for it."""

from __future__ import annotations

import threading
from typing import Generic

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.buffer import EventBuffer, EventT
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.instrument.process import closes_at_exit, renews_after_fork
from rag_sourcebias.instrument.suppression import suppress
from rag_sourcebias.protocols import Observer

__all__ = ["EventQueue"]


class EventQueue(Generic[EventT]):
    """A bounded queue drained into an observer by one daemon thread; itself an observer.

    Events are observed in the order they were put, one at a time, under
    :class:`~rag_sourcebias.instrument.suppress` (an observer that retrieves does not observe
    itself). The thread starts with the first event, and sees a
    later one within about 50 ms (:meth:`flush` at once). After a fork the parent delivers what was
    queued and the child starts empty, with a thread of its own. When the interpreter ends the
    queue gets one second to drain; a ``multiprocessing`` worker ends without that: flush there.

    Parameters
    ----------
    observer : Observer
        What it raises is counted under "observer raised".
    dropped : DroppedEvents
    capacity : int
        Events waiting or being observed, at least 1; further ones are dropped and counted.

    Raises
    ------
    DataError
        If ``capacity`` is below 1.
    """

    def __init__(
        self, observer: Observer[EventT], dropped: DroppedEvents, *, capacity: int = 10_000
    ) -> None:
        if capacity < 1:
            raise DataError(f"capacity must be at least 1, got {capacity}")
        self._observer, self._dropped, self._capacity = observer, dropped, capacity
        self._putting = guarded(dropped, "queue thread could not start")
        self._observing = guarded(dropped, "observer raised")
        self._buffer: EventBuffer[EventT] = EventBuffer(capacity)
        self._thread: threading.Thread | None = None
        self._starting = threading.RLock()
        renews_after_fork(self)
        closes_at_exit(self)

    def _after_fork(self) -> None:
        closed = self._buffer.closed
        self._buffer = EventBuffer(self._capacity)
        self._buffer.closed = closed
        self._thread = None
        self._starting = threading.RLock()

    def observe(self, event: EventT) -> None:
        """Queue one event, see :meth:`put`."""
        self.put(event)

    def put(self, event: EventT) -> bool:
        """Queue one event in constant time; False when it was dropped (full, or closed)."""
        with self._putting:
            if self._thread is None and not self._buffer.closed:
                self._start()
            reason = self._buffer.put(event)
            if reason is None:
                return True
            self._dropped.add(reason)
        return False

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every event put before this call was observed.

        Returns False when ``timeout`` seconds passed before (None: no limit), or when the
        observer itself calls. Blocks: use ``asyncio.to_thread`` on an event loop.
        """
        if threading.current_thread() is self._thread:
            return False
        return self._buffer.wait(timeout)

    def close(self, timeout: float | None = 5.0) -> bool:
        """Refuse further events, observe the queued ones, end the thread.

        Returns False when ``timeout`` seconds passed before; what still waited is then dropped
        and counted.
        """
        self._buffer.close()
        in_time = self.flush(timeout)
        lost = self._buffer.clear()
        if lost:
            self._dropped.add("queue closed before it was empty", n=lost)
        return in_time

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(
                    target=self._drain, name="rag-sourcebias-queue", daemon=True
                )
                thread.start()
                self._thread = thread

    def _drain(self) -> None:
        buffer = self._buffer
        with suppress():
            while (taken := buffer.take()) is not None:
                # This thread is ours: a SystemExit of the observer ends nothing but the event.
                try:
                    with self._observing:
                        self._observer.observe(taken[0])
                except SystemExit as error:
                    self._dropped.add("observer raised", error=error)
                buffer.done()
