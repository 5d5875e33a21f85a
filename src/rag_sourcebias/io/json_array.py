"""Tables of any form, JSON arrays of objects included."""

from __future__ import annotations

import os
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import PathLike, open_bytes, read_json
from rag_sourcebias.io.tables import Chooser, Table, read_table

__all__ = ["read_any_table"]

_START = 4_096  # bytes in which the first bracket stands


class _Records(Table):
    """Rows without lines of their own: they are counted."""

    def where(self, row: int) -> str:
        """Name file and record of a row."""
        return f"{self.path}: record {self.lines[row]}"


def read_any_table(path: PathLike, choose: Chooser) -> Table:
    """Read a table as :func:`~rag_sourcebias.io.tables.read_table`, or a JSON array of objects.

    Raises
    ------
    DataError
        As :func:`~rag_sourcebias.io.tables.read_table`, and if an array holds something else.
    """
    name = os.fspath(path)
    if _is_parquet(name) or not _is_array(Path(path)):
        return read_table(path, choose)
    rows = read_json(path, "a JSON array of objects")
    if not rows:
        raise DataError(f"{name} holds an empty array; at least one record is needed")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise DataError(f"{name}: record {number} is {row!r:.80}; expected an object")
    names = tuple(dict.fromkeys(key for row in rows for key in row))
    columns = {column: [row.get(column) for row in rows] for column in choose(names)}
    return _Records(path=name, names=names, lines=range(1, len(rows) + 1), columns=columns)


def _is_array(path: Path) -> bool:
    with sound(path, "a table or a JSON array"), open_bytes(path) as stream:
        start = stream.read(_START).removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith(b"[")


def _is_parquet(name: str) -> bool:
    return Path(name).suffix in (".parquet", ".pq")
