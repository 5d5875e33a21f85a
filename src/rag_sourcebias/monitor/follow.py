"""Feed a monitor from an event log that other processes write."""

from __future__ import annotations

import contextlib
import glob
import heapq
import json
import logging
import math
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from rag_sourcebias.core.codec import from_plain, sound, to_plain, write_atomic
from rag_sourcebias.core.data import DocTags, RankedList, Run, TagTable
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.core.private import PRIVATE, check_mode
from rag_sourcebias.intake.belong import require_tags
from rag_sourcebias.intake.files import read_json
from rag_sourcebias.intake.tables import open_parquet, parquet_batches, pyarrow_modules
from rag_sourcebias.monitor.data import logger
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.sinks import Sink
from rag_sourcebias.observe.events import DroppedEvents, RetrievalEvent, Waiting, guarded
from rag_sourcebias.observe.log import reading
from rag_sourcebias.observe.log.reading import Tail, iter_events, read_tail, settled
from rag_sourcebias.observe.log.schema import EventColumns

read_events = reading.read_events  # its public place is this package

# Retrievals of the Parquet files that event logs leave behind (see ``log.archive``).


_NAME = re.compile(r"events-(\w+)-(\d+)-\d+\.parquet")
_READING = "reading archives of event logs"
_EXPECTED = "a file of retrievals that an event log archived"
_NEEDED = ("time", "labels", "query_id", "sources", "styles")
_MAY_BE = ("doc_ids", "event_labels", "request", "replaces")


def parquet_events(
    path: str | Path,
    *,
    since: float | None = None,
    until: float | None = None,
    labels: Mapping[str, str] | None = None,
) -> Iterator[tuple[RetrievalEvent, float]]:
    """Return retrievals with their Unix times, day by day, oldest first.

    Memory does not grow with the files. Those of one log are read one after another; where
    several logs were archived in one folder, retrievals of a day are merged by time.

    Parameters
    ----------
    path : str or Path
        A file, or a folder that has files with names in ``*.parquet`` at any depth.
    since, until : float or None
        Seconds since 1970; ``until`` itself is left out.
    labels : mapping of str to str, optional
        Only retrievals with all of these labels.

    Raises
    ------
    DataError
        If there is no file, or one has not been written by an event log.
    MissingExtraError
        If pyarrow is not installed.
    """
    root = Path(path)
    found = sorted(root.rglob("*.parquet")) if root.is_dir() else [root]
    if not found:
        raise DataError(f"{root} holds no Parquet files: expected date=YYYY-MM-DD/events-….parquet")
    pyarrow_modules(_READING)  # missing, it is asked for now and not at the first retrieval
    first = -math.inf if since is None else since
    last = math.inf if until is None else until
    wanted = set((labels or {}).items())
    return (
        (event, at)
        for event, at in _merged(found)
        if first <= at < last and wanted <= set(event.labels.items())
    )


def _merged(paths: list[Path]) -> Iterator[tuple[RetrievalEvent, float]]:
    files = []  # in the order of replay: folder of the day, log, first number
    for path in paths:
        match = _NAME.fullmatch(path.name)
        log, number = (path.name, 0) if match is None else (match[1], int(match[2]))
        files.append((path.parent.name, log, number, path))
    for _, day in groupby(sorted(files), itemgetter(0)):
        logs = [
            chain.from_iterable(map(_of_file, [path for *_, path in log]))
            for _, log in groupby(day, itemgetter(1))
        ]
        yield from heapq.merge(*logs, key=itemgetter(1))


def _of_file(path: Path) -> Iterator[tuple[RetrievalEvent, float]]:
    pa, _ = pyarrow_modules(_READING)
    with open_parquet(path, expected=_EXPECTED) as file:
        names = file.schema_arrow.names
        missing = [name for name in _NEEDED if name not in names]
        if missing:
            raise DataError(f"{path}: no columns {missing}; expected those of an event log")
        columns = [*_NEEDED, *(name for name in _MAY_BE if name in names)]
        for batch in parquet_batches(file, path, columns):
            with sound(path, _EXPECTED):
                times = batch.column("time").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
                rest = {name: batch.column(name).to_pylist() for name in columns[1:]}
                yield from _events(times.to_pylist(), rest)


def _events(
    times: list[int], columns: Mapping[str, list[Any]]
) -> Iterator[tuple[RetrievalEvent, float]]:
    labels_of = cache(json.loads)
    tag = cache(lambda source, style: DocTags(source=source, style=style))
    ids, own, requests, replaces = (columns.get(name, [None] * len(times)) for name in _MAY_BE)
    latest = {request: i for i, request in enumerate(requests)}
    replaced = {request for request, later in zip(requests, replaces, strict=True) if later}
    for i, at in enumerate(times):
        if requests[i] in replaced and latest[requests[i]] != i:
            continue
        pairs = zip(columns["sources"][i], columns["styles"][i], strict=True)
        tags = tuple(tag(source, style) for source, style in pairs)
        ranked = RankedList(
            query_id=columns["query_id"][i] or "", doc_ids=tuple(ids[i] or ("",) * len(tags))
        )
        labels = labels_of(columns["labels"][i])
        if own[i]:
            labels = {**labels, **json.loads(own[i])}
        yield RetrievalEvent(ranked=ranked, tags=tags, labels=labels), at / 1e6


# Feed what happened before through a monitor, to see when it would have raised an alarm.


def replay(
    events: str | Path | Run | Iterable[RetrievalEvent],
    monitor: SkewMonitor,
    *,
    tags: TagTable | None = None,
    labels: Mapping[str, str] | None = None,
    since: float | None = None,
    until: float | None = None,
) -> int:
    """Replay retrievals; return how many there were.

    Parameters
    ----------
    events : str, Path, Run or iterable of RetrievalEvent
        A path is that of an event log, of a folder of Parquet files that logs have archived, or
        of one of these files. Alarms then
        have the time at which they would have come.
    monitor : SkewMonitor
    tags : TagTable or None
        What is known of the documents of a run; required for it, and for nothing else.
    labels : mapping of str to str, optional
        Labels of the retrievals of a run; of a log or files, only retrievals with all of these.
    since, until : float or None
        Of a log or files, in Unix time; ``until`` itself is left out.

    Raises
    ------
    DataError
        If tags are missing or superfluous, or log or files cannot be read.
    MissingExtraError
        If there are Parquet files to read, and pyarrow is not installed.
    UnsupportedVersionError
        If the log has another version than this release writes.
    """
    if isinstance(events, Run) != (tags is not None):
        raise DataError("tags= belongs to a run: a run needs it, logs and events have their own")
    if not isinstance(events, str | Path) and not (since is None and until is None):
        raise DataError("since= and until= are for event logs, whose retrievals have Unix times")
    timed: Iterable[Waiting]
    if isinstance(events, Run):
        timed = _of_run(events, tags or TagTable.from_tags([]), labels or {})
    elif isinstance(events, str | Path) and (
        Path(events).is_dir() or Path(events).suffix == ".parquet"
    ):
        timed = parquet_events(events, since=since, until=until, labels=labels)
    elif isinstance(events, str | Path):
        parts = iter_events(events, since=since, until=until, labels=labels)
        n = sum(map(monitor.record_columns, _latest(_joined(parts))))
        monitor.flush()
        return n
    elif labels is not None:
        raise DataError("labels= is for runs and logs; events have their own")
    else:
        timed = ((event, None) for event in events)
    n = monitor.record_many(timed)
    monitor.flush()
    return n


def _of_run(run: Run, tags: TagTable, labels: Mapping[str, str]) -> Iterator[Waiting]:
    require_tags(f"run {run.name!r}", run.doc_ids, tags)
    known = {doc_id: tags.get(doc_id) for doc_id in run.doc_ids}
    for query_id, start, stop in zip(run.query_ids, run.offsets, run.offsets[1:], strict=False):
        ids = tuple(run.doc_ids[code] for code in run.doc_codes[start:stop])
        ranked = RankedList(query_id=query_id, doc_ids=ids)
        yield RetrievalEvent(ranked=ranked, tags=tuple(known[i] for i in ids), labels=labels), None


_AT_ONCE = 16_384  # retrievals


def _joined(parts: Iterable[EventColumns]) -> Iterator[EventColumns]:
    """Yield the same retrievals in fewer parts."""
    waiting: list[EventColumns] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= _AT_ONCE:
            yield EventColumns.joined(waiting)
            waiting = []
    if waiting:
        yield EventColumns.joined(waiting)


def _latest(parts: Iterable[EventColumns]) -> Iterator[EventColumns]:
    """Yield the latest stage of each request; a later one comes within a part, or in the next."""
    before: EventColumns | None = None
    for part in parts:
        if before is not None:
            yield settled(before, [part])
        before = part
    if before is not None:
        yield before.at_stage("latest")


# Where a follower of a log stands, in a file that is always complete.


_KIND = "log-follower"
_VERSION = 1
STATE_FILE = "the state file of a monitor"
START_ANEW = "start anew, or name another state file"


@dataclass(kw_only=True)
class Position:
    """How far a log was read.

    Parameters
    ----------
    log : int or None
        Which log it is; None before it was seen.
    number : int or None
        Of the last retrieval read; None before any.
    n_read : int
        Retrievals given to the monitor.
    dropped : mapping of str to int
        Retrievals that could not be read, by reason.
    """

    log: int | None = None
    number: int | None = None
    n_read: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)


def write_position(
    path: Path, position: Position, monitor: Mapping[str, Any], *, mode: int = PRIVATE
) -> None:
    """Write a position and the state that the monitor has there, or leave the file as it was.

    A new file gets this mode.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    data = {"kind": _KIND, "version": _VERSION, **to_plain(position), "monitor": monitor}
    write_atomic(path, json.dumps(data), mode=mode)


def read_position(path: Path) -> tuple[Position, dict[str, Any]] | None:
    """Return what :func:`write_position` wrote; None where there is no such file.

    Parts that a killed process left beside it are removed.

    Raises
    ------
    DataError
        If the file is something else or cannot be read.
    UnsupportedVersionError
        If another release wrote it.
    """
    with contextlib.suppress(OSError):
        for part in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
            part.unlink(missing_ok=True)
    if not os.path.lexists(path):
        return None
    data = read_json(path, STATE_FILE, remedy=START_ANEW)
    if not isinstance(data, dict) or data.get("kind") != _KIND:
        raise DataError(f"{path} is not {STATE_FILE}; {START_ANEW}")
    if data.get("version") != _VERSION:
        raise UnsupportedVersionError(
            f"state file {path} has version {data.get('version')!r}, this release reads "
            f"{_VERSION}; {START_ANEW}"
        )
    with sound(path, STATE_FILE, remedy=START_ANEW):
        kept = {name.name: data[name.name] for name in fields(Position)}
        position = from_plain(Position, kept)
        return position, dict(data["monitor"])


# Feed a monitor from an event log that other processes write.


_SAVE_SHARE = 20  # of the time, at most one part in so many goes into writing the state


class LogFollower:
    """Read what any process appends to an event log, and give it to a monitor.

    With a state file a restart goes on where the last process stopped: position and monitor are
    written together, so that a retrieval counts once, whenever the process is killed. Sinks may be
    told again of alarms that were raised after the state was last written. A log that is not there
    yet, locked or removed is waited for. Retrievals that retention took before they were read are
    counted in ``dropped``. Another log under the same path, or an older copy of this one, is read
    from its beginning, and the monitor starts anew with it (its list of alarms stays).

    Parameters
    ----------
    path : str or Path
        The log, which need not exist yet.
    monitor : SkewMonitor
        A new one: its settings are taken, and its state where there is no other. What follows is
        given to :attr:`monitor`, whose alarms go to ``sinks`` and nowhere else.
    state : Path or None
        The state file; None keeps the state in memory.
    sinks : Sink or None
        Told of alarms and states; closing them is up to their owner.
    interval : float
        Seconds between looks at the log.
    save_seconds, sink_seconds : float
        Seconds after which the state is written, and given to the sinks, again; where writing
        takes long it is done less often. 0 does it with every part that is read.
    anew : bool
        Ignore what the state file holds.
    file_mode : int
        Of a new state file; one that is there keeps its own.

    Attributes
    ----------
    monitor : SkewMonitor
    dropped : DroppedEvents
        Retrievals that could not be read, and calls of sinks that raised, by reason.

    Raises
    ------
    DataError
        If an interval is out of range, or the state file is unusable or of other settings.
    UnsupportedVersionError
        If another release wrote the state file.
    """

    def __init__(
        self,
        path: str | Path,
        monitor: SkewMonitor,
        *,
        state: Path | None = None,
        sinks: Sink | None = None,
        interval: float = 1.0,
        save_seconds: float = 5.0,
        sink_seconds: float = 15.0,
        anew: bool = False,
        file_mode: int = PRIVATE,
    ) -> None:
        if not 0 < interval <= 3_600:
            raise DataError(f"interval must be in (0, 3600] seconds, got {interval}")
        if not (0 <= save_seconds <= 3_600 and 0 <= sink_seconds <= 3_600):
            raise DataError(
                f"save_seconds and sink_seconds must be in [0, 3600], got {save_seconds} and "
                f"{sink_seconds}"
            )
        self.path = Path(path)
        self.dropped = DroppedEvents()
        self._state, self._sinks, self._interval = state, sinks, interval
        self._file_mode = check_mode(file_mode)
        self._save_seconds = save_seconds
        self._sink_seconds = sink_seconds
        given = monitor.to_dict()
        self.settings: dict[str, Any] = dict(given["settings"])
        self._position = Position()
        kept = given
        stored = None if state is None or anew else read_position(state)
        if stored is not None:
            self._position, kept = stored
            if kept.get("settings") != given["settings"]:
                raise DataError(
                    f"state file {state} belongs to other settings (baseline, groups, labels, …); "
                    "give the settings it was written with, start anew, or name another state file"
                )
            for reason, n in self._position.dropped.items():
                if n > 0:
                    self.dropped.add(reason, n=n)
        on_alarm = None if sinks is None else sinks.alarm
        # What was not stored is the state of the given monitor: nothing can be wrong with it.
        with sound(state or "", STATE_FILE, remedy=START_ANEW):
            self.monitor = monitor.resumed(kept, on_alarm=on_alarm)
        self._changed, self._save_due, self._sink_due = False, 0.0, 0.0
        self._errors: dict[str, str] = {}
        self._stepping = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def n_read(self) -> int:
        """Retrievals given to the monitor."""
        return self._position.n_read

    def behind_of(self, n_written: int) -> int:
        """Return how many retrievals are not read yet of a log in which so many were written."""
        return max(n_written - (self._position.number or 0), 0)

    @property
    def error(self) -> str | None:
        """What is wrong now, in a sentence that names no path; None when all is well."""
        return next(iter(tuple(self._errors.values())), None)

    def step(self) -> int:
        """Read all that is in the log now; return how many retrievals that were.

        Raises nothing that the log, the state file or a sink is to blame for.
        """
        n = 0
        self.monitor.look()
        with self._stepping:
            while (tail := self._look()) is not None:
                n += self._feed(tail)
                if tail.number >= tail.last or tail.waits:
                    break
                if self._stop.is_set():
                    break
                self._save(due=self._save_due)
            self._save(due=self._save_due)
            if self._sinks is not None and time.monotonic() >= self._sink_due:
                with guarded(self.dropped, "sink raised"):
                    self._sinks.snapshots(self.monitor.snapshot())
                self._sink_due = time.monotonic() + self._sink_seconds
        return n

    def _look(self) -> Tail | None:
        """Return the next part of the log, None where there is nothing to read or an error."""
        try:
            if not self.path.is_file() or not self.path.stat().st_size:
                self._wrong("log", "the log is not there yet", logging.INFO)
                return None
            tail = read_tail(self.path, after=self._position.number)
            position = self._position
            if position.log not in (None, tail.log) or tail.last < (position.number or 0):
                logger.warning(
                    "%s is another log, or an older copy, than the one read up to retrieval %s: "
                    "starting anew with it",
                    self.path,
                    position.number,
                )
                self.monitor.reset()
                self._position = Position()
                self._changed = True
                tail = read_tail(self.path, after=None)
        except UnsupportedVersionError as error:
            self._wrong("log", "the log has a version that this release does not read", error)
        except (DataError, OSError) as error:
            self._wrong("log", "the log cannot be read now", error)
        else:
            self._errors.pop("log", None)
            return tail
        return None

    def _feed(self, tail: Tail) -> int:
        position = self._position
        n = sum(map(self.monitor.record_columns, _joined(tail.parts)))
        if tail.removed:
            self.dropped.add("removed before it was read", n=tail.removed)
        if tail.broken:
            self.dropped.add("could not be decoded", n=tail.broken)
        self._changed |= position.number != tail.number or position.log != tail.log
        position.log = tail.log
        position.number = tail.number
        position.n_read += n
        return n

    def _save(self, *, due: float = 0.0) -> None:
        start = time.monotonic()
        if self._state is None or not self._changed or start < due:
            return
        self._position.dropped = self.dropped.by_reason
        try:
            write_position(
                self._state, self._position, self.monitor.to_dict(), mode=self._file_mode
            )
        except DataError as error:
            self._wrong("state", "the state file cannot be written now", error)
        else:
            self._changed = False
            self._errors.pop("state", None)
        now = time.monotonic()
        wanted = self._save_seconds
        self._save_due = now + (max(wanted, _SAVE_SHARE * (now - start)) if wanted else 0.0)

    def _wrong(self, what: str, sentence: str, cause: Exception | int) -> None:
        """Say what is wrong, once until it changes."""
        if self._errors.get(what) != sentence:
            if isinstance(cause, Exception):
                logger.warning("%s: %s", sentence, cause)
            else:
                logger.log(cause, "%s: waiting for %s", sentence, self.path)
        self._errors[what] = sentence

    def start(self) -> None:
        """Follow the log on a thread of its own, until :meth:`close`.

        Raises
        ------
        DataError
            If it was started or closed before.
        """
        if self._thread is not None or self._stop.is_set():
            raise DataError("a follower is started once; make another one")
        self._thread = threading.Thread(target=self._run, name="rag-sourcebias-follower")
        self._thread.daemon = True
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.step()
                self._errors.pop("follower", None)
            except Exception as error:  # noqa: BLE001 - the thread has to live on
                self._wrong("follower", "following the log failed", error)
            self._stop.wait(self._interval)

    def close(self) -> None:
        """Stop after the part that is being read, and write the state."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self._stepping:
            self._save()

    def __enter__(self) -> LogFollower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
