"""Do something every so many seconds on a thread of its own, one at a time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.guard import guarded
from rag_sourcebias.instrument.process import closes_at_exit, renews_after_fork

__all__ = ["Schedule", "next_due"]


def next_due(due: float, now: float, every: float) -> float:
    """Return the first time after ``now`` of those that are ``every`` seconds apart.

    Waiting for these times rather than for a pause keeps the pace; what a slow round missed is
    left out, not made up for.

    Examples
    --------
    >>> next_due(100.0, 103.0, 10.0), next_due(100.0, 127.0, 10.0)
    (110.0, 130.0)
    """
    return due + every * max(1, math.floor((now - due) / every) + 1)


class Schedule:
    """Call something at once and then every ``every`` seconds, on a daemon thread.

    Exceptions are counted and do not end it. A forked child has no such thread: the parent goes
    on.

    Parameters
    ----------
    work : callable
    every : float
        Seconds, above 0.
    dropped : DroppedEvents
    name : str
        Of the thread.
    """

    def __init__(
        self, work: Callable[[], object], *, every: float, dropped: DroppedEvents, name: str
    ) -> None:
        if not (math.isfinite(every) and every > 0):
            raise DataError(f"every must be a number of seconds above 0, got {every!r}")
        self._work, self._every, self._dropped = work, every, dropped
        self._stop = threading.Event()
        self._thread: threading.Thread | None = threading.Thread(
            target=self._loop, name=name, daemon=True
        )
        renews_after_fork(self)
        closes_at_exit(self)
        self._thread.start()

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stop.is_set()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def close(self, timeout: float | None = 5.0) -> bool:
        """End it; False when what it was doing took longer than ``timeout`` seconds."""
        self._stop.set()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return thread is None
        thread.join(timeout)
        return not thread.is_alive()

    def _loop(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            with guarded(self._dropped, "canary round failed"):
                self._work()
            now = time.monotonic()
            due = next_due(due, now, self._every)
            self._stop.wait(due - now)

    def _after_fork(self) -> None:
        self._thread, self._stop = None, threading.Event()
