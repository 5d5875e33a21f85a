"""What an adapter calls: begin, end, record. Nothing here raises into the application."""

from __future__ import annotations

import contextlib
import math
import threading
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import replace
from numbers import Integral
from time import monotonic
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar
from uuid import UUID

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Observer
from rag_sourcebias.core.tags import UNKNOWN, TagStore
from rag_sourcebias.observe.events import (
    MAX_LABELS,
    CheckedLabels,
    Coverage,
    DroppedEvents,
    Locked,
    MetadataTags,
    RetrievalEvent,
    Seen,
    TagLookup,
    check_key,
    checked,
    closes_at_exit,
    event_of,
    guarded,
    hash_query,
)
from rag_sourcebias.retrieval.rerank import CALLABLE, candidates, installed, type_name

# Switching observation off for a stretch of code.


suppressed: ContextVar[bool] = ContextVar("rag_sourcebias_suppressed", default=False)


class suppress:  # noqa: N801 - used as a statement, as contextlib.suppress is
    """Observe no retrieval inside this block.

    The mark follows the context: tasks started inside the block keep it (also after the block
    has ended), and so do threads into which the context is copied (``asyncio.to_thread``,
    LangChain's executor). A plain ``threading.Thread`` starts without it. Other tasks and
    threads are not affected. Blocks nest; one object serves one block.

    Examples
    --------
    >>> with suppress():
    ...     is_suppressed()
    True
    >>> is_suppressed()
    False
    """

    __slots__ = ("_token",)

    _token: Token[bool]

    def __enter__(self) -> None:
        self._token = suppressed.set(True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A generator may be closed in another context than the one it was started in; there the
        # mark was never set, and a ValueError would reach the host.
        with contextlib.suppress(ValueError):
            suppressed.reset(self._token)


def is_suppressed() -> bool:
    """Return whether the current context is inside a :class:`suppress` block."""
    return suppressed.get()


# Hand events to an observer on another thread, so that a retrieval never waits for it.


EventT = TypeVar("EventT")

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
        if capacity < 1:
            raise DataError(f"capacity must be at least 1, got {capacity}")
        self._observer, self._dropped, self._capacity = observer, dropped, capacity
        self._putting = guarded(dropped, "queue thread could not start")
        self._observing = guarded(dropped, "observer raised")
        self._closed = False
        super().__init__()
        closes_at_exit(self)

    def _after_fork(self) -> None:
        super()._after_fork()
        self._arrived = threading.Condition(self._lock)
        self._progress = threading.Condition(self._lock)
        self._waiting: deque[EventT] = deque()
        self._taken: deque[EventT] = deque()  # by the thread, all that waited at once
        self._asleep = False
        self._n_put = self._n_done = self._n_lost = self._n_flushing = 0
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
                pending = self._n_put - self._n_done - self._n_lost
                if not self._closed and pending < self._capacity:
                    self._waiting.append(event)
                    self._n_put += 1
                    if self._asleep or pending >= self._capacity // 2:
                        self._arrived.notify()
                    return True
            self._dropped.add("queue is closed" if self._closed else "queue is full")
        return False

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every event put before this call was observed.

        Returns False when ``timeout`` seconds passed before (None: no limit), or when the
        observer itself calls. Blocks: use ``asyncio.to_thread`` on an event loop.
        """
        if threading.current_thread() is self._thread:
            return False
        with self._lock:
            target = self._n_put
            self._arrived.notify_all()
            self._n_flushing += 1
            try:
                return self._progress.wait_for(
                    lambda: self._n_done + self._n_lost >= target, timeout
                )
            finally:
                self._n_flushing -= 1

    def close(self, timeout: float | None = 5.0) -> bool:
        """Refuse further events, observe the queued ones, end the thread.

        Returns False when ``timeout`` seconds passed before; what still waited is then dropped
        and counted.
        """
        with self._lock:
            self._closed = True
            self._arrived.notify_all()
        in_time, lost = self.flush(timeout), 0
        with self._lock:
            for events in (self._waiting, self._taken):
                # the thread may take the last one at this moment
                with contextlib.suppress(IndexError):
                    while True:
                        events.popleft()
                        lost += 1
            self._n_lost += lost
            self._progress.notify_all()
        if lost:
            self._dropped.add("queue closed before it was empty", n=lost)
        return in_time

    def _drain(self) -> None:
        with suppress():
            while (taken := self._take()) is not None:
                # This thread is ours: a SystemExit of the observer ends nothing but the event.
                try:
                    with self._observing:
                        self._observer.observe(taken[0])
                except SystemExit as error:
                    self._dropped.add("observer raised", error=error)
                self._n_done += 1  # without the lock: written by this thread only
                if self._n_flushing:
                    with self._lock:
                        self._progress.notify_all()

    def _take(self) -> tuple[EventT] | None:
        """Wait for the next event; None once the queue is closed and empty."""
        try:
            return (self._taken.popleft(),)  # without the lock: deques are safe, one thread reads
        except IndexError:
            pass
        with self._lock:
            if not self._waiting and not self._closed:
                self._arrived.wait(_GATHER)
            self._asleep = True
            while not self._waiting and not self._closed:
                self._arrived.wait()
            self._asleep = False
            self._taken, self._waiting = self._waiting, deque()
            return (self._taken.popleft(),) if self._taken else None


# The outermost of nested direct calls, for wrappers that see no run ids.


#: Whether it is open, its owner, when it hides nothing any more, the block around it, and its run.
#: A list, because one is made for every retrieval: an object of a class costs as much again.
Block: TypeAlias = list[Any]
_OPEN, _OWNER, _DEADLINE, _OUTER, _RUN = range(5)

_innermost: ContextVar[Block | None] = ContextVar("rag_sourcebias_outermost", default=None)


def enter(
    owner: object, lasts: float = math.inf, run_id: Hashable | None = None
) -> tuple[Block, bool]:
    """Begin a block, see :class:`outermost`; return it, and whether it is an outermost one."""
    around = _innermost.get()
    while around is not None and not around[_OPEN]:
        around = around[_OUTER]
    now = monotonic()
    block: Block = [True, owner, now + lasts, around, run_id]
    _innermost.set(block)
    while around is not None:
        if around[_OPEN] and around[_OWNER] is owner and now < around[_DEADLINE]:
            return block, False
        around = around[_OUTER]
    return block, True


def leave(block: Block) -> None:
    """End a block; in any context, and as often as one likes."""
    block[_OPEN] = False
    # Not by token: a generator may be closed in another context than the one it was started in,
    # or after blocks that were entered later.
    if _innermost.get() is block:
        outer = block[_OUTER]
        while outer is not None and not outer[_OPEN]:  # ended before this one: they would pile up
            outer = outer[_OUTER]
        _innermost.set(outer)


class outermost:  # noqa: N801 - used as a statement, as contextlib.suppress is
    """Tell whether this block is the outermost one of its owner.

    Blocks nest through calls, awaits, tasks started inside, and threads into which the context
    is copied. Once a block has ended it hides nothing, also from a task that outlives it or when
    a generator holding it was abandoned.

    Parameters
    ----------
    owner : object
        Blocks of different owners (compared by identity) do not nest: give the observer, so that
        two observers at different levels of one application both see their retrievals.
    lasts : float
        Seconds after which a block that has not ended hides nothing any more. For blocks that
        begin and end in callbacks: an interrupted application never calls the second one.

    Examples
    --------
    >>> with outermost() as first:
    ...     with outermost() as second:
    ...         print(first, second)
    True False
    """

    __slots__ = ("_block", "_lasts", "_owner")

    _block: Block

    def __init__(self, owner: object = None, *, lasts: float = math.inf) -> None:
        self._owner = owner
        self._lasts = lasts

    def __enter__(self) -> bool:
        self._block, first = enter(self._owner, self._lasts)
        return first

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        leave(self._block)


def began_inside(owner: object, run_id: Hashable) -> bool:
    """Return whether this context comes from inside the block of a run, ended or not."""
    block = _innermost.get()
    while block is not None:
        if block[_OWNER] is owner and block[_RUN] == run_id:
            return True
        block = block[_OUTER]
    return False


# The outermost of nested retrievals, for frameworks that give every run an id.


_LONGEST_RUN = 600.0  # seconds; a retrieval that was interrupted never ends
_MOST_OPEN = 10_000

#: The block of a retrieval (None for other runs), and whether the retrieval is an outermost one.
_Entry: TypeAlias = tuple[Block | None, bool]
_STEP: _Entry = (None, False)


class RunTable:
    """Runs that began and have not ended; tells which of them are outermost retrievals.

    Composite retrievers (ensembles, fusion, wrappers) announce each inner retrieval as well;
    counting those would count one user query two or three times. A retrieval is nested if it
    begins inside another one, seen by the context (calls, tasks, threads with the context) or by
    the parent it names (also through other runs between them). Ids are LangChain's run ids or
    LlamaIndex's span ids; none is ever used for two runs. Runs may end in any order and on any
    thread, and be announced twice (a handler registered twice). All retrievals are in the table,
    other runs only where they lie inside a retrieval: so whatever has its parent here is nested.
    Nothing here raises into the application: what cannot be read is counted.

    Beyond 10,000 open runs the oldest are forgotten.

    No lock, and nothing to renew in a forked child: each change of the table is one call of a
    dict with keys that hash in C, which no other thread and no signal interrupts.

    Parameters
    ----------
    owner : object
        Whose retrievals these are; the owner of their blocks, see
        :class:`~rag_sourcebias.observe.recorder.outermost`.
    dropped : DroppedEvents
        Counts outermost retrievals forgotten before they ended.

    Examples
    --------
    >>> runs = RunTable(object(), DroppedEvents())
    >>> runs.begin("ensemble")
    >>> runs.begin("bm25", "ensemble")
    >>> runs.end("bm25"), runs.end("ensemble"), runs.end("ensemble")
    (False, True, False)
    """

    __slots__ = ("_dropped", "_open", "_owner")

    def __init__(self, owner: object, dropped: DroppedEvents) -> None:
        self._owner = owner
        self._dropped = dropped
        self._open: dict[Hashable, _Entry] = {}

    def begin(
        self, run_id: Hashable, parent_id: Hashable | None = None, *, is_retrieval: bool = True
    ) -> None:
        """Note that a run began, in the context it runs in.

        Announcing an open run again changes nothing. Runs that are no retrievals need to be
        announced only where they may lie between an outer and an inner retrieval.
        """
        try:
            runs = self._open
            if run_id in runs:
                return
            if not is_retrieval:
                if parent_id not in runs:
                    return
                runs[run_id] = _STEP
            elif suppressed.get():
                return
            else:
                # A task that outlives the run it names has the block of that run in its context.
                nested = parent_id is not None and (
                    parent_id in runs or began_inside(self._owner, parent_id)
                )
                block, first = enter(self._owner, _LONGEST_RUN, run_id)
                entry = (block, first and not nested)
                if runs.setdefault(run_id, entry) is not entry:  # another thread was first
                    leave(block)
            if len(runs) > _MOST_OPEN:
                self._forget()
        except Exception as error:  # noqa: BLE001 - as guarded, which costs more on this hot path
            self._dropped.add("start could not be read", error=error)

    def end(self, run_id: Hashable) -> bool:
        """Note that a run ended, also when it failed.

        Returns
        -------
        bool
            True for an outermost retrieval, once. False for every other run, among them those
            never announced or forgotten.
        """
        try:
            block, first = self._open.pop(run_id, _STEP)
            if block is not None:
                leave(block)
        except Exception as error:  # noqa: BLE001 - as in begin
            self._dropped.add("end could not be read", error=error)
            return False
        return first

    def _forget(self) -> None:
        """Forget the oldest runs, which were interrupted: their end was never announced."""
        runs = self._open
        while len(runs) > _MOST_OPEN:
            try:
                _, first = runs.pop(next(iter(runs)), _STEP)
            except (RuntimeError, StopIteration):  # another thread changed the table in between
                return
            if first:
                self._dropped.add("retrieval never ended")


# One observer and what all its instrumentations share: queue, open runs, count of lost events.


class Delivery:
    """Bring events to one observer.

    Parameters
    ----------
    observer : Observer of RetrievalEvent
        One whose attribute ``inline`` is True promises to take an event within microseconds and
        to wait for nothing. It is called on the application's thread: that costs less than
        handing the event to another thread, above all where retrievals are rare and the other
        thread has to be woken for each. Events whose tags come from a store go through the queue
        all the same, because the store is asked on its thread.
    queue : bool
        Observe on a thread of its own; otherwise while the application waits.
    capacity : int
        Events that may wait.
    """

    def __init__(
        self, observer: Observer[RetrievalEvent], *, queue: bool = True, capacity: int = 10_000
    ) -> None:
        self.observer = observer
        self.dropped = DroppedEvents()
        self.seen = Seen(self.dropped)
        self.runs = RunTable(observer, self.dropped)
        self._inline = getattr(observer, "inline", False) is True
        self._last_step = _LastStep(observer, self.dropped, self.seen)
        self._queue: EventQueue[_Waiting] | None = None
        if queue:
            self._queue = EventQueue(self._last_step, self.dropped, capacity=capacity)
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
        if lookup is None and (queue is None or self._inline):
            return self.observer.observe
        take: Callable[[_Waiting], object] = self._last_step.observe if queue is None else queue.put
        return lambda event: take((event, lookup))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything put so far was observed; False when time ran out."""
        return self._queue is None or self._queue.flush(timeout)


_Waiting = tuple[RetrievalEvent, TagLookup | None]


class _LastStep:
    """Look tags up where that is asked for, then tell the observer."""

    def __init__(
        self, observer: Observer[RetrievalEvent], dropped: DroppedEvents, seen: Seen
    ) -> None:
        self._observer, self._dropped, self._seen = observer, dropped, seen

    def observe(self, event: _Waiting) -> None:
        """Take one event; when its tags cannot be looked up it is dropped and counted.

        The tags that the store has of a document replace those that it came with.
        """
        told, lookup = event
        if lookup is not None:
            try:
                doc_ids = told.ranked.doc_ids
                told = replace(
                    told,
                    tags=tuple(lookup.over(doc_ids, told.tags)),
                    bad_tags=told.bad_tags + lookup.damaged(doc_ids),
                )
            except Exception as error:  # noqa: BLE001 - an event without its tags is not told
                self._dropped.add("tag store failed", error=error)
                return
            self._seen.add(told.tags)
        self._observer.observe(told)


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
    labels : mapping of str to str, optional
        Added to every event ("collection", "route", …).
    tags : TagStore, optional
        Where tags are looked up, on the queue's thread; what it does not know comes from the
        ``rsb_`` keys of the documents' metadata.
    doc_id : callable, optional
        From a native document to its id, where the framework's own is not the one wanted.
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
    dropped : DroppedEvents
        Events lost by any recorder of this observer.
    begin, end : callable
        ``begin(run_id, parent_id=None, *, is_retrieval=True)`` and ``end(run_id) -> bool`` note
        runs of a framework with run ids, see :class:`RunTable`; they never raise.
    flush : callable
        ``flush(timeout=None) -> bool`` waits until everything recorded so far was observed; False
        when time ran out.
    coverage, close : callable
        What was recorded so far; say, once, where that is nothing or bears no tags.

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
        self.reads_metadata = tags is None or doc_id is not None
        self._labels = CheckedLabels(labels or {})
        self._lookup = None if tags is None else TagLookup(tags)
        self._tags = MetadataTags()
        self._query_key = query_key
        self._delivery = delivery_for(observer, queue=queue)
        self.dropped = self._delivery.dropped
        self._sink = self._delivery.sink(self._lookup)
        self._seen = None if self._lookup is not None else self._delivery.seen
        # Not methods of our own: every retrieval would pay for two more calls.
        self.begin = self._delivery.runs.begin
        self.end = self._delivery.runs.end
        self.flush = self._delivery.flush
        self.coverage = self._delivery.seen.coverage
        self.close = self._delivery.seen.close

    def retrieval(self) -> outermost:
        """Stand around a direct call: ``with recorder.retrieval() as first``.

        ``first`` says whether the call is to be recorded.
        """
        return _DirectCall(self.observer)

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
            if self._seen is not None:  # with a tag store, the last step counts
                if tags and tags[0] is not UNKNOWN:  # as Seen.add does, at a third of the cost
                    self._seen.tick()
                else:
                    self._seen.add(event.tags)
            self._sink(event)
        except Exception as error:  # noqa: BLE001 - as guarded
            self.dropped.add("observer raised", error=error)


class _DirectCall(outermost):
    """An outermost block that is none while observation is suppressed."""

    __slots__ = ()

    def __enter__(self) -> bool:
        return super().__enter__() and not suppressed.get()


# The seam to frameworks: what an adapter offers, and the handle an instrumentation returns.


class Attachment(NamedTuple):
    """What an adapter did to an object.

    ``target`` is what the application uses from now on: the object itself where it could be
    instrumented in place. ``detach`` restores everything and may be called twice.
    """

    target: object
    detach: Callable[[], None]


class Adapter(Protocol):
    """Instruments the objects of one framework.

    A package offers one by an entry point in the group ``rag_sourcebias.adapters``. The name of
    the entry point is the top-level package of the objects' classes (a subclass counts), or a
    word by which users ask for the whole framework: ``instrument("langchain", observer)``.

    An adapter may offer more, each looked up by name in :mod:`rag_sourcebias.adapters` and absent
    where its framework has no such thing: ``completer(model, options)`` with the text
    ``completes``, and ``search(obj)`` with ``document_id(found, key)`` and the text ``searches``;
    one with ``describe(found)``, which returns a
    :class:`~rag_sourcebias.retrieval.application.Hit`, is asked ``search(obj, depth)``.
    """

    accepts: str
    """What can be given, for error messages: "a LangChain retriever or vector store"."""

    def attach(self, obj: object, recorder: Recorder) -> Attachment | None:
        """Instrument an object, or everything when given the name; None for a wrong object.

        The adapter of functions, named "callable", is also given ``hits``, ``metadata`` and
        ``score``, those that the user gave.
        """


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
        detach, self._detach = self._detach, None
        if detach is not None:
            with guarded(self.dropped, "instrumentation could not be removed"):
                detach()
            self.flush(timeout)
            self._recorder.close()

    def _whose(self) -> str:
        return f" of {type(self.target).__name__}, {'on' if self._detach else 'closed'}"

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


Reader: TypeAlias = Callable[[Any], Any]


def at(value: Any, path: str) -> Any:  # noqa: ANN401
    """Return what stands at a path such as ``"payload.author"``; None where nothing does.

    Each name is a key of a mapping, the position in a list or tuple ("0"), an attribute, or what
    square brackets take.
    """
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(name)
        elif name.isdecimal() and isinstance(value, Sequence):
            value = value[int(name)] if int(name) < len(value) else None
        else:
            inner = getattr(value, name, None)
            if inner is None:
                with contextlib.suppress(TypeError, LookupError, ValueError, AttributeError):
                    inner = value[name]
            value = inner
    return value


def id_text(value: object) -> str:
    """Return an id as text.

    Raises
    ------
    DataError
        If it is neither text, nor an integer, nor a UUID.
    """
    if isinstance(value, (str, Integral, UUID)) and not isinstance(value, bool):
        return str(value)
    raise DataError(f"expected an id (text, integer or UUID), got {type(value).__name__}")


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
    labels: Mapping[str, str] | None = None,
    tags: TagStore | None = None,
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
        A LangChain retriever or vector store, a LlamaIndex retriever, query engine or index, a
        Chroma collection or client, or a function from a query to documents. A name
        (``"langchain"``, ``"llama-index"``, ``"chroma"``) stands for everything in the process.
    observer : Observer of RetrievalEvent
        For example :class:`~rag_sourcebias.ExposureObserver`.
    labels : mapping of str to str, optional
        Added to every event ("collection", "route", …).
    tags : TagStore, optional
        Where tags are looked up; otherwise, and for documents it does not know, the ``rsb_`` keys
        of the documents' metadata count.
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
    MissingExtraError, UnsupportedVersionError
        If the framework is missing or too old.
    """
    given = {"hits": hits, "metadata": metadata, "score": score}
    readers = {name: _reader(name, how) for name, how in given.items() if how is not None}
    found = installed()
    recorder = Recorder(
        observer,
        labels=labels,
        tags=tags,
        doc_id=None if doc_id is None else _reader("doc_id", doc_id),
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
