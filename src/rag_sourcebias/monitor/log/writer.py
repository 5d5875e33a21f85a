"""The connection of an event log: one transaction per batch."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.monitor.log.codes import LabelCodes, TagCodes
from rag_sourcebias.monitor.log.encoding import Waiting, encoded
from rag_sourcebias.monitor.log.retention import Retention
from rag_sourcebias.monitor.log.rollups import add_to_rollups
from rag_sourcebias.monitor.log.schema import open_for_writing
from rag_sourcebias.monitor.log.segments import insert_segments, segments_of
from rag_sourcebias.monitor.log.settings import LogSettings
from rag_sourcebias.monitor.log.tables import state_of

__all__ = ["LogWriter"]

_logger = logging.getLogger("rag_sourcebias.monitor")
_CLOCK_SECONDS = 5.0  # behind the log, before that is worth a line
_SET = "INSERT INTO state VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
_DROPPED = (
    "INSERT INTO dropped SELECT key, value FROM json_each(?) WHERE true "
    "ON CONFLICT DO UPDATE SET n = n + excluded.n"
)


_NOTED = (
    "INSERT INTO noted SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), "
    "json_extract(value, '$[2]') FROM json_each(?) WHERE true "
    "ON CONFLICT DO UPDATE SET n = n + excluded.n"
)


class LogWriter:
    """Write batches; several of them, also of several processes, may share a file.

    Not thread-safe: the caller holds a lock.
    """

    def __init__(self, path: Path, settings: LogSettings, dropped: DroppedEvents) -> None:
        self.path = path
        self._settings, self._dropped = settings, dropped
        self._database: sqlite3.Connection | None = None
        self._retention = Retention(settings)
        self._reported = dict(dropped.by_reason)  # a forked child starts with those of its parent
        self._tags, self._labels = TagCodes(most=settings.max_tags), self._label_codes()
        self._clock_behind = False
        self._version: int | None = None  # of the file's content when the codes were read
        self._erased = 0  # as of the state of the log at that moment

    def open(self) -> sqlite3.Connection:
        """Return the connection, opened where it is not."""
        if self._database is None:
            settings = self._settings
            self._database = open_for_writing(
                self.path, busy_seconds=settings.busy_seconds, file_mode=settings.file_mode
            )
            self._version = None
        return self._database

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        database, self._database = self._database, None
        if database is not None:
            with suppress(sqlite3.Error):
                database.close()

    def write(self, events: list[Waiting], *, now: float, monotonic: float) -> None:
        """Write events, their rollups and the counts of dropped ones, or nothing of it.

        Raises
        ------
        sqlite3.Error
            If the file cannot be written now.
        DataError, UnsupportedVersionError
            If it became something else.
        """
        counts = dict(self._dropped.by_reason)
        if not events and counts == self._reported:
            return
        if self._database is not None and not self.path.exists():
            self.close()  # someone removed the file
        database = self.open()
        try:
            database.execute("BEGIN IMMEDIATE")
            self._read_codes(database)
            if events:
                counts = self._write_events(database, events, now, monotonic)
            lost = {r: n - self._reported.get(r, 0) for r, n in counts.items()}
            lost = {r: n for r, n in lost.items() if n}
            if lost:
                database.execute(_DROPPED, (json.dumps(lost),))
            database.execute("COMMIT")
        except BaseException:
            self._undo(database)
            raise
        self._reported = counts

    def tidy(self, *, now: float) -> None:
        """Remove what is older, or more, than the settings allow.

        Raises
        ------
        Exception
            If log or archive cannot be written; nothing was removed that is not archived.
        """
        if self._settings.max_bytes is None and self._settings.max_age is None:
            return
        database = self.open()
        try:
            self._retention.apply(database, now=now)
        except BaseException:
            self._undo(database)
            raise

    def _undo(self, database: sqlite3.Connection) -> None:
        self._version = None  # codes that were handed out are not in the file
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        self.close()  # so that a file that was moved, or replaced, is opened again

    def _write_events(
        self, database: sqlite3.Connection, events: list[Waiting], now: float, monotonic: float
    ) -> dict[str, int]:
        state = state_of(database)
        settings, tags, labels = self._settings, self._tags, self._labels
        self._compare_clock(now, state.latest / 1e6)
        n_tags, n_labels = (len(tags.names), len(labels.names)) if state.last else (0, 0)
        batch = encoded(
            events,
            tags,
            labels,
            dropped=self._dropped,
            now=now,
            monotonic=monotonic,
            last=state.latest,
            settings=settings,
        )
        counts = dict(self._dropped.by_reason)
        if not len(batch):
            self._version = None  # a broken event may have been given codes nobody stores
            return counts
        for code, name in enumerate(tags.names[n_tags:], n_tags):
            database.execute("INSERT INTO tags VALUES (?, ?, ?)", (code, *name))
        for code, known in enumerate(labels.names[n_labels:], n_labels):
            database.execute("INSERT INTO labels VALUES (?, ?)", (code, known))
        first = state.following
        insert_segments(database, segments_of(batch, first=first, weight=settings.weight))
        if batch.noted:
            counted = [[*key, n] for key, n in batch.noted.items()]
            database.execute(_NOTED, (json.dumps(counted),))
        add_to_rollups(database, batch, weight=settings.weight)
        database.executemany(_SET, [("next", first + len(batch)), ("last", int(batch.times[-1]))])
        return counts

    def _compare_clock(self, now: float, last: float) -> None:
        behind, before = now < last - _CLOCK_SECONDS, self._clock_behind
        self._clock_behind = behind
        if behind and not before:
            _logger.warning(
                "the clock is %.0f s behind event log %s, whose times stay at the latest one "
                "until it has caught up",
                *(last - now, self.path),
            )

    def _read_codes(self, database: sqlite3.Connection) -> None:
        """Read tags and labels where another connection may have added some."""
        (version,) = database.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return
        erased = state_of(database).erased
        following = "SELECT labels FROM labels WHERE code >= ? ORDER BY code"
        if self._version is None or erased != self._erased:
            names = database.execute(following, (0,))
            self._labels = self._label_codes(name for (name,) in names)
        else:
            names = database.execute(following, (len(self._labels.names),))
            self._labels.extend(name for (name,) in names)
        self._version, self._erased = version, erased
        self._tags = TagCodes(
            database.execute("SELECT source, style FROM tags ORDER BY code"),
            most=self._settings.max_tags,
        )

    def _label_codes(self, names: Iterable[str] = ()) -> LabelCodes:
        settings = self._settings
        return LabelCodes(
            names, most_values=settings.max_label_values, most_sets=settings.max_label_sets
        )
