"""The file of an event log: tables, versions, and the columns of a written batch."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import check_file, reason_of
from rag_sourcebias.core.errors import (
    DataError,
    UnsupportedVersionError,
    require_at_least,
    require_one_of,
)
from rag_sourcebias.core.private import PRIVATE, check_mode, create_file
from rag_sourcebias.intake.tables import pyarrow_modules
from rag_sourcebias.observe.events import STAGES, Stage, check_key
from rag_sourcebias.observe.labels import OTHER, Key, LabelCaps, short_text

# Small integers for (source, style) and for label sets, with caps on how many there are.


MOST_TAGS = 256  # a code is one byte
_MOST_NAMES = 64  # labels told apart, whatever their values
_MOST_REMEMBERED = 20_000  # keys, so that ever new names cannot fill the memory

Tag = tuple[str | None, str | None]


def _check_range(name: str, value: float, low: int, high: int) -> None:
    """Raise DataError where a value is not one from ``low`` to ``high``."""
    if not low <= value <= high:
        raise DataError(f"{name} must be {low} to {high}, got {value}")


class TagCodes(dict[Tag, int]):
    """Code of each (source, style); code 0 is ("other", "other").

    Parameters
    ----------
    names : iterable of (source, style)
        In the order of their codes; empty for a new log.
    most : int
        Pairs told apart, 1 to 200. Documents of further ones keep their source and get the style
        "other" while there is room for that (256 codes), then they are code 0.

    Attributes
    ----------
    names : list of (source, style)
    """

    def __init__(self, names: Iterable[Tag] = (), *, most: int = 200) -> None:
        _check_range("max_tags", most, 1, 200)
        super().__init__()
        self.names: list[Tag] = list(names) or [(OTHER, OTHER)]
        self._most = most
        self._remember()

    def _remember(self) -> None:
        self.clear()
        self.update((name, code) for code, name in enumerate(self.names))

    def __missing__(self, key: Tag) -> int:
        if len(self) > _MOST_REMEMBERED:
            self._remember()
        source, style = (None if not part else short_text(str(part)) for part in key)
        code = self._coded((source, style), self._most)
        if code is None:
            code = self._coded((source, OTHER), MOST_TAGS - 1)
        self[key] = code = code or 0
        return code

    def _coded(self, name: Tag, most: int) -> int | None:
        found = self.get(name)  # does not ask __missing__
        if found is None and len(self.names) <= most:
            found = self[name] = len(self.names)
            self.names.append(name)
        return found


class LabelCodes(dict[Key, int]):
    """Code of each set of labels.

    Code 0 is the set of those beyond every cap, see :class:`LabelCaps`.

    Parameters
    ----------
    names : iterable of str
        JSON objects, in the order of their codes.
    most_values, most_sets : int
        Values of a label, 1 to 10,000, and sets, 1 to 30,000, that are told apart.

    Attributes
    ----------
    names : list of str
    """

    def __init__(
        self, names: Iterable[str] = (), *, most_values: int = 1_000, most_sets: int = 10_000
    ) -> None:
        _check_range("max_label_values", most_values, 1, 10_000)
        # merged sets may be as many again, and a code is 16 bits
        _check_range("max_label_sets", most_sets, 1, 30_000)
        super().__init__()
        self.names: list[str] = []
        self._code_of: dict[Key, int] = {}
        self._caps = LabelCaps(most_values=most_values, most_sets=most_sets, last=((OTHER, OTHER),))
        self.extend(list(names) or [json.dumps({OTHER: OTHER})])

    def extend(self, names: Iterable[str]) -> None:
        """Take sets that follow, as another process has added them."""
        self.clear()
        for name in names:
            with suppress(ValueError, AttributeError):  # damaged: it keeps its code, unused
                key: Key = tuple(sorted(json.loads(name).items()))
                self._code_of.setdefault(key, len(self.names))
                self._caps.add(key)
            self.names.append(name)

    def fitted(self, items: Key) -> tuple[int, tuple[str, ...]]:
        """Return the code of labels, and those whose value became "other".

        Where there are none of these the code is remembered, as an item of this dictionary.
        """
        given = dict(sorted((short_text(key), short_text(value)) for key, value in items))
        known = self._caps.values
        new = [name for name in given if name not in known]
        strange = new[max(_MOST_NAMES - len(known), 0) :]
        key, replaced = self._caps.fit(tuple(i for i in given.items() if i[0] not in strange))
        code = self._code_of.get(key)
        if code is None:
            code = self._code_of[key] = len(self.names)
            self.names.append(json.dumps(dict(key)))
        if not (replaced or strange):
            self.remember(items, code)
        # "" stands for all labels whose very names are too many
        return code, (*replaced, *([""] if strange else []))

    def remember(self, items: Key, code: int) -> None:
        """Have ``get`` give a code for labels as they came."""
        if len(self) > _MOST_REMEMBERED:
            self.clear()
        self[items] = code


# Retrievals as arrays: those about to be written, and those read.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Retrievals about to be written, n of them.

    Parameters
    ----------
    times : int64 array of shape (n,)
        Microseconds since 1970, never falling.
    label_codes : uint16 array of shape (n,)
    lengths : int64 array of shape (n,)
        Documents of each.
    tags : bytes
        One code per document, retrieval after retrieval, best first.
    query_ids : sequence of str, length n
    doc_ids : list of (bytes or str), or None
        Of the same documents: hashes of eight bytes, or the ids themselves.
    event_labels : mapping of str to (mapping of int to str)
        Labels kept with each retrieval: by name, the values of the retrievals that have one.
    noted : mapping of (kind, name) to int
        What is counted beside the retrievals, see ``schema``.
    stages : uint8 array of shape (n,)
        Index into ``STAGES``; with ``REPLACES`` added where it takes the place of an earlier one.
    requests : sequence of str, length n
    """

    times: npt.NDArray[np.int64]
    label_codes: npt.NDArray[np.uint16]
    lengths: npt.NDArray[np.int64]
    tags: bytes
    query_ids: Sequence[str]
    doc_ids: list[Any] | None
    event_labels: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    stages: npt.NDArray[np.uint8]
    requests: Sequence[str]
    noted: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True, kw_only=True, eq=False)
class EventColumns:
    """Retrievals of a log, n of them with nnz documents.

    Parameters
    ----------
    numbers : int64 array of shape (n,)
        Rises by one with each retrieval written; the order of the log.
    times : float64 array of shape (n,)
        Seconds since 1970, never falling.
    label_codes : uint16 array of shape (n,)
        Index into ``labels``.
    labels : tuple of mapping of str to str
    offsets : int64 array of shape (n + 1,)
        Documents ``offsets[i]:offsets[i + 1]`` belong to retrieval ``i``, best first.
    tag_codes : uint8 array of shape (nnz,)
        Index into ``tags``.
    tags : tuple of (source, style)
        None where it is unknown.
    query_ids : str array of shape (n,)
        "" where none was recorded.
    doc_ids : str array of shape (nnz,), or None
        Ids, or their hashes of 16 hex digits, as the log was told to keep them.
    event_labels : mapping of str to str array of shape (n,)
        Labels kept with each retrieval, "" where it has none: those that the log was told to keep
        so ("session"), and values for which ``labels`` have "other".
    stages : uint8 array of shape (n,), optional
        Index into ``STAGES``; with ``REPLACES`` added where it takes the place of an earlier one.
    requests : str array of shape (n,), optional
        Joins the stages of a request, "" where none was recorded.
    """

    numbers: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    label_codes: npt.NDArray[np.uint16]
    labels: tuple[Mapping[str, str], ...]
    offsets: npt.NDArray[np.int64]
    tag_codes: npt.NDArray[np.uint8]
    tags: tuple[tuple[str | None, str | None], ...]
    query_ids: npt.NDArray[np.str_]
    doc_ids: npt.NDArray[np.str_] | None
    event_labels: Mapping[str, npt.NDArray[np.str_]] = field(default_factory=dict)
    stages: npt.NDArray[np.uint8] | None = None
    requests: npt.NDArray[np.str_] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def at_stage(self, stage: Stage | Literal["latest"]) -> EventColumns:
        """Return what readers got as far as it is known ("latest"), or one stage of all requests.

        A stage counts as the latest where no later row here takes its place.
        """
        if self.stages is None or self.requests is None:
            nothing_later = stage in ("latest", "retrieved")
            return self if nothing_later else self.take(np.zeros(len(self), bool))
        if stage != "latest":
            return self.take(self.stages % REPLACES == STAGES.index(stage))
        replaced = self.requests[self.stages >= REPLACES]
        if not len(replaced):
            return self
        keep = ~np.isin(self.requests, replaced)
        _, last = np.unique(self.requests[::-1], return_index=True)
        keep[len(self) - 1 - last] = True
        return self.take(keep)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """Retrieval of each document, shape (nnz,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def ranks(self) -> npt.NDArray[np.int64]:
        """Rank of each document, from 1, shape (nnz,)."""
        return np.arange(1, len(self.tag_codes) + 1) - self.offsets[self.rows]

    def labels_at(self, row: int) -> dict[str, str]:
        """Return all labels of one retrieval."""
        own = {name: str(values[row]) for name, values in self.event_labels.items() if values[row]}
        return {**self.labels[self.label_codes[row]], **own}

    def values_of(self, name: str) -> list[str | None]:
        """Return the value of a label of each retrieval, None where it has none."""
        known = [labels.get(name) for labels in self.labels]
        values = [known[code] for code in self.label_codes.tolist()]
        own = self.event_labels.get(name)
        if own is None:
            return values
        return [str(one) or value for one, value in zip(own, values, strict=True)]

    def having(self, wanted: Mapping[str, str]) -> npt.NDArray[np.bool_]:
        """Return which retrievals have all of these labels, shape (n,)."""
        keep = np.ones(len(self), bool)
        if not wanted:
            return keep
        used, codes = np.unique(self.label_codes, return_inverse=True)
        for name, value in wanted.items():
            fits = np.array([self.labels[code].get(name) == value for code in used], bool)
            here = fits[codes]
            if name in self.event_labels:
                here |= self.event_labels[name] == value
            keep &= here
        return keep

    def take(self, keep: npt.NDArray[np.bool_]) -> EventColumns:
        """Return the retrievals marked True."""
        if keep.all():
            return self
        docs = keep[self.rows]
        return replace(
            self,
            numbers=self.numbers[keep],
            times=self.times[keep],
            label_codes=self.label_codes[keep],
            offsets=np.concatenate([[0], np.cumsum(np.diff(self.offsets)[keep])]).astype(np.int64),
            tag_codes=self.tag_codes[docs],
            query_ids=self.query_ids[keep],
            doc_ids=None if self.doc_ids is None else self.doc_ids[docs],
            event_labels={name: values[keep] for name, values in self.event_labels.items()},
            stages=None if self.stages is None else self.stages[keep],
            requests=None if self.requests is None else self.requests[keep],
        )

    @classmethod
    def joined(cls, parts: Sequence[EventColumns]) -> EventColumns:
        """Return the retrievals of at least one part, in their order."""
        ends = np.cumsum([0, *(len(part.tag_codes) for part in parts)])
        offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)]
        names = dict.fromkeys(name for part in parts for name in part.event_labels)

        def whole(name: str) -> npt.NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in parts])

        return cls(
            numbers=whole("numbers"),
            times=whole("times"),
            label_codes=whole("label_codes"),
            labels=parts[-1].labels,
            offsets=np.concatenate([*offsets, ends[-1:]]),
            tag_codes=whole("tag_codes"),
            tags=parts[-1].tags,
            query_ids=whole("query_ids"),
            doc_ids=None if any(p.doc_ids is None for p in parts) else whole("doc_ids"),
            event_labels={
                name: np.concatenate(
                    [p.event_labels.get(name, np.full(len(p), "", "U1")) for p in parts]
                )
                for name in names
            },
            stages=None if any(p.stages is None for p in parts) else whole("stages"),
            requests=None if any(p.requests is None for p in parts) else whole("requests"),
        )


# What an event log keeps, checked once.


EVENT_LABELS = ("session", "session_id", "conversation_id", "thread_id")
"""Labels that a log keeps with each retrieval unless told otherwise."""
Documents = Literal["none", "hashed", "plain"]
_OF_JOURNAL = (
    "documents", "max_documents", "max_tags", "max_label_values", "max_label_sets", "event_labels",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Settings of the writing side; see :class:`EventLog` for their meaning.

    Raises
    ------
    DataError
        If a value is out of its range.
    """

    documents: Documents = "none"
    max_documents: int = 1_000
    max_tags: int = 200
    max_label_values: int = 1_000
    max_label_sets: int = 10_000
    event_labels: frozenset[str] = frozenset(EVENT_LABELS)
    hashed_labels: frozenset[str] = frozenset()
    key: bytes | None = None
    max_bytes: int | None = None
    max_age: float | None = None
    archive: Path | None = None
    busy_seconds: float = 5.0
    file_mode: int = PRIVATE

    def __post_init__(self) -> None:
        if self.archive is not None:
            pyarrow_modules("an archive of an event log")
        require_one_of("documents", self.documents, get_args(Documents))
        _check_range("max_documents", self.max_documents, 1, 65_535)
        TagCodes(most=self.max_tags)
        LabelCodes(most_values=self.max_label_values, most_sets=self.max_label_sets)
        require_at_least(1_000_000, max_bytes=self.max_bytes)
        if self.max_age is not None and not 0 < self.max_age < math.inf:
            raise DataError(f"max_age must be a positive number of seconds, got {self.max_age}")
        check_mode(self.file_mode)
        if self.key is not None:
            check_key(self.key, "key")
        elif self.hashed_labels:
            raise DataError("hashed_labels needs key=, such as read_key(); see read_key")
        if self.archive is not None and self.max_age is None and self.max_bytes is None:
            raise DataError("archive receives what max_age or max_bytes removes; give one of them")

    def header(self) -> bytes:
        """Return what whoever takes a journal in has to know, as JSON."""
        known: dict[str, Any] = {name: getattr(self, name) for name in _OF_JOURNAL}
        return json.dumps(
            {"log": VERSION, **known, "event_labels": sorted(self.event_labels)}
        ).encode()

    @classmethod
    def of_header(cls, header: bytes) -> LogSettings:
        """Return the settings of a journal.

        Raises
        ------
        ValueError
            If the line is none that :meth:`header` made, or that of another release did.
        """
        try:
            found = json.loads(header)
            if found["log"] != VERSION:
                raise ValueError(f"version {found['log']}, this release reads {VERSION}")
            known = {name: found[name] for name in _OF_JOURNAL}
            return cls(**{**known, "event_labels": frozenset(known["event_labels"])})
        except (LookupError, TypeError, RecursionError, DataError) as error:
            raise ValueError(f"{header!r:.80} is no first line of a journal") from error


# The file of an event log: tables, versions, and how it is opened.
# Retrievals lie in segments, one row per written batch with a BLOB per column, because inserting a
# row costs more than everything else: every call of SQLite gives up the interpreter lock, and
# under a busy application each one may wait 5 ms to have it back. Counts per time, labels, source
# and style are ordinary rows (``rollups``, ``traffic``), written in the same transaction.


VERSION = 2
APPLICATION = 0x52534C31  # in the header of the file: it is a log of this library
WIDTHS = (60, 600, 3_600, 86_400)  # seconds of the rollups: each a multiple of the one before

_TABLES = """
CREATE TABLE IF NOT EXISTS segments (
    first INTEGER PRIMARY KEY, n INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL,
    times BLOB NOT NULL, labels BLOB NOT NULL, lengths BLOB NOT NULL,
    tags BLOB NOT NULL, queries, documents, stages, requests);
CREATE INDEX IF NOT EXISTS segments_until ON segments (until);
CREATE TABLE IF NOT EXISTS tags (code INTEGER PRIMARY KEY, source TEXT, style TEXT);
CREATE TABLE IF NOT EXISTS labels (code INTEGER PRIMARY KEY, labels TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rollups (
    width INTEGER, start INTEGER, labels INTEGER, tag INTEGER,
    documents REAL NOT NULL, first REAL NOT NULL, exposure REAL NOT NULL,
    PRIMARY KEY (width, start, labels, tag)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS traffic (
    width INTEGER, start INTEGER, labels INTEGER,
    retrievals INTEGER NOT NULL, empty INTEGER NOT NULL,
    PRIMARY KEY (width, start, labels)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS totals (
    width INTEGER, start INTEGER, tag INTEGER,
    documents INTEGER NOT NULL, first INTEGER NOT NULL, exposure REAL NOT NULL,
    PRIMARY KEY (width, start, tag)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS journals (name TEXT PRIMARY KEY, position INTEGER NOT NULL)
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS event_labels (first INTEGER PRIMARY KEY, labels TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS noted (
    kind TEXT, name TEXT, n INTEGER NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dropped (reason TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
# `totals` are the rollups over all sets of labels. `noted` counts, by kind and name: retrievals
# whose value of a label became "other" in its set ("other"), those that have it beside the set
# ("alone"), "bad tags", and what instrumentations said, by its text ("note").
_TRIGGER = (
    "CREATE TRIGGER IF NOT EXISTS segments_removed AFTER DELETE ON segments "
    "BEGIN DELETE FROM event_labels WHERE first = OLD.first; END"
)
REPLACES = 128
"""Added to the code of a stage that takes the place of an earlier one of its request."""
SEGMENT_COLUMNS = "segments.*, (SELECT e.labels FROM event_labels e WHERE e.first = segments.first)"
"""The columns that :func:`decoded` takes."""


def open_for_writing(
    path: Path, *, busy_seconds: float = 5.0, file_mode: int = PRIVATE
) -> sqlite3.Connection:
    """Open a log, creating it where needed.

    A new file gets ``file_mode``, and SQLite gives the same to the rollback journal beside it.

    There is no write-ahead log: between two batches the file alone holds everything, so that it may
    be moved or copied by whoever keeps it.

    Raises
    ------
    DataError
        If the file is not an event log.
    UnsupportedVersionError
        If a newer release wrote it.
    sqlite3.Error
        If it cannot be opened or written now.
    """
    if os.path.lexists(path):
        check_file(path)
        _keep_from(path)
    with suppress(OSError):  # of which SQLite will tell as well
        create_file(path, file_mode)
    database = sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False
    )
    try:
        version = version_of(database, path)
        if version not in {0, VERSION}:
            raise UnsupportedVersionError(
                f"event log {path} has version {version}, this release writes {VERSION}; log to "
                "another file"
            )
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA cache_spill = OFF")  # before the end nothing is in the file
        if version == 0:
            _create_tables(database, path)
    except BaseException:
        with suppress(sqlite3.Error):
            database.close()
        raise
    return database


def _keep_from(path: Path) -> None:
    """Raise DataError where SQLite would write a killed process's batch into another's file.

    It does so as soon as it opens a file beside which the journal of that batch lies.
    """
    is_left = path.with_name(f"{path.name}-journal").exists()
    # nobody of this process writes it now, whose locks reading would end: the caller has its turn
    if is_left and path.stat().st_size and not is_log(path):
        raise DataError(f"{path} is no event log, and what a killed process wrote lies beside it")


def is_log(path: Path) -> bool:
    """Whether a file is a log, by the names in its first bytes (SQLite's file format, 1.3)."""
    try:
        with path.open("rb") as stream:
            header = stream.read(72)
    except OSError:
        return False
    return header.startswith(b"SQLite format 3") and header[68:] == APPLICATION.to_bytes(4, "big")


def _create_tables(database: sqlite3.Connection, path: Path) -> None:
    database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    database.execute("BEGIN IMMEDIATE")
    if version_of(database, path) == 0:  # another process may have been faster
        for statement in (*_TABLES.split(";")[:-1], _TRIGGER):
            database.execute(statement)
        # Names the log in the files of an archive that several logs may share.
        database.execute("INSERT INTO state VALUES ('id', ?)", (secrets.randbits(40),))
        database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("COMMIT")


def version_of(database: sqlite3.Connection, path: Path) -> int:
    """Return the version of a log, 0 of an empty file."""
    try:
        # tables first: another process may begin the log meanwhile, and does all at once
        tables, application, version = (
            int(database.execute(query).fetchone()[0])
            for query in (
                "SELECT count(*) FROM sqlite_schema",
                "PRAGMA application_id",
                "PRAGMA user_version",
            )
        )
    except sqlite3.OperationalError:
        raise  # busy, or cannot be opened: that may pass
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorname", "").startswith("SQLITE_CORRUPT"):
            raise  # a log of which the first page is damaged
        raise DataError(f"{path} is damaged or not an event log ({reason_of(error)})") from error
    if not tables:
        return 0
    if application != APPLICATION:
        raise DataError(f"{path} is another program's SQLite file; an event log needs its own")
    if version > VERSION:
        raise UnsupportedVersionError(
            f"event log {path} has version {version}, this release reads up to {VERSION}; "
            "upgrade rag-sourcebias or log to another file"
        )
    return version


# What the small tables of a log say: its state, and what its codes stand for.


class LogState(NamedTuple):
    """How far a log has come.

    ``log`` tells logs apart: another one may come to lie under the same path. ``following`` is the
    number of the next retrieval, 1 in a new log, ``latest`` the time of the last one, in
    microseconds since 1970, ``erased`` counts how often retrievals were deleted by label, and
    ``later`` the stages that took the place of an earlier one.
    """

    log: int
    following: int
    latest: int
    erased: int
    later: int

    @property
    def last(self) -> int:
        """Number of the latest retrieval ever written, 0 before the first."""
        return self.following - 1


def state_of(database: sqlite3.Connection) -> LogState:
    """Return how far a log has come."""
    found = dict(database.execute("SELECT name, value FROM state"))
    names = {"id": 0, "next": 1, "last": 0, "erased": 0, "later": 0}
    return LogState(*(int(found.get(name, value)) for name, value in names.items()))


def noted_of(database: sqlite3.Connection, kind: str) -> dict[str, int]:
    """Return what was counted of a kind, by name."""
    return dict(database.execute("SELECT name, n FROM noted WHERE kind = ? ORDER BY name", (kind,)))


def labels_of(database: sqlite3.Connection) -> tuple[Mapping[str, str], ...]:
    """Return the sets of labels in the order of their codes."""
    return tuple(
        label_set(text) for (text,) in database.execute("SELECT labels FROM labels ORDER BY code")
    )


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


# The BLOBs in which retrievals are stored: little-endian columns of one written batch.


MOST_IN_SEGMENT = 4_096
_MOST_MICROSECONDS = 2**32 - 1  # between the first and the last retrieval of a segment
_HASHES = re.compile(r"(?:[0-9a-f]{16})+")

Row = tuple[Any, ...]


def segments_of(batch: Batch, *, first: int) -> Iterator[Row]:
    """Yield the rows of ``segments`` of a batch whose first number is ``first``.

    The last column is that of ``event_labels``, a table of its own.
    """
    ids = batch.doc_ids
    ends = [0, *batch.lengths.cumsum().tolist()]
    start = 0
    while start < len(batch):
        stop = min(start + MOST_IN_SEGMENT, len(batch))
        times = batch.times[start:stop]
        stop = start + int(np.searchsorted(times, times[0] + _MOST_MICROSECONDS, side="right"))
        times = batch.times[start:stop]
        documents = slice(ends[start], ends[stop])
        yield (
            first + start,
            stop - start,
            int(times[0]),
            int(times[-1]),
            (times - times[0]).astype("<u4").tobytes(),
            batch.label_codes[start:stop].astype("<u2").tobytes(),
            batch.lengths[start:stop].astype("<u2").tobytes(),
            batch.tags[documents],
            _packed_queries(batch.query_ids[start:stop]),
            None if ids is None else _packed_documents(ids[documents]),
            batch.stages[start:stop].tobytes() if batch.stages[start:stop].any() else None,
            _packed_queries(batch.requests[start:stop]),
            _packed_labels(batch.event_labels, start, stop),
        )
        start = stop


def insert_segments(database: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Write rows of :func:`segments_of`."""
    found = list(rows)
    database.executemany(
        "INSERT INTO segments VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", (row[:-1] for row in found)
    )
    alone = [(row[0], row[-1]) for row in found if row[-1] is not None]
    if alone:
        database.executemany("INSERT INTO event_labels VALUES (?, ?)", alone)


def _packed_queries(ids: Sequence[str]) -> bytes | str | None:
    """Hashes as eight bytes each, other ids as JSON, nothing when there are none."""
    joined = "".join(ids)
    if not joined:
        return None
    if all(len(i) == 16 for i in ids) and _HASHES.fullmatch(joined):
        return bytes.fromhex(joined)
    return json.dumps(ids)


def _packed_documents(ids: list[Any]) -> bytes | str:
    return b"".join(ids) if ids and isinstance(ids[0], bytes) else json.dumps(ids)


def _packed_labels(labels: Mapping[str, Mapping[int, str]], start: int, stop: int) -> str | None:
    """Return JSON: by name, the values and for each retrieval which of them, -1 for none."""
    found: dict[str, list[list[Any]]] = {}
    for name, values in labels.items():
        mine = [values.get(row) for row in range(start, stop)]
        code_of: dict[str | None, int] = {None: -1}
        for value in mine:
            if value not in code_of:
                code_of[value] = len(code_of) - 1
        if len(code_of) > 1:
            texts = [short_text(value) for value in code_of if value is not None]
            found[short_text(name)] = [texts, [code_of[value] for value in mine]]
    return json.dumps(found) if found else None


def _unpacked_labels(packed: str | None, n: int) -> dict[str, npt.NDArray[np.str_]]:
    found = {}
    for name, (values, codes) in json.loads("{}" if packed is None else packed).items():
        if len(codes) != n or not all(-1 <= code < len(values) for code in codes):
            raise ValueError(f"{len(codes)} codes of label {name!r} for {n} retrievals")
        # the last one is what -1 stands for
        found[name] = np.array([*values, ""], dtype=np.str_)[codes]
    return found


def _unpacked(packed: bytes | str | None, n: int) -> npt.NDArray[np.str_]:
    if packed is None:
        return np.full(n, "", dtype="U1")
    if isinstance(packed, str):
        return np.array(json.loads(packed), dtype=np.str_)
    return np.frombuffer(packed.hex().encode(), dtype="S16").astype(np.str_)


def decoded(
    row: Row, labels: tuple[Mapping[str, str], ...], tags: tuple[tuple[str | None, str | None], ...]
) -> EventColumns:
    """Return the retrievals of one row of :data:`SEGMENT_COLUMNS`.

    Raises
    ------
    sqlite3.DatabaseError
        If the row contradicts itself: part of the file was damaged.
    """
    try:
        if not 0 <= row[1] <= MOST_IN_SEGMENT:
            raise ValueError(f"{row[1]} retrievals")
        first, n, since, _until, times, label_codes, lengths, codes, *ids = row
        queries, packed, stages, requests, event_labels = ids
        offsets = np.zeros(n + 1, np.int64)
        np.cumsum(np.frombuffer(lengths, "<u2"), out=offsets[1:])
        part = EventColumns(
            numbers=np.arange(first, first + n),
            times=(since + np.frombuffer(times, "<u4").astype(np.int64)) / 1e6,
            label_codes=np.frombuffer(label_codes, "<u2"),
            labels=labels,
            offsets=offsets,
            tag_codes=np.frombuffer(codes, np.uint8),
            tags=tags,
            query_ids=_unpacked(queries, n),
            doc_ids=None if packed is None else _unpacked(packed, len(codes)),
            event_labels=_unpacked_labels(event_labels, n),
            stages=np.frombuffer(bytes(n) if stages is None else stages, np.uint8),
            requests=_unpacked(requests, n),
        )
    except (ValueError, TypeError, LookupError, OverflowError, AttributeError, RecursionError) as e:
        raise sqlite3.DatabaseError(f"retrievals from {row[0]!r:.40} on: {e!r:.200}") from e
    n = len(part)
    documents = len(part.tag_codes)
    if not (
        len(part.times) == len(part.label_codes) == len(part.query_ids) == n
        and len(part.offsets) == n + 1
        and part.offsets[-1] == documents
        and (part.doc_ids is None or len(part.doc_ids) == documents)
        and part.stages is not None
        and len(part.stages) == n
        and (part.stages % REPLACES < len(STAGES)).all()
        and part.requests is not None
        and len(part.requests) == n
        and (part.label_codes < len(labels)).all()
        and (part.tag_codes < len(tags)).all()
        and np.isfinite(part.times).all()
    ):
        raise sqlite3.DatabaseError(f"retrievals from {row[0]!r:.40} on have columns that differ")
    return part


def decoder(database: sqlite3.Connection) -> Callable[[Row], EventColumns]:
    """Return :func:`decoded` with the sets of labels and the tags of a log as they are now."""
    return partial(decoded, labels=labels_of(database), tags=tags_of(database))
