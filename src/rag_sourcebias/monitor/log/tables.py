"""What the small tables of a log say: its state, and what its codes stand for."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from rag_sourcebias.errors import DataError

__all__ = [
    "LogState",
    "has_table",
    "labels_of",
    "microseconds",
    "noted_of",
    "segment_columns",
    "state_of",
    "tags_of",
]


class LogState(NamedTuple):
    """How far a log has come.

    ``log`` tells logs apart: another one may come to lie under the same path. ``following`` is the
    number of the next retrieval, 1 in a new log, ``latest`` the time of the last one, in
    microseconds since 1970, and ``erased`` counts how often retrievals were deleted by label.
    """

    log: int
    following: int
    latest: int
    erased: int

    @property
    def last(self) -> int:
        """Number of the latest retrieval ever written, 0 before the first."""
        return self.following - 1


def state_of(database: sqlite3.Connection) -> LogState:
    """Return how far a log has come."""
    found = dict(database.execute("SELECT name, value FROM state"))
    names = {"id": 0, "next": 1, "last": 0, "erased": 0}
    return LogState(*(int(found.get(name, value)) for name, value in names.items()))


def has_table(database: sqlite3.Connection, name: str) -> bool:
    """Whether a log has a table; one of version 0.1 lacks what was added later."""
    found = database.execute("SELECT count(*) FROM sqlite_schema WHERE name = ?", (name,))
    return bool(found.fetchone()[0])


def segment_columns(database: sqlite3.Connection) -> str:
    """Return the columns of ``segments`` that :func:`~.segments.decoded` takes."""
    if not has_table(database, "event_labels"):
        return "segments.*"
    return "segments.*, (SELECT e.labels FROM event_labels e WHERE e.first = segments.first)"


def noted_of(database: sqlite3.Connection, kind: str) -> dict[str, int]:
    """Return what was counted of a kind, by name."""
    if not has_table(database, "noted"):
        return {}
    return dict(database.execute("SELECT name, n FROM noted WHERE kind = ? ORDER BY name", (kind,)))


def labels_of(database: sqlite3.Connection) -> tuple[Mapping[str, str], ...]:
    """Return the sets of labels in the order of their codes."""
    rows = database.execute("SELECT labels FROM labels ORDER BY code")
    return tuple(label_set(text) for (text,) in rows)


def label_set(text: object) -> Mapping[str, str]:
    """Return a set of labels.

    Raises
    ------
    sqlite3.DatabaseError
        If the text is none: the file was damaged.
    """
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise sqlite3.DatabaseError(f"{text!r:.80} is no set of labels")
    return found


def tags_of(database: sqlite3.Connection) -> tuple[tuple[str | None, str | None], ...]:
    """Return (source, style) in the order of their codes."""
    found = tuple(database.execute("SELECT source, style FROM tags ORDER BY code"))
    bad = next((pair for pair in found if not all(isinstance(v, str | None) for v in pair)), None)
    if bad is not None:
        raise sqlite3.DatabaseError(f"{bad!r:.80} are no source and style")
    return found


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
