"""Both ends of a log's retrievals: what came after a number, and the newest first."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_sourcebias.monitor.log.columns import EventColumns
from rag_sourcebias.monitor.log.schema import reading
from rag_sourcebias.monitor.log.segments import Row, decoded
from rag_sourcebias.monitor.log.tables import (
    labels_of,
    microseconds,
    segment_columns,
    state_of,
    tags_of,
)

__all__ = ["Tail", "iter_newest", "read_tail"]

# A longer read would keep the write-ahead file from being emptied.
_AT_ONCE = 20_000  # retrievals
_MOST_SEGMENTS = 2_000
# A damaged definition of the table lets other values in.
_NUMBERED = "typeof(first) = 'integer'"


@dataclass(frozen=True, kw_only=True, eq=False)
class Tail:
    """What a log holds after a number.

    Parameters
    ----------
    log : int
        Tells logs apart; another one may come to lie under the same path.
    last : int
        Number of the latest retrieval ever written, 0 before the first.
    number : int
        That of the last retrieval in ``parts``, or ``last`` where nothing is left to read.
    removed, broken : int
        Retrievals up to ``number`` that are not in ``parts``: retention took them, or their part
        of the file makes no sense.
    parts : tuple of EventColumns
    """

    log: int
    last: int
    number: int
    removed: int
    broken: int
    parts: tuple[EventColumns, ...]


def read_tail(path: str | Path, *, after: int | None, most: int = _AT_ONCE) -> Tail:
    """Return what was logged after a number, oldest first.

    Parameters
    ----------
    path : str or Path
    after : int or None
        Number of the last retrieval seen, which ended a written batch; None begins with the
        oldest that is left, and what went before it does not count as removed.
    most : int
        Retrievals after which no further batch is read.

    Raises
    ------
    DataError
        If there is no such file, or it is not an event log or cannot be read.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    with reading(path) as database:
        database.execute("BEGIN")  # all tables at one moment
        state = state_of(database)
        following = state.following
        rows: list[Row] = []
        for row in database.execute(
            f"SELECT {segment_columns(database)} FROM segments WHERE first > ? "
            f"AND {_NUMBERED} ORDER BY first LIMIT ?",
            (after or 0, _MOST_SEGMENTS + 1),
        ):
            if len(rows) == _MOST_SEGMENTS or (rows and row[0] - rows[0][0] >= most):
                following = int(row[0])
                break
            rows.append(row)
        known, tags = labels_of(database), tags_of(database)
    number, removed, broken = after, 0, 0
    parts = []
    ends = [*(int(row[0]) for row in rows[1:]), following]
    for row, end in zip(rows, ends, strict=False):
        first = int(row[0])
        count = row[1] if isinstance(row[1], int) else 0
        n = max(min(count, end - first), 1)  # of a damaged file, too, it leads forward
        removed += 0 if number is None else max(first - number - 1, 0)
        number = first + n - 1
        part = _readable(row, known, tags)
        if part is None:
            broken += n
        else:
            parts.append(part)
    if not rows:
        removed = 0 if number is None else max(state.last - number, 0)
        number = state.last
    return Tail(
        log=state.log,
        last=state.last,
        number=number or 0,
        removed=removed,
        broken=broken,
        parts=tuple(parts),
    )


def iter_newest(
    path: str | Path, *, before: int | None = None, until: float | None = None
) -> Generator[tuple[int, EventColumns | None], None, None]:
    """Yield the retrievals of a log in parts of at most 4,096, the newest part first.

    Close the iterator when enough was read: it holds the log open.

    Parameters
    ----------
    path : str or Path
    before : int or None
        Only retrievals with smaller numbers.
    until : float or None
        Seconds since 1970; parts that begin later are passed over without reading them.

    Yields
    ------
    int
        First number of the part.
    EventColumns or None
        Its retrievals, oldest first; None where that part of the file makes no sense.

    Raises
    ------
    DataError
        If there is no such file, or it is not an event log or cannot be read.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    limit = 2**62 if before is None else before
    with reading(path) as database:
        database.execute("BEGIN")
        known, tags = labels_of(database), tags_of(database)
        if until is not None:  # times never fall: all that begins later has a higher number
            found = database.execute(
                f"SELECT first FROM segments WHERE until >= ? AND {_NUMBERED} "
                "ORDER BY until, first LIMIT 1",
                (microseconds(until, 0),),
            ).fetchone()
            limit = limit if found is None else min(limit, int(found[0]) + 1)
        for row in database.execute(
            f"SELECT {segment_columns(database)} FROM segments WHERE first < ? "
            f"AND {_NUMBERED} ORDER BY first DESC",
            (limit,),
        ):
            part = _readable(row, known, tags)
            if part is not None and before is not None:
                part = part.take(part.numbers < before)
            yield int(row[0]), part


def _readable(
    row: Row,
    labels: tuple[Mapping[str, str], ...],
    tags: tuple[tuple[str | None, str | None], ...],
) -> EventColumns | None:
    """Return the retrievals of a row of ``segments``, None where it contradicts itself."""
    try:
        return decoded(row, labels, tags)
    except sqlite3.DatabaseError:
        return None
