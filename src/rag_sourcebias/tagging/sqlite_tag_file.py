"""The SQLite file of a tag store: its table, and what its cells can hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import check_file, reason_of
from rag_sourcebias.io.sqlite_file import SqliteFile

__all__ = ["SCHEMA", "TABLE", "Cell", "TagFile", "from_cell", "to_cell"]

TABLE = "rag_sourcebias_tags"
# A row that is replaced gets a new, highest `n`: the order of the last put.
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    n INTEGER PRIMARY KEY, doc_id TEXT NOT NULL UNIQUE, text_hash BLOB,
    source TEXT, style TEXT, pair_id TEXT, origin TEXT, confidence REAL)
"""
Cell = str | bytes | float | None


class TagFile(SqliteFile):
    """The file with messages of its own: a cache may be deleted, a tag store may not."""

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Open the file as :class:`SqliteFile` does."""
        try:
            with super().connection() as database:
                yield database
        except DataError as error:
            if not isinstance(error.__cause__, sqlite3.OperationalError):
                raise
            raise self._unusable(error.__cause__) from error.__cause__

    def check(self) -> None:
        """Look at an existing file without changing it.

        Raises
        ------
        DataError
            If it is no database, or one with tables of another program only.
        """
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        check_file(self.path)
        try:
            address = f"{self.path.resolve().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=60.0)) as database:
                names = [str(name) for (name,) in database.execute(query)]
        except sqlite3.OperationalError as error:
            raise self._unusable(error) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self.damaged(reason_of(error)) from error
        if names and TABLE not in names:
            raise DataError(
                f"{self.path} is a database of another program (it holds {', '.join(names[:5])}); "
                "name a file of its own for the tags"
            )

    def _unusable(self, error: sqlite3.OperationalError) -> DataError:
        return DataError(
            f"tag store {self.path} cannot be used ({reason_of(error)}); check that its folder can "
            "be written, that the disk is not full and that the file is a tag store"
        )

    def damaged(self, reason: str, kind: type[DataError] = DataError) -> DataError:
        """Return the error for content that cannot be read."""
        return kind(
            f"tag store {self.path} is damaged or not a tag store ({reason}); restore it from a "
            "copy or name another file"
        )


def to_cell(value: str | float | None) -> Cell:
    """Return what SQLite can hold: a text with a lone surrogate, which is no UTF-8, as bytes."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def from_cell(cell: Cell) -> str | float | None:
    """Return the value that :func:`to_cell` was given."""
    return cell.decode("utf-8", "surrogatepass") if isinstance(cell, bytes) else cell
