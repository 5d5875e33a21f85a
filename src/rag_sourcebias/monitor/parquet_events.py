"""Retrievals of the Parquet files that event logs leave behind (see ``log.archive``)."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.parquet import open_parquet, parquet_batches
from rag_sourcebias.io.pyarrow_modules import pyarrow_modules
from rag_sourcebias.types.documents import DocTags
from rag_sourcebias.types.rankings import RankedList

__all__ = ["is_parquet", "parquet_events"]

_NAME = re.compile(r"events-(\w+)-(\d+)-\d+\.parquet")
_READING = "reading archives of event logs"
_EXPECTED = "a file of retrievals that an event log archived"
_NEEDED = ("time", "labels", "query_id", "sources", "styles")
_MAY_BE = ("doc_ids", "event_labels")
_Timed = tuple[RetrievalEvent, float]


class _File(NamedTuple):
    """A file in the order of replay: folder of its day, log, first number."""

    day: str
    log: str
    first: int
    path: Path


def is_parquet(path: str | Path) -> bool:
    """Whether a path is that of a folder, or of a Parquet file."""
    return Path(path).is_dir() or Path(path).suffix == ".parquet"


def parquet_events(
    path: str | Path,
    *,
    since: float | None = None,
    until: float | None = None,
    labels: Mapping[str, str] | None = None,
) -> Iterator[_Timed]:
    """Return retrievals with their Unix times, day by day, oldest first.

    Memory does not grow with the files. Those of one log are read one after another; where
    several logs were archived in one folder, retrievals of a day are merged by time.

    Parameters
    ----------
    path : str or Path
        A file, or a folder that has files with names in ``*.parquet`` at any depth.
    since, until : float or None
        Seconds since 1970; ``until`` itself is left out.
    labels : mapping of str to str, optional
        Only retrievals with all of these labels.

    Raises
    ------
    DataError
        If there is no file, or one has not been written by an event log.
    MissingExtraError
        If pyarrow is not installed.
    """
    root = Path(path)
    found = sorted(root.rglob("*.parquet")) if root.is_dir() else [root]
    if not found:
        raise DataError(f"{root} holds no Parquet files: expected date=YYYY-MM-DD/events-….parquet")
    pyarrow_modules(_READING)  # missing, it is asked for now and not at the first retrieval
    files = sorted(map(_file, found))
    return _chosen(_merged(files), since, until, labels)


def _file(path: Path) -> _File:
    match = _NAME.fullmatch(path.name)
    if match is None:
        return _File(path.parent.name, path.name, 0, path)
    return _File(path.parent.name, match[1], int(match[2]), path)


def _merged(files: list[_File]) -> Iterator[_Timed]:
    for _, day in groupby(files, attrgetter("day")):
        logs = [
            _of_files([file.path for file in log]) for _, log in groupby(day, attrgetter("log"))
        ]
        yield from logs[0] if len(logs) == 1 else heapq.merge(*logs, key=itemgetter(1))


def _chosen(
    timed: Iterator[_Timed],
    since: float | None,
    until: float | None,
    labels: Mapping[str, str] | None,
) -> Iterator[_Timed]:
    wanted = set((labels or {}).items())
    for event, at in timed:
        inside = (since is None or at >= since) and (until is None or at < until)
        if inside and wanted <= set(event.labels.items()):
            yield event, at


def _of_files(paths: list[Path]) -> Iterator[_Timed]:
    for path in paths:
        yield from _of_file(path)


def _of_file(path: Path) -> Iterator[_Timed]:
    pa, _ = pyarrow_modules(_READING)
    with open_parquet(path, expected=_EXPECTED) as file:
        names = file.schema_arrow.names
        missing = [name for name in _NEEDED if name not in names]
        if missing:
            raise DataError(f"{path}: no columns {missing}; expected those of an event log")
        columns = [*_NEEDED, *(name for name in _MAY_BE if name in names)]
        for batch in parquet_batches(file, path, columns):
            with sound(path, _EXPECTED, names_file=False):
                times = batch.column("time").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
                rest = {name: batch.column(name).to_pylist() for name in columns[1:]}
                yield from _events(times.to_pylist(), rest)


def _events(times: list[int], columns: Mapping[str, list[Any]]) -> Iterator[_Timed]:
    tag, labels_of = cache(_tag), cache(json.loads)
    ids, own = (columns.get(name, [None] * len(times)) for name in _MAY_BE)
    for i, at in enumerate(times):
        pairs = zip(columns["sources"][i], columns["styles"][i], strict=True)
        tags = tuple(tag(source, style) for source, style in pairs)
        doc_ids = tuple(ids[i] or ("",) * len(tags))
        ranked = RankedList(query_id=columns["query_id"][i] or "", doc_ids=doc_ids)
        labels = labels_of(columns["labels"][i])
        if own[i]:
            labels = {**labels, **json.loads(own[i])}
        yield RetrievalEvent(ranked=ranked, tags=tags, labels=labels), at / 1e6


def _tag(source: str | None, style: str | None) -> DocTags:
    return DocTags(source=source, style=style)
