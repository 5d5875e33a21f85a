"""The durable log of retrievals: a journal per process, and the thread that takes it in."""

from __future__ import annotations

import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

from rag_sourcebias.core.errors import (
    DataError,
    SourceBiasError,
    UnsupportedVersionError,
    require_at_least,
)
from rag_sourcebias.core.private import PRIVATE, create_folder
from rag_sourcebias.observe.events import (
    DroppedEvents,
    Locked,
    RetrievalEvent,
    closes_at_exit,
)
from rag_sourcebias.observe.labels import label_names, short_text
from rag_sourcebias.observe.log.journal import Journal, taking_turns
from rag_sourcebias.observe.log.schema import (
    EVENT_LABELS,
    Documents,
    LogSettings,
    open_for_writing,
)
from rag_sourcebias.observe.log.writing import LogWriter, line_of
from rag_sourcebias.observe.unobserved import suppress as unobserved

logger = logging.getLogger("rag_sourcebias.observe")
_IDLE_SECONDS = 30.0  # how often a quiet log looks for what is too old
_NOT_WRITTEN = "cannot be written now, its retrievals wait in journals"
_NOT_TIDY = "could not be freed of old retrievals"
_FORK_SECONDS = 1.0  # a fork waits so long for a batch that is being written


# A process must not fork in the middle of SQLite's work: the child would inherit its locks.


_logs: WeakSet[EventLog] = WeakSet()
_of_thread = threading.local()  # several threads may fork at once


def _before() -> None:
    _of_thread.stands = [log for log in _logs if log._taking.acquire(timeout=_FORK_SECONDS)]


def _in_parent() -> None:
    for log in _of_thread.stands:
        log._taking.release()
    _of_thread.stands = []


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before, after_in_parent=_in_parent)


class EventLog(Locked):
    """Keep retrievals in an SQLite file; an observer for production.

    ``observe`` appends to a journal of this process, a file beside the log, and returns: whatever
    ends the process then, ``kill -9`` included, the retrieval is there. One daemon thread takes the
    journals of all processes into the log, every second in one transaction; whoever opens the log
    next takes in what is left. While the log cannot be written, retrievals wait in the journals.
    Nothing is ever raised into the application. Several processes may log to one file, and a
    forked child goes on with a journal of its own. A process that records nothing writes nothing.

    The file may be moved, copied, emptied or replaced meanwhile: what comes after goes into a new
    file under the path, or beside it where somebody else's file or one of a newer release lies
    there, and the line that is logged names it. A damaged log is moved aside.

    No text is kept: sources, styles, labels, the identifier of the query that the event has, and
    ids of documents only where ``documents`` says so. Scores are not kept.

    Parameters
    ----------
    path : str or Path
        The file; created with its folder, or continued.
    flush_seconds : float
        Longest time a retrieval waits in the journal.
    documents : {"none", "hashed", "plain"}
        Whether document ids are kept: not, as 64-bit hashes (under ``key`` where there is one,
        otherwise ids that can be guessed can be recognised), or as they are.
    max_documents : int
        Documents of a retrieval that are kept and counted, from rank 1.
    max_tags : int
        (source, style) pairs told apart; further ones are counted as "other".
    max_label_values : int
        Values of a label told apart in counts; further ones are counted as "other", without a
        change to the other labels of the retrieval, and kept with the retrieval itself.
    max_label_sets : int
        Different sets told apart. With more the label with the most values becomes "other" in
        those that come later, and so on.
    event_labels : sequence of str
        Labels that are kept with each retrieval and never counted by: those with a value for each
        session or user. ``read_events`` and the monitor have them as any other.
    hashed_labels : sequence of str
        Labels of whose values a hash under ``key`` is kept, as ``hash_query`` makes it.
    key : bytes or None
        Secret of 16 to 64 bytes, see :func:`~rag_sourcebias.observe.read_key`.
    max_bytes : int or None
        Size above which the oldest retrievals go, at least 1 MB; journals come on top.
    max_age : float or None
        Seconds after which retrievals go. The rollups of minutes go with them, those of hours and
        days stay: they hold no ids.
    archive : str, Path or None
        Folder of Parquet files that receives what is removed (extra ``parquet``).
    file_mode : int
        Of a new log, and of the files beside it, whatever the umask says: for the owner alone
        unless told otherwise (0o640, say). What is there keeps its own.
    busy_seconds : float
        How long a batch waits for another process that reads or writes the log.
    journal_bytes : int
        Bytes that may wait in the journals of this process while the log cannot be written, at
        least 1 MB; retrievals beyond them are dropped and counted.
    clock : callable
        Seconds since 1970. Where it goes back, times stay what they were until it has caught up.

    Attributes
    ----------
    dropped : DroppedEvents
        Events lost, by reason; also kept in the file.

    Raises
    ------
    DataError
        If a setting is out of range, or the file is none or no event log. What may pass is logged
        and no error: a folder that cannot be written, a disk that is full, a damaged log.
    MissingExtraError
        If ``archive`` is given without pyarrow.
    """

    inline = True  # see Delivery: an append takes microseconds

    def __init__(
        self,
        path: str | Path,
        *,
        flush_seconds: float = 1.0,
        documents: Documents = "none",
        max_documents: int = 1_000,
        max_tags: int = 200,
        max_label_values: int = 1_000,
        max_label_sets: int = 10_000,
        event_labels: Sequence[str] = EVENT_LABELS,
        hashed_labels: Sequence[str] = (),
        key: bytes | None = None,
        max_bytes: int | None = None,
        max_age: float | None = None,
        archive: str | Path | None = None,
        file_mode: int = PRIVATE,
        busy_seconds: float = 5.0,
        journal_bytes: int = 256_000_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        # absolute: the application may change its folder
        self.path = Path(path).absolute()
        self.dropped = DroppedEvents()
        if not 0 < flush_seconds <= 3_600:
            raise DataError(f"flush_seconds must be in (0, 3600], got {flush_seconds}")
        require_at_least(1_000_000, journal_bytes=journal_bytes)
        self._settings = LogSettings(
            documents=documents,
            max_documents=max_documents,
            max_tags=max_tags,
            max_label_values=max_label_values,
            max_label_sets=max_label_sets,
            event_labels=label_names("event_labels", event_labels),
            hashed_labels=label_names("hashed_labels", hashed_labels),
            key=key,
            max_bytes=max_bytes,
            max_age=max_age,
            archive=None if archive is None else Path(archive),
            busy_seconds=busy_seconds,
            file_mode=file_mode,
        )
        self._flush_seconds = flush_seconds
        self._clock = clock
        self._closed = False
        self._journal = Journal(
            self.path, self._settings.header(), most_bytes=journal_bytes, file_mode=file_mode
        )
        super().__init__()
        self._create()
        _logs.add(self)
        closes_at_exit(self)

    def _after_fork(self) -> None:
        super()._after_fork()
        self._taking = threading.RLock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._writer = LogWriter(self.path, self._settings, self.dropped)
        self._said: set[str] = set()
        self._n_recorded = 0  # by this process

    def _create(self) -> None:
        """Refuse what will never work; what may pass is left to the thread."""
        try:
            create_folder(self.path.parent, self._settings.file_mode)
            settings = self._settings
            with taking_turns(self.path, settings.busy_seconds):
                database = open_for_writing(
                    self.path, busy_seconds=settings.busy_seconds, file_mode=settings.file_mode
                )
                database.close()
        except (OSError, sqlite3.Error, UnsupportedVersionError) as error:
            self._say("cannot be opened yet", error)

    def observe(self, event: RetrievalEvent) -> None:
        """Log one retrieval; it is in the file system when this returns. Raises nothing."""
        self.record(event)

    def record(self, event: RetrievalEvent, *, at: float | None = None) -> None:
        """Log one retrieval; it is in the file system when this returns. Raises nothing.

        Parameters
        ----------
        event : RetrievalEvent
        at : float or None
            Seconds since 1970 to log it under, for a replay; None takes the event's own time.
            One before the latest in the log becomes that one.
        """
        try:
            if self._closed:
                self.dropped.add("log is closed")
                return
            line = line_of(
                event, self._settings, now=self._now(), monotonic=time.monotonic(), at=at
            )
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self.dropped.add("event could not be encoded", error=error)
            return
        try:
            self._journal.append(line)
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self.dropped.add("journal could not be written", error=error)
            return
        self._n_recorded += 1
        with suppress(RuntimeError):  # no thread begins at the end of a process: others take it in
            self._start()

    def note(self, text: str) -> None:
        """Keep what is to be known of what is logged; waits for nothing and raises nothing.

        Such as a framework outside the tested versions, which its instrumentation tells.
        """
        try:
            self._writer.notes.append(short_text(text))
            self._start()
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self.dropped.add("log could not take the note", error=error)

    def flush(self, timeout: float | None = None) -> bool:
        """Take everything recorded so far into the log.

        Returns False when that cannot be done within ``timeout`` seconds (None: no limit); it then
        waits in the journals. Blocks: use ``asyncio.to_thread`` on an event loop.
        """
        return self._flushed(timeout)

    def _flushed(self, timeout: float | None, *, ending: bool = False) -> bool:
        if not self._taking.acquire(timeout=-1 if timeout is None else timeout):
            return False
        seconds = math.inf if timeout is None else timeout
        try:
            return self._take_in(seconds, ending=ending)
        finally:
            self._taking.release()

    def close(self, timeout: float | None = 5.0) -> bool:
        """Refuse further events and take what waits into the log.

        Returns False when that cannot be done within ``timeout`` seconds: what is left is in the
        journals, and whoever opens the log next takes it in.
        """
        self._closed = True
        with suppress(OSError):
            self._journal.keep()
        self._journal.end()
        whole = self._flushed(timeout, ending=True)
        self._wake.set()  # ends the thread
        return whole

    def __repr__(self) -> str:
        size = self.path.stat().st_size if self.path.exists() else 0
        return (
            f"<EventLog {self.path}, {size / 1e6:.1f} MB: {self._n_recorded:,} retrievals "
            f"recorded, {self.dropped.total:,} dropped>"
        )

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        """Have a thread look; it is started with the first retrieval of a process."""
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._closed:
                    thread = threading.Thread(
                        target=self._run, name="rag-sourcebias-log", daemon=True
                    )
                    thread.start()
                    self._thread = thread
        if not self._wake.is_set():
            self._wake.set()

    def _run(self) -> None:
        """Take in what waits, every now and then, until the log is closed."""
        with unobserved():
            while not self._closed:
                self._wake.wait(_IDLE_SECONDS)
                self._wake.clear()
                if not self._closed:
                    time.sleep(self._flush_seconds)
                    with self._taking:
                        self._take_in(math.inf)

    def _take_in(self, seconds: float, *, ending: bool = False) -> bool:
        """Take the journals in; False where something is left."""
        patience = min(seconds, self._settings.busy_seconds)
        try:
            self._journal.keep()
            whole = self._writer.take_in(
                now=self._now(), patience=patience, seconds=seconds, ending=ending
            )
        except BlockingIOError:  # another process takes them in, those of this one as well
            return False
        except (sqlite3.Error, OSError, SourceBiasError) as error:
            self._say(_NOT_WRITTEN, error)
            return False
        except Exception as error:  # noqa: BLE001 - the thread has to live on
            self._say("could not be written", error)
            return False
        self._journal.n_taken = self._journal.n_bytes if whole else self._journal.n_taken
        self._said.discard(_NOT_WRITTEN)
        self._tidy()
        return whole

    def _tidy(self) -> None:
        try:
            self._writer.tidy(now=self._now())
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
            logger.warning("event log %s %s: %s", self.path, what, error)
