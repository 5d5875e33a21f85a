"""What an event log keeps, checked once."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.instrument.events import check_key
from rag_sourcebias.io.files import check_mode
from rag_sourcebias.monitor.data import OTHER, Key, LabelCaps, short_text

# Small integers for (source, style) and for label sets, with caps on how many there are.


MOST_TAGS = 256  # a code is one byte
_MOST_NAMES = 64  # labels told apart, whatever their values
_MOST_REMEMBERED = 20_000  # keys, so that ever new names cannot fill the memory

Tag = tuple[str | None, str | None]
Items = tuple[tuple[str, str], ...]


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
        if not 1 <= most <= 200:
            raise DataError(f"max_tags must be 1 to 200, got {most}")
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


class LabelCodes(dict[Items, int]):
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
        if not 1 <= most_values <= 10_000:
            raise DataError(f"max_label_values must be 1 to 10000, got {most_values}")
        if not 1 <= most_sets <= 30_000:  # merged ones may be as many again, and a code is 16 bits
            raise DataError(f"max_label_sets must be 1 to 30000, got {most_sets}")
        super().__init__()
        self.names: list[str] = []
        self._code_of: dict[Key, int] = {}
        self._caps = LabelCaps(values=most_values, sets=most_sets, last=((OTHER, OTHER),))
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

    def fitted(self, items: Items) -> tuple[int, tuple[str, ...]]:
        """Return the code of labels, and those whose value became "other".

        Where there are none of these the code is remembered, as an item of this dictionary.
        """
        given = dict(sorted((short_text(key), short_text(value)) for key, value in items))
        known = self._caps.values
        if len(known) + len(given) > _MOST_NAMES:
            new = [name for name in given if name not in known]
            strange = new[max(_MOST_NAMES - len(known), 0) :]
            given = {name: value for name, value in given.items() if name not in strange}
        else:
            strange = []
        key, replaced = self._caps.fit(tuple(given.items()))
        code = self._code_of.get(key)
        if code is None:
            code = self._code_of[key] = len(self.names)
            self.names.append(json.dumps(dict(key)))
        if not (replaced or strange):
            self.remember(items, code)
        # "" stands for all labels whose very names are too many
        return code, (*replaced, *([""] if strange else []))

    def remember(self, items: Items, code: int) -> None:
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


# What an event log keeps, checked once.


Documents = Literal["none", "hashed", "plain"]

_SMALLEST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Settings of the writing side; see :class:`EventLog` for their meaning.

    Raises
    ------
    DataError
        If a value is out of its range.
    """

    weight: float
    documents: Documents
    max_documents: int
    max_tags: int
    max_label_values: int
    max_label_sets: int
    event_labels: frozenset[str]
    hashed_labels: frozenset[str]
    key: bytes | None
    max_bytes: int | None
    max_age: float | None
    archive: Path | None
    busy_seconds: float
    file_mode: int

    def __post_init__(self) -> None:
        if self.documents not in get_args(Documents):
            raise DataError(f"documents={self.documents!r} is none of {get_args(Documents)}")
        if not 1 <= self.max_documents <= 65_535:
            raise DataError(f"max_documents must be 1 to 65535, got {self.max_documents}")
        if self.max_bytes is not None and self.max_bytes < _SMALLEST:
            raise DataError(f"max_bytes must be at least {_SMALLEST}, got {self.max_bytes}")
        if self.max_age is not None and not 0 < self.max_age < math.inf:
            raise DataError(f"max_age must be a positive number of seconds, got {self.max_age}")
        check_mode(self.file_mode)
        if self.key is not None:
            check_key(self.key, "key")
        elif self.hashed_labels:
            raise DataError("hashed_labels needs key=, such as read_key(); see read_key")
        if self.archive is not None and self.max_age is None and self.max_bytes is None:
            raise DataError("archive receives what max_age or max_bytes removes; give one of them")
