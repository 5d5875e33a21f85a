"""The log of canary rounds: one JSON object per line, appended and never rewritten."""

from __future__ import annotations

import json
import os
import typing
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import PathLike, open_file, sound
from rag_sourcebias.types.canary import CanaryPoint
from rag_sourcebias.types.serial import from_plain

__all__ = ["append_point", "read_points"]

_BLOCK = 1 << 16
_KINDS = {
    name: dict if name == "labels" else kind
    for name, kind in typing.get_type_hints(CanaryPoint).items()
}
_LONGEST = 1 << 14  # bytes that a point may take on average, labels and all


def append_point(path: PathLike, point: CanaryPoint) -> None:
    """Append a point and wait until it is on the disk.

    A line that a killed process left half written is closed first, so only that one is lost.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    line = json.dumps(point.to_dict(), allow_nan=False).encode("ascii") + b"\n"
    try:
        with Path(path).open("a+b", buffering=0) as stream:
            end = stream.seek(0, os.SEEK_END)
            if end:
                stream.seek(end - 1)
                if stream.read(1) != b"\n":
                    line = b"\n" + line
            if stream.write(line) != len(line):
                raise OSError("the disk took only part of the line")
            os.fsync(stream.fileno())
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


def read_points(path: PathLike, limit: int = 2_000) -> list[CanaryPoint]:
    """Read the last points of a log, oldest first; only the end of a big file is read.

    Parameters
    ----------
    path : path
        A file that is not there yet has no points.
    limit : int
        At least 1.

    Raises
    ------
    DataError
        If the file cannot be read, or holds something else than points. Lines that are not JSON
        are left out: a process was killed, or is just writing.
    """
    if limit < 1:
        raise DataError(f"limit must be at least 1, got {limit}")
    file = Path(path)
    if not os.path.lexists(file):
        return []
    with sound(file, "the log of a canary probe"):
        tail = _tail(file, limit)
    points: list[CanaryPoint] = []
    for line in tail:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):  # also bytes that are not UTF-8
            continue
        with sound(file, "a log of canary points", names_file=False):
            points.append(_point(row))
    if not points and len(tail) > 1:
        raise DataError(f"{file} holds no canary points; expected one JSON object per line")
    return points[-limit:]


def _point(row: Any) -> CanaryPoint:  # noqa: ANN401 - what JSON holds
    """Read a point; ``from_plain`` says what is wrong, but takes ten times as long."""
    if isinstance(row, dict) and all(
        name in row and isinstance(row[name], kind) for name, kind in _KINDS.items()
    ):
        return CanaryPoint(**{name: row[name] for name in _KINDS})
    return from_plain(CanaryPoint, row)


def _tail(file: Path, limit: int) -> list[bytes]:
    """Return at least the last ``limit`` lines, or all there are, without blank ones."""
    with open_file(file) as stream:
        start = stream.seek(0, os.SEEK_END)
        least, data = max(0, start - limit * _LONGEST - _BLOCK), b""
        while start > least and data.count(b"\n") <= limit:
            size = min(_BLOCK, start)
            start -= size
            stream.seek(start)
            data = stream.read(size) + data
    lines = data.split(b"\n")
    if start:
        lines = lines[1:]  # begins somewhere in a line
    return [line for line in lines if line.strip()]
