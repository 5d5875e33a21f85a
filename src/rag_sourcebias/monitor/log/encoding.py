"""Turn events into columns, one broken event at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import RetrievalEvent, hash_query
from rag_sourcebias.monitor.label_sets import short_text
from rag_sourcebias.monitor.log.codes import LabelCodes, TagCodes
from rag_sourcebias.monitor.log.columns import Batch
from rag_sourcebias.monitor.log.settings import Documents, LogSettings

__all__ = ["Waiting", "encoded"]

Waiting = tuple[RetrievalEvent, float | None]  # and the time to record it under

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
    times, codes, rows, query_ids = list[float](), list[int](), list[bytes](), list[str]()
    doc_ids: list[Any] = []  # all bytes, or all lists
    offset = now - monotonic
    max_documents, key = settings.max_documents, settings.key or b""
    ids_of, known_tags = _IDS_OF[settings.documents], _KnownTags(tags)
    known_code = known_tags.__getitem__
    broken: list[int] = []
    beside = _Beside(labels, settings)
    for number, (event, at) in enumerate(events):
        try:
            kept = event.tags if len(event.tags) <= max_documents else event.tags[:max_documents]
            try:
                row, n_bad = bytes(map(known_code, map(id, kept))), event.bad_tags
            except KeyError:
                row, n_bad = known_tags.learn(kept)
                n_bad += event.bad_tags
            given, query_id = tuple(event.labels.items()), event.query_hash
            known = labels.get(given)
            code, alone, replaced = beside.split(given) if known is None else (known, None, _NONE)
            query_id = "" if query_id is None else _short(query_id)
            # An event puts its ranking together when asked for it, at the cost of all the rest.
            ids = None if ids_of is None else ids_of(event.ranked.doc_ids[:max_documents], key)
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
        doc_ids.append(ids)
    for number in reversed(broken):  # the batch may have to be written again
        del events[number]
    return Batch(
        times=_rising(times, last),
        label_codes=np.array(codes, np.uint16),
        tags=rows,
        query_ids=query_ids,
        doc_ids=None if ids_of is None else doc_ids,
        event_labels=beside.event_labels,
        noted=beside.noted(),
    )


def _rising(times: list[float], last: int) -> npt.NDArray[np.int64]:
    microseconds = (np.array(times, np.float64) * 1e6).astype(np.int64)
    if len(microseconds):
        microseconds[0] = max(int(microseconds[0]), last)
    return np.maximum.accumulate(microseconds)


_NONE: tuple[str, ...] = ()
_Items = tuple[tuple[str, str], ...]
_Split = tuple[int, Mapping[str, str] | None, tuple[str, ...]]


class _Beside:
    """What a batch keeps beside codes: labels of single retrievals, and counts."""

    def __init__(self, codes: LabelCodes, settings: LogSettings) -> None:
        self._codes, self._apart = codes, settings.event_labels
        self._hashed, self._key = settings.hashed_labels, settings.key or b""
        self.event_labels: dict[str, dict[int, str]] = {}
        self._split: dict[_Items, _Split] = {}  # of this batch: sessions ask more than once
        self._noted: Counter[tuple[str, str]] = Counter()

    def split(self, given: _Items) -> _Split:
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
        code, replaced = codes.get(items), _NONE
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
        if alone:
            for name, value in alone.items():
                if value:
                    known = self.event_labels.get(name)
                    if known is None:
                        known = self.event_labels[name] = {}
                    known[row] = value
        for name in replaced:
            self._noted["other", name] += 1
        if n_bad:
            self._noted["bad tags", ""] += n_bad

    def noted(self) -> Counter[tuple[str, str]]:
        """Return all counts."""
        for name, values in self.event_labels.items():
            self._noted["alone", short_text(name)] += len(values)
        return self._noted


class _KnownTags(dict[int, int]):
    """Codes of tags by identity: most are the same few objects, found in a third of the time.

    What is held cannot be freed, so that nothing else gets its identity.
    """

    def __init__(self, codes: TagCodes) -> None:
        super().__init__()
        self._code_of = codes.__getitem__
        self._held: list[Sequence[object]] = []

    def learn(self, tags: Sequence[object]) -> tuple[bytes, int]:
        """Return the codes of tags of which some may not be readable, and how many these are."""
        try:
            row = bytes(map(self._code_of, map(_GROUP, tags)))
        except Exception:  # noqa: BLE001 - one of them is no tag, whatever it is instead
            codes = [_code_of_one(tag, self._code_of) for tag in tags]
            unknown = self._code_of((None, None))
            good = bytes(unknown if code is None else code for code in codes)
            return good, codes.count(None)
        self.update(zip(map(id, tags), row, strict=True))
        self._held.append(tags)
        return row, 0


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


def _hashed(ids: Sequence[str], key: bytes) -> bytes:
    return b"".join([_hash(i if isinstance(i, str) else _short(i), key) for i in ids])


_IDS_OF: dict[Documents, Callable[[Sequence[str], bytes], bytes | list[str]] | None] = {
    "none": None,
    "hashed": _hashed,
    "plain": _plain,
}
