"""The BLOBs in which retrievals are stored: little-endian columns of one written batch."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.monitor.label_sets import short_text
from rag_sourcebias.monitor.log.columns import Batch, EventColumns

__all__ = ["MOST_IN_SEGMENT", "Row", "decoded", "insert_segments", "segments_of"]

MOST_IN_SEGMENT = 4_096
_MOST_MICROSECONDS = 2**32 - 1  # between the first and the last retrieval of a segment
_HASHES = re.compile(r"(?:[0-9a-f]{16})+")

Row = tuple[Any, ...]


def segments_of(batch: Batch, *, first: int, weight: float) -> Iterator[Row]:
    """Yield the rows of ``segments`` of a batch whose first number is ``first``.

    The last column is that of ``event_labels``, a table of its own.
    """
    start = 0
    while start < len(batch):
        stop = min(start + MOST_IN_SEGMENT, len(batch))
        times = batch.times[start:stop]
        stop = start + int(np.searchsorted(times, times[0] + _MOST_MICROSECONDS, side="right"))
        times, tags = batch.times[start:stop], batch.tags[start:stop]
        yield (
            *(first + start, stop - start, int(times[0]), int(times[-1]), weight),
            (times - times[0]).astype("<u4").tobytes(),
            batch.label_codes[start:stop].astype("<u2").tobytes(),
            np.fromiter(map(len, tags), "<u2", count=stop - start).tobytes(),
            b"".join(tags),
            _packed_queries(batch.query_ids[start:stop]),
            None if batch.doc_ids is None else _packed_documents(batch.doc_ids[start:stop]),
            _packed_labels(batch.event_labels, start, stop),
        )
        start = stop


def insert_segments(database: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Write rows of :func:`segments_of`."""
    found = list(rows)
    database.executemany(
        "INSERT INTO segments VALUES (?,?,?,?,?,?,?,?,?,?,?)", (row[:-1] for row in found)
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


def _packed_documents(ids: Sequence[bytes] | Sequence[list[str]]) -> bytes | str:
    hashes = b"".join(i for i in ids if isinstance(i, bytes))
    return hashes or json.dumps([i for row in ids if isinstance(row, list) for i in row])


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
    if packed is None:
        return {}
    found = {}
    for name, (values, codes) in json.loads(packed).items():
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
    """Return the retrievals of one row of ``segments``, with ``tables.segment_columns``.

    Raises
    ------
    sqlite3.DatabaseError
        If the row contradicts itself: part of the file was damaged.
    """
    try:
        if not 0 <= row[1] <= MOST_IN_SEGMENT:
            raise ValueError(f"{row[1]} retrievals")
        part = _decoded(row, labels, tags)
    except (ValueError, TypeError, LookupError, OverflowError, AttributeError, RecursionError) as e:
        raise sqlite3.DatabaseError(f"retrievals from {row[0]!r:.40} on: {e!r:.200}") from e
    n, documents = len(part), len(part.tag_codes)
    if not (
        len(part.times) == len(part.label_codes) == len(part.query_ids) == n
        and len(part.offsets) == n + 1
        and part.offsets[-1] == documents
        and (part.doc_ids is None or len(part.doc_ids) == documents)
        and (part.label_codes < len(labels)).all()
        and (part.tag_codes < len(tags)).all()
        and np.isfinite(part.weights).all()
        and np.isfinite(part.times).all()
    ):
        raise sqlite3.DatabaseError(f"retrievals from {row[0]!r:.40} on have columns that differ")
    return part


def _decoded(
    row: Row, labels: tuple[Mapping[str, str], ...], tags: tuple[tuple[str | None, str | None], ...]
) -> EventColumns:
    first, n, since, _until, weight, times, label_codes, lengths, codes, *ids = row
    queries, documents, event_labels = (*ids, None)[:3]  # a log of version 0.1 has no third
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.frombuffer(lengths, "<u2"), out=offsets[1:])
    return EventColumns(
        numbers=np.arange(first, first + n),
        times=(since + np.frombuffer(times, "<u4").astype(np.int64)) / 1e6,
        weights=np.full(n, float(weight)),
        label_codes=np.frombuffer(label_codes, "<u2"),
        labels=labels,
        offsets=offsets,
        tag_codes=np.frombuffer(codes, np.uint8),
        tags=tags,
        query_ids=_unpacked(queries, n),
        doc_ids=None if documents is None else _unpacked(documents, len(codes)),
        event_labels=_unpacked_labels(event_labels, n),
    )
