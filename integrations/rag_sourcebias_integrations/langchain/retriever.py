"""A LangChain retriever that is observed; try another one on live queries and switch."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import ensure_config
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from pydantic import ConfigDict, PrivateAttr

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.events import MetadataTags, guarded
from rag_sourcebias.observe.recorder import Observing, Recorder
from rag_sourcebias.observe.shadow import (
    Reader,
    ShadowComparison,
    ShadowControls,
    ShadowRunner,
)
from rag_sourcebias_integrations.langchain.observe import (
    ids_of,
    record_documents,
    run_labels,
    searching,
    set_class,
    view_of,
)

# A retriever that observes another one, with scores.


def _runnable(given: Any) -> Any:  # noqa: ANN401
    """Return a retriever, of a vector store as well."""
    found = given.as_retriever() if isinstance(given, VectorStore) else given
    if not isinstance(found, Runnable):
        raise DataError(
            f"{found!r:.80} is not a retriever; expected a LangChain retriever, a vector "
            "store, or a runnable that returns documents"
        )
    return found


class InstrumentedRetriever(Observing, BaseRetriever):
    """Observe a retriever, with the scores that LangChain's callbacks do not carry.

    Documents are those the inner retriever returns: the same objects in the same order. Scores
    come from the scored search that a vector store makes for itself to answer a plain one; there
    is no second search. Where the store makes none, or does not say what its scores mean, the
    event has no scores.

    Parameters
    ----------
    retriever : BaseRetriever, Runnable or VectorStore
        What is observed; anything whose ``invoke`` takes a query and returns documents.
    observer : Observer of RetrievalEvent
    labels : mapping of str to str, optional
    tag_store : TagStore, optional
        Where tags are looked up.
    doc_id : callable, optional
    query_key : bytes, optional
    queue : bool
        As for :func:`~rag_sourcebias.instrument`.
    score_key : str, optional
        Return copies of the documents that hold their score under this key of the metadata
        ("rsb_score"). Without it nothing is changed or copied.

    Raises
    ------
    DataError
        If the retriever is none, or the observer has no ``observe``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    retriever: Any
    observer: Any
    labels: Mapping[str, str] | None = None
    tag_store: Any = None
    doc_id: Callable[[Any], Any] | None = None
    query_key: bytes | None = None
    queue: bool = True
    score_key: str | None = None

    _recorder: Recorder = PrivateAttr()
    _labels: Any = PrivateAttr()
    _stopped: bool = PrivateAttr(default=False)
    _view: tuple[int, type, Any] = PrivateAttr(default=(0, object, None))

    def __init__(self, retriever: Any, observer: Any, **options: Any) -> None:  # noqa: ANN401
        retriever = _runnable(retriever)
        recorder = Recorder(
            observer,
            labels=options.get("labels"),
            tags=options.get("tag_store"),
            doc_id=options.get("doc_id"),
            query_key=options.get("query_key"),
            queue=options.get("queue", True),
        )
        super().__init__(retriever=retriever, observer=observer, **options)
        self._recorder = recorder
        self._labels = run_labels(recorder)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        with self._observed(query, run_manager) as found:
            config = {"callbacks": run_manager.get_child()}
            found.append(self._inner().invoke(query, config=config, **kwargs))
        return found[-1]  # type: ignore[no-any-return]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        with self._observed(query, run_manager) as found:
            config = {"callbacks": run_manager.get_child()}
            found.append(await self._inner().ainvoke(query, config=config, **kwargs))
        return found[-1]  # type: ignore[no-any-return]

    @contextmanager
    def _observed(self, query: str, run_manager: Any) -> Iterator[list[Any]]:  # noqa: ANN401
        """Stand around one retrieval; the last item of the list is what it returns."""
        recorder, found = self._recorder, list[Any]()
        run, parent = run_manager.run_id, run_manager.parent_run_id
        if not self._stopped:
            recorder.begin(run.int, parent and parent.int)
        try:
            with searching() as gathered:
                yield found
        finally:
            first = recorder.end(run.int)
        documents = found[0]
        scores = gathered.of(documents, recorder.dropped)
        if first and not self._stopped:
            store = getattr(self.retriever, "vectorstore", None)
            labels = self._labels(
                self.retriever.__class__.__name__,
                None if store is None else store.__class__.__name__,
            )
            record_documents(recorder, documents, scores=scores, query=query, labels=labels)
        if self.score_key is not None and scores is not None:
            with guarded(recorder.dropped, "scores could not be written"):
                found.append(
                    [
                        document.model_copy(
                            update={"metadata": {**document.metadata, self.score_key: score}}
                        )
                        for document, score in zip(documents, scores, strict=True)
                    ]
                )

    def _inner(self) -> Any:  # noqa: ANN401
        """Return the retriever, over a view of its store where scores can be had from it."""
        inner = self.retriever
        if not isinstance(inner, VectorStoreRetriever):
            return inner
        with guarded(self._recorder.dropped, "scores could not be read"):
            store = inner.vectorstore
            if self._view[:2] != (id(store), type(store)):
                self._view = (id(store), type(store), view_of(store))
            view = self._view[2]
            if view is not None and view is not store:
                copied = inner.model_copy(update={"vectorstore": view})
                set_class(copied, type(inner))  # observed by those who observe the retriever
                return copied
        return inner


# Try another retriever on live queries: compare in the background, switch, roll back.


_configurable: ContextVar[Mapping[str, Any]] = ContextVar(
    "rag_sourcebias_configurable", default=MappingProxyType({})
)


class ShadowedRetriever(ShadowControls, BaseRetriever):
    """One of two retrievers answers; the other is asked afterwards and compared with it.

    The application gets the very documents of the one that answers, or its exception. The other
    one is asked on a thread of its own, by its sync ``invoke`` (an async client belongs to the
    application's event loop), without the callbacks and the context of the call, and not observed.
    It never delays a query; when it is slower than the queries come, queries are dropped and
    counted, and so are its exceptions.

    Documents are matched by id, so both must name a document alike: where a store makes ids up,
    give ``doc_id``.

    Parameters
    ----------
    current, candidate : BaseRetriever, Runnable or VectorStore
        The current one answers until :meth:`switch`.
    comparison : ShadowComparison, optional
        A new one by default.
    share : float
        Part of the queries that is compared, in [0, 1], drawn at random with the seed ``rng``.
    tag_store : TagStore, optional
        Where tags are looked up; what it does not know comes from the metadata.
    doc_id : callable, optional
        From a document to its id.
    query_key : bytes, optional
        Keep hashes of the most changed queries under this key
        (:func:`~rag_sourcebias.observe.hash_query`).
    capacity : int
        Queries that may wait for the other one, at least 1.
    rng : int

    Raises
    ------
    DataError
        If one is no retriever, or a number is outside its range.

    Examples
    --------
    ::

        retriever = ShadowedRetriever(store.as_retriever(), debiased.as_retriever(), share=0.1)
        ...                       # serve from it as before
        print(retriever.comparison.summary())
        retriever.switch()        # the candidate answers
        retriever.roll_back()     # and no more
        retriever.close()
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    current: Any
    candidate: Any
    doc_id: Callable[[Any], Any] | None = None

    _runner: ShadowRunner[Any] = PrivateAttr()

    def __init__(
        self,
        current: Any,  # noqa: ANN401
        candidate: Any,  # noqa: ANN401
        *,
        comparison: ShadowComparison | None = None,
        share: float = 1.0,
        tag_store: Any = None,  # noqa: ANN401
        doc_id: Callable[[Any], Any] | None = None,
        query_key: bytes | None = None,
        capacity: int = 100,
        rng: int = 0,
        **options: Any,  # noqa: ANN401 - name, tags and metadata of a retriever
    ) -> None:
        both = [_runnable(one) for one in (current, candidate)]
        runner = ShadowRunner[Any](
            *both,
            read=_reader(doc_id),
            comparison=comparison,
            share=share,
            tag_store=tag_store,
            query_key=query_key,
            capacity=capacity,
            rng=rng,
        )
        super().__init__(current=both[0], candidate=both[1], doc_id=doc_id, **options)
        self._runner = runner

    # Overridden because a retriever does not see the configurable fields it is called with.
    def invoke(self, input: str, config: Any = None, **kwargs: Any) -> list[Any]:  # noqa: ANN401
        """Return what the active retriever returns."""
        with _called_with(config):
            found: list[Any] = super().invoke(input, config, **kwargs)
        return found

    async def ainvoke(self, input: str, config: Any = None, **kwargs: Any) -> list[Any]:  # noqa: ANN401
        """Return what the active retriever returns."""
        with _called_with(config):
            found: list[Any] = await super().ainvoke(input, config, **kwargs)
        return found

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        side, active, other = self._runner.roles()
        config = {"callbacks": run_manager.get_child(), "configurable": _configurable.get()}
        started = time.perf_counter()
        found: list[Any] = active.invoke(query, config, **kwargs)
        self._runner.answered(
            side,
            found,
            query=query,
            seconds=time.perf_counter() - started,
            ask=partial(other.invoke, query, _shadow_config(), **kwargs),
        )
        return found

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        side, active, other = self._runner.roles()
        config = {"callbacks": run_manager.get_child(), "configurable": _configurable.get()}
        started = time.perf_counter()
        found: list[Any] = await active.ainvoke(query, config, **kwargs)
        self._runner.answered(
            side,
            found,
            query=query,
            seconds=time.perf_counter() - started,
            ask=partial(other.invoke, query, _shadow_config(), **kwargs),
        )
        return found


def _reader(doc_id: Callable[[Any], Any] | None) -> Reader:
    """Return what reads ids and tags of documents; it holds no retriever."""
    tags = MetadataTags()
    return lambda found: (ids_of(found, doc_id), tags.read(d.metadata for d in found)[0])


@contextmanager
def _called_with(config: Any) -> Iterator[None]:  # noqa: ANN401
    token = _configurable.set(ensure_config(config).get("configurable") or {})
    try:
        yield
    finally:
        _configurable.reset(token)


def _shadow_config() -> dict[str, Any]:
    """Return the config of the other one: the same fields, without those of LangGraph's own."""
    given = _configurable.get().items()
    fields = {key: value for key, value in given if not str(key).startswith("__")}
    return {"run_name": "shadow", "callbacks": [], "configurable": fields}
