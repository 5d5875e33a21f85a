"""The connection of an event log: one transaction per batch."""

import json
import logging
import math
import os
import re
import sqlite3
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.private import PRIVATE, create_file, create_folder
from rag_sourcebias.intake.tables import pyarrow_modules
from rag_sourcebias.observe.events import DroppedEvents, Waiting, hash_query
from rag_sourcebias.observe.labels import Key, short_text
from rag_sourcebias.observe.log.schema import (
    MOST_TAGS,
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
    open_for_writing,
    segments_of,
    state_of,
)

logger = logging.getLogger("rag_sourcebias.observe")

# Turn events into columns, one broken event at a time.


_GROUP = attrgetter("source", "style")
_LONGEST_ID = 200
_LATEST = 1e11  # seconds since 1970 that a caller may give: the year 5138


def encoded(
    events: list[Waiting],
    tags: TagCodes,
    labels: LabelCodes,
    *,
    dropped: DroppedEvents,
    now: float,
    monotonic: float,
    last: int,
    settings: LogSettings,
) -> Batch:
    """Encode what can be; an event that cannot is dropped, counted, and taken out of the list.

    A tag that cannot be read is counted, and its document is one of unknown source and style.

    Parameters
    ----------
    now, monotonic : float
        Both clocks at one moment, in seconds.
    last : int
        Microseconds of the latest retrieval in the log: times never fall, whatever the clock does.
    """
    times: list[float] = []
    codes: list[int] = []
    rows: list[bytes] = []
    query_ids: list[str] = []
    doc_ids: list[Any] = []  # of all documents: all bytes, or all texts
    offset = now - monotonic
    max_documents = settings.max_documents
    key = settings.key or b""
    ids_of = _IDS_OF[settings.documents]
    broken: list[int] = []
    beside = _Beside(labels, settings)
    for number, (event, at) in enumerate(events):
        try:
            row, n_bad = _tag_row(event.tags[:max_documents], tags)
            n_bad += event.bad_tags
            given = tuple(event.labels.items())
            query_id = event.query_hash
            known = labels.get(given)
            code, alone, replaced = beside.split(given) if known is None else (known, None, _NONE)
            query_id = "" if query_id is None else _short(query_id)
            ids = ids_of(event.ranked.doc_ids[:max_documents], key)
            if at is not None and 0 <= at < _LATEST:
                when = at
            else:
                when = event.monotonic + offset
                when = when if 0 <= when <= now else now  # also of NaN
        except Exception as error:  # noqa: BLE001 - whatever is wrong with an event, the log goes on
            dropped.add("event could not be encoded", error=error)
            broken.append(number)
            continue
        if alone or replaced or n_bad:
            beside.note(len(times), alone, replaced, n_bad)
        times.append(when)
        codes.append(code)
        rows.append(row)
        query_ids.append(query_id)
        doc_ids += ids
    for number in reversed(broken):  # the batch may have to be written again
        del events[number]
    microseconds = (np.array(times, np.float64) * 1e6).astype(np.int64)
    microseconds[:1] = np.maximum(microseconds[:1], last)
    return Batch(
        times=np.maximum.accumulate(microseconds),
        label_codes=np.array(codes, np.uint16),
        lengths=np.fromiter(map(len, rows), np.int64),
        tags=b"".join(rows),
        query_ids=query_ids,
        doc_ids=None if settings.documents == "none" else doc_ids,
        event_labels=beside.event_labels,
        noted=beside.noted(),
    )


_NONE: tuple[str, ...] = ()


class _Beside:
    """What a batch keeps beside codes: labels of single retrievals, and counts."""

    def __init__(self, codes: LabelCodes, settings: LogSettings) -> None:
        self._codes = codes
        self._apart = settings.event_labels
        self._hashed = settings.hashed_labels
        self._key = settings.key or b""
        self.event_labels: defaultdict[str, dict[int, str]] = defaultdict(dict)
        # of this batch: sessions ask more than once
        self._split: dict[Key, tuple[int, Mapping[str, str] | None, tuple[str, ...]]] = {}
        self._noted: Counter[tuple[str, str]] = Counter()

    def split(self, given: Key) -> tuple[int, Mapping[str, str] | None, tuple[str, ...]]:
        """Return the code of the set, labels to keep with the retrieval, and those replaced."""
        known = self._split.get(given)
        if known is not None:
            return known
        labels, apart, codes = dict(given), self._apart, self._codes
        if self._hashed:
            labels = {
                name: hash_query(value, key=self._key) if name in self._hashed else value
                for name, value in labels.items()
            }
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


def _tag_row(tags: Sequence[object], codes: TagCodes) -> tuple[bytes, int]:
    """Return the codes of tags of which some may not be readable, and how many these are."""
    code_of = codes.__getitem__
    try:
        return bytes(map(code_of, map(_GROUP, tags))), 0
    except Exception:  # noqa: BLE001 - one of them is no tag, whatever it is instead
        found = [_code_of_one(tag, code_of) for tag in tags]
        unknown = code_of((None, None))
        return bytes(unknown if code is None else code for code in found), found.count(None)


def _code_of_one(tag: object, code_of: Callable[[tuple[Any, ...]], int]) -> int | None:
    try:
        return code_of(_GROUP(tag))
    except Exception:  # noqa: BLE001 - an object of another kind may raise anything
        return None


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


def _hashed(ids: Sequence[str], key: bytes) -> list[bytes]:
    return [_hash(i if isinstance(i, str) else _short(i), key) for i in ids]


_IDS_OF: dict[Documents, Callable[[Sequence[str], bytes], Sequence[str | bytes]]] = {
    "none": lambda _ids, _key: (),
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


def add_to_rollups(database: sqlite3.Connection, batch: Batch) -> None:
    """Add a batch to the rollups of every width, inside the caller's transaction.

    Exposure is the sum of 1/log2(rank + 1), as that of ``ExposureObserver``.
    """
    starts = batch.times // (WIDTHS[0] * 1_000_000) * WIDTHS[0]
    keys, group = np.unique(starts * 65_536 + batch.label_codes, return_inverse=True)
    lengths = batch.lengths
    ends = np.cumsum(lengths)
    ranks = np.arange(1, int(ends[-1]) + 1) - np.repeat(ends - lengths, lengths)
    cells = np.repeat(group, lengths) * MOST_TAGS + np.frombuffer(batch.tags, np.uint8)
    documents = np.bincount(cells)
    first = np.bincount(cells[ranks == 1], minlength=len(documents))
    exposure = np.bincount(cells, weights=1 / np.log2(ranks + 1))
    used = np.flatnonzero(documents)
    start = keys // 65_536
    label = keys % 65_536
    rollups = [
        start[used // MOST_TAGS],
        label[used // MOST_TAGS],
        used % MOST_TAGS,
        documents[used],
        first[used],
        exposure[used],
    ]
    empty = np.bincount(group[lengths == 0], minlength=len(keys))
    traffic = [start, label, np.bincount(group), empty]
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
    """Bytes of a log without its free pages and without the write-ahead file."""
    pages, free, size = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _give_back(database: sqlite3.Connection) -> None:
    database.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()


# The connection of an event log: one transaction per batch.


_CLOCK_SECONDS = 5.0  # behind the log, before that is worth a line
_DROPPED = (
    "INSERT INTO dropped SELECT key, value FROM json_each(?) WHERE true "
    "ON CONFLICT DO UPDATE SET n = n + excluded.n"
)
_NOTED = (
    "INSERT INTO noted SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), "
    "json_extract(value, '$[2]') FROM json_each(?) WHERE true "
    "ON CONFLICT DO UPDATE SET n = n + excluded.n"
)


class LogWriter:
    """Write batches; several of them, also of several processes, may share a file.

    Not thread-safe: the caller holds a lock.
    """

    def __init__(self, path: Path, settings: LogSettings, dropped: DroppedEvents) -> None:
        self.path = path
        self._settings = settings
        self._dropped = dropped
        self._database: sqlite3.Connection | None = None
        self._looked = -math.inf  # at the age
        self._reported = dict(dropped.by_reason)  # a forked child starts with those of its parent
        self.notes: deque[str] = deque()  # that wait to be written
        self._tags, self._labels = TagCodes(most=settings.max_tags), self._label_codes()
        self._clock_behind = False
        self._version: int | None = None  # of the file's content when the codes were read
        self._erased = 0  # as of the state of the log at that moment

    def open(self) -> sqlite3.Connection:
        """Return the connection, opened where it is not."""
        if self._database is None:
            settings = self._settings
            self._database = open_for_writing(
                self.path, busy_seconds=settings.busy_seconds, file_mode=settings.file_mode
            )
            self._version = None
        return self._database

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        database = self._database
        self._database = None
        if database is not None:
            with suppress(sqlite3.Error):
                database.close()

    def write(self, events: list[Waiting], *, now: float, monotonic: float) -> None:
        """Write events, their rollups and the counts of dropped ones, or nothing of it.

        Raises
        ------
        sqlite3.Error
            If the file cannot be written now.
        DataError, UnsupportedVersionError
            If it became something else.
        """
        counts = dict(self._dropped.by_reason)
        notes = list(self.notes)
        if not events and not notes and counts == self._reported:
            return
        if self._database is not None and not self.path.exists():
            self.close()  # someone removed the file
        database = self.open()
        try:
            database.execute("BEGIN IMMEDIATE")
            self._read_codes(database)
            if events:
                counts = self._write_events(database, events, now, monotonic)
            known = self._reported
            lost = {r: n - known.get(r, 0) for r, n in counts.items() if n != known.get(r, 0)}
            if lost:
                database.execute(_DROPPED, (json.dumps(lost),))
            if notes:
                database.execute(_NOTED, (json.dumps([["note", text, 1] for text in notes]),))
            database.execute("COMMIT")
        except BaseException:
            self._undo(database)
            raise
        self._reported = counts
        for _ in notes:
            self.notes.popleft()

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
        database = self.open()
        try:
            self._shorten(database, now)
        except BaseException:
            self._undo(database)
            raise

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

    def _undo(self, database: sqlite3.Connection) -> None:
        self._version = None  # codes that were handed out are not in the file
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        self.close()  # so that a file that was moved, or replaced, is opened again

    def _write_events(
        self, database: sqlite3.Connection, events: list[Waiting], now: float, monotonic: float
    ) -> dict[str, int]:
        state = state_of(database)
        settings, tags, labels = self._settings, self._tags, self._labels
        before = self._clock_behind
        self._clock_behind = now < state.latest / 1e6 - _CLOCK_SECONDS
        if self._clock_behind and not before:
            logger.warning(
                "the clock is %.0f s behind event log %s, whose times stay at the latest one "
                "until it has caught up",
                state.latest / 1e6 - now,
                self.path,
            )
        n_tags, n_labels = (len(tags.names), len(labels.names)) if state.last else (0, 0)
        batch = encoded(
            events,
            tags,
            labels,
            dropped=self._dropped,
            now=now,
            monotonic=monotonic,
            last=state.latest,
            settings=settings,
        )
        counts = dict(self._dropped.by_reason)
        if not len(batch):
            self._version = None  # a broken event may have been given codes nobody stores
            return counts
        for code, name in enumerate(tags.names[n_tags:], n_tags):
            database.execute("INSERT INTO tags VALUES (?, ?, ?)", (code, *name))
        for code, known in enumerate(labels.names[n_labels:], n_labels):
            database.execute("INSERT INTO labels VALUES (?, ?)", (code, known))
        first = state.following
        insert_segments(database, segments_of(batch, first=first))
        if batch.noted:
            database.execute(_NOTED, (json.dumps([[*key, n] for key, n in batch.noted.items()]),))
        add_to_rollups(database, batch)
        database.executemany(
            "INSERT INTO state VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            [("next", first + len(batch)), ("last", int(batch.times[-1]))],
        )
        return counts

    def _read_codes(self, database: sqlite3.Connection) -> None:
        """Read tags and labels where another connection may have added some."""
        (version,) = database.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return
        erased = state_of(database).erased
        anew = self._version is None or erased != self._erased
        known = 0 if anew else len(self._labels.names)
        found = database.execute(
            "SELECT labels FROM labels WHERE code >= ? ORDER BY code", (known,)
        )
        names = [name for (name,) in found]
        if anew:
            self._labels = self._label_codes(names)
        else:
            self._labels.extend(names)
        self._version = version
        self._erased = erased
        self._tags = TagCodes(
            database.execute("SELECT source, style FROM tags ORDER BY code"),
            most=self._settings.max_tags,
        )

    def _label_codes(self, names: Iterable[str] = ()) -> LabelCodes:
        settings = self._settings
        return LabelCodes(
            names, most_values=settings.max_label_values, most_sets=settings.max_label_sets
        )
