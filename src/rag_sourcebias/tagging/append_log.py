"""A file of JSON lines that only grows, and survives a crash in the middle of a write."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import SEEK_END, FileIO
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import open_lines, write_atomic

__all__ = ["AppendLog"]


class AppendLog:
    """The log of one process; not locked.

    Parameters
    ----------
    path : str or Path
        The file; it and its folder are created by the first ``append``.

    Attributes
    ----------
    lines : int
        Records in the file.
    torn : int
        1 if the last line was cut short when the log was read, else 0.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.lines = 0
        self.torn = 0
        self._good = 0  # bytes up to the end of the last complete record
        self._end = 0  # bytes of the file as this object knows it
        self._lead = b""  # the line end that the last record lacks

    def read(self) -> Iterator[tuple[str, object]]:
        """Stream place (``file:line``) and content of each record, leaving out a torn last line.

        Raises
        ------
        DataError
            If another line is damaged (file and line are named), or the file cannot be read.
        """
        if not os.path.lexists(self.path):
            return
        with sound(self.path, "a log of tags"), open_lines(self.path) as stream:
            for number, raw in enumerate(stream, start=1):
                where = f"{self.path}:{number}"
                self._end += len(raw)
                if raw.strip():
                    try:
                        record = json.loads(raw.decode("utf-8-sig"))
                    except (ValueError, RecursionError) as error:
                        if raw.endswith(b"\n"):
                            text = f"{where}: malformed JSON ({error}): {raw[:80]!r}"
                            raise DataError(text) from error
                        self.torn = 1
                        return
                    self.lines += 1
                    yield where, record
                self._good = self._end
                self._lead = b"" if raw.endswith(b"\n") else b"\n"

    def append(self, lines: list[str]) -> None:
        """Add lines of ASCII, durably: all of them, or none when the disk is full.

        Raises
        ------
        DataError
            If the file was changed by someone else, or cannot be written.
        """
        if not lines:
            return
        data = self._lead + "".join(lines).encode("ascii")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as stream:
                self._check_unchanged(stream.seek(0, SEEK_END))
                stream.truncate(self._good)  # removes a torn line
                self._end = self._good
                _write(stream, data, undo=self._good)
        except OSError as error:
            raise DataError(
                f"tags cannot be added to {self.path}: {error.strerror or error}; none of these "
                f"{len(lines)} rows were stored"
            ) from error
        self._good = self._end = self._good + len(data)
        self.lines, self._lead = self.lines + len(lines), b""

    def rewrite(self, lines: Iterable[str], *, count: int) -> None:
        """Replace the content by ``count`` lines; a crash leaves the old file or the new one.

        Raises
        ------
        DataError
            As :meth:`append`.
        """
        if not self.path.exists():
            return
        self._check_unchanged(self.path.stat().st_size)
        write_atomic(self.path, lines)
        self._good = self._end = self.path.stat().st_size
        self.lines, self._lead = count, b""

    def _check_unchanged(self, size: int) -> None:
        if size != self._end:
            raise DataError(
                f"{self.path} has {size} bytes, not the {self._end} this process knows of: another "
                "one changed it, or a write failed; open it again, or use a .sqlite tag store, "
                "which several processes may share"
            )


def _write(stream: FileIO, data: bytes, *, undo: int) -> None:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[stream.write(rest) :]
        os.fsync(stream.fileno())
    except OSError:
        with suppress(OSError):
            stream.truncate(undo)
        raise
