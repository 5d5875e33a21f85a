"""Where vectors, models and answers are kept: a folder, and SQLite files for many processes."""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rag_sourcebias.core.codec import check_file, reason_of
from rag_sourcebias.core.errors import DataError

MOST_KEYS = 500  # per SELECT; SQLite's own limit on variables was 999 for long
_WAIT_SECONDS = 60.0  # for another process that is writing


def cache_dir() -> Path:
    """Return the cache folder, which need not exist yet.

    ``RAG_SOURCEBIAS_CACHE`` if set, else ``rag-sourcebias`` below ``XDG_CACHE_HOME``, else
    ``~/.cache/rag-sourcebias``.
    """
    own = os.environ.get("RAG_SOURCEBIAS_CACHE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "rag-sourcebias"


class SqliteFile:
    """One table in one file; a connection is opened for each use.

    So one object may be shared between threads and survives a fork.

    Parameters
    ----------
    path : str or Path
        The file; it and its folder are created on first use.
    schema : str
        ``CREATE TABLE IF NOT EXISTS …``
    """

    # words of the messages
    kind = "cache"
    whole_kind = "cache of this library"
    remedy = "delete the file, it will be filled again"

    def __init__(self, path: str | Path, schema: str) -> None:
        self.path = Path(path)
        self._schema = schema

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

    def create_folder(self) -> None:
        """Create the folder of the file where it is missing."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"cache folder {self.path.parent} cannot be created ({error}); choose a folder "
                "that can be written"
            ) from error

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Open the file, commit when the block ends, roll back when it raises.

        Raises
        ------
        DataError
            If the file is damaged, is not such a cache, or cannot be opened or written.
        """
        if os.path.lexists(self.path):
            check_file(self.path)
        try:
            with closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS)) as database:
                _write_ahead(database)
                database.execute("PRAGMA synchronous = NORMAL")
                with database:
                    database.execute(self._schema)
                    yield database
        except sqlite3.OperationalError as error:
            raise self.unusable(error) from error
        # UnicodeDecodeError: of a message that quotes what is damaged
        except (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError) as error:
            raise self.damaged(reason_of(error)) from error

    def rows_of(
        self, query: str, keys: Sequence[object], *first: object
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query that ends in ``IN ({})``, for any number of keys.

        Nothing where there is no file; ``first`` are the values before the keys.
        """
        if not self.exists:
            return
        with self.connection() as database:
            for start in range(0, len(keys), MOST_KEYS):
                part = keys[start : start + MOST_KEYS]
                marks = ",".join("?" * len(part))
                yield from database.execute(query.format(marks), (*first, *part))

    def unusable(self, error: sqlite3.OperationalError) -> DataError:
        """Return the error for a file that cannot be opened or written."""
        return DataError(
            f"{self.kind} {self.path} cannot be used ({reason_of(error)}); check that its folder "
            "can be written, that the disk is not full and that the file is a "
            f"{self.whole_kind}"
        )

    def damaged(self, reason: str, kind: type[DataError] = DataError) -> DataError:
        """Return the error for content that cannot be read."""
        return kind(
            f"{self.kind} {self.path} is damaged or not a {self.kind} ({reason}); {self.remedy}"
        )


def _write_ahead(database: sqlite3.Connection) -> None:
    """Switch the file to write-ahead logging, once in its life.

    SQLite does not wait for the switch as it does for a write: while another process creates the
    same file it answers "database is locked" at once. So we wait here.
    """
    last = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > last:
                raise
            time.sleep(0.02)
        else:
            return
