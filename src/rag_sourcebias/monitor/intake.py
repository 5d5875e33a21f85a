"""The buffer in front of a monitor: cheap to put into, emptied in batches by who fills it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.monitor.losses import Losses
from rag_sourcebias.types.monitor import Alarm

__all__ = ["Closing", "Intake", "Waiting"]

BATCH = 256
CAPACITY = 100_000
WAIT_SECONDS = 1.0
Waiting = tuple[RetrievalEvent, float | None]
"""An event, and its Unix time where that is known."""
Closing = Literal["nothing", "due", "all"]
"""Which of the observations that are being aggregated end with a batch."""


class Intake:
    """Let events gather, and have one thread at a time process them.

    Callbacks and log handlers may use the monitor: alarms and losses are told without any lock.

    Parameters
    ----------
    process : callable of (events, closing) to alarms
        Called by one thread at a time.
    tell : callable of alarms
        Called afterwards, by the same thread, while others may already process the next batch.
    losses : Losses
    """

    def __init__(
        self,
        process: Callable[[list[Waiting], Closing], list[Alarm]],
        tell: Callable[[list[Alarm]], None],
        losses: Losses,
    ) -> None:
        self._process, self._tell, self._losses = process, tell, losses
        self.renew()

    def renew(self) -> None:
        """Forget what waits, and take new locks."""
        self._waiting: list[Waiting] = []
        self._due = float("inf")
        self._lock = threading.RLock()
        self._working = threading.Lock()

    def put(self, event: RetrievalEvent, at: float | None) -> None:
        """Append an event; processes when a batch is complete, and raises nothing."""
        try:
            now = event.monotonic + 0.0  # a broken event is refused before it waits
            with self._lock:
                waiting = self._waiting
                n = len(waiting)
                full = n >= CAPACITY
                if not full:
                    waiting.append((event, at))
                    if not n:
                        self._due = now + WAIT_SECONDS
                due = n + 1 >= BATCH or now >= self._due
            if full:
                self._losses.note("monitor is full")
                self._losses.tell()
            # While another thread is at it events wait; so does one that processing brings about.
            if due and self._working.acquire(blocking=False):
                self._run("nothing")
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self._losses.note("monitor could not take the event", error=error)
            self._losses.tell()

    def _run(self, closing: Closing) -> None:
        """Process what waits; the caller has acquired ``_working``, which is released here."""
        try:
            alarms = self._empty(closing)
        finally:
            self._working.release()
        self._tell(alarms)
        self._losses.tell()

    def _empty(self, closing: Closing) -> list[Alarm]:
        with self._lock:
            batch, self._waiting, self._due = self._waiting, [], float("inf")
        return self._process(batch, closing)

    def flush(self, closing: Closing = "nothing") -> None:
        """Process what waits now."""
        self._working.acquire()
        self._run(closing)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Process what waits, and nothing else inside the block; then tell of it."""
        alarms: list[Alarm] = []
        try:
            with self._working:
                alarms = self._empty("nothing")
                yield
        finally:
            self._tell(alarms)
            self._losses.tell()
