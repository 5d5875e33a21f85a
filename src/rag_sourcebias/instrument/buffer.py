"""The bounded buffer between the threads that retrieve and the one that observes."""

from __future__ import annotations

import threading
from collections import deque
import contextlib
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
        self._taken: deque[EventT] = deque()  # by the reader, all that waited at once
        self._asleep = False
        self._n_put = self._n_done = self._n_lost = self._n_flushing = 0

    def put(self, event: EventT) -> str | None:
        """Append an event in constant time, or return the reason why not."""
        with self._lock:
            if self.closed:
                return "queue is closed"
            pending = self._n_put - self._n_done - self._n_lost
            if pending >= self._capacity:
                return "queue is full"
            self._waiting.append(event)
            self._n_put += 1
            if self._asleep or pending >= self._capacity // 2:
                self._arrived.notify()
        return None

    def take(self) -> tuple[EventT] | None:
        """Wait for the next event; None once the buffer is closed and empty."""
        try:
            return (self._taken.popleft(),)  # without the lock: deques are safe, one thread reads
        except IndexError:
            pass
        with self._lock:
            if not self._waiting and not self.closed:
                self._arrived.wait(_GATHER)
            self._asleep = True
            while not self._waiting and not self.closed:
                self._arrived.wait()
            self._asleep = False
            self._taken, self._waiting = self._waiting, deque()
            return (self._taken.popleft(),) if self._taken else None

    def done(self) -> None:
        """Note that the event taken last was dealt with."""
        self._n_done += 1  # without the lock: written by the reader only
        if self._n_flushing:
            with self._lock:
                self._progress.notify_all()

    def wait(self, timeout: float | None) -> bool:
        """Wait until all events put so far are done; False when time ran out."""
        with self._lock:
            target = self._n_put
            self._arrived.notify_all()
            self._n_flushing += 1
            try:
                return self._progress.wait_for(
                    lambda: self._n_done + self._n_lost >= target, timeout
                )
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
            before = self._n_lost
            for events in (self._waiting, self._taken):
                with contextlib.suppress(IndexError):  # the reader may take the last one at this moment
                    while True:
                        events.popleft()
                        self._n_lost += 1
            self._progress.notify_all()
            return self._n_lost - before
