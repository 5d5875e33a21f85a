"""The thread that writes a log, and what becomes of it when the process forks or ends."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.instrument.process import closes_at_exit
from rag_sourcebias.io.private import create_folder
from rag_sourcebias.monitor.log.buffer import LogBuffer
from rag_sourcebias.monitor.log.forks import stands_aside_at_fork
from rag_sourcebias.monitor.log.settings import LogSettings
from rag_sourcebias.monitor.log.worker import LogWorker
from rag_sourcebias.monitor.log.writer import LogWriter

__all__ = ["LogThread"]

_logger = logging.getLogger("rag_sourcebias.monitor")
_FORK_SECONDS = 1.0  # a fork waits so long for a batch that is being written


class LogThread:
    """Own the buffer of a log and the daemon thread that empties it, started by the first event.

    Attributes
    ----------
    buffer : LogBuffer
        Another one after a fork.

    Raises
    ------
    DataError
        If the folder cannot be created, or the file cannot be opened and never will be.
    UnsupportedVersionError
        If a newer release wrote the file.
    """

    def __init__(
        self,
        path: Path,
        settings: LogSettings,
        dropped: DroppedEvents,
        *,
        clock: Callable[[], float],
        new_buffer: Callable[[], LogBuffer],
    ) -> None:
        self._path, self._settings, self._dropped = path, settings, dropped
        self._clock, self._new_buffer = clock, new_buffer
        self._inherited: LogWriter | None = None
        self._renew()
        self._create()
        stands_aside_at_fork(self)
        closes_at_exit(self)

    def _renew(self) -> None:
        self._starting = threading.RLock()
        self._thread: threading.Thread | None = None
        writer = LogWriter(self._path, self._settings, self._dropped)
        self.buffer = self._new_buffer()
        self._worker = LogWorker(self.buffer, writer, self._dropped, self._clock)

    def _create(self) -> None:
        """Refuse what will never work; what may pass is left to the thread."""
        try:
            create_folder(self._path.parent, self._settings.file_mode)
            self._worker.writer.open()
        except OSError as error:
            raise DataError(
                f"folder of event log {self._path} cannot be created: {error}"
            ) from error
        except sqlite3.OperationalError as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
                raise DataError(
                    f"event log {self._path} cannot be written ({error}); "
                    "give a path in a folder that can"
                ) from error
            _logger.warning("event log %s cannot be opened yet: %s", self._path, error)
        except sqlite3.DatabaseError as error:
            raise DataError(
                f"event log {self._path} is damaged ({error}); move it away and log to a new file"
            ) from error

    def put(self, event: RetrievalEvent, at: float | None) -> str | None:
        """Queue one event, or return the reason why not."""
        if self._thread is None:
            self._start()
        return self._why_closed() if self.buffer.closed else self.buffer.put(event, at)

    def _why_closed(self) -> str:
        forked = self._inherited is not None
        return "process forked while the log was being written" if forked else "log is closed"

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self.buffer.closed:
                # Of a method of ours: a log nobody holds any more is still told of forks and of
                # the end, as long as its thread runs.
                thread = threading.Thread(target=self._run, name="rag-sourcebias-log", daemon=True)
                thread.start()
                self._thread = thread
                self.buffer.ready = True

    def _run(self) -> None:
        self._worker.run()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything put so far is in the file."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return not len(self.buffer)
        if threading.current_thread() is thread:
            return False
        mark = self.buffer.mark()
        return mark.passed.wait(timeout) and mark.written

    def close(self, timeout: float | None = 5.0) -> bool:
        """Refuse further events and write what waits."""
        with self._starting:
            self.buffer.closed, self.buffer.ready = True, False
            self.buffer.hurry()
        before, thread = self._dropped.total, self._thread
        if thread is not None:
            thread.join(timeout)
            return not thread.is_alive() and self._dropped.total == before
        with self._worker.writing:
            self._worker.writer.close()
        return True

    def _before_fork(self) -> None:
        self._stood_aside = self._worker.writing.acquire(timeout=_FORK_SECONDS)
        if self._stood_aside:
            self._worker.writer.close()

    def _after_fork_in_parent(self) -> None:
        if self._stood_aside:
            self._worker.writing.release()

    def _after_fork_in_child(self) -> None:
        closed, writer = self.buffer.closed, self._worker.writer
        self._renew()
        self.buffer.closed = closed
        if not self._stood_aside:  # its connection may be neither used nor closed here
            self._inherited = writer
            self.buffer.closed = True
