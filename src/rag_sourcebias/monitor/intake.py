"""The buffer in front of a monitor: cheap to put into, emptied by a thread of its own."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Literal

from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.monitor.losses import Losses
from rag_sourcebias.types.monitor import Alarm

__all__ = ["Closing", "Intake", "Waiting"]

BATCH = 256
BEHIND = 16 * BATCH
CAPACITY = 100_000
GATHER_SECONDS = 1.0
Waiting = tuple[RetrievalEvent, float | None]
"""An event, and its Unix time where that is known."""
Closing = Literal["nothing", "due", "all"]
"""Which of the observations that are being aggregated end with a batch."""


class Intake:
    """Let events gather, and have one thread at a time process them.

    That is a daemon thread, started by the first event and ended with the monitor. It is woken by
    the first event of a batch and by the one that completes it; waking it for each would cost the
    application more than the event itself. Where it cannot keep up (a tight loop, no thread to be
    had) the thread that brings an event processes ``BEHIND`` of them.

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
        """Forget what waits, and take new locks and another thread."""
        self._waiting: list[Waiting] = []
        self._lock = threading.RLock()
        self._working = threading.Lock()
        self._started = False
        self._wake: SimpleQueue[bool] = SimpleQueue()
        weakref.finalize(self, self._wake.put, False).atexit = False

    def put(self, event: RetrievalEvent, at: float | None) -> None:
        """Append an event; raises nothing."""
        try:
            _ = event.monotonic + 0.0  # a broken event is refused before it waits
            with self._lock:
                waiting = self._waiting
                n = len(waiting)
                if n < CAPACITY:
                    waiting.append((event, at))
            if not n or n + 1 == BATCH:
                self._wake.put(True)
                if not self._started:
                    self._start()
            elif n + 1 >= BEHIND:
                self._catch_up(full=n >= CAPACITY)
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self._losses.note("monitor could not take the event", error=error)
            self._losses.tell()

    def _start(self) -> None:
        with self._lock:
            if not self._started:
                self._started = True
                threading.Thread(
                    target=_keep_emptying,
                    args=(weakref.ref(self), self._wake),
                    name="rag-sourcebias-monitor",
                    daemon=True,
                ).start()

    def _catch_up(self, *, full: bool) -> None:
        """Process what waits unless another thread is at it."""
        if full:
            self._losses.note("monitor is full")
            self._losses.tell()
        if self._working.acquire(blocking=False):
            self._run("nothing")

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
            batch, self._waiting = self._waiting, []
        return self._process(batch, closing)

    def flush(self, closing: Closing = "nothing") -> None:
        """Process what waits now."""
        self._working.acquire()
        self._run(closing)

    def flush_guarded(self) -> None:
        """Process what waits now, on a thread that must live on."""
        try:
            self.flush()
        except Exception as error:  # noqa: BLE001 - a clock of the application may fail
            self._losses.note("monitor failed", error=error)
            self._losses.tell()

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


def _keep_emptying(owner: weakref.ref[Intake], wake: SimpleQueue[bool]) -> None:
    """Process batches until there is no intake any more; holds it only while it does so."""
    while wake.get():  # the first event of a batch
        with suppress(Empty):  # not complete, but old enough
            if not wake.get(timeout=GATHER_SECONDS):
                return
        intake = owner()
        if intake is None:
            return
        intake.flush_guarded()
        del intake
