"""What is written into a log: lines of journals as columns, counts over time, and what leaves."""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import re
import secrets
import sqlite3
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import reason_of
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.core.private import PRIVATE, create_file, create_folder
from rag_sourcebias.intake.tables import pyarrow_modules
from rag_sourcebias.observe.events import STAGES, DroppedEvents, RetrievalEvent, hash_query
from rag_sourcebias.observe.labels import Key, short_text
from rag_sourcebias.observe.log.journal import (
    KEPT_SECONDS,
    folder_of,
    is_written,
    journals_of,
    remove_if_ended,
    taken_in,
    taking_turns,
    unread,
)
from rag_sourcebias.observe.log.schema import (
    MOST_TAGS,
    REPLACES,
    SEGMENT_COLUMNS,
    WIDTHS,
    Batch,
    Documents,
    EventColumns,
    LabelCodes,
    LogSettings,
    Row,
    TagCodes,
    decoder,
    insert_segments,
    is_log,
    open_for_writing,
    segments_of,
    state_of,
)

logger = logging.getLogger("rag_sourcebias.observe")

# A retrieval as a line of a journal, and back.


_LONGEST_ID = 200
_LATEST = 1e11  # seconds since 1970 that a caller may give: the year 5138


class Ranked(msgspec.Struct, array_like=True, frozen=True):
    """The documents of one stage, best first.

    Parameters
    ----------
    time : int
        Microseconds since 1970.
    tags : list of (source, style)
    ids : list of str or None
        As the log keeps them: not, as hashes of 16 hex digits, or as they are.
    """

    time: int
    tags: list[tuple[str | None, str | None]]
    ids: list[str] | None


class Line(msgspec.Struct, array_like=True, frozen=True):
    """One retrieval, or a later stage of one, as a journal holds it.

    Parameters
    ----------
    ranked : Ranked
    stage : int
        Index into ``STAGES``.
    request, query : str
        "" where there is none.
    labels : dict of str to str
    bad_tags : int
    earlier : Ranked or None
        The stage whose place this one takes.
    """

    ranked: Ranked
    stage: int
    request: str
    query: str
    labels: dict[str, str]
    bad_tags: int
    earlier: Ranked | None


_encode = msgspec.json.Encoder().encode
decode_line = msgspec.json.Decoder(Line).decode


def line_of(
    event: RetrievalEvent, settings: LogSettings, *, now: float, monotonic: float, at: float | None
) -> bytes:
    """Return the line of an event: only what the log is to keep.

    Parameters
    ----------
    now, monotonic : float
        Both clocks at one moment, in seconds.
    at : float or None
        Seconds since 1970 to log it under; None takes the event's own time.

    Raises
    ------
    Exception
        If the event is none, whatever it is instead.
    """
    offset = now - monotonic
    ranked, n_bad = _ranked(event, settings, offset, now, at)
    earlier = None if event.earlier is None else _ranked(event.earlier, settings, offset, now)[0]
    labels = {_text(name): _text(value) for name, value in event.labels.items()}
    key = settings.key or b""
    for name in settings.hashed_labels.intersection(labels):
        labels[name] = hash_query(event.labels[name], key=key)
    return _encode(
        Line(
            ranked=ranked,
            stage=STAGES.index(event.stage),
            request=_short(event.request),
            query=_short(event.query_hash),
            labels=labels,
            bad_tags=n_bad + event.bad_tags,
            earlier=earlier,
        )
    )


def _ranked(
    event: RetrievalEvent,
    settings: LogSettings,
    offset: float,
    now: float,
    at: float | None = None,
) -> tuple[Ranked, int]:
    """Return the documents of an event, and how many of their tags are none."""
    most = settings.max_documents
    if at is not None and 0 <= at < _LATEST:
        when = at
    else:
        when = event.monotonic + offset
        when = when if 0 <= when <= now else now  # also of NaN
    tags, n_bad = _pairs(event.tags[:most])
    ids = _IDS_OF[settings.documents](event.ranked.doc_ids[:most], settings.key or b"")
    return Ranked(int(when * 1e6), tags, ids), n_bad


def _pairs(tags: Sequence[Any]) -> tuple[list[tuple[str | None, str | None]], int]:
    """Return source and style of tags of which some may not be readable, and how many these are."""
    found = []
    n_bad = 0
    for tag in tags:
        try:
            pair = _pair(tag.source, tag.style)
        except Exception:  # noqa: BLE001 - an object of another kind may raise anything
            pair = (None, None)
            n_bad += 1
        found.append(pair)
    return found, n_bad


@lru_cache(maxsize=1_000)  # as many as come back; a call costs as much as all else of a document
def _pair(source: str | None, style: str | None) -> tuple[str | None, str | None]:
    return (
        None if source is None else short_text(source),
        None if style is None else short_text(style),
    )


_text = lru_cache(maxsize=4_000)(short_text)


# Turn lines into columns.


def encoded(
    lines: Sequence[Line], tags: TagCodes, labels: LabelCodes, *, last: int, settings: LogSettings
) -> Batch:
    """Return lines as they are stored.

    Parameters
    ----------
    last : int
        Microseconds of the latest retrieval in the log: times never fall, whatever a clock does.
    """
    beside = _Beside(labels, settings)
    codes: list[int] = []
    for row, line in enumerate(lines):
        given = tuple(line.labels.items())
        code, alone, replaced = beside.split(given)
        codes.append(code)
        if alone or replaced or line.bad_tags:
            beside.note(row, alone, replaced, line.bad_tags)
    times = np.array([line.ranked.time for line in lines], np.int64)
    times[:1] = np.maximum(times[:1], last)
    return Batch(
        times=np.maximum.accumulate(times),
        label_codes=np.array(codes, np.uint16),
        lengths=np.array([len(line.ranked.tags) for line in lines], np.int64),
        tags=bytes(tags[tag] for line in lines for tag in line.ranked.tags),
        query_ids=[line.query for line in lines],
        doc_ids=_doc_ids(lines, settings.documents),
        event_labels=beside.event_labels,
        noted=beside.noted(),
        stages=np.array(
            [line.stage + REPLACES * (line.earlier is not None) for line in lines], np.uint8
        ),
        requests=[line.request for line in lines],
    )


def _doc_ids(lines: Sequence[Line], documents: Documents) -> list[Any] | None:
    if documents == "none":
        return None
    ids = [name for line in lines for name in line.ranked.ids or ()]
    return list(map(bytes.fromhex, ids)) if documents == "hashed" else ids


_NONE: tuple[str, ...] = ()


class _Beside:
    """What a batch keeps beside codes: labels of single retrievals, and counts."""

    def __init__(self, codes: LabelCodes, settings: LogSettings) -> None:
        self._codes = codes
        self._apart = settings.event_labels
        self.event_labels: defaultdict[str, dict[int, str]] = defaultdict(dict)
        # of this batch: sessions ask more than once
        self._split: dict[Key, tuple[int, Mapping[str, str] | None, tuple[str, ...]]] = {}
        self._noted: Counter[tuple[str, str]] = Counter()

    def split(self, given: Key) -> tuple[int, Mapping[str, str] | None, tuple[str, ...]]:
        """Return the code of the set, labels to keep with the retrieval, and those replaced."""
        code = self._codes.get(given)
        if code is not None:
            return code, None, _NONE
        known = self._split.get(given)
        if known is not None:
            return known
        labels, apart, codes = dict(given), self._apart, self._codes
        alone = {name: value for name, value in labels.items() if name in apart}
        items = tuple([item for item in labels.items() if item[0] not in apart])
        code = codes.get(items)
        replaced = _NONE
        if code is None:
            code, replaced = codes.fitted(items)
            alone |= {name: labels[name] for name in replaced if name in labels}
        if not alone and not replaced:
            codes.remember(given, code)
        elif not replaced:
            self._split[given] = code, alone, replaced
        return code, alone, replaced

    def note(
        self, row: int, alone: Mapping[str, str] | None, replaced: Sequence[str], n_bad: int
    ) -> None:
        """Take what :meth:`split` returned of a retrieval that is recorded, and its bad tags."""
        for name, value in (alone or {}).items():
            if value:
                self.event_labels[name][row] = value
        for name in replaced:
            self._noted["other", name] += 1
        if n_bad:
            self._noted["bad tags", ""] += n_bad

    def noted(self) -> Counter[tuple[str, str]]:
        for name, values in self.event_labels.items():
            self._noted["alone", short_text(name)] += len(values)
        return self._noted


def _short(name: object) -> str:
    """Return an id that fits: "" for none, a hash instead of a very long one."""
    if name is None:
        return ""
    text = name if isinstance(name, str) else str(name)
    if len(text) > _LONGEST_ID:
        return _hash(text, b"").hex()
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@lru_cache(maxsize=65_536)  # popular documents come back
def _hash(text: str, key: bytes) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=8).digest()


def _plain(ids: Sequence[str], _: bytes) -> list[str]:
    return [_short(i) for i in ids]


def _hashed(ids: Sequence[str], key: bytes) -> list[str]:
    return [_hash(i if isinstance(i, str) else _short(i), key).hex() for i in ids]


_IDS_OF: dict[Documents, Callable[[Sequence[str], bytes], list[str] | None]] = {
    "none": lambda _ids, _key: None,
    "hashed": _hashed,
    "plain": _plain,
}


# Counts per time, labels, source and style, kept up to date as retrievals are written.


# One statement for all rows: see schema.py on what every call of SQLite costs.
_ROLLUPS = """
INSERT INTO rollups
SELECT ?1, json_extract(value, '$[0]') / ?1 * ?1,
    json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    sum(json_extract(value, '$[3]')), sum(json_extract(value, '$[4]')),
    sum(json_extract(value, '$[5]'))
FROM json_each(?2) WHERE true GROUP BY 2, 3, 4
ON CONFLICT DO UPDATE SET documents = documents + excluded.documents,
    first = first + excluded.first, exposure = exposure + excluded.exposure
"""
_TRAFFIC = """
INSERT INTO traffic
SELECT ?1, json_extract(value, '$[0]') / ?1 * ?1, json_extract(value, '$[1]'),
    sum(json_extract(value, '$[2]')), sum(json_extract(value, '$[3]'))
FROM json_each(?2) WHERE true GROUP BY 2, 3
ON CONFLICT DO UPDATE SET retrievals = retrievals + excluded.retrievals,
    empty = empty + excluded.empty
"""
_TOTALS = """
INSERT INTO totals
SELECT ?1, json_extract(value, '$[0]') / ?1 * ?1, json_extract(value, '$[1]'),
    sum(json_extract(value, '$[2]')), sum(json_extract(value, '$[3]')),
    sum(json_extract(value, '$[4]'))
FROM json_each(?2) WHERE true GROUP BY 2, 3
ON CONFLICT DO UPDATE SET documents = documents + excluded.documents,
    first = first + excluded.first, exposure = exposure + excluded.exposure
"""


class Counted(NamedTuple):
    """What is added to the counts over time, n rankings with nnz documents.

    Parameters
    ----------
    times : int64 array of shape (n,)
        Microseconds since 1970.
    label_codes : uint16 array of shape (n,)
    lengths : int64 array of shape (n,)
    tags : uint8 array of shape (nnz,)
    weights : int64 array of shape (n,)
        1, or -1 for an earlier stage whose place another one has taken.
    """

    times: npt.NDArray[np.int64]
    label_codes: npt.NDArray[np.uint16]
    lengths: npt.NDArray[np.int64]
    tags: npt.NDArray[np.uint8]
    weights: npt.NDArray[np.int64]


def counted(batch: Batch, lines: Sequence[Line], tags: TagCodes, placed: dict[str, int]) -> Counted:
    """Return what a batch adds to the counts: what readers got, as far as it is known.

    Parameters
    ----------
    placed : dict of str to int
        Times under which requests were counted, in microseconds; the batch is added to it.
    """
    times, codes, lengths, cells = [], [], [], []
    for row, line in enumerate(lines):
        if line.earlier is not None:
            times.append(placed.get(line.request, line.earlier.time))
            codes.append(batch.label_codes[row])
            lengths.append(len(line.earlier.tags))
            cells += [tags[tag] for tag in line.earlier.tags]
        placed[line.request] = int(batch.times[row])
    n = len(times)
    return Counted(
        times=np.concatenate([batch.times, np.array(times, np.int64)]),
        label_codes=np.concatenate([batch.label_codes, np.array(codes, np.uint16)]),
        lengths=np.concatenate([batch.lengths, np.array(lengths, np.int64)]),
        tags=np.concatenate([np.frombuffer(batch.tags, np.uint8), np.array(cells, np.uint8)]),
        weights=np.repeat(np.array([1, -1]), [len(batch), n]),
    )


def add_to_rollups(database: sqlite3.Connection, found: Counted) -> None:
    """Add rankings to the rollups of every width, inside the caller's transaction.

    Exposure is the sum of 1/log2(rank + 1), as that of ``ExposureObserver``.
    """
    lengths = found.lengths
    starts = found.times // (WIDTHS[0] * 1_000_000) * WIDTHS[0]
    keys, group = np.unique(starts * 65_536 + found.label_codes, return_inverse=True)
    ends = np.cumsum(lengths)
    ranks = np.arange(1, int(ends[-1]) + 1) - np.repeat(ends - lengths, lengths)
    cells = np.repeat(group, lengths) * MOST_TAGS + found.tags
    weights = np.repeat(found.weights, lengths)
    used = np.unique(cells)
    start = keys // 65_536
    label = keys % 65_536
    rollups = [
        start[used // MOST_TAGS],
        label[used // MOST_TAGS],
        used % MOST_TAGS,
        *(
            np.bincount(cells, weights=weights * value)[used]
            for value in (1.0, ranks == 1, 1 / np.log2(ranks + 1))
        ),
    ]
    traffic = [
        start,
        label,
        np.bincount(group, weights=found.weights),
        np.bincount(group, weights=found.weights * (lengths == 0)),
    ]
    steps, part = np.unique(rollups[0] * MOST_TAGS + rollups[2], return_inverse=True)
    sums = (np.bincount(part, weights=column) for column in rollups[3:])
    totals = [steps // MOST_TAGS, steps % MOST_TAGS, *sums]
    for statement, columns in ((_ROLLUPS, rollups), (_TRAFFIC, traffic), (_TOTALS, totals)):
        rows = json.dumps(list(zip(*(column.tolist() for column in columns), strict=True)))
        for width in WIDTHS:
            database.execute(statement, (width, rows))


# Parquet files of retrievals that left the log, one folder per day, for DuckDB and others.


_NAME = re.compile(r"events-\w+-\d+-(\d+)\.parquet")
_DAY_SECONDS = 86_400


def archive_segments(
    database: sqlite3.Connection, folder: Path, rows: list[Row], *, file_mode: int = PRIVATE
) -> None:
    """Write rows of ``segments`` as Parquet, inside the transaction that removes them.

    What an earlier attempt has written before it was interrupted is not written again.
    """
    log = f"{state_of(database).log:010x}"
    written = (path.name for path in folder.glob(f"date=*/events-{log}-*.parquet"))
    done = max((int(m[1]) for name in written if (m := _NAME.fullmatch(name))), default=0)
    columns = EventColumns.joined(list(map(decoder(database), rows)))
    columns = columns.take(columns.numbers > done)
    days = columns.times // _DAY_SECONDS
    for day in np.unique(days):
        write_parquet(columns.take(days == day), folder, log=log, file_mode=file_mode)


def write_parquet(
    columns: EventColumns, folder: Path, *, log: str, file_mode: int = PRIVATE
) -> Path:
    """Write the retrievals of one UTC day, at least one, to ``date=YYYY-MM-DD/events-….parquet``.

    The name tells log, first and last number, and is given when the file is complete.
    Columns: ``number``, ``time`` (UTC), ``labels`` (JSON), ``query_id``, the lists
    ``sources``, ``styles`` and ``doc_ids``, best document first, and ``event_labels`` (JSON):
    labels such as the session, which go before ``labels``. In DuckDB::

        SELECT source, count(*) FROM (SELECT unnest(sources) AS source
        FROM read_parquet('folder/*/*.parquet', hive_partitioning = true)) GROUP BY source

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    pa, pq = pyarrow_modules("an archive of an event log")
    sources, styles = (
        pa.array(names, pa.string()).take(pa.array(columns.tag_codes))
        for names in zip(*columns.tags, strict=True)
    )
    table = {
        "number": pa.array(columns.numbers),
        "time": pa.array(np.rint(columns.times * 1e6).astype(np.int64), pa.timestamp("us", "UTC")),
        "labels": pa.DictionaryArray.from_arrays(
            columns.label_codes, pa.array([json.dumps(dict(known)) for known in columns.labels])
        ),
        "query_id": pa.array(columns.query_ids, pa.string()),
        "sources": pa.ListArray.from_arrays(pa.array(columns.offsets, pa.int32()), sources),
        "styles": pa.ListArray.from_arrays(pa.array(columns.offsets, pa.int32()), styles),
    }
    if columns.stages is not None and columns.stages.any():
        table["stage"] = pa.array([STAGES[code % REPLACES] for code in columns.stages])
        table["replaces"] = pa.array(columns.stages >= REPLACES)
    if columns.requests is not None:
        table["request"] = pa.array(columns.requests, pa.string())
    if columns.event_labels:
        rows = range(len(columns))
        own = [{k: str(v[i]) for k, v in columns.event_labels.items() if v[i]} for i in rows]
        table["event_labels"] = pa.array([json.dumps(one) if one else None for one in own])
    if columns.doc_ids is not None:
        table["doc_ids"] = pa.ListArray.from_arrays(
            pa.array(columns.offsets, pa.int32()), pa.array(columns.doc_ids, pa.string())
        )
    day = datetime.fromtimestamp(float(columns.times[0]), UTC).date().isoformat()
    name = f"events-{log}-{columns.numbers[0]}-{columns.numbers[-1]}.parquet"
    target = folder / f"date={day}" / name
    create_folder(target.parent, file_mode)
    part = target.with_suffix(".part")
    create_file(part, file_mode)
    pq.write_table(pa.table(table), part, compression="zstd")
    with part.open("rb") as written:  # the log removes the retrievals next
        os.fsync(written.fileno())
    part.replace(target)
    return target


# Remove the oldest retrievals by age and by size.


_EVERY = 30.0  # seconds between looks at the age
_AT_ONCE = 64  # segments per transaction, so that other writers get their turn
_PAGES = 2_000  # given back to the file system at once
_WORTH_A_FILE = 200_000  # retrievals
_IN_A_FILE = 300_000  # retrievals
_MANY = 20_000  # segments of few retrievals each
_DAY = 86_400_000_000
_HOUR = 3_600
_TO_KEEP = 0.9  # of max_bytes, so that not every batch has to remove some


def used_bytes(database: sqlite3.Connection) -> int:
    """Bytes of a log without its free pages."""
    pages, free, size = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _give_back(database: sqlite3.Connection) -> None:
    database.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()


# Take journals in: one transaction for all that waits, and the places up to which they were read.


_AT_ONCE_BYTES = 8_000_000  # of journals in one transaction
_CLOCK_SECONDS = 5.0  # behind the log, before that is worth a line
_PLACED = 10_000  # requests whose time is remembered, for stages that come later
_DROPPED = (
    "INSERT INTO dropped SELECT key, value FROM json_each(?) WHERE true "
    "ON CONFLICT DO UPDATE SET n = n + excluded.n"
)
_NOTED = (
    "INSERT INTO noted SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), "
    "json_extract(value, '$[2]') FROM json_each(?) WHERE true "
    "ON CONFLICT DO UPDATE SET n = n + excluded.n"
)
_POSITIONS = (
    "INSERT INTO journals VALUES (?, ?) ON CONFLICT DO UPDATE SET position = excluded.position"
)
# Beside the positions: the number of the next retrieval. What does not agree with it is of another
# time than the positions, such as a copy that was laid over the file while it was written.
_NEXT = ""
_FORGET_SECONDS = 3_600.0  # a journal that was removed comes back under its name within a minute
_MOST_PLACES = 100
_UNREADABLE = "line of a journal could not be read"


def codes_of(database: sqlite3.Connection, settings: LogSettings) -> tuple[TagCodes, LabelCodes]:
    """Return the codes of a log as they are now, to which others may be added."""
    tags = database.execute("SELECT source, style FROM tags ORDER BY code")
    labels = database.execute("SELECT labels FROM labels ORDER BY code")
    return (
        TagCodes(tags, most=settings.max_tags),
        LabelCodes(
            (text for (text,) in labels),
            most_values=settings.max_label_values,
            most_sets=settings.max_label_sets,
        ),
    )


# How far journals were taken in: rows of the log, so that they are as old as its retrievals.


def positions_of(database: sqlite3.Connection) -> dict[str, int]:
    """Return how far each journal was taken in.

    Raises
    ------
    sqlite3.DatabaseError
        If parts of the file are of different times.
    """
    positions = dict(database.execute("SELECT name, position FROM journals"))
    state = state_of(database)
    known = positions.pop(_NEXT, state.following)
    last = database.execute("SELECT first + n FROM segments ORDER BY first DESC LIMIT 1").fetchone()
    end = state.following if last is None else last[0]
    if known != state.following or end > state.following or (end < known and not state.erased):
        raise sqlite3.DatabaseError(f"retrievals up to {end - 1}, counted up to {known - 1}")
    return positions


def keep_positions(database: sqlite3.Connection, moved: Mapping[str, int]) -> None:
    """Write how far journals were taken in, inside the transaction that takes them in."""
    if moved:
        rows = {**moved, _NEXT: state_of(database).following}
        database.executemany(_POSITIONS, rows.items())


def forget_positions(database: sqlite3.Connection, *, known: Set[str], now: float) -> None:
    """Forget journals that are gone for good; their names begin with a time."""
    old = f"{max(int((now - _FORGET_SECONDS) * 1e9), 0):020d}"
    names = database.execute("SELECT name FROM journals WHERE name > '' AND name < ?", (old,))
    gone = [(name,) for (name,) in names.fetchall() if name not in known]
    database.executemany("DELETE FROM journals WHERE name = ?", gone)


# What is done where the path of a log leads to something else.


_PASSING = ("BUSY", "LOCKED", "FULL", "IOERR", "READONLY", "CANTOPEN", "PERM", "NOMEM", "PROTOCOL")


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether a log is damaged, and not only busy, full or read-only: that may pass."""
    if isinstance(error, sqlite3.OperationalError):
        name = getattr(error, "sqlite_errorname", "SQLITE_").removeprefix("SQLITE_")
        return not name.startswith(_PASSING)
    return type(error) in (sqlite3.DatabaseError, sqlite3.IntegrityError)


def move_aside(path: Path, error: Exception) -> None:
    """Give a damaged log another name: what can be read of it stays readable."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    aside = path.with_name(f"{path.stem}.damaged-{now}-{secrets.token_hex(2)}{path.suffix}")
    path.replace(aside)
    logger.warning("event log %s is damaged (%s): it is kept as %s, and a new one begins",
                   path, reason_of(error), aside)  # fmt: skip


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what changes when another program writes a file, or another one takes its place."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _is_written(file: Path) -> bool:
    try:
        return is_written(file)
    except OSError:  # gone, or of another user
        return file.exists()


_said: set[str] = set()


def say_once(text: str) -> bool:
    """Log a line, unless this process has logged it before; return whether it did."""
    if text in _said:
        return False
    _said.add(text)
    logger.warning("%s", text)
    return True


def places(path: Path) -> Iterator[Path]:
    """Yield where a log may lie: under its path, or beside it, as ``log-2.db`` and so on."""
    yield path
    for number in range(2, _MOST_PLACES):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")


def positions_beside(path: Path) -> dict[str, int]:
    """Return up to where other logs of the folder took journals in: one of them was this one.

    A log that was moved or copied away holds what it took in; one that was moved aside because it
    is damaged may not.
    """
    found: dict[str, int] = {}
    for other in path.parent.iterdir():
        if other == path or ".damaged-" in other.name or not other.is_file() or not is_log(other):
            continue
        address = f"{other.resolve().as_uri()}?mode=ro"
        with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as database:
            for name, position in positions_of(database).items():
                found[name] = max(position, found.get(name, 0))
    return found


class LogWriter:
    """Take the journals of a log in; several of them, also of several processes, may do so.

    The log is opened for each batch and closed behind it: what lies under its path now is written
    to, if it is a log of this release. Where it is not, nothing of it is changed: retrievals go
    into another file beside it, and a damaged log is first moved aside. Not thread-safe: the caller
    holds a lock.

    Parameters
    ----------
    path : Path
    settings : LogSettings
        Used for what has no header of its own: retention, waiting for others, modes of files.
    dropped : DroppedEvents
        Counts that are kept in the log.

    Attributes
    ----------
    current : Path
        Where the last batch was written.
    notes : deque of str
        That wait to be written.
    """

    def __init__(self, path: Path, settings: LogSettings, dropped: DroppedEvents) -> None:
        self.path = self.current = path
        self._settings = settings
        self._dropped = dropped
        self._looked = -math.inf  # at the age
        self._reported = dict(dropped.by_reason)  # a forked child starts with those of its parent
        self.notes: deque[str] = deque()
        self._placed: dict[str, int] = {}
        self._clock_behind = False
        self._patience = settings.busy_seconds
        self._positions: dict[str, int] = {}
        self._unreadable = 0

    def open(self) -> sqlite3.Connection:
        """Return a connection to the log, or to the file that takes its place.

        Raises
        ------
        sqlite3.Error, OSError, SourceBiasError
            If none can be opened now.
        """
        settings = self._settings
        why: Exception | None = None
        for place in places(self.path):
            self.current = place
            try:
                found = open_for_writing(
                    place, busy_seconds=self._patience, file_mode=settings.file_mode
                )
            except (DataError, UnsupportedVersionError) as error:
                why = why or error
                continue
            if why is not None:
                self._say(f"{why}; retrievals go into {place} until that is mended")
            return found
        raise DataError(f"{why}; as many files lie beside it as are tried")

    def _say(self, text: str) -> None:
        """Log a line, once, and keep it with the log."""
        if say_once(text):
            self.notes.append(short_text(text))

    def take_in(
        self, *, now: float, patience: float, seconds: float = math.inf, ending: bool = False
    ) -> bool:
        """Write what waits in the journals, and counts of what was lost; each once, or not at all.

        Parameters
        ----------
        now : float
            Seconds since 1970.
        patience : float
            Seconds to wait for others who are at the log.
        seconds : float
            After so long no further batch is begun.
        ending : bool
            Whether this process writes no more: where no other does, no journal has to stay.

        Returns
        -------
        bool
            Whether nothing is left.

        Raises
        ------
        sqlite3.Error, OSError
            If the log cannot be written now: everything stays in the journals.
        """
        if not (journals_of(self.path) or self._lost() or self.notes):
            return True
        self._patience = patience
        with taking_turns(self.path, patience) as has_locks:
            if not has_locks:
                self._say(
                    f"{self.path.parent} is on a file system without locks: batches are kept "
                    "apart by those of SQLite alone; a local disk has both"
                )
            whole = self.take_turn(now=now, seconds=seconds)
            files = journals_of(self.path)
            is_last = ending and whole and not any(map(_is_written, files))
            for file in files:
                remove_if_ended(
                    file,
                    self._positions.get(file.name, 0),
                    kept_seconds=0.0 if is_last else KEPT_SECONDS,
                )
            if is_last:
                with suppress(OSError):  # where a journal is not for us to take
                    folder_of(self.path).rmdir()
        return whole

    def take_turn(self, *, now: float, seconds: float = math.inf) -> bool:
        """Do as :meth:`take_in` for a caller who has its turn, and remove no journal."""
        last = time.monotonic() + seconds
        is_new = False
        more = True
        while more:
            try:
                more = self._take_some(now)
            except sqlite3.DatabaseError as error:
                if is_new or not is_damage(error):
                    raise
                move_aside(self.current, error)
                is_new = True
            if time.monotonic() > last:
                break
        return not more

    def _take_some(self, now: float) -> bool:
        """Take one batch in; return whether something is left."""
        with closing(self.open()) as database:
            stamp = _stamp(self.current)  # before anything is read that is gone on with
            database.execute("BEGIN IMMEDIATE")
            positions = self._positions = positions_of(database)
            if not positions:
                positions.update(positions_beside(self.current))
                keep_positions(database, positions)
            # not before: another process may have seen a journal that is newer than a list
            files = journals_of(self.path)
            self._unreadable = 0
            batches, moved, is_more = self._waiting(files, positions)
            for header, lines in batches.items():
                merged = [line for _, line in sorted(lines, key=itemgetter(0))]
                self._write(database, LogSettings.of_header(header), merged, now)
            keep_positions(database, moved)
            lost, notes = self._lost(), list(self.notes)
            if self._unreadable:
                lost[_UNREADABLE] = lost.get(_UNREADABLE, 0) + self._unreadable
            database.execute(_DROPPED, (json.dumps(lost),))
            database.execute(_NOTED, (json.dumps([["note", text, 1] for text in notes]),))
            forget_positions(database, known={file.name for file in files}, now=now)
            if _stamp(self.current) != stamp:
                database.execute("ROLLBACK")  # nothing is in the file yet
                raise OSError(errno.ESTALE, f"{self.current} was changed by another program")
            database.execute("COMMIT")
        if self._unreadable:
            self._dropped.add(_UNREADABLE, n=self._unreadable)
        for why, n in lost.items():
            self._reported[why] = self._reported.get(why, 0) + n
        for _ in notes:
            self.notes.popleft()
        positions.update(moved)
        for name in moved:
            taken_in(folder_of(self.path) / name)
        return is_more

    def _waiting(
        self, files: Sequence[Path], positions: Mapping[str, int]
    ) -> tuple[dict[bytes, list[tuple[int, Line]]], dict[str, int], bool]:
        """Return lines by the first line of their journals, how far that is, and if more wait."""
        batches: dict[bytes, list[tuple[int, Line]]] = {}
        moved: dict[str, int] = {}
        room = _AT_ONCE_BYTES
        for file in files:
            start = positions.get(file.name, 0)
            found = unread(file, start, most=room)
            if found is None or not self._is_ours(file, found.header):
                continue
            batches.setdefault(found.header, []).extend(self._lines(found.lines))
            moved[found.name] = found.end
            room -= found.end - start
            if room <= 0:
                return batches, moved, True
        return batches, moved, False

    def _is_ours(self, file: Path, header: bytes) -> bool:
        """Whether a journal can be taken in; one of another release is for its own processes."""
        try:
            LogSettings.of_header(header)
        except ValueError as error:
            self._say(f"{file} is left where it is: {error}")
            return False
        return True

    def _lines(self, lines: Iterable[bytes]) -> Iterator[tuple[int, Line]]:
        """Yield the lines of one file, each with its time: none before the one before it."""
        latest = 0
        for text in lines:
            if not text.strip():  # erased
                continue
            try:
                line = decode_line(text)
            except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
                self._unreadable += 1
                continue
            latest = max(latest, line.ranked.time)
            yield latest, line

    def _write(
        self, database: sqlite3.Connection, settings: LogSettings, lines: list[Line], now: float
    ) -> None:
        if not lines:
            return
        state = state_of(database)
        if now < state.latest / 1e6 - _CLOCK_SECONDS and not self._clock_behind:
            logger.warning(
                "the clock is %.0f s behind event log %s, whose times stay at the latest one "
                "until it has caught up",
                state.latest / 1e6 - now,
                self.path,
            )
        self._clock_behind = now < state.latest / 1e6 - _CLOCK_SECONDS
        tags, labels = codes_of(database, settings)
        n_tags, n_labels = (
            database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("tags", "labels")
        )
        batch = encoded(lines, tags, labels, last=state.latest, settings=settings)
        counts = counted(batch, lines, tags, self._placed)
        for code, name in enumerate(tags.names[n_tags:], n_tags):
            database.execute("INSERT INTO tags VALUES (?, ?, ?)", (code, *name))
        for code, known in enumerate(labels.names[n_labels:], n_labels):
            database.execute("INSERT INTO labels VALUES (?, ?)", (code, known))
        insert_segments(database, segments_of(batch, first=state.following))
        if batch.noted:
            database.execute(_NOTED, (json.dumps([[*key, n] for key, n in batch.noted.items()]),))
        add_to_rollups(database, counts)
        n_later = int((counts.weights < 0).sum())
        database.executemany(
            "INSERT INTO state VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            [
                ("next", state.following + len(batch)),
                ("last", int(batch.times[-1])),
                ("later", state.later + n_later),
            ],
        )
        for request in list(self._placed)[:-_PLACED]:
            del self._placed[request]

    def _lost(self) -> dict[str, int]:
        known = self._reported
        counts = self._dropped.by_reason
        return {why: n - known.get(why, 0) for why, n in counts.items() if n != known.get(why, 0)}

    def tidy(self, *, now: float) -> None:
        """Remove what is older, or more, than the settings allow.

        Segments go as a whole, oldest first, into the archive where there is one, and with them
        the rollups of minutes. Those of hours and days stay: they hold no ids and little else.

        Raises
        ------
        Exception
            If log or archive cannot be written; nothing was removed that is not archived.
        """
        if self._settings.max_bytes is None and self._settings.max_age is None:
            return
        with closing(self.open()) as database:
            self._shorten(database, now)

    def _shorten(self, database: sqlite3.Connection, now: float) -> None:
        settings = self._settings
        archive = self._settings.archive
        n_at_once = _AT_ONCE if archive is None else _MANY
        if settings.max_bytes is not None and used_bytes(database) > settings.max_bytes:
            most = int(settings.max_bytes * _TO_KEEP)
            while used_bytes(database) > most:
                over = 1 - most / used_bytes(database)
                (n,) = database.execute("SELECT count(*) FROM segments").fetchone()
                if not self._remove(database, until=None, n=min(n_at_once, max(1, int(n * over)))):
                    break
                _give_back(database)
        if settings.max_age is None or time.monotonic() < self._looked + _EVERY:
            return
        self._looked = time.monotonic()
        until = int((now - settings.max_age) * 1e6)
        if archive is not None:
            # Not one small file every half minute: when there is enough for one, or a day is old.
            n, oldest, events = database.execute(
                "SELECT count(*), min(since), sum(n) FROM segments WHERE until < ?", (until,)
            ).fetchone()
            if not n or (events < _WORTH_A_FILE and oldest > until - _DAY):
                return
        while self._remove(database, until=until, n=n_at_once):
            _give_back(database)

    def _remove(self, database: sqlite3.Connection, *, until: int | None, n: int) -> int:
        """Remove up to ``n`` segments that ended before ``until``; return how many did go."""
        archive = self._settings.archive
        limit = 2**62 if until is None else until
        database.execute("BEGIN IMMEDIATE")
        rows = database.execute(
            "SELECT first, until, sum(n) OVER (ORDER BY first) FROM (SELECT first, until, n "
            "FROM segments WHERE until < ? ORDER BY first LIMIT ?) ORDER BY first",
            (limit, n),
        ).fetchall()
        if archive is not None:  # what a file of reasonable size, and the memory, can hold
            rows = [row for row in rows if row[2] <= _IN_A_FILE] or rows[:1]
        if rows:
            first, ended, _ = rows[-1]
            chosen = "FROM segments WHERE first <= ?"
            if archive is not None:
                found = database.execute(
                    f"SELECT {SEGMENT_COLUMNS} {chosen} ORDER BY first", (first,)
                ).fetchall()
                archive_segments(database, archive, found, file_mode=self._settings.file_mode)
            database.execute(f"DELETE {chosen}", (first,))
            (oldest,) = database.execute("SELECT min(since) FROM segments").fetchone()
            kept_from = (ended if oldest is None else oldest) // 1_000_000
            for width in (w for w in WIDTHS if w < _HOUR):
                for table in ("rollups", "totals", "traffic"):
                    database.execute(
                        f"DELETE FROM {table} WHERE width = ? AND start <= ?",
                        (width, kept_from - width),
                    )
        database.execute("COMMIT")
        return len(rows)
