"""Instrument a LangChain retriever or vector store in place, or all retrievers of the process."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from operator import attrgetter
from types import FrameType
from typing import Any
from weakref import finalize

from langchain_core.callbacks import BaseCallbackHandler, BaseRunManager
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
from rag_sourcebias.observe.runs import place
from rag_sourcebias_integrations._recording import inside, outermost_of, recorded

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
    labels: Mapping[str, object],
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
        self.retrieval = recorder.retrieval
        self.dropped = recorder.dropped
        self.stopped = False

    def record(
        self,
        retriever: Any,  # noqa: ANN401
        documents: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Record what ``invoke(input, config=None, **kwargs)`` returned."""
        if self.stopped:
            return
        query = args[0] if args else kwargs["input"]
        config = args[1] if len(args) > 1 else kwargs.get("config")
        name = (config.get("run_name") if config else None) or retriever.name
        of_store = isinstance(retriever, VectorStoreRetriever)
        store = retriever.vectorstore.__class__.__name__ if of_store else None
        record_documents(
            self.recorder,
            documents,
            query=query if isinstance(query, str) else None,
            labels={"retriever": name or type(retriever).__name__, "store": store},
        )


# The methods through which every query passes, batches and streams as well.
_ASK = ("invoke", "ainvoke")


def _asked(name: str, method: Callable[..., Any], patch: Patch) -> Callable[..., Any]:  # noqa: ARG001
    return recorded(method, lambda one: _others(one, patch.observers_of(one)), Watch.record)


def _others(retriever: Any, watches: Sequence[Watch]) -> Sequence[Watch]:  # noqa: ANN401
    """Leave out whom the retriever tells itself, with the scores: it is one of our wrappers."""
    if not isinstance(retriever, Observing):
        return watches
    told = retriever._recorder.observer
    return [watch for watch in watches if watch.recorder.observer is not told]


# The callback handler that users add to a call, to a bound retriever or to a chain.


def _on_stack(key: int) -> bool:
    """Return whether the run of this number is among the callers."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            if isinstance(value, BaseRunManager) and getattr(value.run_id, "int", None) == key:
                return True
        frame = frame.f_back
    return False


_STORE = "ls_vector_store_provider"
_LLM_START = "AsyncCallbackManager.on_llm_start"  # also what its comprehensions begin with


class SourceBiasCallbackHandler(Observing, BaseCallbackHandler):
    """Observe the retrievals of the calls it is given to, sync and async.

    Per call (``config={"callbacks": [handler]}``) or bound
    (``retriever.with_config(callbacks=[handler])``). Callbacks given to a constructor of a chain
    reach that chain only, not the retrievers inside it. To observe a retriever in place, or every
    retriever of the process, use :func:`rag_sourcebias.instrument`.

    Every run is handed over in constant time and on the thread it runs on. Chain runs are announced
    where they lie inside a retrieval, so that a retrieval inside them is known to be nested; all
    other events are ignored.

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

    ignore_agent = ignore_chat_model = ignore_custom_event = ignore_llm = ignore_retry = True
    ignore_retriever = False  # not a property, which is asked twice in every retrieval

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
        self._recorder = Recorder(
            observer, labels=labels, tags=tags, doc_id=doc_id, query_key=query_key, queue=queue
        )
        self._stopped = False

    @property
    def run_inline(self) -> bool:
        """True: a synchronous handler would run in a thread pool under ``ainvoke``.

        Except for who asks for ``on_llm_start``: where one handler runs inline, LangChain's
        asynchronous start of a language model tells no other one (langchain-core 1.0 to 1.7).
        """
        return not sys._getframe(1).f_code.co_qualname.startswith(_LLM_START)

    @property
    def ignore_chain(self) -> bool:
        """Chains matter only inside a retrieval."""
        return not self._recorder.open

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
        with guarded(self._recorder.dropped, "start could not be read"):
            self._recorder.begin(
                run_id.int,
                None if parent_run_id is None else parent_run_id.int,
                (self, query, name, metadata.get(_STORE) if metadata else None),
                run_id,
                _on_stack,
                place(),
            )

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
        note = self._recorder.end(getattr(run_id, "int", None))
        if not note:
            return
        handler, query, name, store = note  # the first that was told of the start
        if not handler._stopped:
            recorder = handler._recorder
            labels = {"retriever": name, "store": store}
            record_documents(recorder, documents, query=query, labels=labels)

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
            self._recorder.begin_other(run_id.int, parent_run_id.int, run_id)

    def on_chain_end(self, outcome: object, *, run_id: Any, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Note that such a chain ended, or failed, or a retriever did: with no result to record."""
        self._recorder.end(getattr(run_id, "int", None))

    on_chain_error = on_retriever_error = on_chain_end

    def __copy__(self) -> SourceBiasCallbackHandler:
        return self

    # A copied config is observed too.
    def __deepcopy__(self, memo: object) -> SourceBiasCallbackHandler:
        return self


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


def _observed(name: str, method: Callable[..., Any], patch: Patch) -> Callable[..., Any]:
    @contextmanager
    def block(store: Any, args: tuple[Any, ...], kwargs: Any) -> Iterator[list[Any]]:  # noqa: ANN401
        found: list[Any] = []
        observers = [one for one in patch.observers_of(store) if isinstance(one, Recorder)]
        with searching() as scores, outermost_of(observers) as recorders:
            yield found
            scores.note(store, name.removeprefix("a"), found[0])
        for recorder in recorders:
            with guarded(recorder.dropped, "result could not be read"):
                query = args[0] if args else kwargs.get("query")  # a text or a vector
                documents = documents_in(found[0])
                record_documents(
                    recorder,
                    documents,
                    scores=scores.of(documents, recorder.dropped),
                    query=query if isinstance(query, str) else None,
                    labels={"store": store.__class__.__name__},
                )

    return inside(method, block)


# Instrument a LangChain retriever or vector store in place, or all of the process.


_retrievers = Patch(BaseRetriever, _ASK.__contains__, _asked)
_stores = Patch(VectorStore, _SEARCHES, _observed)


def gather_scores(store: VectorStore, owner: object) -> None:
    """Have the searches of a store give their scores to retrievals, as long as the owner lives."""
    nobody = object()
    _stores.add(nobody, store)
    finalize(owner, _stores.remove, nobody)


def attach(obj: object, recorder: Recorder) -> Attachment | None:
    """Observe a retriever, what it is bound in, a vector store, or ``"langchain"``.

    The name stands for every retriever and every vector store. Methods of classes are replaced
    meanwhile. A callback handler would be one more in every list of handlers that the application
    looks at, and vector stores that are searched directly fire no callbacks.
    """
    inner: Any = obj
    while isinstance(inner, RunnableBindingBase):
        inner = inner.bound
    everything = isinstance(obj, str)
    if not (everything or isinstance(inner, BaseRetriever | VectorStore)):
        return None
    watch = Watch(recorder)

    def detach() -> None:
        watch.stopped = True
        _retrievers.remove(watch)
        _stores.remove(recorder)

    try:
        if everything or isinstance(inner, BaseRetriever):
            _retrievers.add(watch, None if everything else inner)
        if everything or isinstance(inner, VectorStore):
            _stores.add(recorder, None if everything else inner)
    except BaseException:
        detach()
        raise
    return Attachment(obj, detach)
