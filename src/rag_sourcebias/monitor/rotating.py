"""Move a log aside while applications go on writing, so that each retrieval is in one file."""

import os
import secrets
import sqlite3
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path

from rag_sourcebias.core.codec import reason_of
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import DroppedEvents
from rag_sourcebias.observe.log.journal import taking_turns
from rag_sourcebias.observe.log.reading import reading
from rag_sourcebias.observe.log.schema import LogSettings, open_for_writing
from rag_sourcebias.observe.log.writing import LogWriter, keep_positions, positions_of


def rotate_log(
    path: str | Path, to: str | Path | None = None, *, busy_seconds: float = 60.0
) -> Path:
    """Move a log aside, and begin a new one under its path; return where the old one is.

    What waits in journals is first taken in. Applications go on, and so does a dashboard: the new
    log has the identity of the old one, its numbers follow, and it knows how far each journal was
    taken in, so that no retrieval is in both files or in neither.

    Parameters
    ----------
    path : str or Path
    to : str, Path or None
        A name that is free, on the same file system; None adds the time to that of the log.
    busy_seconds : float
        How long to wait for others who use the log.

    Raises
    ------
    DataError
        If there is no such log, the name is taken, or the files cannot be written: nothing was
        moved then.
    """
    log = Path(path).absolute()
    now = datetime.now().astimezone().strftime("%Y%m%dT%H%M%S")
    target = log.with_name(f"{log.stem}-{now}{log.suffix}") if to is None else Path(to).absolute()
    if os.path.lexists(target):
        raise DataError(f"{target} is there already; name one that is not")
    with reading(path):
        pass  # says what is wrong with it
    mode = log.stat().st_mode & 0o777
    settings = LogSettings(file_mode=mode, busy_seconds=busy_seconds)
    writer = LogWriter(log, settings, DroppedEvents())
    try:
        with taking_turns(log, busy_seconds):
            writer.take_turn(now=time.time())
            _exchange(log, target, settings)
    except (OSError, sqlite3.Error) as error:
        raise DataError(
            f"event log {log} cannot be moved to {target} ({reason_of(error)}): its folder must be "
            "writable, and the other name on the same file system"
        ) from error
    return target


def _exchange(log: Path, target: Path, settings: LogSettings) -> None:
    """Have a new log follow under the path; the caller has its turn."""
    new = log.with_name(f".{log.name}.{secrets.token_hex(4)}.new")
    try:
        with closing(open_for_writing(log, busy_seconds=settings.busy_seconds)) as old:
            old.execute("BEGIN IMMEDIATE")  # against those for whom there are no turns
            _begin(new, old, settings)
            log.rename(target)
            new.rename(log)
    finally:
        new.unlink(missing_ok=True)


def _begin(new: Path, old: sqlite3.Connection, settings: LogSettings) -> None:
    with closing(open_for_writing(new, file_mode=settings.file_mode)) as begun:
        begun.execute("BEGIN")
        begun.executemany(
            "INSERT OR REPLACE INTO state VALUES (?, ?)",
            old.execute("SELECT name, value FROM state"),
        )
        keep_positions(begun, positions_of(old))
        begun.execute("COMMIT")
