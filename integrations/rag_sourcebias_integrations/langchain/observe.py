"""Observe LangChain: a retriever or vector store, all of them, or where a handler is added."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, TypeAlias
from weakref import WeakSet

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import ensure_config
from langchain_core.vectorstores import VectorStore

from rag_sourcebias.core.protocols import Observer
from rag_sourcebias.observe.events import (
    DroppedEvents,
    RetrievalEvent,
    guarded,
    listed,
    named,
)
from rag_sourcebias.observe.patching import Call, Patch
from rag_sourcebias.observe.recorder import Attachment, Observing, Recorder
from rag_sourcebias.observe.runs import carried
from rag_sourcebias_integrations._recording import inside, outermost_of

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
    query: object,
    labels: Mapping[str, object],
    scores: Iterable[float] | None = None,
    **options: Any,  # noqa: ANN401
) -> str:
    """Record documents, best first; never raises.

    Parameters
    ----------
    query : object
        Recorded where it is a text; stores are also searched with vectors.
    **options
        ``carried``, ``stage`` and ``request``, as for :meth:`Recorder.record`.

    Returns
    -------
    str
        Name of the request; "" where nothing could be recorded.
    """
    with guarded(recorder.dropped, "result could not be read"):
        listed(documents)
        return recorder.record(
            map(recorder.doc_id or _ID, documents),
            map(_METADATA, documents),
            scores,
            query if isinstance(query, str) else None,
            labels,
            map(_TEXT, documents),
            **options,
        )
    return ""


def documents_in(found: Sequence[Any]) -> list[Any]:
    """Return the documents in what a search returned: documents, or tuples that begin with one."""
    return [item if isinstance(item, Document) else item[0] for item in listed(found)]


# What an application hands along with a call: its callbacks, its metadata.


def _carried(config: Mapping[str, Any], metadata: Mapping[str, object] | None) -> dict[str, object]:
    """Return what labels are taken from; what comes later wins."""
    inherited = getattr(config["callbacks"], "metadata", None)  # of a manager, not of a list
    return {
        **(metadata or {}),
        **(inherited or {}),
        **config["metadata"],
        **config["configurable"],
    }


class Holding(Observing):
    """What observes where it is found, in the callbacks of a call or as what is asked."""

    def _hold(self) -> None:
        """Have methods replaced until something is closed and none is left that is not.

        One that is let go leaves them: many live for one request only, and replacing costs half a
        millisecond.
        """
        if _holders not in _retrievers.observers_of(None):
            for patch in _PATCHES:
                patch.add(_holders)
        _holders.add(self._recorder)

    def close(self, timeout: float | None = 5.0) -> None:
        """Observe nothing any more, and wait up to ``timeout`` seconds for queued events."""
        super().close(timeout)
        _holders.discard(self._recorder)
        _put_back()


def _put_back() -> None:
    """Restore the methods where no handler or wrapper needs them any more."""
    if not _holders:
        for patch in _PATCHES:
            patch.remove(_holders)


class SourceBiasCallbackHandler(Holding, BaseCallbackHandler):
    """Observe the retrievals of the calls it is given to, sync and async.

    Per call (``config={"callbacks": [handler]}``), bound to a retriever or a chain
    (``chain.with_config(callbacks=[handler])``), or inherited from the chain, agent or graph
    around. Callbacks given to a constructor of a chain reach that chain only, not the retrievers
    inside it. To observe a retriever in place, or every retriever of the process, use
    :func:`rag_sourcebias.instrument`.

    It asks for no events, so that other handlers see exactly what they saw (LangChain tells some
    of them nothing once one handler runs inline), and so that a retrieval that was cancelled or
    interrupted, of which LangChain announces no end, leaves nothing behind. While one handler
    lives, the methods through which retrievers and vector stores are asked look for handlers among
    the callbacks of the call, or those of the chain or graph node around it.

    Parameters
    ----------
    observer : Observer of RetrievalEvent
    **options
        ``labels``, ``take_labels``, ``tags``, ``doc_id``, ``query_key`` and ``queue``, as for
        :func:`~rag_sourcebias.instrument`. The name of the retriever's run is added as the label
        "retriever" and the class of its vector store as "store", where there is room.

    Raises
    ------
    DataError
        If the observer has no ``observe``, or an option is out of range.

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

    ignore_agent = ignore_chain = ignore_chat_model = ignore_custom_event = True
    ignore_llm = ignore_retriever = ignore_retry = True

    def __init__(self, observer: Observer[RetrievalEvent], **options: Any) -> None:  # noqa: ANN401
        self._recorder = Recorder(observer, **options)
        self._stopped = False
        self._hold()

    # A copied config is observed too.
    def __deepcopy__(self, memo: object) -> SourceBiasCallbackHandler:
        return self


def _observers(patch: Patch, obj: object, config: Mapping[str, Any]) -> list[Recorder]:
    """Return who observes an object, and those of the handlers that LangChain hands the call."""
    callbacks = config["callbacks"]
    handlers = getattr(callbacks, "handlers", callbacks)
    return [one for one in patch.observers_of(obj) if one is not _holders] + [
        one._recorder
        for one in (handlers if isinstance(handlers, list) else ())
        if isinstance(one, SourceBiasCallbackHandler) and not one._stopped
    ]


# The recorders of handlers and wrappers that are not closed.
_holders: WeakSet[Recorder] = WeakSet()


# A retriever that is asked, and what a compressor inside it was given.
# A retriever that asks others on threads of its own is one retrieval where the threads are of a
# pool, or have the context; otherwise theirs count as well.


@dataclass
class _Compression:
    """A retriever that compresses is asked; what its compressor is given is what was retrieved."""

    compressor: object
    dropped: DroppedEvents
    retrieved: list[Document] | None = None


_compression: ContextVar[_Compression | None] = ContextVar(
    "rag_sourcebias_compression", default=None
)


def _compressing(
    compress: Callable[..., Any],
    compressor: object,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:  # noqa: ANN401
    asked = _compression.get()
    if asked is not None and asked.compressor is compressor and asked.retrieved is None:
        with guarded(asked.dropped, "what was retrieved could not be read"):
            documents = args[0] if args else kwargs["documents"]
            # copies: the compressor may write into the documents
            asked.retrieved = [d.model_copy(update={"metadata": {**d.metadata}}) for d in documents]
    return compress(*args, **kwargs)


@contextmanager
def asking(
    retriever: Any,  # noqa: ANN401
    query: object,
    config: Mapping[str, Any],
    recorders_now: Callable[[], Sequence[Recorder]],
    scores_of: Callable[[Sequence[Any], DroppedEvents], Iterable[float] | None] | None = None,
) -> Iterator[list[Any]]:
    """Stand around a call of a retriever; what is added to the list is recorded.

    Parameters
    ----------
    config : mapping
        As ``ensure_config`` returns it.
    recorders_now : callable
        Asked again at the end: one that was closed meanwhile is told nothing.
    scores_of : callable, optional
        From the documents, and where failures are counted, to their scores.
    """
    found: list[Any] = []
    around = compression = _compression.get()
    with outermost_of(recorders_now()) as recorders:
        if recorders:
            compressor = getattr(retriever, "base_compressor", None)
            compression = _Compression(compressor, recorders[0].dropped)
        _compression.set(compression)
        try:
            yield found
        finally:
            _compression.set(around)
    for recorder in recorders:
        if recorder not in recorders_now():
            continue
        with guarded(recorder.dropped, "result could not be read"):
            store = getattr(retriever, "vectorstore", None)
            record = partial(
                record_documents,
                recorder,
                query=query,
                labels={
                    "retriever": config.get("run_name") or retriever.get_name(),
                    "store": None if store is None else store.__class__.__name__,
                },
                carried=_carried(config, getattr(retriever, "metadata", None)),
            )
            retrieved = None if compression is None else compression.retrieved
            request = "" if retrieved is None else record(retrieved)
            scores = scores_of and scores_of(found[0], recorder.dropped)
            stage = "reranked" if request else "retrieved"
            record(found[0], scores=scores, stage=stage, request=request)


def _asked(
    retriever: Any,  # noqa: ANN401
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> AbstractContextManager[list[Any]]:
    """Stand around ``invoke(input, config=None, **kwargs)``."""
    config = ensure_config(args[1] if len(args) > 1 else kwargs.get("config"))
    # One of our wrappers tells its own observer, with scores.
    told = retriever._recorder.observer if isinstance(retriever, Holding) else None

    def recorders_now() -> list[Recorder]:
        observers = _observers(_retrievers, retriever, config)
        return [one for one in observers if one.observer is not told]

    query = args[0] if args else kwargs.get("input")
    return asking(retriever, query, config, recorders_now)


# The methods through which every query passes, batches and streams as well.
_ASK = {"invoke", "ainvoke"}
_COMPRESS = {"compress_documents", "acompress_documents"}

_retrievers = Patch(BaseRetriever, _ASK.__contains__, lambda _, method, __: inside(method, _asked))
_compressors = Patch(BaseDocumentCompressor, _COMPRESS.__contains__, lambda *_: _compressing)
_pools = Patch(ThreadPoolExecutor, {"submit"}.__contains__, lambda *_: carried)


# Scores of the documents a search returns, taken from the searches inside it.


_RELEVANCE = "similarity_search_with_relevance_scores"
_RAW = "similarity_search_with_score"


Searches: TypeAlias = list[tuple[Any, str, Any]]
"""Store, method and result of each search inside a retrieval that gives scores."""

_searches: ContextVar[Searches | None] = ContextVar("rag_sourcebias_searches", default=None)


@contextmanager
def searching() -> Iterator[Searches]:
    """Collect searches inside this block; inner blocks add to the outermost one."""
    outer = _searches.get()
    searches: Searches = [] if outer is None else outer
    _searches.set(searches)
    try:
        yield searches
    finally:
        _searches.set(outer)


def scores_in(
    searches: Searches, documents: Sequence[Any], dropped: DroppedEvents
) -> list[float] | None:
    """Return the scores of exactly these documents in this order, higher being better.

    None where no search gave the very objects in this order, where the store does not say how its
    raw scores (often distances) become relevance, or where that contradicts the order.
    """
    for store, name, result in reversed(searches):
        with guarded(dropped, "scores could not be read"):
            if list(map(id, documents_in(result))) == list(map(id, listed(documents))):
                scores = _relevance(store, name, result)
                falling = all(a >= b for a, b in pairwise(scores))
                if scores and falling and all(map(math.isfinite, scores)):
                    return scores
    return None


def _relevance(store: Any, name: str, result: Any) -> list[float]:  # noqa: ANN401
    """Return the relevance of each document; nothing where it is not known."""
    try:
        relevance = store._select_relevance_score_fn() if name == _RAW else float
        return [float(relevance(float(score))) for _, score in result]
    # LangChain's two ways to say that none is known; other things beside a document than a number
    except (NotImplementedError, ValueError, TypeError):
        return []


# A vector store whose searches are observed.


_SEARCHES = re.compile(
    r"a?(search$|similarity_search|max_marginal_relevance_search|hybrid_search)"
).match


def _observed(name: str, method: Callable[..., Any], patch: Patch) -> Call:
    kind = name.removeprefix("a")

    @contextmanager
    def block(store: Any, args: tuple[Any, ...], kwargs: Any) -> Iterator[list[Any]]:  # noqa: ANN401
        found: list[Any] = []
        config = ensure_config()
        with (
            searching() as searches,
            outermost_of(_observers(patch, store, config)) as recorders,
        ):
            yield found
            if kind in (_RELEVANCE, _RAW):
                searches.append((store, kind, found[0]))
        for recorder in recorders:
            with guarded(recorder.dropped, "result could not be read"):
                documents = documents_in(found[0])
                record_documents(
                    recorder,
                    documents,
                    query=args[0] if args else kwargs.get("query"),  # a text or a vector
                    labels={"store": store.__class__.__name__},
                    scores=scores_in(searches, documents, recorder.dropped),
                    carried=_carried(config, None),
                )

    return inside(method, block)


_stores = Patch(VectorStore, _SEARCHES, _observed)
_PATCHES = (_retrievers, _stores, _compressors, _pools)


# Instrument a LangChain retriever or vector store in place, or all of the process.


def attach(obj: object, recorder: Recorder) -> Attachment | None:
    """Observe a retriever, what it is bound in, a vector store, or ``"langchain"``.

    The name stands for every retriever and every vector store. Methods of classes are replaced
    meanwhile. A callback handler would be one more in every list of handlers that the application
    looks at, and vector stores that are searched directly fire no callbacks.
    """
    inner: Any = obj
    while isinstance(inner, RunnableBindingBase):
        inner = inner.bound
    if isinstance(obj, str):
        patches: dict[Patch, object] = dict.fromkeys(_PATCHES)
    elif isinstance(inner, BaseRetriever):
        patches = {_retrievers: inner, _compressors: None, _pools: None}
    elif isinstance(inner, VectorStore):
        patches = {_stores: inner, _pools: None}
    else:
        return None
    with ExitStack() as undo:
        undo.callback(_put_back)
        for patch, only in patches.items():
            undo.callback(patch.remove, recorder)
            patch.add(recorder, only)
        return Attachment(obj, undo.pop_all().close)
