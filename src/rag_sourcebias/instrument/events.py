"""What observers are told about one retrieval."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.documents import DocTags
from rag_sourcebias.types.rankings import RankedList

__all__ = [
    "MAX_LABELS",
    "CheckedLabels",
    "RetrievalEvent",
    "check_key",
    "check_labels",
    "event_of",
    "hash_query",
    "memory_of",
    "read_key",
]

MAX_LABELS = 16
_UNTAGGED = DocTags()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RetrievalEvent:
    """One outermost retrieval: which documents, in which order, from where.

    Holds no text of the query or of a document, and no object of the framework.

    Parameters
    ----------
    ranked : RankedList
        Document ids, best first; may be empty. Its ``query_id`` is "" or an identifier that is
        not the query's text, such as :func:`hash_query` makes.
    tags : tuple of DocTags
        What is known of each document, in the order of ``ranked``; filled with "all unknown"
        when it is left out.
    labels : mapping of str to str
        Where the retrieval happened ("collection", "route", "tenant", …); at most 16. Copied.
    monotonic : float
        ``time.monotonic()`` of the end of the retrieval, in seconds.
    bad_tags : int
        Tags that could not be read; their documents are in ``tags`` without them.

    Raises
    ------
    DataError
        If there are too many labels, one is not text, or tags and documents differ in number.
    """

    ranked: RankedList
    tags: tuple[DocTags, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    monotonic: float = field(default_factory=time.monotonic)
    bad_tags: int = 0

    def __post_init__(self) -> None:
        # A copy: the event outlives the call, and the caller may reuse its mapping.
        object.__setattr__(self, "labels", check_labels(self.labels))
        if len(self.tags) != len(self.ranked):
            object.__setattr__(self, "tags", _tags_for(len(self.ranked), self.tags))

    @property
    def query_hash(self) -> str | None:
        """Identifier of the query, None when it was not recorded."""
        return self.ranked.query_id or None


def _tags_for(n: int, tags: tuple[DocTags, ...]) -> tuple[DocTags, ...]:
    if tags:
        raise DataError(f"an event of {n} documents has {len(tags)} tags")
    return (_UNTAGGED,) * n


class CheckedLabels(dict[str, str]):
    """Labels that need no check any more; never changed."""


def check_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of labels that an event may have.

    Raises
    ------
    DataError
        If there are too many, or one is not text.
    """
    copy = dict(labels)
    if len(copy) > MAX_LABELS:
        raise DataError(f"an event has at most {MAX_LABELS} labels, got {len(copy)}")
    for key, value in copy.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            raise DataError(
                f"label {key!r} of an event must map text to text, "
                f"got a value of type {type(value).__name__}"
            )
    return copy


class _Recorded(RetrievalEvent):
    """An event whose ranking is put together when it is asked for: most observers count tags."""

    __slots__ = ("_doc_ids", "_query_id", "_scores")

    _doc_ids: tuple[str, ...]
    _query_id: str
    _scores: array[float] | None

    @property
    def ranked(self) -> RankedList:
        try:
            found: RankedList = _get_ranked(self)
        except AttributeError:
            scores = None if self._scores is None else np.array(self._scores, np.float32)
            found = RankedList(query_id=self._query_id, doc_ids=self._doc_ids, scores=scores)
            _set_ranked(self, found)
        return found

    @ranked.setter
    def ranked(self, value: RankedList) -> None:  # copies are made by setting it
        _set_ranked(self, value)

    @property
    def query_hash(self) -> str | None:
        """Identifier of the query; the ranking is not put together for it."""
        try:
            return self._query_id or None
        except AttributeError:  # made by dataclasses.replace, with a ranking
            return self.ranked.query_id or None

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain, (self.ranked, self.tags, self.labels, self.monotonic, self.bad_tags)


def _plain(
    ranked: RankedList,
    tags: tuple[DocTags, ...],
    labels: Mapping[str, str],
    monotonic: float,
    bad_tags: int,
) -> RetrievalEvent:
    return RetrievalEvent(
        ranked=ranked, tags=tags, labels=labels, monotonic=monotonic, bad_tags=bad_tags
    )


_Recorded.__qualname__ = RetrievalEvent.__qualname__
_RANKED: Any = vars(RetrievalEvent)["ranked"]
_get_ranked, _set_ranked = _RANKED.__get__, _RANKED.__set__
# The members of a frozen class, set directly: half the cost of a constructor, on the path that
# every retrieval takes.
_SETTERS = [getattr(_Recorded, n).__set__ for n in ("_query_id", "_doc_ids", "_scores")]
_SETTERS += [
    getattr(RetrievalEvent, n).__set__ for n in ("tags", "labels", "monotonic", "bad_tags")
]


def event_of(
    doc_ids: tuple[str, ...],
    tags: tuple[DocTags, ...],
    *,
    query_id: str,
    scores: array[float] | None,
    labels: dict[str, str],
    monotonic: float,
    bad_tags: int = 0,
) -> RetrievalEvent:
    """Build an event from labels that were checked before and belong to it alone.

    Parameters
    ----------
    scores : array of C floats, or None
        Made within a third of the time that numpy takes for ten of them.
    """
    if len(tags) != len(doc_ids):
        tags = _tags_for(len(doc_ids), tags)
    event = object.__new__(_Recorded)
    set_query_id, set_doc_ids, set_scores, set_tags, set_labels, set_monotonic, set_bad = _SETTERS
    set_query_id(event, query_id)
    set_doc_ids(event, doc_ids)
    set_scores(event, scores)
    set_tags(event, tags)
    set_labels(event, labels)
    set_monotonic(event, monotonic)
    set_bad(event, bad_tags)
    return event


_EVENT_BYTES, _DOCUMENT_BYTES, _LABEL_BYTES = 500, 100, 150


def memory_of(event: RetrievalEvent) -> int:
    """Estimate the memory in bytes that an event keeps from being freed, within a microsecond.

    Counted are ids and labels, which may be long; tags are shared.
    """
    try:
        ids, query = event._doc_ids, event._query_id  # type: ignore[attr-defined]
    except AttributeError:
        ids, query = event.ranked.doc_ids, event.ranked.query_id
    labels = event.labels
    try:
        text = "".join(ids)
        n = _EVENT_BYTES + _DOCUMENT_BYTES * len(ids)
        if labels:
            text += "".join(labels) + "".join(labels.values())
            n += _LABEL_BYTES * len(labels)
        text += query
    except TypeError:  # an id that is no text; the log will say so
        text, n = repr((ids, query, labels)), _EVENT_BYTES + _DOCUMENT_BYTES * len(ids)
    return n + len(text) * (1 if text.isascii() else 4)


_KEY_VARIABLE = "RAG_SOURCEBIAS_KEY"


def check_key(key: bytes, name: str = "the key") -> bytes:
    """Return a key of 16 to 64 bytes; DataError, with its length and not the key, otherwise."""
    if not 16 <= len(key) <= 64:
        raise DataError(f"{name} must have 16 to 64 bytes, got {len(key)}")
    return key


def read_key(path: str | Path | None = None, *, variable: str = _KEY_VARIABLE) -> bytes:
    """Return the secret key of a file, or of an environment variable where no file is given.

    Parameters
    ----------
    path : str, Path or None
        Space around the key is left out; ``openssl rand -hex 16 > FILE`` makes one.
    variable : str

    Raises
    ------
    DataError
        If there is none, or it has not 16 to 64 bytes.
    """
    if path is None:
        text = os.environ.get(variable)
        if text is None:
            raise DataError(f"no key: set {variable}, or name a file")
        return check_key(text.strip().encode(), f"the key in {variable}")
    try:
        with Path(path).open("rb") as stream:
            return check_key(stream.read(1_000).strip(), f"the key in {path}")
    except OSError as error:
        raise DataError(f"key file {path} cannot be read: {error.strerror or error}") from error


def hash_query(text: str, *, key: bytes) -> str:
    """Return an identifier of a query from which its text cannot be read: 16 hex digits.

    Keyed BLAKE2b (RFC 7693): without the key, frequent queries could be recognised by hashing
    guesses. Equal texts give equal identifiers under one key only.

    Parameters
    ----------
    text : str
    key : bytes
        Secret of 16 to 64 bytes, see :func:`read_key`.

    Raises
    ------
    DataError
        If the key has another length.
    """
    key = check_key(key)
    return blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=8).hexdigest()
