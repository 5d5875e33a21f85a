"""The bounded buffer in front of a log: cheap to put into, emptied all at once."""

from __future__ import annotations

import threading
import time
from collections import deque
from queue import Empty, SimpleQueue

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.events import RetrievalEvent, memory_of
from rag_sourcebias.monitor.log.encoding import Waiting

__all__ = ["LogBuffer", "Mark"]

_LEAST_BYTES = 1_000_000
_EVERY = 16  # events are measured, at less than the cost of calling a function for each
_MANY = 64  # documents of an event that is measured in any case


class Mark:
    """Stands behind the events that someone waits for."""

    def __init__(self) -> None:
        self.passed = threading.Event()
        self.written = False


class LogBuffer:
    """First in, first out, for many threads that put and one that takes.

    Putting takes no lock: the deque and the queue of wake-up calls may be used at any moment, also
    by a signal handler that interrupted a put.

    Parameters
    ----------
    capacity, most_bytes : int
        Events waiting, or taken and not yet written, and the memory they hold, as estimated from
        every sixteenth of them and from all with many documents.
    batch : int
        So many events are taken without waiting for more.
    gather_seconds : float
        Otherwise, how long the reader lets events gather.

    Raises
    ------
    DataError
        If one is out of range; the message has the names that an event log gives them.
    """

    def __init__(
        self, *, capacity: int, most_bytes: int, batch: int, gather_seconds: float
    ) -> None:
        if not 1 <= batch <= capacity:
            raise DataError(f"batch must be 1 to capacity ({capacity}), got {batch}")
        if most_bytes < _LEAST_BYTES:
            raise DataError(f"buffer_bytes must be at least {_LEAST_BYTES}, got {most_bytes}")
        if not 0 < gather_seconds <= 3_600:
            raise DataError(f"flush_seconds must be in (0, 3600], got {gather_seconds}")
        self._waiting: deque[Waiting | Mark] = deque()
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._capacity, self._most_bytes, self._batch = capacity, most_bytes, batch
        self._gather_seconds = gather_seconds
        self._asleep = False
        self._hurry = False
        self._n_bytes = self._bytes_taken = 0  # of what waits, and of what the reader holds
        self.n_taken = 0  # events that the reader holds
        self.closed = False
        self.ready = False  # to be put into without asking anybody

    def put(self, event: RetrievalEvent, at: float | None) -> str | None:
        """Append an event in constant time, or return the reason why not."""
        waiting = self._waiting
        n = len(waiting)
        if n + self.n_taken >= self._capacity:
            return "log is not written fast enough"
        measured = not n % _EVERY  # also after a refusal, as n is what it was
        if measured or len(event.tags) > _MANY:
            n_bytes = self._n_bytes + memory_of(event) * (_EVERY if measured else 1)
            if n_bytes + self._bytes_taken > self._most_bytes:
                return "log is not written fast enough, its buffer holds too many bytes"
            self._n_bytes = n_bytes
        waiting.append((event, at))
        if self._asleep or (n >= self._batch and not self._hurry):
            self._call()
        return None

    def _call(self) -> None:
        self._hurry = self._hurry or not self._asleep
        self._asleep = False
        self._wake.put(None)

    def mark(self) -> Mark:
        """Return a mark behind everything put so far, and have it written at once."""
        mark = Mark()
        self._waiting.append(mark)
        self.hurry()
        return mark

    def hurry(self) -> None:
        """Have the reader look now."""
        self._hurry, self._asleep = True, False
        self._wake.put(None)

    def take(self, idle_seconds: float | None = None) -> tuple[list[Waiting], list[Mark]]:
        """Wait for events, let some gather, and return all that wait.

        Returns nothing when the buffer is closed or ``idle_seconds`` passed.
        """
        self._asleep = True
        if not (self._waiting or self._hurry or self.closed):
            self._sleep(idle_seconds)
        self._asleep = False
        last = time.monotonic() + self._gather_seconds
        while self._waiting and not self._hurry and len(self._waiting) < self._batch:
            left = last - time.monotonic()
            if left <= 0 or self.closed:
                break
            self._sleep(left)
        self._hurry = False
        events: list[Waiting] = []
        marks: list[Mark] = []
        next_one = self._waiting.popleft
        self._bytes_taken, self._n_bytes = self._n_bytes, 0
        for _ in range(len(self._waiting)):
            item = next_one()
            if item.__class__ is tuple:
                events.append(item)
            else:
                marks.append(item)  # type: ignore[arg-type]
        self.n_taken = len(events)
        return events, marks

    def done(self) -> None:
        """Note that what was taken is written, or given up."""
        self.n_taken = self._bytes_taken = 0

    def pause(self, seconds: float) -> None:
        """Wait, unless the buffer is closed meanwhile."""
        last = time.monotonic() + seconds
        while not self.closed and (left := last - time.monotonic()) > 0:
            self._sleep(left)

    def _sleep(self, seconds: float | None) -> None:
        try:
            self._wake.get(timeout=seconds)
        except Empty:
            return

    def __len__(self) -> int:
        return len(self._waiting)
