"""The BLOBs in which retrievals are stored: little-endian columns of one written batch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.monitor.log.columns import Batch, EventColumns

__all__ = ["MOST_IN_SEGMENT", "Row", "decoded", "segments_of"]

MOST_IN_SEGMENT = 4_096
_MOST_MICROSECONDS = 2**32 - 1  # between the first and the last retrieval of a segment
_HASHES = re.compile(r"(?:[0-9a-f]{16})+")

Row = tuple[Any, ...]


def segments_of(batch: Batch, *, first: int, weight: float) -> Iterator[Row]:
    """Yield the rows of ``segments`` of a batch whose first number is ``first``."""
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
        )
        start = stop


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


def _unpacked(packed: bytes | str | None, n: int) -> npt.NDArray[np.str_]:
    if packed is None:
        return np.full(n, "", dtype="U1")
    if isinstance(packed, str):
        return np.array(json.loads(packed), dtype=np.str_)
    return np.frombuffer(packed.hex().encode(), dtype="S16").astype(np.str_)


def decoded(
    row: Row, labels: tuple[Mapping[str, str], ...], tags: tuple[tuple[str | None, str | None], ...]
) -> EventColumns:
    """Return the retrievals of one row of ``segments``."""
    first, n, since, _until, weight, times, label_codes, lengths, codes, queries, documents = row
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.frombuffer(lengths, "<u2"), out=offsets[1:])
    return EventColumns(
        numbers=np.arange(first, first + n),
        times=(since + np.frombuffer(times, "<u4").astype(np.int64)) / 1e6,
        weights=np.full(n, weight),
        label_codes=np.frombuffer(label_codes, "<u2"),
        labels=labels,
        offsets=offsets,
        tag_codes=np.frombuffer(codes, np.uint8),
        tags=tags,
        query_ids=_unpacked(queries, n),
        doc_ids=None if documents is None else _unpacked(documents, len(codes)),
    )
