"""The bounded buffer between the threads that retrieve and the one that observes."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

__all__ = ["EventBuffer", "EventT"]

EventT = TypeVar("EventT")

# Seconds the reader lets events gather before it looks again. Waking a thread costs both threads
# more than observing does; only an event after a quiet spell pays for it.
_GATHER = 0.05


class EventBuffer(Generic[EventT]):
    """First in, first out, for many writers and one reader.

    Parameters
    ----------
    capacity : int
        Events waiting or taken and not yet done.
    """

    def __init__(self, capacity: int) -> None:
        self.closed = False
        self._capacity = capacity
        # Reentrant: a signal handler may retrieve while this thread holds it.
        lock = self._lock = threading.RLock()
        self._arrived, self._progress = threading.Condition(lock), threading.Condition(lock)
        self._waiting: deque[EventT] = deque()
        self._asleep = False
        self._n_put = self._n_done = self._n_flushing = 0

    def put(self, event: EventT) -> str | None:
        """Append an event in constant time, or return the reason why not."""
        with self._lock:
            if self.closed:
                return "queue is closed"
            pending = self._n_put - self._n_done
            if pending >= self._capacity:
                return "queue is full"
            self._waiting.append(event)
            self._n_put += 1
            if self._asleep or pending >= self._capacity // 2:
                self._arrived.notify()
        return None

    def take(self) -> tuple[EventT] | None:
        """Wait for the next event; None once the buffer is closed and empty."""
        with self._lock:
            if self._waiting:
                return (self._waiting.popleft(),)
            if not self.closed:
                self._arrived.wait(_GATHER)
            self._asleep = True
            while not self._waiting and not self.closed:
                self._arrived.wait()
            self._asleep = False
            return (self._waiting.popleft(),) if self._waiting else None

    def done(self) -> None:
        """Note that the event taken last was dealt with."""
        with self._lock:
            self._n_done += 1
            if self._n_flushing:
                self._progress.notify_all()

    def wait(self, timeout: float | None) -> bool:
        """Wait until all events put so far are done; False when time ran out."""
        with self._lock:
            target = self._n_put
            self._arrived.notify_all()
            self._n_flushing += 1
            try:
                return self._progress.wait_for(lambda: self._n_done >= target, timeout)
            finally:
                self._n_flushing -= 1

    def close(self) -> None:
        """Refuse further events and wake the reader."""
        with self._arrived:
            self.closed = True
            self._arrived.notify_all()

    def clear(self) -> int:
        """Discard what waits and return how many events that were."""
        with self._progress:
            lost = len(self._waiting)
            self._waiting.clear()
            self._n_done += lost
            return lost
