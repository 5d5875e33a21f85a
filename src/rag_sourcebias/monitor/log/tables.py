"""What the small tables of a log say: its state, and what its codes stand for."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from rag_sourcebias.errors import DataError

__all__ = ["LogState", "labels_of", "microseconds", "state_of", "tags_of"]


class LogState(NamedTuple):
    """How far a log has come.

    ``log`` tells logs apart: another one may come to lie under the same path. ``following`` is the
    number of the next retrieval, 1 in a new log, and ``latest`` the time of the last one, in
    microseconds since 1970.
    """

    log: int
    following: int
    latest: int

    @property
    def last(self) -> int:
        """Number of the latest retrieval ever written, 0 before the first."""
        return self.following - 1


def state_of(database: sqlite3.Connection) -> LogState:
    """Return how far a log has come."""
    found = dict(database.execute("SELECT name, value FROM state"))
    return LogState(int(found.get("id", 0)), int(found.get("next", 1)), int(found.get("last", 0)))


def labels_of(database: sqlite3.Connection) -> tuple[Mapping[str, str], ...]:
    """Return the sets of labels in the order of their codes."""
    rows = database.execute("SELECT labels FROM labels ORDER BY code")
    return tuple(json.loads(text) for (text,) in rows)


def tags_of(database: sqlite3.Connection) -> tuple[tuple[str | None, str | None], ...]:
    """Return (source, style) in the order of their codes."""
    return tuple(database.execute("SELECT source, style FROM tags ORDER BY code"))


def microseconds(seconds: float | None, otherwise: int) -> int:
    """Return a time as the log holds it.

    Raises
    ------
    DataError
        If it is so far off that it cannot be seconds since 1970.
    """
    if seconds is None:
        return otherwise
    if not -1e11 < seconds < 1e11:
        raise DataError(f"a time must be seconds since 1970, got {seconds}")
    return round(seconds * 1e6)
