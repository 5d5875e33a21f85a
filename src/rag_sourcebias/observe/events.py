"""What observers are told of one retrieval: ids, ranks and tags, and what was lost."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar, get_args
from weakref import WeakSet

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.errors import DataError, require_one_of
from rag_sourcebias.core.tags import (
    METADATA_KEYS,
    UNKNOWN,
    DamagedRowError,
    TagStore,
    content_hash,
    make_tags,
)

# What an object with a lock or a thread must do when its process forks or ends.


_renewable: WeakSet[Any] = WeakSet()
_closable: WeakSet[Any] = WeakSet()


def renews_after_fork(item: Any) -> None:  # noqa: ANN401 - what has this method
    """Have ``item._after_fork()`` called in every child forked from this process.

    A lock that another thread held at the fork would stay locked in the child for ever, and
    threads do not exist there.
    """
    _renewable.add(item)


def closes_at_exit(item: Any) -> None:  # noqa: ANN401 - what has this method
    """Have ``item.close(1.0)`` called when the interpreter ends, while daemon threads still run."""
    _closable.add(item)


def _renew_all() -> None:
    for item in list(_renewable):
        item._after_fork()


def _close_all() -> None:
    for item in list(_closable):
        item.close(1.0)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_all)
atexit.register(_close_all)


class Locked:
    """An object with a lock of its own, made anew in a forked child."""

    def __init__(self) -> None:
        self._after_fork()
        renews_after_fork(self)

    def _after_fork(self) -> None:
        # Reentrant: a signal handler may retrieve while this thread holds it.
        self._lock = threading.RLock()


# Tags of retrieved documents from their metadata.


_MOST_SEEN = 10_000  # different tags that are remembered


class MetadataTags:
    """Read the tag keys of metadata; equal tags are one object, as few different ones occur.

    May be used by several threads at once: one then makes what another has just made.
    """

    def __init__(self) -> None:
        #: By the values of the keys, in the order of ``METADATA_KEYS``.
        self._seen: dict[tuple[object, ...], DocTags] = {}

    def read(
        self, metadata: Iterable[Mapping[str, object] | None]
    ) -> tuple[tuple[DocTags, ...], int]:
        """Return the tags of each document, and how many values are none a tag may have.

        A document without a source and a style is "all unknown"; a bad value is unknown, and the
        document keeps its others.
        """
        found = [self._read_one(values) for values in metadata]
        return tuple(tags for tags, _ in found), sum(n_bad for _, n_bad in found)

    def _read_one(self, values: Mapping[str, object] | None) -> tuple[DocTags, int]:
        try:
            if not values:
                return UNKNOWN, 0
            raw = tuple(map(values.get, METADATA_KEYS))
            source, style, *_ = raw
            if source is None and style is None:
                return UNKNOWN, 0
            tags = self._seen.get(raw)
            if tags is None:
                tags = make_tags(*raw)
                if len(self._seen) >= _MOST_SEEN:  # pair ids differ between documents
                    self._seen.clear()
                self._seen[raw] = tags
        except Exception:  # noqa: BLE001 - values are the application's own objects
            return _salvaged(values)
        return tags, 0


def _salvaged(values: Mapping[str, object] | None) -> tuple[DocTags, int]:
    """Return tags of the values that are good, and how many are not."""
    good: list[object] = [None] * len(METADATA_KEYS)
    n_bad = 0
    for i, key in enumerate(METADATA_KEYS):
        alone: list[object] = [None] * len(METADATA_KEYS)
        try:
            alone[i] = values.get(key)  # type: ignore[union-attr]
            make_tags(*alone)
            good[i] = alone[i]
        except Exception:  # noqa: BLE001 - as above
            n_bad += 1
    return make_tags(*good), n_bad


# Tags of retrieved documents from a tag store, remembered for a while.


K = TypeVar("K", str, bytes)

_TEXT_PREFIX = "text:"


def text_id(text: str) -> str:
    """Return the id of a document that has none: a hash from which the text cannot be read."""
    return _TEXT_PREFIX + content_hash(text).hex()


def named(doc_ids: Iterable[Any], texts: Iterable[str]) -> tuple[str, ...]:
    """Return each id as text; a document that has none, or an empty one, is known by its text."""
    return tuple(
        text_id(text) if doc_id is None or doc_id == "" else str(doc_id)
        for doc_id, text in zip(doc_ids, texts, strict=True)
    )


class TagLookup(Locked):
    """A tag store in front of which frequent documents are remembered.

    A store on disk answers in hundreds of microseconds, a store on a network may take longer,
    and a few documents make up most of what a retriever returns.

    Parameters
    ----------
    store : TagStore
        Asked by document id, or by content for documents named by :func:`text_id`.
    capacity : int
        Documents remembered.
    max_age : float
        Seconds after which all of them are asked for again, so that new tags are seen.
    """

    def __init__(self, store: TagStore, *, capacity: int = 100_000, max_age: float = 60.0) -> None:
        self._store = store
        self._capacity = capacity
        self._max_age = max_age
        self._known: dict[str, DocTags] = {}
        self._damaged: set[str] = set()
        self._since = time.monotonic()
        super().__init__()

    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        """Return the tags of each document, in order."""
        with self._lock:
            return self._get(doc_ids)

    def _get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        now = time.monotonic()
        if now - self._since > self._max_age or len(self._known) > self._capacity:
            self._known.clear()
            self._damaged.clear()
            self._since = now
        known = self._known
        unknown = [doc_id for doc_id in dict.fromkeys(doc_ids) if doc_id not in known]
        by_id = [doc_id for doc_id in unknown if not doc_id.startswith(_TEXT_PREFIX)]
        by_text = [doc_id for doc_id in unknown if doc_id.startswith(_TEXT_PREFIX)]
        if by_id:
            known.update(self._each(self._store.get, by_id, by_id))
        if by_text:
            hashes = [bytes.fromhex(doc_id.removeprefix(_TEXT_PREFIX)) for doc_id in by_text]
            known.update(self._each(self._store.get_by_hash, by_text, hashes))
        return [known[doc_id] for doc_id in doc_ids]

    def over(self, doc_ids: Sequence[str], inside: Sequence[DocTags]) -> tuple[DocTags, ...]:
        """Return the stored tags of each document, or those it came with where none are stored."""
        found = zip(self.get(doc_ids), inside or (UNKNOWN,) * len(doc_ids), strict=True)
        return tuple(within if stored == UNKNOWN else stored for stored, within in found)

    def damaged(self, doc_ids: Sequence[str]) -> int:
        """Return how many of documents that were asked for have tags that cannot be read."""
        return sum(doc_id in self._damaged for doc_id in doc_ids) if self._damaged else 0

    def told(self, event: RetrievalEvent) -> tuple[RetrievalEvent, str]:
        """Return an event with the tags that are stored, and what is to be said where none are.

        Of a store that cannot be read now, all documents count as such whose tags cannot be.
        """
        doc_ids = event.ranked.doc_ids
        try:
            tags = self.over(doc_ids, event.tags)
            n_bad, failed = self.damaged(doc_ids), ""
        except Exception as error:  # noqa: BLE001 - of a store that the application may have made
            tags, n_bad = event.tags, len(doc_ids)
            failed = f"tag store failed ({type(error).__name__}): documents count as untagged"
        earlier = None if event.earlier is None else self.told(event.earlier)[0]
        event = replace(event, tags=tags, bad_tags=event.bad_tags + n_bad, earlier=earlier)
        return event, failed

    def _each(
        self, ask: Callable[[list[K]], list[DocTags]], doc_ids: list[str], keys: list[K]
    ) -> dict[str, DocTags]:
        try:
            return dict(zip(doc_ids, ask(keys), strict=True))
        except DamagedRowError:
            if len(keys) == 1:
                self._damaged.update(doc_ids)
                return {doc_ids[0]: UNKNOWN}
        found: dict[str, DocTags] = {}
        for doc_id, key in zip(doc_ids, keys, strict=True):
            found.update(self._each(ask, [doc_id], [key]))
        return found


# What observers are told about one retrieval.


Stage = Literal["retrieved", "reranked", "shown", "cited"]
STAGES: tuple[Stage, ...] = get_args(Stage)
MAX_LABELS = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RetrievalEvent:
    """One outermost retrieval, or a later stage of one: which documents, in which order.

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
    stage : {"retrieved", "reranked", "shown", "cited"}
    request : str
        Joins the stages of one request; "" where there is only one.
    earlier : RetrievalEvent or None
        The stage before: what readers got is this event, and not that one, which was told before.

    Raises
    ------
    DataError
        If there are too many labels, one is not text, tags and documents differ in number, or the
        stage is none of these.
    """

    ranked: RankedList
    tags: tuple[DocTags, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    monotonic: float = field(default_factory=time.monotonic)
    bad_tags: int = 0
    stage: Stage = "retrieved"
    request: str = ""
    earlier: RetrievalEvent | None = None

    def __post_init__(self) -> None:
        # A copy: the event outlives the call, and the caller may reuse its mapping.
        object.__setattr__(self, "labels", checked(dict(self.labels)))
        if self.stage not in STAGES:
            require_one_of("stage", self.stage, STAGES)
        if len(self.tags) != len(self.ranked):
            if self.tags:
                raise DataError(
                    f"an event of {len(self.ranked)} documents has {len(self.tags)} tags"
                )
            object.__setattr__(self, "tags", (UNKNOWN,) * len(self.ranked))

    @property
    def query_hash(self) -> str | None:
        """Identifier of the query, None when it was not recorded."""
        return self.ranked.query_id or None


Waiting = tuple[RetrievalEvent, float | None]
"""An event, and its Unix time where that is known."""


def checked(labels: dict[str, str]) -> dict[str, str]:
    """Return labels as they are, if an event may have them.

    Raises
    ------
    DataError
        If there are too many, or one is not text.
    """
    if len(labels) > MAX_LABELS:
        raise DataError(f"an event has at most {MAX_LABELS} labels, got {len(labels)}")
    for key, value in labels.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            raise DataError(
                f"label {key!r} of an event must map text to text, "
                f"got a value of type {type(value).__name__}"
            )
    return labels


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
    raw = text.encode("utf-8", "surrogatepass")
    return blake2b(raw, key=check_key(key), digest_size=8).hexdigest()


# The count of events that observation lost, and why.


_logger = logging.getLogger("rag_sourcebias.observe")


class DroppedEvents(Locked):
    """Thread-safe count of events that were lost, by reason.

    The first event of a reason is logged as a WARNING of ``rag_sourcebias.observe``; after
    that one more line each time its count has grown tenfold. The line names the type of the
    error and where it was raised, never its message: that may hold a query or a document. The
    traceback is added when the logger is enabled for DEBUG.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._next_line: dict[str, int] = {}
        super().__init__()

    @property
    def total(self) -> int:
        """Events lost for any reason."""
        with self._lock:
            return sum(self._counts.values())

    @property
    def by_reason(self) -> Mapping[str, int]:
        """Events lost for each reason (a copy)."""
        with self._lock:
            return dict(self._counts)

    def add(self, reason: str, *, n: int = 1, error: BaseException | None = None) -> None:
        """Count ``n`` lost events.

        Parameters
        ----------
        reason : str
            What failed. One of a few fixed texts, never text of a user.
        n : int
            At least 1.
        error : BaseException or None
            The exception that lost them.

        Raises
        ------
        DataError
            If ``n`` is below 1.
        """
        with self._lock:
            count = self._counts.get(reason, 0) + n
            self._counts[reason] = count
            due = count >= self._next_line.get(reason, 1)
            if due:
                self._next_line[reason] = 10 ** len(str(count))
        if due:  # outside the lock: a log handler may itself lose events
            with contextlib.suppress(Exception):  # a broken one must not reach the host either
                _logger.warning(
                    "%s%s: %d event(s) dropped so far; results of the application are not affected",
                    reason,
                    "" if error is None else f" ({type(error).__name__} at {_place(error)})",
                    count,
                    exc_info=error if _logger.isEnabledFor(logging.DEBUG) else None,
                )


def _place(error: BaseException) -> str:
    """Return file and line of the innermost frame."""
    trace = error.__traceback__
    if trace is None:
        return "unknown place"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


# What observation has seen: an instrumentation that sees nothing, or no tags, must say so.


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What all instrumentations of one observer have seen so far.

    Parameters
    ----------
    retrievals : int
        Recorded.
    tagged, untagged, empty : int
        Of these: with a tagged document, with documents of which none is, without documents.
    dropped : int
        Events lost, see :class:`DroppedEvents`.
    notes : tuple of str
        What else is to be known, such as a framework outside the tested versions.
    """

    retrievals: int
    tagged: int
    untagged: int
    empty: int
    dropped: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join((self._counts(), *self.notes))

    def _counts(self) -> str:
        lost = f", {self.dropped:,} event(s) dropped" if self.dropped else ""
        if not self.retrievals:
            return (
                f"no retrieval was recorded{lost}; is what the application searches instrumented?"
            )
        if not self.tagged and self.untagged:
            return (
                f"{self.retrievals:,} retrievals recorded{lost}, and no document had a source or "
                "a style: tag them (rag-sourcebias tag --help), or give instrument(…, tags=…)"
            )
        return (
            f"{self.retrievals:,} retrievals recorded{lost}: {self.tagged:,} with tagged "
            f"documents, {self.untagged:,} without, {self.empty:,} empty"
        )


_ENOUGH = 100  # retrievals after which somebody should know that none had a tag


class Seen(Locked):
    """Count what is recorded, and say once where it is nothing or bears no tags.

    Parameters
    ----------
    dropped : DroppedEvents
    tell : callable, optional
        Told of each note as well; what it raises is the observer's.
    """

    def __init__(self, dropped: DroppedEvents, tell: Callable[[str], object] | None = None) -> None:
        self._dropped = dropped
        self._tell = tell
        super().__init__()
        closes_at_exit(self)

    def _after_fork(self) -> None:
        super()._after_fork()
        self._tagged = self._untagged = self._empty = 0
        self._said = False
        self._notes: tuple[str, ...] = ()

    def note(self, text: str) -> None:
        """Say something once, and keep it for the coverage."""
        with self._lock:
            if text in self._notes:
                return
            self._notes += (text,)
        with contextlib.suppress(Exception):  # a broken log handler must not reach the host
            _logger.warning("%s", text)
        if self._tell is not None:
            with guarded(self._dropped, "observer raised"):
                self._tell(text)

    def add(self, tags: Sequence[DocTags]) -> None:
        """Count one retrieval by the tags of its documents."""
        tagged = any(tag is not UNKNOWN for tag in tags)  # as whoever reads tags leaves them
        with self._lock:
            self._tagged += tagged
            self._untagged += bool(tags) and not tagged
            self._empty += not tags
        if self._untagged == _ENOUGH:
            self._say()

    def coverage(self) -> Coverage:
        """Return the counts so far."""
        with self._lock:
            return Coverage(
                retrievals=self._tagged + self._untagged + self._empty,
                tagged=self._tagged,
                untagged=self._untagged,
                empty=self._empty,
                dropped=self._dropped.total,
                notes=self._notes,
            )

    def close(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - as at exit
        """Say what is to be said; there will be no more retrievals."""
        self._say()
        return True

    def _say(self) -> None:
        if not (self._said or self._tagged or (self._empty and not self._untagged)):
            self._said = True
            with contextlib.suppress(Exception):  # a broken log handler must not reach the host
                _logger.warning("%s", self.coverage())


# What an observer, and what an application's result must be.


def require_observer(observer: object) -> None:
    """Refuse what observes nothing.

    Raises
    ------
    DataError
    """
    if isinstance(observer, type) or not callable(getattr(observer, "observe", None)):
        raise DataError(
            f"{observer!r} is not an observer; expected an object with observe(event), such as "
            "ExposureObserver()"
        )


def listed(found: Any) -> Sequence[Any]:  # noqa: ANN401
    """Return a result as it is, if reading it takes nothing out of it.

    Raises
    ------
    DataError
        If it is no sequence, such as a generator, which the application would find empty.
    """
    if isinstance(found, Sequence) and not isinstance(found, str):
        return found
    raise DataError(f"expected a list of documents, got {type(found).__name__}")


# Errors of observation stay away from the host application and are counted instead.


class guarded:  # noqa: N801 - used as a statement, as contextlib.suppress is
    """Run observation code so that no exception of it reaches the host.

    Every :class:`Exception` is swallowed and counted; what must end a program or a task passes
    (``KeyboardInterrupt``, ``SystemExit``, ``asyncio.CancelledError``). One object may stand
    around any number of blocks, also at once.

    Parameters
    ----------
    dropped : DroppedEvents
    what : str
        Reason under which an exception is counted; a fixed text.

    Examples
    --------
    >>> dropped = DroppedEvents()
    >>> import logging
    >>> logging.getLogger("rag_sourcebias.observe").addHandler(logging.NullHandler())
    >>> with guarded(dropped, "observer raised"):
    ...     _ = 1 / 0
    >>> dropped.by_reason
    {'observer raised': 1}
    """

    __slots__ = ("_dropped", "_what")

    def __init__(self, dropped: DroppedEvents, what: str) -> None:
        self._dropped = dropped
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        self._dropped.add(self._what, error=error)
        return True
