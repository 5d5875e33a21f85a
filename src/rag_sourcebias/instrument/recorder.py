"""What an adapter calls: begin, end, record. Nothing here raises into the application."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.delivery import Observation, RawTags, delivery_for
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import RetrievalEvent, check_labels
from rag_sourcebias.instrument.scope import outermost
from rag_sourcebias.instrument.suppression import is_suppressed
from rag_sourcebias.instrument.tag_lookup import TagLookup
from rag_sourcebias.protocols import Observer
from rag_sourcebias.tagging.keys import METADATA_KEYS
from rag_sourcebias.tagging.store import TagStore

__all__ = ["Recorder"]

_SOURCE, _STYLE, _PAIR_ID, _ORIGIN, _CONFIDENCE = METADATA_KEYS
_LONGEST_RUN = 600.0  # seconds; a retrieval that was interrupted never ends
_MOST_OPEN = 10_000


class Recorder:
    """Record the retrievals that one instrumentation sees.

    Parameters
    ----------
    observer : Observer of RetrievalEvent
        Told about every outermost retrieval. All recorders of one observer count together.
    labels : mapping of str to str, optional
        Added to every event ("collection", "route", …).
    tags : TagStore, optional
        Where tags are looked up, on the queue's thread; what it does not know comes from the
        ``rsb_`` keys of the documents' metadata.
    doc_id : callable, optional
        From a native document to its id, where the framework's own is not the one wanted.
    query_key : bytes, optional
        Record a hash of the query under this key (see
        :func:`~rag_sourcebias.instrument.hash_query`); without it nothing of the query is kept.
    queue : bool
        Observe on a thread of its own. Without, the application waits for the observer.

    Raises
    ------
    DataError
        If the observer has no ``observe``, or the key has a wrong length.
    """

    def __init__(
        self,
        observer: Observer[RetrievalEvent],
        *,
        labels: Mapping[str, str] | None = None,
        tags: TagStore | None = None,
        doc_id: Callable[[Any], str] | None = None,
        query_key: bytes | None = None,
        queue: bool = True,
    ) -> None:
        if isinstance(observer, type) or not callable(getattr(observer, "observe", None)):
            raise DataError(
                f"{observer!r} is not an observer; expected an object with observe(event), such as "
                "ExposureObserver()"
            )
        if query_key is not None and not 16 <= len(query_key) <= 64:
            raise DataError(f"query_key must have 16 to 64 bytes, got {len(query_key)}")
        self.observer = observer
        self.doc_id = doc_id
        self._labels = check_labels(labels or {})
        self._lookup = None if tags is None else TagLookup(tags)
        self._query_key = query_key
        self._delivery = delivery_for(observer, queue=queue)

    @property
    def labels(self) -> Mapping[str, str]:
        """What is added to every event."""
        return self._labels

    @property
    def reads_metadata(self) -> bool:
        """Whether tags, or the ids of ``doc_id``, are read from metadata and not from a store."""
        return self._lookup is None or self.doc_id is not None

    @property
    def dropped(self) -> DroppedEvents:
        """Events lost by any recorder of this observer."""
        return self._delivery.dropped

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything recorded so far was observed; False when time ran out."""
        return self._delivery.flush(timeout)

    def begin(
        self, run_id: Hashable, parent_id: Hashable | None = None, *, is_retrieval: bool = True
    ) -> None:
        """Note that a run of a framework with run ids started, in the context it runs in."""
        try:
            if not is_retrieval:
                self._delivery.tracker.start(run_id, parent_id, is_retrieval=False)
                return
            scopes = self._delivery.scopes
            if run_id in scopes or is_suppressed():
                return
            scope = scopes[run_id] = outermost(self.observer, lasts=_LONGEST_RUN)
            first = scope.__enter__()
            self._delivery.tracker.start(run_id, parent_id, nested=not first)
            if len(scopes) > _MOST_OPEN:  # runs that were interrupted never end
                scopes.pop(next(iter(scopes)), None)
        except Exception as error:  # noqa: BLE001 - as guarded, which costs more on this hot path
            self.dropped.add("start could not be read", error=error)

    def end(self, run_id: Hashable) -> bool:
        """Note that a run ended, also when it failed; True when it is to be recorded."""
        try:
            scope = self._delivery.scopes.pop(run_id, None)
            if scope is not None:
                scope.__exit__(None, None, None)
            return self._delivery.tracker.end(run_id)
        except Exception as error:  # noqa: BLE001 - as in begin
            self.dropped.add("end could not be read", error=error)
            return False

    def retrieval(self) -> outermost:
        """Stand around a direct call: ``with recorder.retrieval() as first``.

        ``first`` says whether the call is to be recorded.
        """
        return _DirectCall(self.observer)

    def record(
        self,
        doc_ids: Iterable[str],
        *,
        metadata: Iterable[Mapping[str, object] | None] = (),
        scores: Iterable[float] | None = None,
        query: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Record one retrieval, best document first.

        Everything is copied at once: the application may change its objects afterwards. Iterables
        are read inside the guard, so a generator over native results is safe to give.

        Parameters
        ----------
        doc_ids : iterable of str
        metadata : iterable of mapping, optional
            Of each document; only the tag keys are read.
        scores : iterable of float, optional
            Higher is better.
        query : str, optional
            Hashed where a key was given, otherwise ignored.
        labels : mapping of str to str, optional
            Added to those of the recorder, which win.
        """
        try:
            self._delivery.put(
                Observation(
                    tuple(doc_ids),
                    tuple(_raw_tags(metadata)),
                    None if scores is None else tuple(scores),
                    query if self._query_key is not None else None,
                    self._query_key,
                    check_labels({**labels, **self._labels} if labels else self._labels),
                    self._lookup,
                    time.monotonic(),
                )
            )
        except Exception as error:  # noqa: BLE001 - as in begin
            self.dropped.add("result could not be read", error=error)


class _DirectCall(outermost):
    """An outermost block that is none while observation is suppressed."""

    __slots__ = ()

    def __enter__(self) -> bool:
        return super().__enter__() and not is_suppressed()


def _raw_tags(metadata: Iterable[Mapping[str, object] | None]) -> list[RawTags | None]:
    found: list[RawTags | None] = []  # one loop: calls would cost more than what they do
    for values in metadata:
        if values:
            get = values.get
            source, style = get(_SOURCE), get(_STYLE)
            if source is not None or style is not None:
                found.append((source, style, get(_PAIR_ID), get(_ORIGIN), get(_CONFIDENCE)))
                continue
        found.append(None)
    return found
