"""Where the shards of a corpus file lie: byte positions of JSON lines, row groups of Parquet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import check_file
from rag_sourcebias.io.files import open_lines

__all__ = ["FileState", "Part", "index_jsonl", "state_fingerprint"]

_BOM = b"\xef\xbb\xbf"


class Part(NamedTuple):
    """Consecutive rows of one file that make a shard.

    ``start`` is the byte (of JSON lines) or the row group (of Parquet) at which it starts,
    ``first_row`` the number of the first line or row in the file, from 1, and ``length`` the
    number of lines, blank ones among them, or of row groups.
    """

    start: int
    first_row: int
    length: int
    n_documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """A file as it was at one moment."""

    path: Path
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Look at a file.

        Raises
        ------
        DataError
            If it is missing, or no ordinary file.
        """
        found = check_file(path)
        return cls(path=path, size=found.st_size, mtime_ns=found.st_mtime_ns)

    def check(self) -> None:
        """Make sure that the file is still as it was.

        Raises
        ------
        DataError
            If it is missing, or its size or time of change is another.
        """
        now = FileState.of(self.path)
        if now != self:
            what = (
                f"{self.size} bytes then, {now.size} now"
                if now.size != self.size
                else "another time of change"
            )
            raise DataError(
                f"{self.path} changed since it was opened ({what}): positions and results found "
                "before do not belong to it; open it again"
            )


def state_fingerprint(states: Iterable[FileState], folder: Path, *settings: object) -> str:
    """Identify files by their names within a folder, sizes and times, and settings."""
    files = [[os.path.relpath(s.path, folder), s.size, s.mtime_ns] for s in states]
    return hashlib.sha256(json.dumps([files, *settings]).encode()).hexdigest()


def index_jsonl(path: Path, shard_documents: int) -> list[Part]:
    """Find the parts of a plain JSON-lines file in one pass, without parsing it.

    Memory is that of the longest line.

    Parameters
    ----------
    path : Path
    shard_documents : int
        Documents of each part but the last.

    Raises
    ------
    DataError
        If the file cannot be read or holds no document.
    """
    parts: list[Part] = []
    start = position = 0
    first_row = n_documents = number = 0
    with open_lines(path) as stream:
        try:
            for number, raw in enumerate(stream, start=1):
                if n_documents == shard_documents:
                    parts.append(Part(start, first_row, number - first_row, n_documents))
                    n_documents = 0
                if not n_documents:
                    start, first_row = position, number
                position += len(raw)
                # Only a line that does not start as an object has to be looked at closely.
                if raw[:1] == b"{" or not _is_blank(raw, number):
                    n_documents += 1
        except OSError as error:
            raise DataError(f"{path}:{number + 1}: cannot be read further: {error}") from error
    if n_documents:
        parts.append(Part(start, first_row, number + 1 - first_row, n_documents))
    if not parts:
        raise DataError(f"{path} is empty; expected one JSON object with _id and text per line")
    return parts


def _is_blank(raw: bytes, number: int) -> bool:
    """Whether :func:`read_jsonl` passes over a line."""
    data = raw.removeprefix(_BOM) if number == 1 else raw
    return not data.decode("utf-8", errors="replace").strip()
