"""Where a follower of a log stands, in a file that is always complete."""

from __future__ import annotations

import contextlib
import glob
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError, UnsupportedVersionError
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import read_json, write_atomic
from rag_sourcebias.io.private import PRIVATE

__all__ = ["START_ANEW", "STATE_FILE", "Position", "read_position", "write_position"]

_KIND, _VERSION = "log-follower", 1
STATE_FILE = "the state file of a monitor"
START_ANEW = "start anew, or name another state file"


@dataclass(kw_only=True)
class Position:
    """How far a log was read.

    Parameters
    ----------
    log : int or None
        Which log it is; None before it was seen.
    number : int or None
        Of the last retrieval read; None before any.
    n_read : int
        Retrievals given to the monitor.
    dropped : mapping of str to int
        Retrievals that could not be read, by reason.
    """

    log: int | None = None
    number: int | None = None
    n_read: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)


def write_position(
    path: Path, position: Position, monitor: Mapping[str, Any], *, mode: int = PRIVATE
) -> None:
    """Write a position and the state that the monitor has there, or leave the file as it was.

    A new file gets this mode.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    data = {
        "kind": _KIND,
        "version": _VERSION,
        "log": position.log,
        "number": position.number,
        "n_read": position.n_read,
        "dropped": dict(position.dropped),
        "monitor": monitor,
    }
    write_atomic(path, json.dumps(data), mode=mode)


def read_position(path: Path) -> tuple[Position, dict[str, Any]] | None:
    """Return what :func:`write_position` wrote; None where there is no such file.

    Parts that a killed process left beside it are removed.

    Raises
    ------
    DataError
        If the file is something else or cannot be read.
    UnsupportedVersionError
        If another release wrote it.
    """
    with contextlib.suppress(OSError):
        for part in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
            part.unlink(missing_ok=True)
    if not os.path.lexists(path):
        return None
    data = read_json(path, STATE_FILE, remedy=START_ANEW)
    if not isinstance(data, dict) or data.get("kind") != _KIND:
        raise DataError(f"{path} is not {STATE_FILE}; {START_ANEW}")
    if data.get("version") != _VERSION:
        raise UnsupportedVersionError(
            f"state file {path} has version {data.get('version')!r}, this release reads "
            f"{_VERSION}; {START_ANEW}"
        )
    with sound(path, STATE_FILE, remedy=START_ANEW):
        position = Position(
            log=_whole(data["log"]),
            number=_whole(data["number"]),
            n_read=int(data["n_read"]),
            dropped={str(k): int(v) for k, v in data["dropped"].items()},
        )
        return position, dict(data["monitor"])


def _whole(value: Any) -> int | None:  # noqa: ANN401 - of a JSON file
    return None if value is None else int(value)
