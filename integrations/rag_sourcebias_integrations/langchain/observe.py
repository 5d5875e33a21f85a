"""Instrument a LangChain retriever or vector store in place, or all retrievers of the process."""

from __future__ import annotations

import functools
import inspect
import math
import re
import sys
import threading
from abc import ABCMeta
from asyncio import _get_running_loop, current_task
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from operator import attrgetter
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, Self
from weakref import WeakKeyDictionary

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, BaseRunManager
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from rag_sourcebias.core.protocols import Observer
from rag_sourcebias.core.tags import TagStore
from rag_sourcebias.observe.events import (
    DroppedEvents,
    RetrievalEvent,
    guarded,
    listed,
    named,
)
from rag_sourcebias.observe.patching import Patch
from rag_sourcebias.observe.recorder import Attachment, Observing, Recorder
from rag_sourcebias.observe.runs import Block, leave

# LangChain documents to what a recorder takes.


# A generator costs twice as much.
_ID, _METADATA, _TEXT = map(attrgetter, ("id", "metadata", "page_content"))


def ids_of(
    documents: Sequence[Any], doc_id: Callable[[Any], object] | None = None
) -> Sequence[str]:
    """Return the id of each document, by the user's accessor where there is one.

    A document without an id is known by its text.
    """
    return named(map(doc_id or _ID, documents), map(_TEXT, documents))


def record_documents(
    recorder: Recorder,
    documents: Sequence[Any],
    query: str | None,
    labels: Mapping[str, str],
    scores: Iterable[float] | None = None,
) -> None:
    """Record what was retrieved, best first; never raises."""
    with guarded(recorder.dropped, "result could not be read"):
        listed(documents)
        recorder.record(
            map(recorder.doc_id or _ID, documents),
            map(_METADATA, documents),
            scores,
            query,
            labels,
            map(_TEXT, documents),
        )


def documents_in(found: Sequence[Any]) -> list[Any]:
    """Return the documents in what a search returned: documents, or tuples that begin with one."""
    return [item if isinstance(item, Document) else item[0] for item in listed(found)]


# Where a retrieval happened, as far as LangChain says.


_MOST_KNOWN = 1_000  # run names can be set for each call


def run_labels(recorder: Recorder) -> Callable[[object, object], dict[str, str]]:
    """Return what makes labels "retriever" and "store" beside those of the user, and keeps them."""
    return functools.lru_cache(_MOST_KNOWN)(
        lambda retriever, store: recorder.labels_beside({"retriever": retriever, "store": store})
    )


# Observe an object in place: exchange its class for a subclass that stays out of sight.


#: Give an object another class.
set_class = vars(object)["__class__"].__set__  # not through a __setattr__ of the object's class


class Layer:
    """What stands between an object and its class.

    Attributes
    ----------
    original : type
        The class of the object.
    observers : tuple
        Those who observe the object now.
    """

    def __init__(self, original: type, *observers: Any) -> None:  # noqa: ANN401
        self.original = original
        self.observers: tuple[Any, ...] = observers


_layers: WeakKeyDictionary[type, Layer] = WeakKeyDictionary()
_lock = threading.RLock()
_COPIES = ("__copy__", "__deepcopy__")
Members = Callable[[Layer], Mapping[str, Any]]


def observed_class(layer: Layer, members: Members) -> type:
    """Make a subclass that calls itself by the name of its base and says it is its base.

    Copies and pickles are objects of the base class, not observed. Metaclasses are passed over:
    pydantic would build its schema again, and a registry of subclasses would list this one.
    """
    original: Any = layer.original

    def reduce_ex(self: Any, protocol: Any) -> Any:  # noqa: ANN401
        reduced = original.__reduce_ex__(self, protocol)
        if not isinstance(reduced, tuple):
            return reduced
        call, arguments, *rest = reduced
        return (call, tuple(original if a is made else a for a in arguments), *rest)

    namespace: dict[str, Any] = {
        "__slots__": (),  # the memory layout must not differ
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
        "__doc__": original.__doc__,
        "__class__": property(lambda _: original),
        "__reduce_ex__": reduce_ex,
        **{name: _as_original(name, original) for name in _COPIES if hasattr(original, name)},
        **members(layer),
    }
    made: type = ABCMeta.__new__(type(original), original.__name__, (original,), namespace)
    return made


def add_observer(obj: object, observer: object, members: Members) -> Callable[[], None]:
    """Have an object observed in place; the returned function ends it and may be called twice.

    Observers may leave in any order; with the last one the object gets its class back.
    """
    with _lock:
        layer = _layers.get(type(obj))
        if layer is None:
            layer = Layer(type(obj))
            made = observed_class(layer, members)
            set_class(obj, made)
            _layers[made] = layer
        layer.observers = (*layer.observers, observer)

    def detach() -> None:
        with _lock:
            layer.observers = tuple(o for o in layer.observers if o is not observer)
            if not layer.observers and _layers.get(type(obj)) is layer:
                set_class(obj, layer.original)

    return detach


def _as_original(name: str, original: type) -> Any:  # noqa: ANN401
    def copy(self: object, *args: object) -> object:
        copied: object = getattr(original, name)(self, *args)
        if type(copied) is type(self) and copied is not self:
            set_class(copied, original)
        return copied

    return copy


# A retriever observed in place: what stands around each of its calls.
# The callbacks of the application are left as they are. Callbacks of our own would cost more: in
# an asynchronous call, LangChain's dispatch to a handler that does nothing takes as long as all of
# this. A retriever that asks others on threads of its own must copy the context to them, as
# LangChain's executors do; otherwise theirs count as well.


class Watch:
    """Record the retrievals of one retriever.

    Parameters
    ----------
    recorder : Recorder
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.stopped = False
        self._labels = run_labels(recorder)

    def record(
        self,
        retriever: Any,  # noqa: ANN401
        documents: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Record what ``invoke(input, config=None, **kwargs)`` returned; never raises."""
        if self.stopped:
            return
        try:
            query = args[0] if args else kwargs["input"]
            config = args[1] if len(args) > 1 else kwargs.get("config")
            name = (config.get("run_name") if config else None) or retriever.name
            of_store = isinstance(retriever, VectorStoreRetriever)
            store = retriever.vectorstore.__class__.__name__ if of_store else None
            labels = self._labels(name or type(retriever).__name__, store)
        except Exception as error:  # noqa: BLE001 - as guarded, which costs more on this hot path
            self.recorder.dropped.add("result could not be read", error=error)
        else:
            record_documents(
                self.recorder,
                documents,
                query=query if isinstance(query, str) else None,
                labels=labels,
            )


class _Call:
    __slots__ = ("_entered",)

    _entered: list[tuple[Any, tuple[Block, bool]]]

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._entered = [(watch, watch.recorder.enter()) for watch in watches]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for _, (block, _) in self._entered:
            leave(block)

    def record(self, *call: Any) -> None:  # noqa: ANN401
        """Record its result for those of whom it was an outermost one."""
        for watch, (_, first) in self._entered:
            if first:
                watch.record(*call)


def retriever_members(layer: Layer) -> Mapping[str, Any]:
    """Return the methods through which every query passes, batches and streams as well."""
    return {name: _asked(name, getattr(layer.original, name), layer) for name in _ASK}


_ASK = ("invoke", "ainvoke")


def _asked(name: str, method: Callable[..., Any], watched: Layer | Patch) -> Any:  # noqa: ANN401
    @functools.wraps(method)
    def invoke(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with _Call(_others(self, watched.observers)) as call:
            found = method(self, *args, **kwargs)
        call.record(self, found, args, kwargs)
        return found

    @functools.wraps(method)
    async def ainvoke(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with _Call(_others(self, watched.observers)) as call:
            found = await method(self, *args, **kwargs)
        call.record(self, found, args, kwargs)
        return found

    return invoke if name == "invoke" else ainvoke


def _others(retriever: Any, watches: Sequence[Watch]) -> Sequence[Watch]:  # noqa: ANN401
    """Leave out whom the retriever tells itself, with the scores: it is one of our wrappers."""
    if not isinstance(retriever, Observing):
        return watches
    told = retriever._recorder.observer
    return [watch for watch in watches if watch.recorder.observer is not told]


# LangChain's callbacks, handed to a recorder.


def _on_stack(key: int) -> bool:
    """Return whether the run of this number is among the callers."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            if isinstance(value, BaseRunManager) and getattr(value.run_id, "int", None) == key:
                return True
        frame = frame.f_back
    return False


_start_llm = inspect.unwrap(AsyncCallbackManager.on_llm_start).__code__
_STORE = "ls_vector_store_provider"
_LLM_START = (  # with the comprehensions inside, which are functions in Python 3.11
    _start_llm,
    *(inner for inner in _start_llm.co_consts if isinstance(inner, CodeType)),
)
_LLM_START_IDS = frozenset(map(id, _LLM_START))  # equality of code costs ten times as much


class RecordingHandler(Observing, BaseCallbackHandler):
    """Hand every retriever run to a recorder, in constant time and on the thread it runs on.

    Chain runs are announced where they lie inside a retrieval, so that a retrieval inside them is
    known to be nested; all other events are ignored. May be added to any number of calls at once.

    Parameters
    ----------
    recorder : Recorder
    """

    ignore_agent = ignore_chat_model = ignore_custom_event = ignore_llm = ignore_retry = True
    ignore_retriever = False  # not a property, which is asked twice in every retrieval

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._labels = run_labels(recorder)
        self._runs, self._begin, self._end = recorder.open, recorder.begin, recorder.end
        self._begin_other = recorder.begin_other
        self._stopped = False

    @property
    def run_inline(self) -> bool:
        """True: a synchronous handler would run in a thread pool under ``ainvoke``.

        Except for who asks for ``on_llm_start``: where one handler runs inline, LangChain's
        asynchronous start of a language model tells no other one (langchain-core 1.0 to 1.7).
        """
        return id(sys._getframe(1).f_code) not in _LLM_START_IDS

    @property
    def ignore_chain(self) -> bool:
        """Chains matter only inside a retrieval."""
        return not self._runs

    def stop(self) -> None:
        """Record nothing any more; runs in flight are closed as they end."""
        self._stopped = True

    def on_retriever_start(
        self,
        serialized: object,  # noqa: ARG002
        query: str,
        *,
        run_id: Any,  # noqa: ANN401 - a UUID
        parent_run_id: Any = None,  # noqa: ANN401
        metadata: Mapping[str, Any] | None = None,
        tags: object = None,  # noqa: ARG002 - what is not named costs a dict
        name: object = None,
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Note that a retriever started."""
        if self._stopped:
            return
        try:
            loop = _get_running_loop()
            task = None if loop is None else current_task(loop)
            self._begin(
                run_id.int,
                None if parent_run_id is None else parent_run_id.int,
                (self, query, name, metadata.get(_STORE) if metadata else None),
                run_id,
                _on_stack,
                get_ident() if task is None else id(task),  # as place does
            )
        except (AttributeError, TypeError) as error:
            self._recorder.dropped.add("start could not be read", error=error)

    def on_retriever_end(
        self,
        documents: Sequence[Any],
        *,
        run_id: Any,  # noqa: ANN401
        parent_run_id: object = None,  # noqa: ARG002 - as at the start
        tags: object = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Record the result, if no other retrieval stands around this one."""
        note = self._end(getattr(run_id, "int", None))
        if not note:
            return
        handler, query, name, store = note  # the first that was told of the start
        if not handler._stopped:
            labels = handler._labels(name, store)
            record_documents(handler._recorder, documents, query=query, labels=labels)

    def on_chain_start(
        self,
        serialized: object,  # noqa: ARG002
        inputs: object,  # noqa: ARG002
        *,
        run_id: Any,  # noqa: ANN401
        parent_run_id: Any = None,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Note a chain that lies inside a retrieval."""
        if parent_run_id is not None:
            self._begin_other(run_id.int, parent_run_id.int, run_id)

    def on_chain_end(self, outcome: object, *, run_id: Any, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Note that such a chain ended, or failed, or a retriever did: with no result to record."""
        self._end(getattr(run_id, "int", None))

    on_chain_error = on_retriever_error = on_chain_end

    def __copy__(self) -> RecordingHandler:
        return self

    def __deepcopy__(self, memo: object) -> RecordingHandler:  # a copied config is observed too
        return self


# The callback handler that users add to a call, to a bound retriever or to a chain.


class SourceBiasCallbackHandler(RecordingHandler):
    """Observe the retrievals of the calls it is given to, sync and async.

    Per call (``config={"callbacks": [handler]}``) or bound
    (``retriever.with_config(callbacks=[handler])``). Callbacks given to a constructor of a chain
    reach that chain only, not the retrievers inside it. To observe a retriever in place, or every
    retriever of the process, use :func:`rag_sourcebias.instrument`.

    Callbacks carry no scores (see :class:`InstrumentedRetriever`), and a direct call of a vector
    store fires none (instrument the store).

    Parameters
    ----------
    observer : Observer of RetrievalEvent
    labels, tags, doc_id, query_key, queue
        As for :func:`~rag_sourcebias.instrument`. The class of the retriever is added
        as the label "retriever" and that of its vector store as "store", where there is room.

    Raises
    ------
    DataError
        If the observer has no ``observe``, or the key has a wrong length.

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> from langchain_core.retrievers import BaseRetriever
    >>> from rag_sourcebias.observe.observers import CountingObserver
    >>> class Fixed(BaseRetriever):
    ...     def _get_relevant_documents(self, query, *, run_manager):
    ...         return [Document("some text", id="a")]
    >>> observer = CountingObserver()
    >>> handler = SourceBiasCallbackHandler(observer)
    >>> _ = Fixed().invoke("a question", config={"callbacks": [handler]})
    >>> handler.close()
    >>> observer.n_events
    1
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
        super().__init__(
            Recorder(
                observer, labels=labels, tags=tags, doc_id=doc_id, query_key=query_key, queue=queue
            )
        )


# Scores of the documents a search returns, taken from the searches inside it.


_RELEVANCE = "similarity_search_with_relevance_scores"
_RAW = "similarity_search_with_score"


class Scores:
    """What the observed searches inside a retrieval returned."""

    def __init__(self) -> None:
        self._found: list[tuple[Any, str, Any]] = []

    def note(self, store: Any, name: str, result: Any) -> None:  # noqa: ANN401
        """Keep the result of a search, if it gives scores."""
        if name in (_RELEVANCE, _RAW):
            self._found.append((store, name, result))

    def of(self, documents: Sequence[Any], dropped: DroppedEvents) -> list[float] | None:
        """Return the scores of exactly these documents in this order, higher being better.

        None where no search gave the very objects in this order, where the store does not say
        how its raw scores (often distances) become relevance, or where that contradicts the
        order of the documents.
        """
        for store, name, result in reversed(self._found):
            with guarded(dropped, "scores could not be read"):
                scores = _scores(store, name, result, documents)
                if scores is not None:
                    return scores
        return None


_scores_of_run: ContextVar[Scores | None] = ContextVar("rag_sourcebias_scores", default=None)


@contextmanager
def searching() -> Iterator[Scores]:
    """Collect scores inside this block; inner blocks add to the outermost one."""
    outer = _scores_of_run.get()
    if outer is not None:
        yield outer
        return
    scores = Scores()
    _scores_of_run.set(scores)
    try:
        yield scores
    finally:
        _scores_of_run.set(None)


def _scores(store: Any, name: str, result: Any, documents: Sequence[Any]) -> list[float] | None:  # noqa: ANN401
    if list(map(id, documents_in(result))) != list(map(id, listed(documents))):
        return None
    # numpy scalars are what FAISS returns; a vector beside the document has no float value
    if not all(
        isinstance(row, tuple)
        and len(row) == 2
        and (isinstance(row[1], float | int) or getattr(row[1], "ndim", None) == 0)
        for row in result
    ):
        return None
    scores = [float(score) for _, score in result]
    if name == _RAW:
        try:
            relevance = store._select_relevance_score_fn()
        except (NotImplementedError, ValueError):  # LangChain's way to say that none is known
            return None
        scores = [float(relevance(score)) for score in scores]
    falling = all(a >= b for a, b in pairwise(scores))
    return scores if falling and all(map(math.isfinite, scores)) else None


# A vector store whose searches are observed.


_SEARCHES = re.compile(
    r"a?(search$|similarity_search|max_marginal_relevance_search|hybrid_search)"
).match


def store_members(layer: Layer) -> dict[str, Any]:
    """Return a store's search methods, each observed."""
    return {
        name: _observed(name, getattr(layer.original, name), layer)
        for name in dir(layer.original)
        if _SEARCHES(name) and inspect.isfunction(inspect.getattr_static(layer.original, name))
    }


def view_of(store: Any, *recorders: Recorder) -> Any | None:  # noqa: ANN401
    """Return a second face of a store, over the same attributes, whose searches are observed.

    The store itself is not touched. None for a store that keeps attributes in slots.
    """
    if type(store) in _layers and not recorders:
        return store  # as it is, its searches give their scores
    kind = type(store)
    if not hasattr(store, "__dict__") or any(vars(base).get("__slots__") for base in kind.__mro__):
        return None

    def members(layer: Layer) -> Mapping[str, Any]:
        # a store that closes its client when it is collected must not do so with its view
        return store_members(layer) | (
            {"__del__": lambda _: None} if hasattr(kind, "__del__") else {}
        )

    view: Any = object.__new__(observed_class(Layer(kind, *recorders), members))
    view.__dict__ = store.__dict__
    return view


def _observed(name: str, method: Callable[..., Any], watched: Layer | Patch) -> Any:  # noqa: ANN401
    @functools.wraps(method)
    def search(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with _Search(watched.observers) as call:
            found = method(self, *args, **kwargs)
            call.finish(self, name, args, kwargs, found)
        return found

    @functools.wraps(method)
    async def asearch(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with _Search(watched.observers) as call:
            found = await method(self, *args, **kwargs)
            call.finish(self, name, args, kwargs, found)
        return found

    return asearch if inspect.iscoroutinefunction(method) else search


class _Search(_Call):
    """One search; collects the scores inside it where it is an outermost one."""

    __slots__ = ("_outer", "_scores")

    def __init__(self, recorders: Sequence[Recorder]) -> None:
        self._entered = [(recorder, recorder.enter()) for recorder in recorders]
        self._scores = self._outer = _scores_of_run.get()
        if self._outer is None and any(first for _, (_, first) in self._entered):
            self._scores = Scores()
            _scores_of_run.set(self._scores)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self._scores is not self._outer:
            _scores_of_run.set(None)

    def finish(
        self,
        store: Any,  # noqa: ANN401
        name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        found: Any,  # noqa: ANN401
    ) -> None:
        """Record what was found, if this search is the outermost."""
        scores = self._scores
        if scores is None:
            return
        scores.note(store, name.removeprefix("a"), found)
        for recorder, (_, first) in self._entered:
            if first:
                with guarded(recorder.dropped, "result could not be read"):
                    query = args[0] if args else kwargs.get("query")  # a text or a vector
                    documents = documents_in(found)
                    record_documents(
                        recorder,
                        documents,
                        scores=scores.of(documents, recorder.dropped),
                        query=query if isinstance(query, str) else None,
                        labels=recorder.labels_beside({"store": store.__class__.__name__}),
                    )


# Instrument a LangChain retriever or vector store in place, or all of the process.


_retrievers = Patch(BaseRetriever, _ASK.__contains__, _asked)
_stores = Patch(VectorStore, _SEARCHES, _observed)


def attach(obj: object, recorder: Recorder) -> Attachment | None:
    """Observe a retriever, what it is bound in, a vector store, or ``"langchain"``.

    The name stands for every retriever and every vector store: the methods of their classes are
    replaced meanwhile. A callback handler would be one more in every list of handlers that the
    application looks at, and vector stores that are searched directly fire no callbacks.

    Objects are observed in place: their class is exchanged for a subclass that passes for it.
    Copies and pickles of them are not observed.
    """
    if isinstance(obj, str):
        everywhere = Watch(recorder)

        def leave_all() -> None:
            everywhere.stopped = True
            _retrievers.remove(everywhere)
            _stores.remove(recorder)

        try:
            _retrievers.add(everywhere)
            _stores.add(recorder)
        except BaseException:
            leave_all()
            raise
        return Attachment(obj, leave_all)
    if isinstance(obj, VectorStore):
        return Attachment(obj, add_observer(obj, recorder, store_members))
    inner: Any = obj
    while isinstance(inner, RunnableBindingBase):
        inner = inner.bound
    if not isinstance(inner, BaseRetriever):
        return None
    watch = Watch(recorder)
    leave = add_observer(inner, watch, retriever_members)

    def detach() -> None:
        watch.stopped = True
        leave()

    return Attachment(obj, detach)
