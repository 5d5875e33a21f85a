"""What an adapter calls: begin, end, record. Nothing here raises into the application."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.delivery import delivery_for
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import (
    MAX_LABELS,
    CheckedLabels,
    RetrievalEvent,
    check_key,
    checked,
    event_of,
    hash_query,
)
from rag_sourcebias.instrument.metadata_tags import MetadataTags
from rag_sourcebias.instrument.scope import Block, enter, outermost
from rag_sourcebias.instrument.suppression import suppressed
from rag_sourcebias.instrument.tag_lookup import TagLookup
from rag_sourcebias.protocols import Observer
from rag_sourcebias.tagging.store import TagStore

__all__ = ["Recorder"]


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
        Observe on a thread of its own; without, the application waits for the observer. One that
        promises to be quick (its attribute ``inline`` is True) needs that thread only with
        ``tags``.

    Attributes
    ----------
    begin, end : callable
        ``begin(run_id, parent_id=None, *, is_retrieval=True)`` and ``end(run_id) -> bool`` note
        runs of a framework with run ids, see :class:`RunTable`; they never raise.

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
        if query_key is not None:
            check_key(query_key, "query_key")
        self.observer = observer
        self.doc_id = doc_id
        self._labels = CheckedLabels(labels or {})
        self._lookup = None if tags is None else TagLookup(tags)
        self._tags = MetadataTags()
        self._query_key = query_key
        self._delivery = delivery_for(observer, queue=queue)
        self._sink = self._delivery.sink(self._lookup)
        # Not methods of our own: every retrieval would pay for two more calls.
        self.begin = self._delivery.runs.begin
        self.end = self._delivery.runs.end

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

    def retrieval(self) -> outermost:
        """Stand around a direct call: ``with recorder.retrieval() as first``.

        ``first`` says whether the call is to be recorded.
        """
        return _DirectCall(self)

    def enter(self) -> tuple[Block, bool]:
        """Begin a direct call, as :meth:`retrieval` does; ``scope.leave`` ends it."""
        block, first = enter(self.observer)
        return block, first and not suppressed.get()

    def labels_beside(self, labels: Mapping[str, object]) -> CheckedLabels:
        """Return the recorder's labels with others, to be given to :meth:`record` again and again.

        The recorder's come first: by name, and where there would be too many. What is not text is
        left out.
        """
        found = {
            key: value
            for key, value in labels.items()
            if key not in self._labels and isinstance(value, str)
        }
        room = MAX_LABELS - len(self._labels)
        return CheckedLabels({**self._labels, **dict(list(found.items())[:room])})

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
            Added to those of the recorder, which win. Those that :meth:`labels_beside` returned
            are taken as they are.
        """
        try:
            key = self._query_key
            if labels is None:
                labels = self._labels
            ids = tuple(doc_ids)
            tags, n_bad = self._tags.read(metadata)
            event = event_of(
                ids,
                tags,
                "" if key is None or query is None else hash_query(query, key=key),
                None if scores is None else array("f", scores),
                labels
                if labels.__class__ is CheckedLabels
                else checked({**labels, **self._labels}),
                monotonic(),
                n_bad,
            )
        except Exception as error:  # noqa: BLE001 - as guarded, which costs more on this hot path
            self.dropped.add("result could not be read", error=error)
            return
        try:
            self._sink(event)
        except Exception as error:  # noqa: BLE001 - as guarded
            self.dropped.add("observer raised", error=error)


class _DirectCall(outermost):
    """An outermost block that is none while observation is suppressed."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __enter__(self) -> bool:
        self._block, first = self._recorder.enter()
        return first
