"""The thread of an event log: take what waits, write it, try again when that fails."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable

from rag_sourcebias.errors import SourceBiasError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.suppression import suppress
from rag_sourcebias.monitor.log.buffer import LogBuffer
from rag_sourcebias.monitor.log.encoding import Waiting
from rag_sourcebias.monitor.log.writer import LogWriter

__all__ = ["LogWorker"]

_logger = logging.getLogger("rag_sourcebias.monitor")
_IDLE_SECONDS = 30.0  # how often a quiet log looks for what is too old
_RETRY_SECONDS = 0.5
_NOT_WRITTEN = "cannot be written now, its events wait"
_NOT_TIDY = "could not be freed of old retrievals"
_MAY_PASS = (sqlite3.Error, OSError)


class LogWorker:
    """Bring what a buffer holds into a file.

    Attributes
    ----------
    writing : threading.RLock
        Held while the connection is in use; who forks takes it first.
    """

    def __init__(
        self,
        buffer: LogBuffer,
        writer: LogWriter,
        dropped: DroppedEvents,
        clock: Callable[[], float],
    ) -> None:
        self.buffer, self.writer = buffer, writer
        self.writing = threading.RLock()
        self._dropped, self._clock = dropped, clock
        self._said: set[str] = set()

    def run(self) -> None:
        """Write until the buffer is closed and empty."""
        buffer = self.buffer
        with suppress():
            while not buffer.closed or len(buffer):
                events, marks = buffer.take(_IDLE_SECONDS)
                written = self._write(events)
                buffer.done()
                for mark in marks:
                    mark.written = written
                    mark.passed.set()
                if not buffer.closed:
                    self._tidy()
        with self.writing:
            self.writer.close()

    def _write(self, events: list[Waiting]) -> bool:
        """Write events, as often as it takes; False when they were given up."""
        while True:
            last = self.buffer.closed  # one attempt after that
            try:
                with self.writing:
                    self.writer.write(events, now=self._now(), monotonic=time.monotonic())
            except _MAY_PASS as error:
                self._say(_NOT_WRITTEN, error)
                if not last:
                    self.buffer.pause(_RETRY_SECONDS)
                    continue
                return self._give_up(events, "log was closed before it could be written", error)
            except SourceBiasError as error:
                return self._give_up(events, "log file is not ours any more", error)
            except Exception as error:  # noqa: BLE001 - the thread has to live on
                return self._give_up(events, "log failed", error)
            else:
                self._said.discard(_NOT_WRITTEN)
                return True

    def _give_up(self, events: list[Waiting], reason: str, error: Exception) -> bool:
        if events:
            self._dropped.add(reason, n=len(events), error=error)
        return False

    def _tidy(self) -> None:
        try:
            with self.writing:
                self.writer.tidy(now=self._now())
        except Exception as error:  # noqa: BLE001 - of pyarrow too; the thread has to live on
            self._say(_NOT_TIDY, error)
        else:
            self._said.discard(_NOT_TIDY)

    def _now(self) -> float:
        now = self._clock()
        return now if 0 <= now < 1e11 else time.time()  # also of NaN

    def _say(self, what: str, error: Exception) -> None:
        """Log a line, once until what failed has succeeded."""
        if what not in self._said:
            self._said.add(what)
            _logger.warning("event log %s %s: %s", self.writer.path, what, error)
