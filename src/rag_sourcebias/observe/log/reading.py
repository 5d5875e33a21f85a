"""Both ends of a log's retrievals: what came after a number, and the newest first."""

import glob
import json
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import reason_of, sound
from rag_sourcebias.core.errors import (
    DataError,
    SourceBiasError,
    UnsupportedVersionError,
    is_source,
    require_one_of,
)
from rag_sourcebias.observe.events import STAGES, DroppedEvents, Stage
from rag_sourcebias.observe.log.journal import journals_of
from rag_sourcebias.observe.log.schema import (
    SEGMENT_COLUMNS,
    VERSION,
    WIDTHS,
    EventColumns,
    LogSettings,
    Row,
    decoder,
    label_set,
    labels_of,
    microseconds,
    noted_of,
    state_of,
    tags_of,
    version_of,
)
from rag_sourcebias.observe.log.writing import LogWriter, say_once

# Open a log, with what its journals hold.


_SECONDS = 2.0  # a reader waits no longer for journals; a million retrievals take half a minute


def recover(path: Path) -> None:
    """Take in what processes left in their journals, where the log can be written."""
    if not journals_of(path):
        return
    writer = LogWriter(path, LogSettings(), DroppedEvents())
    why = "there was not the time"
    try:
        if writer.take_in(now=time.time(), patience=_SECONDS, seconds=_SECONDS):
            return
    except (sqlite3.Error, OSError, SourceBiasError) as error:
        why = reason_of(error)  # a disk that is only read, or another process is at it
    say_once(f"journals of event log {path} could not all be taken in ({why}): read it again")


@contextmanager
def reading(path: str | Path) -> Iterator[sqlite3.Connection]:
    """Open a log that may be written at the same time, for reading only.

    What waits in journals is first taken in, for at most two seconds.

    Raises
    ------
    DataError
        If there is no such file, or it is not an event log or cannot be read.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    path = Path(path)
    recover(path)
    if not path.is_file():
        raise DataError(f"event log {path} is not there; give the path an EventLog writes to")
    address = f"{path.resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=5.0)) as database:
            version = version_of(database, path)
            if version == 0:
                raise DataError(
                    f"event log {path} is empty; it is begun when an EventLog next writes there"
                )
            if version != VERSION:
                raise UnsupportedVersionError(
                    f"event log {path} has version {version}, this release reads {VERSION}; read "
                    "it with the release that wrote it"
                )
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of a message about damage
        raise DataError(f"event log {path} cannot be read: {reason_of(error)}") from error


# Read an event log while others write it.


_SEGMENTS = (
    f"SELECT {SEGMENT_COLUMNS} FROM segments "
    "WHERE first > ? AND until >= ? AND since < ? ORDER BY first LIMIT ?"
)
_ENDS = (
    "SELECT (SELECT first FROM segments ORDER BY first LIMIT 1), "
    "(SELECT since FROM segments ORDER BY first LIMIT 1), "
    "(SELECT until FROM segments ORDER BY first DESC LIMIT 1)"
)
# Of days, whose rollups stay: codes are also given out to what never came, such as "other".
_USED_CODES = "SELECT DISTINCT labels FROM traffic WHERE width = 86400"
_USED_LABELS = f"SELECT labels FROM labels WHERE code IN ({_USED_CODES}) ORDER BY code"
_USED_TAGS = (
    "SELECT source, style FROM tags WHERE code IN "
    "(SELECT DISTINCT tag FROM rollups WHERE width = 86400) ORDER BY code"
)
_SOURCES = (
    "SELECT source, sum(documents) FROM rollups JOIN tags ON code = tag "
    "WHERE width = 86400 AND source IS NOT NULL AND code > 0 GROUP BY source ORDER BY source"
)
_AT_ONCE = 16  # segments; who writes the log waits for a longer read


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSummary:
    """What a log holds.

    Parameters
    ----------
    n_written, n_kept : int
        Retrievals written ever, and those that retention has left; stages count one by one.
    n_later : int
        Of those written, stages that took the place of an earlier one.
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
    notes : tuple of str
        What instrumentations said, such as a framework outside the tested versions, and the log of
        where it lies.
    beside : tuple of str
        Names of files that took its place, were moved aside as damaged, or rotated.
    """

    n_written: int = 0
    n_kept: int = 0
    n_later: int = 0
    since: float | None = None
    until: float | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    labels: tuple[Mapping[str, str], ...] = ()
    tags: tuple[tuple[str | None, str | None], ...] = ()
    overflowed: Mapping[str, int] = field(default_factory=dict)
    event_labels: Mapping[str, int] = field(default_factory=dict)
    bad_tags: int = 0
    odd_sources: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


@contextmanager
def _at_one_moment(path: str | Path) -> Iterator[sqlite3.Connection]:
    """Open a log of which all tables are read as they are now."""
    with reading(path) as database, sound(path, "a sound event log"):
        database.execute("BEGIN")
        yield database


def log_summary(path: str | Path) -> LogSummary:
    """Return what a log holds.

    Raises
    ------
    DataError
        If there is no such file, or it is not an event log or cannot be read.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    with _at_one_moment(path) as database:
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
            n_later=state.later,
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
            notes=tuple(noted_of(database, "note")),
            beside=_beside(Path(path)),
        )


def _beside(path: Path) -> tuple[str, ...]:
    stem, suffix = glob.escape(path.stem), glob.escape(path.suffix)
    found = (
        file for kind in ("-", ".damaged-") for file in path.parent.glob(f"{stem}{kind}*{suffix}")
    )
    return tuple(sorted(file.name for file in found))


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
    low = microseconds(since, 0)
    high = microseconds(until, 2**62)
    after = 0
    with reading(path) as database:
        while rows := database.execute(_SEGMENTS, (after, low, high, _AT_ONCE)).fetchall():
            after = rows[-1][0]
            read = decoder(database)
            for row in rows:
                part = read(row)
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
    stage: Stage | Literal["latest", "all"] = "latest",
) -> EventColumns:
    """Return the retrievals of a log as one set of arrays; see :func:`iter_events`.

    Parameters
    ----------
    stage : {"latest", "retrieved", "reranked", "shown", "cited", "all"}
        One row a request: what readers got, as far as it is known, or what one stage left; or a
        row for each stage.
    """
    require_one_of("stage", stage, ("latest", "all", *STAGES))
    parts = list(iter_events(path, since=since, until=until, labels=labels))
    if parts:
        joined = EventColumns.joined(parts)
        return joined if stage == "all" else joined.at_stage(stage)
    with reading(path) as database:
        row = (0, 0, 0, 0, b"", b"", b"", b"", None, None, None, None, None)
        return decoder(database)(row)


# Counts over time, read from the rollups of a log: fast however many retrievals there were.


class NotCountedError(DataError):
    """A label is asked for by a value that is kept with retrievals, and not counted by."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rollups:
    """Counts per time step and group: T steps, G groups.

    Parameters
    ----------
    starts : float64 array of shape (T,)
        Start of each step in which something was retrieved, in seconds since 1970, rising.
    groups : tuple of str, length G
        Sources or styles, sorted; "" are the documents for which it is unknown.
    documents, first, exposure : float64 arrays of shape (T, G)
        Documents retrieved, those at rank 1, and the sum of 1/log2(rank + 1).
    retrievals, empty : float64 arrays of shape (T,)
        Retrievals, and those that returned nothing.
    """

    starts: npt.NDArray[np.float64]
    groups: tuple[str, ...]
    documents: npt.NDArray[np.float64]
    first: npt.NDArray[np.float64]
    exposure: npt.NDArray[np.float64]
    retrievals: npt.NDArray[np.float64]
    empty: npt.NDArray[np.float64]

    def shares(self) -> npt.NDArray[np.float64]:
        """Share of the exposure of each group, shape (T, G); NaN where nothing was retrieved."""
        total = self.exposure.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.asarray(self.exposure / total)


def read_rollups(
    path: str | Path,
    *,
    since: float | None = None,
    until: float | None = None,
    labels: Mapping[str, str] | None = None,
    by: Literal["source", "style"] = "source",
    step: int = 60,
) -> Rollups:
    """Return counts per time step.

    Parameters
    ----------
    path : str or Path
    since, until : float or None
        Seconds since 1970. What is counted in minutes (10 minutes, hours, UTC days, where ``step``
        is a multiple of that: reading is faster) is taken as a whole when it ends after ``since``
        and begins before ``until``.
    labels : mapping of str to str, optional
        Only retrievals with all of these labels.
    by : {"source", "style"}
    step : int
        Seconds; a multiple of 60.

    Raises
    ------
    DataError
        If an option is not one of these, there is no such file, or it is not an event log or
        cannot be read.
    NotCountedError
        If a value of a label is kept with its retrievals only.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    require_one_of("by", by, ("source", "style"))
    if step < 1 or step % WIDTHS[0]:
        raise DataError(f"step must be a multiple of {WIDTHS[0]} seconds, got {step}")
    step = int(step)
    width = max(w for w in WIDTHS if step % w == 0)
    low = microseconds(since, 0) // 1_000_000 // width * width
    high = -(-microseconds(until, 2**62) // 1_000_000)
    with _at_one_moment(path) as database:
        codes = None
        if labels is not None:
            wanted = labels.items()
            known = labels_of(database)
            codes = tuple(i for i, one in enumerate(known) if wanted <= one.items())
            alone = [] if codes else sorted(set(labels) & set(noted_of(database, "alone")))
            if alone:
                raise NotCountedError(
                    f"the value {labels[alone[0]]!r} of label {alone[0]!r} is kept with its "
                    "retrievals and has no counts over time; read_events(labels=…) finds them"
                )
            used = {n for (n,) in database.execute(_USED_CODES)}
            codes = None if used.issubset(codes) else codes
        cells, traffic = _counted(database, width, codes, low, high)
        return _table(cells, traffic, [tag[by == "style"] or "" for tag in tags_of(database)], step)


_MOST_SOUGHT = 100_000
_SUMS = "sum(documents), sum(first), sum(exposure)"


def _counted(
    database: sqlite3.Connection, width: int, codes: tuple[int, ...] | None, low: int, high: int
) -> list[npt.NDArray[np.float64]]:
    """Return sums over sets of labels, by start and tag, and by start."""
    where, given = _where(database, width, codes, low, high)
    table = "totals" if codes is None else "rollups"
    return [
        np.array(database.execute(query, given).fetchall(), np.float64).reshape(-1, n)
        for n, query in (
            (5, f"SELECT start, tag, {_SUMS} FROM {table} {where} GROUP BY start, tag"),
            (3, f"SELECT start, sum(retrievals), sum(empty) FROM traffic {where} GROUP BY start"),
        )
    ]


def _where(
    database: sqlite3.Connection, width: int, codes: tuple[int, ...] | None, low: int, high: int
) -> tuple[str, tuple[object, ...]]:
    """Return a condition and its parameters; few sets of labels are sought step by step."""
    span = "width = ?1 AND start >= ?2 AND start < ?3"
    given = (width, low, high)
    if codes is None:
        return f"WHERE {span}", given
    chosen = f"labels IN ({','.join(map(str, codes))})"
    first, last = _ends(database, span, given)
    starts = [] if first is None else range(first, last + 1, width)
    if len(starts) * len(codes) > _MOST_SOUGHT:
        return f"WHERE {span} AND {chosen}", given
    steps = "start IN (SELECT value FROM json_each(?2))"
    return f"WHERE width = ?1 AND {steps} AND {chosen}", (width, json.dumps(list(starts)))


def _ends(database: sqlite3.Connection, span: str, given: tuple[int, ...]) -> Any:  # noqa: ANN401
    """Return first and last start of a span, each sought by itself; None where there is none."""
    ends = (f"(SELECT {end}(start) FROM traffic WHERE {span})" for end in ("min", "max"))
    return database.execute(f"SELECT {', '.join(ends)}", given).fetchone()


def rollup_extent(path: str | Path) -> dict[int, tuple[int, int]]:
    """Return the time that rollups cover, by their width in seconds.

    Returns
    -------
    dict of int to (int, int)
        Start of the first, and end of the last, in seconds since 1970; empty for an empty log.

    Raises
    ------
    DataError, UnsupportedVersionError
        As :func:`read_rollups`.
    """
    found: dict[int, tuple[int, int]] = {}
    with _at_one_moment(path) as database:
        for width in WIDTHS:
            first, last = _ends(database, "width = ?1", (width,))
            if first is not None:
                found[width] = (first, last + width)
    return found


def _table(
    rows: npt.NDArray[np.float64], traffic: npt.NDArray[np.float64], names: list[str], step: int
) -> Rollups:
    starts, place = np.unique(traffic[:, 0] // step * step, return_inverse=True)
    sums = np.zeros((len(starts), 2))
    np.add.at(sums, place, traffic[:, 1:])
    retrievals, empty = sums.T
    rows = rows[np.isin(rows[:, 0] // step * step, starts)]  # of a damaged file
    groups = sorted({names[int(tag)] for tag in rows[:, 1]})
    column = np.array([groups.index(n) if n in groups else 0 for n in names], np.intp)
    at = (np.searchsorted(starts, rows[:, 0] // step * step), column[rows[:, 1].astype(np.intp)])
    tables = np.zeros((3, len(starts), len(groups)))
    for table, values in zip(tables, rows[:, 2:].T, strict=True):
        np.add.at(table, at, values)
    return Rollups(
        starts=starts,
        groups=tuple(groups),
        documents=tables[0],
        first=tables[1],
        exposure=tables[2],
        retrievals=retrievals,
        empty=empty,
    )


# Both ends of a log's retrievals: what came after a number, and the newest first.


# Who writes the log waits for a longer read.
_RETRIEVALS_AT_ONCE = 20_000  # retrievals
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
        One row a request: its latest stage.
    waits : bool
        Whether what follows is held back, because a later stage may take its place.
    """

    log: int
    last: int
    number: int
    removed: int
    broken: int
    parts: tuple[EventColumns, ...]
    waits: bool = False


SETTLED_SECONDS = 60.0
"""After so long no later stage of a request is expected."""


def settled(part: EventColumns, later: Sequence[EventColumns]) -> EventColumns:
    """Return the rows of a part whose place no row of it, or of those after it, takes."""
    whole = EventColumns.joined([part, *later]).at_stage("latest")
    return whole.take(whole.numbers <= part.numbers[-1])


def read_tail(path: str | Path, *, after: int | None, most: int = _RETRIEVALS_AT_ONCE) -> Tail:
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
    with _at_one_moment(path) as database:
        state = state_of(database)
        following = state.following
        rows: list[Row] = []
        ahead: list[Row] = []
        waits = False
        now = time.time()
        for row in database.execute(
            f"SELECT {SEGMENT_COLUMNS} FROM segments WHERE first > ? "
            f"AND {_NUMBERED} ORDER BY first LIMIT ?",
            (after or 0, _MOST_SEGMENTS + 1),
        ):
            # only in a log in which requests have later stages
            waits |= bool(state.later) and 0 <= now - row[3] / 1e6 < SETTLED_SECONDS
            enough = len(rows) == _MOST_SEGMENTS or (rows and row[0] - rows[0][0] >= most)
            if ahead or enough or waits:
                ahead.append(row)
                if not state.later:
                    break
            else:
                rows.append(row)
        if ahead:
            following = int(ahead[0][0])
        read = decoder(database)
    number, removed, broken = after, 0, 0
    parts = []
    ends = [*(int(row[0]) for row in rows[1:]), following]
    for row, end in zip(rows, ends, strict=False):
        first = int(row[0])
        count = row[1] if isinstance(row[1], int) else 0
        n = max(min(count, end - first), 1)  # of a damaged file, too, it leads forward
        removed += 0 if number is None else max(first - number - 1, 0)
        number = first + n - 1
        part = _readable(row, read)
        if part is None:
            broken += n
        else:
            parts.append(part)
    if state.later:
        later = [part for row in ahead if (part := _readable(row, read)) is not None]
        parts = [] if not parts else [settled(EventColumns.joined(parts), later)]
    if not (rows or ahead):
        removed = 0 if number is None else max(state.last - number, 0)
        number = state.last
    return Tail(
        log=state.log,
        last=state.last,
        number=number or 0,
        removed=removed,
        broken=broken,
        parts=tuple(parts),
        waits=waits,
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
    with _at_one_moment(path) as database:
        read = decoder(database)
        if until is not None:  # times never fall: all that begins later has a higher number
            found = database.execute(
                f"SELECT first FROM segments WHERE until >= ? AND {_NUMBERED} "
                "ORDER BY until, first LIMIT 1",
                (microseconds(until, 0),),
            ).fetchone()
            limit = limit if found is None else min(limit, int(found[0]) + 1)
        for row in database.execute(
            f"SELECT {SEGMENT_COLUMNS} FROM segments WHERE first < ? "
            f"AND {_NUMBERED} ORDER BY first DESC",
            (limit,),
        ):
            part = _readable(row, read)
            if part is not None and before is not None:
                part = part.take(part.numbers < before)
            yield int(row[0]), part


def _readable(row: Row, read: Callable[[Row], EventColumns]) -> EventColumns | None:
    """Return the retrievals of a row of ``segments``, None where it contradicts itself."""
    try:
        return read(row)
    except sqlite3.DatabaseError:
        return None
