"""The durable log of retrievals: a bounded buffer and the thread that empties it into a file."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from weakref import WeakSet

from rag_sourcebias.core.errors import DataError, SourceBiasError, require_at_least
from rag_sourcebias.core.private import PRIVATE, create_folder
from rag_sourcebias.observe.events import (
    DroppedEvents,
    RetrievalEvent,
    Waiting,
    closes_at_exit,
    memory_of,
)
from rag_sourcebias.observe.labels import label_names, short_text
from rag_sourcebias.observe.log.schema import Documents, LogSettings
from rag_sourcebias.observe.log.writing import LogWriter
from rag_sourcebias.observe.unobserved import suppress

logger = logging.getLogger("rag_sourcebias.observe")

# The bounded buffer in front of a log: cheap to put into, emptied all at once.


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
        require_at_least(1_000_000, buffer_bytes=most_bytes)
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
            self._hurry = self._hurry or not self._asleep
            self._asleep = False
            self._wake.put(None)
        return None

    def mark(self) -> Mark:
        """Return a mark behind everything put so far, and have it written at once."""
        mark = Mark()
        self._waiting.append(mark)
        self.hurry()
        return mark

    def hurry(self) -> None:
        """Have the reader look now."""
        self._hurry = True
        self._asleep = False
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
        self._bytes_taken = self._n_bytes
        self._n_bytes = 0
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
        with contextlib.suppress(Empty):
            self._wake.get(timeout=seconds)

    def __len__(self) -> int:
        return len(self._waiting)


# Close a log's connection before the process forks, in the parent too.
# SQLite may not be carried through a fork: its locks belong to the process that took them, but the
# child would believe that it holds them, and could damage the file.


_logs: WeakSet[EventLog] = WeakSet()
_standing: list[EventLog] = []


def _before() -> None:
    _standing[:] = list(_logs)
    for log in _standing:
        log._before_fork()


def _in_parent() -> None:
    while _standing:
        _standing.pop()._after_fork_in_parent()


def _in_child() -> None:
    while _standing:
        _standing.pop()._after_fork_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


# The thread of an event log: take what waits, write it, try again when that fails.


_IDLE_SECONDS = 30.0  # how often a quiet log looks for what is too old
_RETRY_SECONDS = 0.5
_NOT_WRITTEN = "cannot be written now, its events wait"
_NOT_TIDY = "could not be freed of old retrievals"
_MAY_PASS = (sqlite3.Error, OSError)
_FORK_SECONDS = 1.0  # a fork waits so long for a batch that is being written


# The durable log of retrievals: a bounded buffer and the thread that empties it into a file.


EVENT_LABELS = ("session", "session_id", "conversation_id", "thread_id")
"""Labels that a log keeps with each retrieval unless told otherwise."""


class EventLog:
    """Keep retrievals in an SQLite file; an observer for production.

    ``observe`` appends to a bounded buffer and returns; one daemon thread writes what gathered,
    each time in one transaction. A process that is killed loses what was not written yet: at most
    ``batch`` events or those of ``flush_seconds``, and those that came while the batch before was
    being written. The file is never damaged by that. While it cannot be written (disk full,
    locked, read-only) events wait; those beyond ``capacity`` or ``buffer_bytes`` are dropped and
    counted. Nothing is ever raised into the application. Several processes may log to one file, and
    a forked child goes on with a buffer and a connection of its own. When the interpreter ends the
    log gets one second to be written; a ``multiprocessing`` worker ends without that: flush there.

    No text is kept: sources, styles, labels, the identifier of the query that the event has, and
    ids of documents only where ``documents`` says so. Scores are not kept.

    Parameters
    ----------
    path : str or Path
        The file; created with its folder, or continued.
    batch : int
        Events that are written without waiting for more.
    flush_seconds : float
        Longest time an event waits for others.
    capacity : int
        Events that may wait, at least ``batch``.
    buffer_bytes : int
        Memory that they may hold, as estimated from ids and labels of every 16th, and of each
        with more than 64 documents; at least 1 MB.
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
        Size above which the oldest retrievals go, at least 1 MB; the write-ahead file beside the
        log comes on top (4 MB, more while it is read).
    max_age : float or None
        Seconds after which retrievals go. The rollups of minutes go with them, those of hours and
        days stay: they hold no ids.
    archive : str, Path or None
        Folder of Parquet files that receives what is removed (extra ``parquet``).
    file_mode : int
        Of a new log, and of the files beside it, whatever the umask says: for the owner alone
        unless told otherwise (0o640, say). What is there keeps its own.
    busy_seconds : float
        How long the writing thread waits for another process that is writing.
    clock : callable
        Seconds since 1970. Where it goes back, times stay what they were until it has caught up.

    Attributes
    ----------
    dropped : DroppedEvents
        Events lost, by reason; also kept in the file.

    Raises
    ------
    DataError
        If a setting is out of range, the folder cannot be created, or the file is no event log.
    UnsupportedVersionError
        If a newer release wrote the file.
    MissingExtraError
        If ``archive`` is given without pyarrow.
    """

    inline = True  # see Delivery: observing waits for nothing

    def __init__(
        self,
        path: str | Path,
        *,
        batch: int = 1_000,
        flush_seconds: float = 1.0,
        capacity: int = 100_000,
        buffer_bytes: int = 128_000_000,
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
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path)
        self.dropped = DroppedEvents()
        settings = LogSettings(
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
        self._settings = settings
        self._clock = clock
        self._new_buffer = partial(
            LogBuffer,
            capacity=capacity,
            most_bytes=buffer_bytes,
            batch=batch,
            gather_seconds=flush_seconds,
        )
        self._inherited: LogWriter | None = None
        self._renew()
        self._create()
        _logs.add(self)
        closes_at_exit(self)

    def _renew(self) -> None:
        self._starting = threading.RLock()
        self._writing = threading.RLock()
        self._thread: threading.Thread | None = None
        self._writer = LogWriter(self.path, self._settings, self.dropped)
        self._buffer = self._new_buffer()
        self._said: set[str] = set()
        self._n_written = 0  # by this process

    def _create(self) -> None:
        """Refuse what will never work; what may pass is left to the thread."""
        try:
            create_folder(self.path.parent, self._settings.file_mode)
            self._writer.open()
        except OSError as error:
            raise DataError(
                f"folder of event log {self.path} cannot be created: {error}"
            ) from error
        except sqlite3.OperationalError as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
                raise DataError(
                    f"event log {self.path} cannot be written ({error}); "
                    "give a path in a folder that can"
                ) from error
            logger.warning("event log %s cannot be opened yet: %s", self.path, error)
        except sqlite3.DatabaseError as error:
            raise DataError(
                f"event log {self.path} is damaged ({error}); move it away and log to a new file"
            ) from error

    def observe(self, event: RetrievalEvent) -> None:
        """Log one retrieval; waits for nothing and raises nothing."""
        self.record(event)

    def record(self, event: RetrievalEvent, *, at: float | None = None) -> None:
        """Log one retrieval; waits for nothing and raises nothing.

        Parameters
        ----------
        event : RetrievalEvent
        at : float or None
            Seconds since 1970 to log it under, for a replay; None takes the event's own time.
            One before the latest in the log becomes that one.
        """
        try:
            if self._thread is None:
                self._start()
            reason: str | None = "log is closed"
            if not self._buffer.closed:
                reason = self._buffer.put(event, at)
            elif self._inherited is not None:
                reason = "process forked while the log was being written"
            if reason is not None:
                self.dropped.add(reason)
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self.dropped.add("log could not take the event", error=error)

    def note(self, text: str) -> None:
        """Keep what is to be known of what is logged; waits for nothing and raises nothing.

        Such as a framework outside the tested versions, which its instrumentation tells.
        """
        try:
            if self._thread is None:
                self._start()
            self._writer.notes.append(short_text(text))
            self._buffer.mark()
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self.dropped.add("log could not take the note", error=error)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything put so far is in the file.

        Returns False when ``timeout`` seconds passed before (None: no limit), or it was given up.
        Blocks: use ``asyncio.to_thread`` on an event loop.
        """
        thread = self._thread
        if thread is None or not thread.is_alive():
            return not len(self._buffer)
        if threading.current_thread() is thread:
            return False
        mark = self._buffer.mark()
        return mark.passed.wait(timeout) and mark.written

    def close(self, timeout: float | None = 5.0) -> bool:
        """Refuse further events and write what waits.

        Returns False when that took more than ``timeout`` seconds or failed; what is not written
        then is dropped and counted.
        """
        with self._starting:
            self._buffer.closed = True
            self._buffer.hurry()
        before = self.dropped.total
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
            return not thread.is_alive() and self.dropped.total == before
        with self._writing:
            self._writer.close()
        return True

    def __repr__(self) -> str:
        size = self.path.stat().st_size if self.path.exists() else 0
        return (
            f"<EventLog {self.path}, {size / 1e6:.1f} MB: {self._n_written:,} retrievals written, "
            f"{len(self._buffer):,} waiting, {self.dropped.total:,} dropped>"
        )

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._buffer.closed:
                # Of a method of ours: a log nobody holds any more is still told of forks and of
                # the end, as long as its thread runs.
                thread = threading.Thread(target=self._run, name="rag-sourcebias-log", daemon=True)
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        """Write until the buffer is closed and empty."""
        buffer = self._buffer
        with suppress():
            while not buffer.closed or len(buffer):
                events, marks = buffer.take(_IDLE_SECONDS)
                written = self._write(events)
                buffer.done()
                for mark in marks:
                    mark.written = written
                    mark.passed.set()
                if buffer.closed:
                    continue
                try:
                    with self._writing:
                        self._writer.tidy(now=self._now())
                except Exception as error:  # noqa: BLE001 - of pyarrow too; the thread has to live on
                    self._say(_NOT_TIDY, error)
                else:
                    self._said.discard(_NOT_TIDY)
        with self._writing:
            self._writer.close()

    def _write(self, events: list[Waiting]) -> bool:
        """Write events, as often as it takes; False when they were given up."""
        while True:
            last = self._buffer.closed  # one attempt after that
            try:
                with self._writing:
                    self._writer.write(events, now=self._now(), monotonic=time.monotonic())
            except _MAY_PASS as error:
                self._say(_NOT_WRITTEN, error)
                if not last:
                    self._buffer.pause(_RETRY_SECONDS)
                    continue
                return self._give_up(events, "log was closed before it could be written", error)
            except SourceBiasError as error:
                return self._give_up(events, "log file is not ours any more", error)
            except Exception as error:  # noqa: BLE001 - the thread has to live on
                return self._give_up(events, "log failed", error)
            else:
                self._n_written += len(events)
                self._said.discard(_NOT_WRITTEN)
                return True

    def _give_up(self, events: list[Waiting], reason: str, error: Exception) -> bool:
        if events:
            self.dropped.add(reason, n=len(events), error=error)
        return False

    def _now(self) -> float:
        now = self._clock()
        return now if 0 <= now < 1e11 else time.time()  # also of NaN

    def _say(self, what: str, error: Exception) -> None:
        """Log a line, once until what failed has succeeded."""
        if what not in self._said:
            self._said.add(what)
            logger.warning("event log %s %s: %s", self._writer.path, what, error)

    def _before_fork(self) -> None:
        self._stood_aside = self._writing.acquire(timeout=_FORK_SECONDS)
        if self._stood_aside:
            self._writer.close()

    def _after_fork_in_parent(self) -> None:
        if self._stood_aside:
            self._writing.release()

    def _after_fork_in_child(self) -> None:
        closed = self._buffer.closed
        writer = self._writer
        self._renew()
        self._buffer.closed = closed
        if not self._stood_aside:  # its connection may be neither used nor closed here
            self._inherited = writer
            self._buffer.closed = True
