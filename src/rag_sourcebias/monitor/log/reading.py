"""Read an event log while others write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rag_sourcebias.io.damage import sound
from rag_sourcebias.monitor.log.columns import EventColumns
from rag_sourcebias.monitor.log.schema import reading
from rag_sourcebias.monitor.log.segments import decoded
from rag_sourcebias.monitor.log.tables import (
    label_set,
    labels_of,
    microseconds,
    noted_of,
    segment_columns,
    state_of,
    tags_of,
)
from rag_sourcebias.types.source_names import is_source

__all__ = [
    "LogSummary",
    "iter_events",
    "log_summary",
    "read_events",
]

_SEGMENTS = (
    "SELECT {} FROM segments WHERE first > ? AND until >= ? AND since < ? ORDER BY first LIMIT ?"
)
_ENDS = (
    "SELECT (SELECT first FROM segments ORDER BY first LIMIT 1), "
    "(SELECT since FROM segments ORDER BY first LIMIT 1), "
    "(SELECT until FROM segments ORDER BY first DESC LIMIT 1)"
)
# Of days, whose rollups stay: codes are also given out to what never came, such as "other".
_USED_LABELS = (
    "SELECT labels FROM labels WHERE code IN "
    "(SELECT DISTINCT labels FROM traffic WHERE width = 86400) ORDER BY code"
)
_USED_TAGS = (
    "SELECT source, style FROM tags WHERE code IN "
    "(SELECT DISTINCT tag FROM rollups WHERE width = 86400) ORDER BY code"
)
_SOURCES = (
    "SELECT source, sum(documents) FROM rollups JOIN tags ON code = tag "
    "WHERE width = 86400 AND source IS NOT NULL AND code > 0 GROUP BY source ORDER BY source"
)
_AT_ONCE = 16  # segments; a longer read would keep the write-ahead file from being emptied


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSummary:
    """What a log holds.

    Parameters
    ----------
    n_written, n_kept : int
        Retrievals written ever, and those that retention has left.
    since, until : float or None
        Seconds since 1970 of the first and the last retrieval left; None when there is none.
    dropped : mapping of str to int
        Events lost, by reason, as far as it could be written.
    labels : tuple of mapping of str to str
        Sets of labels that retrievals had.
    tags : tuple of (source, style)
        Of documents that were retrieved.
    overflowed : mapping of str to int
        Retrievals whose value of a label is "other" in ``labels``, by label; "" stands for labels
        whose very names were too many. Each value is kept with its retrieval.
    event_labels : mapping of str to int
        Retrievals that have a value of their own beside ``labels``, by label.
    bad_tags : int
        Tags that could not be read, and are unknown.
    odd_sources : mapping of str to int
        Documents retrieved whose source is neither "human" nor "llm:<model>", by source.
    """

    n_written: int
    n_kept: int
    since: float | None
    until: float | None
    dropped: Mapping[str, int]
    labels: tuple[Mapping[str, str], ...]
    tags: tuple[tuple[str | None, str | None], ...]
    overflowed: Mapping[str, int] = field(default_factory=dict)
    event_labels: Mapping[str, int] = field(default_factory=dict)
    bad_tags: int = 0
    odd_sources: Mapping[str, int] = field(default_factory=dict)


def log_summary(path: str | Path) -> LogSummary:
    """Return what a log holds.

    Raises
    ------
    DataError
        If there is no such file, or it is not an event log or cannot be read.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    with reading(path) as database, sound(path, "a sound event log"):
        database.execute("BEGIN")  # all tables at one moment
        state = state_of(database)
        # Retention takes the oldest only, and times never fall: both ends tell everything, however
        # many segments lie between.
        first, since, until = database.execute(_ENDS).fetchone()
        n_kept = 0 if first is None else state.following - first
        if state.erased and n_kept:  # holes
            (n_kept,) = database.execute("SELECT sum(n) FROM segments").fetchone()
        return LogSummary(
            n_written=state.last,
            n_kept=n_kept,
            since=None if since is None else since / 1e6,
            until=None if until is None else until / 1e6,
            dropped=dict(database.execute("SELECT reason, n FROM dropped")),
            labels=tuple(label_set(text) for (text,) in database.execute(_USED_LABELS)),
            tags=tuple(database.execute(_USED_TAGS)),
            overflowed=noted_of(database, "other"),
            event_labels=noted_of(database, "alone"),
            bad_tags=sum(noted_of(database, "bad tags").values()),
            odd_sources={
                source: round(n)
                for source, n in database.execute(_SOURCES)
                if not is_source(source)
            },
        )


def iter_events(
    path: str | Path,
    *,
    since: float | None = None,
    until: float | None = None,
    labels: Mapping[str, str] | None = None,
) -> Iterator[EventColumns]:
    """Yield the retrievals of a log in parts of at most 4,096, oldest first.

    Memory does not grow with the log, and writers are not held up. Retrievals written while this
    runs are read as well; those that retention removes meanwhile are not.

    Parameters
    ----------
    path : str or Path
    since, until : float or None
        Seconds since 1970; ``until`` itself is left out.
    labels : mapping of str to str, optional
        Only retrievals with all of these labels.

    Raises
    ------
    DataError
        If there is no such file, or it is not an event log or cannot be read.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    low, high = microseconds(since, 0), microseconds(until, 2**62)
    after = 0
    with reading(path) as database:
        query = _SEGMENTS.format(segment_columns(database))
        while rows := database.execute(query, (after, low, high, _AT_ONCE)).fetchall():
            after = rows[-1][0]
            known, tags = labels_of(database), tags_of(database)
            for row in rows:
                part = decoded(row, known, tags)
                keep = part.having(labels or {})
                if row[2] < low or row[3] >= high:
                    times = np.rint(part.times * 1e6)
                    keep &= (times >= low) & (times < high)
                if keep.any():
                    yield part.take(keep)


def read_events(
    path: str | Path,
    *,
    since: float | None = None,
    until: float | None = None,
    labels: Mapping[str, str] | None = None,
) -> EventColumns:
    """Return the retrievals of a log as one set of arrays; see :func:`iter_events`."""
    parts = list(iter_events(path, since=since, until=until, labels=labels))
    if parts:
        return EventColumns.joined(parts)
    with reading(path) as database:
        row = (0, 0, 0, 0, 1.0, b"", b"", b"", b"", None, None)
        return decoded(row, labels_of(database), tags_of(database))
