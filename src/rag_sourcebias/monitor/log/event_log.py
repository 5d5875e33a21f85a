"""The durable log of retrievals: a bounded buffer and the thread that empties it into a file."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.io.private import PRIVATE
from rag_sourcebias.monitor.log.archive import check_archive
from rag_sourcebias.monitor.log.buffer import LogBuffer
from rag_sourcebias.monitor.log.settings import Documents, LogSettings
from rag_sourcebias.monitor.log.thread import LogThread

__all__ = ["EventLog"]


EVENT_LABELS = ("session", "session_id", "conversation_id", "thread_id")
"""Labels that a log keeps with each retrieval unless told otherwise."""


def _names(what: str, given: Sequence[str]) -> frozenset[str]:
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise DataError(f"{what} must be a sequence of names, got {given!r}")
    return frozenset(given)


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
    sample : float
        Probability in (0, 1] with which a retrieval is kept; it then counts 1/sample.
    rng : int or None
        Seed of that choice; None takes one from the system.
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
        Secret of 16 to 64 bytes, see :func:`~rag_sourcebias.instrument.read_key`.
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
        sample: float = 1.0,
        rng: int | None = None,
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
        if not 0 < sample <= 1:
            raise DataError(f"sample is a probability in (0, 1], got {sample}")
        self.path, self.dropped = Path(path), DroppedEvents()
        settings = LogSettings(
            weight=1 / sample,
            documents=documents,
            max_documents=max_documents,
            max_tags=max_tags,
            max_label_values=max_label_values,
            max_label_sets=max_label_sets,
            event_labels=_names("event_labels", event_labels),
            hashed_labels=_names("hashed_labels", hashed_labels),
            key=key,
            max_bytes=max_bytes,
            max_age=max_age,
            archive=None if archive is None else check_archive(archive),
            busy_seconds=busy_seconds,
            file_mode=file_mode,
        )
        self._sample = sample
        self._random = random.Random(rng)  # of C, and therefore safe between threads
        self._thread = LogThread(
            self.path,
            settings,
            self.dropped,
            clock=clock,
            new_buffer=partial(
                LogBuffer,
                capacity=capacity,
                most_bytes=buffer_bytes,
                batch=batch,
                gather_seconds=flush_seconds,
            ),
        )

    def observe(self, event: RetrievalEvent) -> None:
        """Log one retrieval; waits for nothing and raises nothing."""
        try:
            buffer = self._thread.buffer
            # All that record does, when it need not be asked: a call less on the hot path.
            if buffer.ready and self._sample == 1:
                reason = buffer.put(event, None)
                if reason is not None:
                    self.dropped.add(reason)
                return
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self.dropped.add("log could not take the event", error=error)
            return
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
            if self._sample < 1 and self._random.random() >= self._sample:
                return
            reason = self._thread.put(event, at)
            if reason is not None:
                self.dropped.add(reason)
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self.dropped.add("log could not take the event", error=error)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything put so far is in the file.

        Returns False when ``timeout`` seconds passed before (None: no limit), or it was given up.
        Blocks: use ``asyncio.to_thread`` on an event loop.
        """
        return self._thread.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> bool:
        """Refuse further events and write what waits.

        Returns False when that took more than ``timeout`` seconds or failed; what is not written
        then is dropped and counted.
        """
        return self._thread.close(timeout)

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
