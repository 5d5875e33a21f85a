"""What an adapter calls: begin, end, record. Nothing here raises into the application."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from queue import Empty, SimpleQueue
from time import monotonic
from types import MappingProxyType, TracebackType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from rag_sourcebias.core.data import RankedList
from rag_sourcebias.core.errors import DataError, require_at_least
from rag_sourcebias.core.protocols import Observer
from rag_sourcebias.intake.results import at, id_in, id_text, listed, value_of
from rag_sourcebias.observe.events import (
    MAX_LABELS,
    Coverage,
    DroppedEvents,
    Locked,
    MetadataTags,
    RetrievalEvent,
    Seen,
    Stage,
    TagLookup,
    check_key,
    checked,
    closes_at_exit,
    guarded,
    hash_query,
    named,
    require_observer,
    text_id,
)
from rag_sourcebias.observe.labels import baggage_now, label_names, label_text, labels_of_request
from rag_sourcebias.observe.runs import RunTable, outermost
from rag_sourcebias.observe.stages import Requests, tags_of
from rag_sourcebias.observe.tags import as_tag_store
from rag_sourcebias.observe.unobserved import suppress
from rag_sourcebias.retrieval.rerank import CALLABLE, candidates, installed, type_name

# Hand events to an observer on another thread, so that a retrieval never waits for it.


EventT = TypeVar("EventT")
Reader: TypeAlias = Callable[[Any], Any]
_NOTHING: Mapping[str, object] = MappingProxyType({})
TAKEN = ("collection", "route", "tenant")
"""Labels that are taken from what frameworks carry unless told otherwise; they name no person."""

# Seconds the reader lets events gather before it looks again. Waking a thread costs both threads
# more than observing does; only an event after a quiet spell pays for it.
_GATHER = 0.05


class EventQueue(Locked, Generic[EventT]):
    """A bounded queue drained into an observer by one daemon thread; itself an observer.

    Events are observed in the order they were put, one at a time, under
    :class:`~rag_sourcebias.observe.suppress` (an observer that retrieves does not observe
    itself). The thread starts with the first event, and sees a
    later one within about 50 ms (:meth:`flush` at once). After a fork the parent delivers what was
    queued and the child starts empty, with a thread of its own. When the interpreter ends the
    queue gets one second to drain; a ``multiprocessing`` worker ends without that: flush there.

    Parameters
    ----------
    observer : Observer
        What it raises is counted under "observer raised".
    dropped : DroppedEvents
    capacity : int
        Events waiting or being observed, at least 1; further ones are dropped and counted.

    Raises
    ------
    DataError
        If ``capacity`` is below 1.
    """

    def __init__(
        self, observer: Observer[EventT], dropped: DroppedEvents, *, capacity: int = 10_000
    ) -> None:
        require_at_least(1, capacity=capacity)
        self._observer, self._dropped, self._capacity = observer, dropped, capacity
        self._putting = guarded(dropped, "queue thread could not start")
        self._observing = guarded(dropped, "observer raised")
        self._closed = False
        super().__init__()
        closes_at_exit(self)

    def _after_fork(self) -> None:
        super()._after_fork()
        # may be put into by a signal handler that interrupts a put
        self._waiting: SimpleQueue[EventT | threading.Event | None] = SimpleQueue()
        self._hurry = threading.Event()
        self._n_pending = 0  # events that wait or are being observed
        self._thread: threading.Thread | None = None

    def observe(self, event: EventT) -> None:
        """Queue one event, see :meth:`put`."""
        self.put(event)

    def put(self, event: EventT) -> bool:
        """Queue one event in constant time; False when it was dropped (full, or closed)."""
        with self._putting:
            with self._lock:
                if self._thread is None and not self._closed:
                    thread = threading.Thread(
                        target=self._drain, name="rag-sourcebias-queue", daemon=True
                    )
                    thread.start()
                    self._thread = thread
                if not self._closed and self._n_pending < self._capacity:
                    self._n_pending += 1
                    self._waiting.put(event)
                    return True
            self._dropped.add("queue is closed" if self._closed else "queue is full")
        return False

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every event put before this call was observed.

        Returns False when ``timeout`` seconds passed before (None: no limit), or when the
        observer itself calls. Blocks: use ``asyncio.to_thread`` on an event loop.
        """
        thread = self._thread
        if thread is None or not thread.is_alive():
            return not self._n_pending
        if threading.current_thread() is thread:
            return False
        mark = threading.Event()
        self._waiting.put(mark)
        self._hurry.set()
        return mark.wait(timeout)

    def close(self, timeout: float | None = 5.0) -> bool:
        """Refuse further events, observe the queued ones, end the thread.

        Returns False when ``timeout`` seconds passed before; what still waited is then dropped
        and counted.
        """
        with self._lock:
            self._closed = True
        in_time = self.flush(timeout)
        lost = 0
        with contextlib.suppress(Empty):
            while True:
                item = self._waiting.get_nowait()
                if isinstance(item, threading.Event):
                    item.set()
                else:
                    lost += item is not None
        self._waiting.put(None)
        self._hurry.set()
        if in_time and self._thread is not None:
            self._thread.join(timeout)
        if lost:
            self._dropped.add("queue closed before it was empty", n=lost)
        return in_time

    def _drain(self) -> None:
        with suppress():
            while (item := self._waiting.get()) is not None:
                if isinstance(item, threading.Event):
                    item.set()
                    continue
                if self._waiting.empty():
                    self._hurry.wait(_GATHER)
                    self._hurry.clear()
                # This thread is ours: a SystemExit of the observer ends nothing but the event.
                try:
                    with self._observing:
                        self._observer.observe(item)
                except SystemExit as error:
                    self._dropped.add("observer raised", error=error)
                with self._lock:
                    self._n_pending -= 1


# One observer and what all its instrumentations share: queue, open runs, count of lost events.


class Delivery:
    """Bring events to one observer.

    Parameters
    ----------
    observer : Observer of RetrievalEvent
        One whose attribute ``inline`` is True promises to take an event within microseconds and
        to wait for nothing. It is called on the application's thread: that costs less than
        handing the event to another thread, above all where retrievals are rare and the other
        thread has to be woken for each. Events whose tags come from a store that does not promise
        the same go through the queue, because the store is asked on its thread. One that has a
        method ``note`` is told what is said once of an instrumentation, such as a framework
        outside the tested versions.
    queue : bool
        Observe on a thread of its own; otherwise while the application waits.
    """

    def __init__(self, observer: Observer[RetrievalEvent], *, queue: bool = True) -> None:
        self.observer = observer
        self.dropped = DroppedEvents()
        self.seen = Seen(self.dropped, getattr(observer, "note", None))
        self.runs = RunTable(observer)
        self.requests = Requests()
        self.id_readers: list[Reader | None] = []
        self._lookup: TagLookup | None = None  # that of the last sink which has one
        self._inline = getattr(observer, "inline", False) is True
        self._last_step = _LastStep(observer, self.dropped, self.seen)
        self._queue: EventQueue[_Waiting] | None = None
        if queue:
            self._queue = EventQueue(self._last_step, self.dropped)
            # ends the thread of a delivery nobody holds any more
            weakref.finalize(self, self._queue.close, 0.0).atexit = False

    def sink(self, lookup: TagLookup | None = None) -> Callable[[RetrievalEvent], object]:
        """Return what takes one event; what it raises is the observer's.

        Parameters
        ----------
        lookup : TagLookup, optional
            Where tags are looked up.
        """
        queue = self._queue
        self._lookup = lookup or self._lookup
        if lookup is None and (queue is None or self._inline):
            return self.observer.observe
        take: Callable[[_Waiting], object] = self._last_step.observe if queue is None else queue.put
        return lambda event: take((event, lookup))

    def read_ids_by(self, reader: Reader | None) -> None:
        """Read ids of documents in this way too, where the application names what is shown."""
        if reader not in self.id_readers:
            self.id_readers.append(reader)

    def take_stage(self, documents: Any, stage: Stage) -> None:  # noqa: ANN401
        """Tell the observer of a stage of a request that it was told of; of no other."""
        with guarded(self.dropped, f"{stage} documents could not be read"):
            rows = listed(documents)
            failed: Exception | None = None
            for reader in self.id_readers:
                try:
                    doc_ids = [id_of(row) if reader is None else reader(row) for row in rows]
                except Exception as error:  # noqa: BLE001 - made for documents of another kind
                    failed = error
                    continue
                earlier = self.requests.before(doc_ids)
                if earlier is None:
                    continue
                event = replace(
                    earlier,
                    ranked=RankedList(query_id=earlier.ranked.query_id, doc_ids=tuple(doc_ids)),
                    tags=tags_of(earlier, doc_ids),
                    monotonic=monotonic(),
                    bad_tags=0,
                    stage=stage,
                    earlier=earlier,
                )
                self.requests.keep(event)
                with guarded(self.dropped, "observer raised"):
                    self.sink(self._lookup)(event)  # behind the earlier stage
                return
            if failed is not None:
                raise failed

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything put so far was observed; False when time ran out."""
        return self._queue is None or self._queue.flush(timeout)


_Waiting = tuple[RetrievalEvent, TagLookup | None]


@dataclass
class _LastStep:
    """Look tags up where that is asked for, then tell the observer."""

    observer: Observer[RetrievalEvent]
    dropped: DroppedEvents
    seen: Seen

    def observe(self, event: _Waiting) -> None:
        """Take one event; the tags that the store has replace those that a document came with."""
        told, lookup = event
        if lookup is not None:
            told, failed = lookup.told(told)
            if failed:
                self.seen.note(failed)
            if told.earlier is None:
                self.seen.add(told.tags)
        self.observer.observe(told)


# By identity: an observer need not be hashable. A delivery holds its observer, so that an id is
# not used again while its delivery lives.
_deliveries: weakref.WeakValueDictionary[tuple[int, bool], Delivery] = weakref.WeakValueDictionary()


def delivery_for(observer: Observer[RetrievalEvent], *, queue: bool = True) -> Delivery:
    """Return the delivery of an observer.

    Everything that observes for one observer shares it, so that a retrieval that several of them
    see (a handler registered twice, a store instrumented under a retriever) counts once.
    """
    key = (id(observer), queue)
    found = _deliveries.get(key)
    if found is None:
        found = _deliveries[key] = Delivery(observer, queue=queue)
    return found


# What an adapter calls: begin, end, record. Nothing here raises into the application.


class Recorder:
    """Record the retrievals that one instrumentation sees.

    Parameters
    ----------
    observer : Observer of RetrievalEvent
        Told about every outermost retrieval. All recorders of one observer count together.
    labels : mapping of str to str, or callable, optional
        Added to every event ("collection", "route", …); a callable is asked at each.
    take_labels : sequence of str
        Names of labels that are taken from what a framework carries with a request (see
        :func:`instrument`).
    tags : optional
        Where tags are looked up, see :func:`~.tags.as_tag_store`; what it does not know comes from
        the ``rsb_`` keys of the documents' metadata. A store that promises to be quick (its
        attribute ``inline`` is True) is asked while the application waits.
    doc_id : callable or str, optional
        From a native document to its id, where the framework's own is not the one wanted; or the
        path to it, see :func:`instrument`.
    query_key : bytes, optional
        Record a hash of the query under this key (see
        :func:`~rag_sourcebias.observe.hash_query`); without it nothing of the query is kept.
    queue : bool
        Observe on a thread of its own; without, the application waits for the observer. One that
        promises to be quick (its attribute ``inline`` is True) needs that thread only with
        ``tags``.

    Attributes
    ----------
    reads_metadata : bool
        Whether tags, or the ids of ``doc_id``, are read from metadata and not from a store.
    requests : Requests
        The latest stages of what any recorder of this observer recorded.
    read_ids_by : callable
        ``read_ids_by(reader)`` also reads documents that are said to be shown in this way.
    dropped : DroppedEvents
        Events lost by any recorder of this observer.
    begin, end : callable
        The methods of :class:`RunTable`, for frameworks that announce runs; they never raise.
    flush : callable
        ``flush(timeout=None) -> bool`` waits until everything recorded so far was observed; False
        when time ran out.
    coverage, close : callable
        What was recorded so far; say, once, where that is nothing or bears no tags.
    note : callable
        ``note(text)`` says something once, and keeps it for the coverage.

    Raises
    ------
    DataError
        If the observer has no ``observe``, or the key has a wrong length.
    """

    def __init__(
        self,
        observer: Observer[RetrievalEvent],
        *,
        labels: Mapping[str, str] | Callable[[], Mapping[str, object]] | None = None,
        take_labels: Sequence[str] = TAKEN,
        tags: Any = None,  # noqa: ANN401 - whatever a user has
        doc_id: Reader | str | None = None,
        query_key: bytes | None = None,
        queue: bool = True,
    ) -> None:
        require_observer(observer)
        if query_key is not None:
            check_key(query_key, "query_key")
        self.observer = observer
        self.doc_id = None if doc_id is None else _reader("doc_id", doc_id)
        self.reads_metadata = tags is None or doc_id is not None
        self._ask_labels = labels if callable(labels) else None
        self._labels = {} if labels is None or callable(labels) else checked(dict(labels))
        self._take_labels = tuple(sorted(label_names("take_labels", take_labels)))
        store = None if tags is None else as_tag_store(tags)
        self._tags = MetadataTags()
        self._query_key = query_key
        self._delivery = delivery_for(observer, queue=queue)
        self.read_ids_by = self._delivery.read_ids_by
        self.read_ids_by(self.doc_id)
        self.requests = self._delivery.requests
        self.dropped = self._delivery.dropped
        quick = getattr(store, "inline", False) is True
        self._lookup = TagLookup(store) if store is not None and quick else None
        later = TagLookup(store) if store is not None and not quick else None
        self._sink = self._delivery.sink(later)
        self._seen = None if later is not None else self._delivery.seen
        # Not methods of our own: every retrieval would pay for two more calls.
        runs = self._delivery.runs
        self.begin, self.end = runs.begin, runs.end
        self.flush = self._delivery.flush
        self.coverage = self._delivery.seen.coverage
        self.close = self._delivery.seen.close
        self.note = self._delivery.seen.note

    def retrieval(self) -> outermost:
        """Stand around a direct call: ``with recorder.retrieval() as first``.

        ``first`` says whether the call is to be recorded.
        """
        return outermost(self.observer)

    def record(  # noqa: PLR0917
        self,
        doc_ids: Iterable[Any],
        metadata: Iterable[Mapping[str, object] | None] = (),
        scores: Iterable[float] | None = None,
        query: str | None = None,
        labels: Mapping[str, object] = _NOTHING,
        texts: Iterable[str] | None = None,
        *,
        carried: Mapping[str, object] = _NOTHING,
        stage: Stage = "retrieved",
        request: str = "",
    ) -> str:
        """Record one retrieval or a later stage of one, best document first; never raises.

        Everything is copied at once: the application may change its objects afterwards. Iterables
        are read inside the guard, so a generator over native results is safe to give.

        Parameters
        ----------
        doc_ids : iterable
            Texts, or with ``texts`` anything that can be one.
        metadata : iterable of mapping, optional
            Of each document; only the tag keys are read.
        scores : iterable of float, optional
            Higher is better.
        query : str, optional
            Hashed where a key was given, otherwise ignored.
        labels : mapping, optional
            What the framework says of the place: "retriever", "store".
        texts : iterable of str, optional
            Of each document, where ids may be missing or no text: without an id it is known by a
            hash of its text.
        carried : mapping, optional
            What the framework carries with the request; labels of the wanted names are taken.
        stage : {"retrieved", "reranked", "shown", "cited"}
        request : str, optional
            The request as an earlier call named it. Without one a retrieval begins a request, and
            a later stage is of the request that :class:`~.stages.Requests` finds.

        Returns
        -------
        str
            Name of the request; "" where nothing could be recorded.
        """
        with guarded(self.dropped, "result could not be read"):
            tags, n_bad = self._tags.read(metadata)
            requests = self.requests
            named_ids = tuple(doc_ids) if texts is None else named(doc_ids, texts)
            earlier = None if stage == "retrieved" else requests.before(named_ids, request)
            if earlier is None:
                request = requests.begin(request)
                all_labels = self._labels_now(labels, carried)
                key = self._query_key
                query_id = "" if key is None or query is None else hash_query(query, key=key)
            else:  # those of its request, to be counted in the place of the earlier stage
                request = earlier.request
                if (stage, named_ids) == (earlier.stage, earlier.ranked.doc_ids):
                    return request
                all_labels = dict(earlier.labels)
                query_id = earlier.ranked.query_id
                tags = tags or tags_of(earlier, named_ids)
            event = RetrievalEvent(
                ranked=RankedList(
                    query_id=query_id,
                    doc_ids=named_ids,
                    scores=None if scores is None else np.array(list(scores), np.float64),
                ),
                tags=tags,
                labels=all_labels,
                bad_tags=n_bad,
                stage=stage,
                request=request,
                earlier=earlier,
            )
            if self._lookup is not None:
                event, failed = self._lookup.told(event)
                if failed:
                    self.note(failed)
            requests.keep(event)
            with guarded(self.dropped, "observer raised"):
                # with a store that is asked later, the last step counts
                if self._seen is not None and earlier is None:
                    self._seen.add(event.tags)
                self._sink(event)
            return request
        return ""

    def _labels_now(
        self, labels: Mapping[str, object], carried: Mapping[str, object]
    ) -> dict[str, str]:
        """Return all labels of an event: those given first win, and are the first 16."""
        found = dict(self._labels)
        asked = _NOTHING if self._ask_labels is None else self._ask_labels()
        baggage = baggage_now() if self._take_labels else _NOTHING
        taken = {
            name: where[name]
            for where in (baggage, carried)
            for name in self._take_labels
            if name in where
        }
        for more in (asked, labels_of_request(), taken, labels):
            for name, value in more.items():
                if name in found or len(found) == MAX_LABELS:
                    continue
                try:
                    text = label_text(value)
                except DataError as error:
                    self.note(f"label {name!r} is left out: {error}")
                    continue
                if text is not None:
                    found[name] = text
        return found


# What a reader is shown, said by the application.


def id_of(document: object) -> str:
    """Return the id of a document of any kind: its own, or the hash of its text.

    Raises
    ------
    DataError
        If it has none that is a text, a number or a UUID.
    """
    if isinstance(document, str):
        return document
    value = document if isinstance(document, Integral) else id_in(document)
    text = value_of(document, "page_content")
    return text_id(text) if value is None and isinstance(text, str) else id_text(value)


def shown(documents: Any, *, stage: Stage = "shown") -> Any:  # noqa: ANN401
    """Say what of a retrieval the reader is shown; return it as it is.

    For what no framework announces: a reranker that the application calls itself, a node of a
    graph, a cut to the best three. Everything that observed a retrieval of this context, or
    failing that the last one of one of these documents, is told of the stage. Never raises.

    Parameters
    ----------
    documents : list
        Documents of the framework, or their ids, best first; may be empty.
    stage : {"shown", "reranked", "cited"}

    Examples
    --------
    ::

        documents = retriever.invoke(question)
        documents = rsb.shown(rerank(question, documents)[:3])
    """
    for delivery in list(_deliveries.values()):
        delivery.take_stage(documents, stage)
    return documents


# The seam to frameworks: what an adapter offers, and the handle an instrumentation returns.


class Attachment(NamedTuple):
    """What an adapter did to an object.

    ``target`` is what the application uses from now on: the object itself where it could be
    instrumented in place. ``detach`` restores everything and may be called twice.
    """

    target: object
    detach: Callable[[], None]


class Observing:
    """What every object that observes offers; a class that has it sets what stands here."""

    _recorder: Recorder
    _stopped: bool

    def __repr__(self) -> str:
        """Say what was seen so far."""
        recorder = getattr(self, "_recorder", None)  # not set yet while it is being made
        seen = "" if recorder is None else f": {recorder.coverage()}"
        return f"<{type(self).__name__}{self._whose()}{seen}>"

    def _whose(self) -> str:
        return ""

    @property
    def dropped(self) -> DroppedEvents:
        """Events that were lost, by reason."""
        return self._recorder.dropped

    @property
    def coverage(self) -> Coverage:
        """What was recorded so far, and how much of it bears tags."""
        return self._recorder.coverage()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every retrieval so far was observed; False when ``timeout`` seconds passed.

        Blocks: use ``asyncio.to_thread`` on an event loop.
        """
        return self._recorder.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> None:
        """Observe nothing any more, and wait up to ``timeout`` seconds for queued events."""
        self._stopped = True
        self.flush(timeout)


class Instrumentation(Observing):
    """An instrumentation that is on until :meth:`close`; a context manager.

    Parameters
    ----------
    recorder : Recorder
    attachment : Attachment

    Attributes
    ----------
    target : object
        What the application uses from now on; the object that was given where it could be
        instrumented in place.
    """

    def __init__(self, recorder: Recorder, attachment: Attachment) -> None:
        self.target = attachment.target
        self._recorder = recorder
        self._detach: Callable[[], None] | None = attachment.detach

    def close(self, timeout: float | None = 5.0) -> None:
        """Restore the object, then wait up to ``timeout`` seconds for queued events."""
        detach = self._detach
        self._detach = None
        if detach is not None:
            with guarded(self.dropped, "instrumentation could not be removed"):
                detach()
            self.flush(timeout)
            self._recorder.close()

    def _whose(self) -> str:
        return f" of {self.target.__class__.__name__}, {'on' if self._detach else 'closed'}"

    def __enter__(self) -> Instrumentation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


# Where something stands in what a function returns: a callable, or a path of names.


def _reader(name: str, how: Reader | str) -> Reader:
    if callable(how):
        return how
    if not isinstance(how, str) or not all(how.split(".")):
        raise DataError(
            f"{name}={how!r:.80}: expected a function, or the names on the way as a text such as "
            "'payload' or '_source.meta'"
        )
    if name == "doc_id":
        return lambda document: id_text(at(document, how))
    return lambda value: at(value, how)


# Observe the retrievals of an object of any framework.


def instrument(
    obj: object,
    observer: Observer[RetrievalEvent],
    *,
    labels: Mapping[str, str] | Callable[[], Mapping[str, object]] | None = None,
    take_labels: Sequence[str] = TAKEN,
    tags: Any = None,  # noqa: ANN401 - whatever a user has
    doc_id: Callable[[Any], str] | str | None = None,
    hits: Callable[[Any], Sequence[Any]] | str | None = None,
    metadata: Callable[[Any], Mapping[str, object] | None] | str | None = None,
    score: Callable[[Any], float | None] | str | None = None,
    query_key: bytes | None = None,
    queue: bool = True,
) -> Instrumentation:
    """Observe every retrieval of an object, or of a whole framework, without changing any result.

    Parameters
    ----------
    obj : object or str
        A LangChain retriever or vector store, a LlamaIndex retriever, query or chat engine, or
        index, a Chroma collection or client, or a function from a query to documents. A name
        (``"langchain"``, ``"llama-index"``, ``"chroma"``) stands for everything in the process.
    observer : Observer of RetrievalEvent
        For example :class:`~rag_sourcebias.ExposureObserver`.
    labels : mapping of str to str, or callable, optional
        Added to every event ("collection", "route", …). A callable is asked at each event, such as
        for the session of a context variable; :func:`rag_sourcebias.labels` needs none.
    take_labels : sequence of str
        Names of labels to take from what carries them through a request: LangChain's
        ``config["metadata"]`` and ``config["configurable"]`` (``"thread_id"``), LlamaIndex's
        ``instrument_tags``, OpenTelemetry's baggage.
    tags : optional
        What ``audit`` takes: ``{id: source}``, a frame, a file of tags, a tag store or its file,
        a store of documents (``"chroma:db"``). Otherwise, and for documents it does not know, the
        ``rsb_`` keys of the documents' metadata count.
    doc_id : callable or str, optional
        From a native document to its id, where the framework's own is not the one wanted. A text
        is a path: names joined by dots, each the key of a mapping, a position in a list or tuple,
        or an attribute (``"payload.key"``, ``"0"``).
    hits : callable or str, optional
        For functions, as are ``metadata`` and ``score``: from what the function returns to the
        list of documents, best first. The shapes of common clients need none of the three.
    metadata : callable or str, optional
        From a document to the mapping that holds its tags.
    score : callable or str, optional
        From a document, with the number that a pair has beside it, to its score; higher is better.
    query_key : bytes, optional
        Record a hash of each query under this key; without it nothing of the query is recorded.
    queue : bool
        Observe on a thread of its own, so that no retrieval waits for the observer.

    Returns
    -------
    Instrumentation
        ``target`` is what to use from now on (``obj`` itself except for functions), ``close()``
        restores everything, ``dropped`` counts what was lost. Also a context manager.

    Raises
    ------
    DataError
        If the object cannot be instrumented (the message says what can), or ``hits``,
        ``metadata`` or ``score`` are given for an object of a framework.
    MissingExtraError
        If the framework is missing. One outside the tested versions is observed as far as it
        can be; ``coverage`` names it.
    """
    given = {"hits": hits, "metadata": metadata, "score": score}
    readers = {name: _reader(name, how) for name, how in given.items() if how is not None}
    found = installed()
    recorder = Recorder(
        observer,
        labels=labels,
        take_labels=take_labels,
        tags=tags,
        doc_id=doc_id,
        query_key=query_key,
        queue=queue,
    )
    what = repr(obj) if isinstance(obj, str) else f"an object of type {type_name(obj)}"
    for entry in candidates(obj, found):
        if readers and entry.name != CALLABLE:
            raise DataError(
                f"{what} takes no {' and no '.join(f'{name}=' for name in readers)}: its adapter "
                "reads its results; leave that out, or instrument a function that searches"
            )
        attachment: Attachment | None = entry.load().attach(obj, recorder, **readers)
        if attachment is not None:
            return Instrumentation(recorder, attachment)
    accepted = "; ".join(dict.fromkeys(entry.load().accepts for entry in found))
    raise DataError(
        f"{what} cannot be instrumented; expected {accepted or 'nothing: no adapter is installed'}"
    )
