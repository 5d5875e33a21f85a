"""The file of an event log: tables, versions, and how it is opened.

Retrievals lie in segments, one row per written batch with a BLOB per column, because inserting a
row costs more than everything else: every call of SQLite gives up the interpreter lock, and under a
busy application each one may wait 5 ms to have it back. Counts per time, labels, source and style
are ordinary rows (``rollups``, ``traffic``), written in the same transaction.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError, UnsupportedVersionError
from rag_sourcebias.io.damage import check_file, reason_of
from rag_sourcebias.io.private import PRIVATE, create_file
from rag_sourcebias.monitor.log.migrate import upgrade

__all__ = ["VERSION", "WIDTHS", "check_version", "open_for_writing", "reading"]

VERSION = 1
APPLICATION = 0x52534C31  # in the header of the file: it is a log of this library
WIDTHS = (60, 600, 3_600, 86_400)  # seconds of the rollups: each a multiple of the one before

_TABLES = """
CREATE TABLE IF NOT EXISTS segments (
    first INTEGER PRIMARY KEY, n INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL,
    weight REAL NOT NULL, times BLOB NOT NULL, labels BLOB NOT NULL, lengths BLOB NOT NULL,
    tags BLOB NOT NULL, queries, documents);
CREATE INDEX IF NOT EXISTS segments_until ON segments (until);
CREATE TABLE IF NOT EXISTS tags (code INTEGER PRIMARY KEY, source TEXT, style TEXT);
CREATE TABLE IF NOT EXISTS labels (code INTEGER PRIMARY KEY, labels TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rollups (
    width INTEGER, start INTEGER, labels INTEGER, tag INTEGER,
    documents REAL NOT NULL, first REAL NOT NULL, exposure REAL NOT NULL,
    PRIMARY KEY (width, start, labels, tag)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS traffic (
    width INTEGER, start INTEGER, labels INTEGER,
    retrievals REAL NOT NULL, empty REAL NOT NULL, kept INTEGER NOT NULL,
    PRIMARY KEY (width, start, labels)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dropped (reason TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
# Later additions, which version 0.1 neither reads nor minds: both may write one log, and a log of
# 0.1 is read as it is. `noted` counts, by kind and name: retrievals whose value of a label became
# "other" in its set ("other"), those that have it beside the set ("alone"), and "bad tags".
_ADDED = (
    "CREATE TABLE IF NOT EXISTS event_labels (first INTEGER PRIMARY KEY, labels TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS noted (kind TEXT, name TEXT, n INTEGER NOT NULL, "
    "PRIMARY KEY (kind, name)) WITHOUT ROWID",
    "CREATE TRIGGER IF NOT EXISTS segments_removed AFTER DELETE ON segments "
    "BEGIN DELETE FROM event_labels WHERE first = OLD.first; END",
)


def open_for_writing(
    path: Path, *, busy_seconds: float, file_mode: int = PRIVATE
) -> sqlite3.Connection:
    """Open a log, creating or migrating it where needed.

    A new file gets ``file_mode``, and SQLite gives the same to the write-ahead log and the shared
    memory beside it.

    ``synchronous = NORMAL``: with write-ahead logging a commit survives the death of the process
    at any moment. Losing power may cost the latest commits, never the file; the alternative is to
    wait for the disk at every batch.

    Raises
    ------
    DataError
        If the file is not an event log.
    UnsupportedVersionError
        If a newer release wrote it.
    sqlite3.Error
        If it cannot be opened or written now.
    """
    if os.path.lexists(path):
        check_file(path)
    with suppress(OSError):  # of which SQLite will tell as well
        create_file(path, file_mode)
    database = sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False
    )
    try:
        if _version_of(database, path) == 0:
            database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA journal_size_limit = 16777216")
        database.execute("BEGIN IMMEDIATE")
        if _version_of(database, path) == 0:
            for statement in filter(str.strip, _TABLES.split(";")):
                database.execute(statement)
            # Names the log in the files of an archive that several logs may share.
            database.execute("INSERT INTO state VALUES ('id', ?)", (secrets.randbits(40),))
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {VERSION}")
        for statement in _ADDED:
            database.execute(statement)
        database.execute("COMMIT")
        upgrade(database, path, target=VERSION)
    except BaseException:
        with suppress(sqlite3.Error):
            database.close()
        raise
    return database


@contextmanager
def reading(path: str | Path) -> Iterator[sqlite3.Connection]:
    """Open a log that may be written at the same time, for reading only.

    Raises
    ------
    DataError
        If there is no such file, or it is not an event log or cannot be read.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"event log {path} is not there; give the path an EventLog writes to")
    address = f"{path.resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=5.0)) as database:
            version = _version_of(database, path)
            if version != VERSION:
                raise UnsupportedVersionError(
                    f"event log {path} has version {version}, this release reads {VERSION}; "
                    "open it once with EventLog to have it migrated"
                )
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of a message about damage
        raise DataError(f"event log {path} cannot be read: {reason_of(error)}") from error


def _version_of(database: sqlite3.Connection, path: Path) -> int:
    """Return the version of a log, 0 of an empty file."""
    try:
        (application,) = _one(database, "PRAGMA application_id")
        (version,) = _one(database, "PRAGMA user_version")
        (tables,) = _one(database, "SELECT count(*) FROM sqlite_schema")
    except sqlite3.OperationalError:
        raise  # busy, or cannot be opened: that may pass
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is damaged or not an event log ({reason_of(error)})") from error
    if not tables:
        return 0
    if application != APPLICATION:
        raise DataError(f"{path} is another program's SQLite file; an event log needs its own")
    check_version(int(version), path)
    return int(version)


def check_version(version: int, path: Path) -> None:
    """Refuse a log that a newer release wrote."""
    if version > VERSION:
        raise UnsupportedVersionError(
            f"event log {path} has version {version}, this release reads up to {VERSION}; "
            "upgrade rag-sourcebias or log to another file"
        )


def _one(database: sqlite3.Connection, query: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] = database.execute(query).fetchone()
    return row
