"""Retrievals as arrays: those about to be written, and those read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["Batch", "EventColumns"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Retrievals about to be written, n of them.

    Parameters
    ----------
    times : int64 array of shape (n,)
        Microseconds since 1970, never falling.
    label_codes : uint16 array of shape (n,)
    tags : sequence of bytes, length n
        One code per document, best first.
    query_ids : sequence of str, length n
    doc_ids : sequence of (bytes or list of str), length n, or None
        Hashes of eight bytes, or the ids themselves.
    event_labels : mapping of str to (mapping of int to str)
        Labels kept with each retrieval: by name, the values of the retrievals that have one.
    noted : mapping of (kind, name) to int
        What is counted beside the retrievals, see ``schema``.
    """

    times: npt.NDArray[np.int64]
    label_codes: npt.NDArray[np.uint16]
    tags: Sequence[bytes]
    query_ids: Sequence[str]
    doc_ids: Sequence[bytes] | Sequence[list[str]] | None
    event_labels: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    noted: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tags)


@dataclass(frozen=True, kw_only=True, eq=False)
class EventColumns:
    """Retrievals of a log, n of them with nnz documents.

    Parameters
    ----------
    numbers : int64 array of shape (n,)
        Rises by one with each retrieval written; the order of the log.
    times : float64 array of shape (n,)
        Seconds since 1970, never falling.
    weights : float64 array of shape (n,)
        Retrievals that each one stands for: 1 over the sampling probability.
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
    """

    numbers: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    label_codes: npt.NDArray[np.uint16]
    labels: tuple[Mapping[str, str], ...]
    offsets: npt.NDArray[np.int64]
    tag_codes: npt.NDArray[np.uint8]
    tags: tuple[tuple[str | None, str | None], ...]
    query_ids: npt.NDArray[np.str_]
    doc_ids: npt.NDArray[np.str_] | None
    event_labels: Mapping[str, npt.NDArray[np.str_]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

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
        found = dict(self.labels[self.label_codes[row]])
        for name, values in self.event_labels.items():
            if values[row]:
                found[name] = str(values[row])
        return found

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
        return EventColumns(
            numbers=self.numbers[keep],
            times=self.times[keep],
            weights=self.weights[keep],
            label_codes=self.label_codes[keep],
            labels=self.labels,
            offsets=np.concatenate([[0], np.cumsum(np.diff(self.offsets)[keep])]).astype(np.int64),
            tag_codes=self.tag_codes[docs],
            tags=self.tags,
            query_ids=self.query_ids[keep],
            doc_ids=None if self.doc_ids is None else self.doc_ids[docs],
            event_labels={name: values[keep] for name, values in self.event_labels.items()},
        )

    @classmethod
    def joined(cls, parts: Sequence[EventColumns]) -> EventColumns:
        """Return the retrievals of at least one part, in their order."""
        ends = np.cumsum([0, *(len(part.tag_codes) for part in parts)])
        offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)]
        ids = [p.doc_ids for p in parts if p.doc_ids is not None]
        names = dict.fromkeys(name for part in parts for name in part.event_labels)
        return cls(
            numbers=np.concatenate([part.numbers for part in parts]),
            times=np.concatenate([part.times for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
            label_codes=np.concatenate([part.label_codes for part in parts]),
            labels=parts[-1].labels,
            offsets=np.concatenate([*offsets, ends[-1:]]),
            tag_codes=np.concatenate([part.tag_codes for part in parts]),
            tags=parts[-1].tags,
            query_ids=np.concatenate([part.query_ids for part in parts]),
            doc_ids=np.concatenate(ids) if len(ids) == len(parts) else None,
            event_labels={
                name: np.concatenate(
                    [p.event_labels.get(name, np.full(len(p), "", "U1")) for p in parts]
                )
                for name in names
            },
        )
