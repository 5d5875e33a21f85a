"""Bring a log of an older version up to date, after a copy of it was made."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from rag_sourcebias.errors import UnsupportedVersionError
from rag_sourcebias.io.private import create_file

__all__ = ["upgrade"]

# By the version it starts from. A step runs inside a transaction and may not end it.
Steps = Mapping[int, Callable[[sqlite3.Connection], None]]
_STEPS: Steps = {}


def upgrade(
    database: sqlite3.Connection, path: Path, *, target: int, steps: Steps = _STEPS
) -> Path | None:
    """Run the steps from the file's version to ``target`` in one transaction.

    Before that the whole log is copied to ``<name>.v<version>.backup`` beside it. A step that
    fails leaves the log as it was.

    Returns
    -------
    Path or None
        The copy; None when there was nothing to do.

    Raises
    ------
    UnsupportedVersionError
        If there is no step from the version that the file has.
    sqlite3.Error
        If copying or a step fails.
    """
    database.execute("BEGIN IMMEDIATE")  # two processes may open an old log at once
    try:
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
        if version >= target:
            database.execute("ROLLBACK")
            return None
        # The first alone: the number may be a damaged one.
        missing = next((v for v in range(version, target) if v not in steps), None)
        if missing is not None:
            raise UnsupportedVersionError(
                f"event log {path} has version {missing}, which this release cannot migrate; "
                "log to another file"
            )
        copy = _copy(path, version)
        for number in range(version, target):
            steps[number](database)
        database.execute(f"PRAGMA user_version = {target}")
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise
    return copy


def _copy(path: Path, version: int) -> Path:
    """Copy the log as it was last committed; the name appears when the copy is complete."""
    copy = path.with_name(f"{path.name}.v{version}.backup")
    part = copy.with_name(copy.name + ".part")
    part.unlink(missing_ok=True)
    create_file(part, stat.S_IMODE(path.stat().st_mode))
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(part)) as target:
        source.backup(target)
    part.replace(copy)
    return copy
