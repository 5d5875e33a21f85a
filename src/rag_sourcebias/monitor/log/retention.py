"""Remove the oldest retrievals by age and by size."""

from __future__ import annotations

import math
import sqlite3
import time

from rag_sourcebias.monitor.log.archive import archive_segments
from rag_sourcebias.monitor.log.schema import WIDTHS
from rag_sourcebias.monitor.log.settings import LogSettings
from rag_sourcebias.monitor.log.tables import segment_columns

__all__ = ["Retention", "used_bytes"]

_EVERY = 30.0  # seconds between looks at the age
_AT_ONCE = 64  # segments per transaction, so that other writers get their turn
_PAGES = 2_000  # given back to the file system at once
_WORTH_A_FILE = 200_000  # retrievals
_IN_A_FILE = 300_000  # retrievals
_MANY = 20_000  # segments of few retrievals each
_DAY = 86_400_000_000
_HOUR = 3_600
_TO_KEEP = 0.9  # of max_bytes, so that not every batch has to remove some


def used_bytes(database: sqlite3.Connection) -> int:
    """Bytes of a log without its free pages and without the write-ahead file."""
    pages, free, size = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


class Retention:
    """Keep a log within the age and size that its settings say.

    Segments go as a whole, oldest first, into the archive where there is one, and with them the
    rollups of minutes. Those of hours and days stay: they hold no ids and little else.
    """

    def __init__(self, settings: LogSettings) -> None:
        self._settings = settings
        self._looked = -math.inf

    def apply(self, database: sqlite3.Connection, *, now: float) -> None:
        """Remove what has to go.

        Raises
        ------
        sqlite3.Error
            If the file cannot be written now.
        OSError
            If the archive cannot.
        """
        settings = self._settings
        if settings.max_bytes is not None and used_bytes(database) > settings.max_bytes:
            self._shrink(database, int(settings.max_bytes * _TO_KEEP))
        if settings.max_age is None or time.monotonic() < self._looked + _EVERY:
            return
        self._looked = time.monotonic()
        self._expire(database, int((now - settings.max_age) * 1e6))

    def _shrink(self, database: sqlite3.Connection, most: int) -> None:
        settings = self._settings
        while used_bytes(database) > most:
            over = 1 - most / used_bytes(database)
            (n,) = database.execute("SELECT count(*) FROM segments").fetchone()
            most_at_once = _AT_ONCE if settings.archive is None else _MANY
            if not self._remove(database, until=None, n=min(most_at_once, max(1, int(n * over)))):
                return
            _give_back(database)

    def _expire(self, database: sqlite3.Connection, until: int) -> None:
        n_at_once = _AT_ONCE
        if self._settings.archive is not None:
            # Not one small file every half minute: when there is enough for one, or a day is old.
            n, oldest, events = database.execute(
                "SELECT count(*), min(since), sum(n) FROM segments WHERE until < ?", (until,)
            ).fetchone()
            if not n or (events < _WORTH_A_FILE and oldest > until - _DAY):
                return
            n_at_once = _MANY
        while self._remove(database, until=until, n=n_at_once):
            _give_back(database)

    def _remove(self, database: sqlite3.Connection, *, until: int | None, n: int) -> int:
        """Remove up to ``n`` segments that ended before ``until``; return how many did go."""
        archive = self._settings.archive
        limit = 2**62 if until is None else until
        database.execute("BEGIN IMMEDIATE")
        rows = database.execute(
            "SELECT first, until, sum(n) OVER (ORDER BY first) FROM (SELECT first, until, n "
            "FROM segments WHERE until < ? ORDER BY first LIMIT ?) ORDER BY first",
            (limit, n),
        ).fetchall()
        if archive is not None:  # what a file of reasonable size, and the memory, can hold
            rows = [row for row in rows if row[2] <= _IN_A_FILE] or rows[:1]
        if rows:
            first, ended, _ = rows[-1]
            chosen = "FROM segments WHERE first <= ?"
            if archive is not None:
                columns = segment_columns(database)
                found = database.execute(
                    f"SELECT {columns} {chosen} ORDER BY first", (first,)
                ).fetchall()
                archive_segments(database, archive, found, file_mode=self._settings.file_mode)
            database.execute(f"DELETE {chosen}", (first,))
            (oldest,) = database.execute("SELECT min(since) FROM segments").fetchone()
            kept_from = (ended if oldest is None else oldest) // 1_000_000
            for width in (w for w in WIDTHS if w < _HOUR):
                for table in ("rollups", "traffic"):
                    database.execute(
                        f"DELETE FROM {table} WHERE width = ? AND start <= ?",
                        (width, kept_from - width),
                    )
        database.execute("COMMIT")
        return len(rows)


def _give_back(database: sqlite3.Connection) -> None:
    database.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
