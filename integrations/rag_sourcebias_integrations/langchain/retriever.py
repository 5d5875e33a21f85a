"""A retriever that observes another one, with scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from pydantic import ConfigDict, PrivateAttr

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.instrument.events import DroppedEvents, guarded
from rag_sourcebias.instrument.recorder import Recorder
from rag_sourcebias_integrations.langchain.observe import (
    RunLabels,
    copy_class,
    record_documents,
    searching,
    view_of,
)


class InstrumentedRetriever(BaseRetriever):
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
        As for :func:`~rag_sourcebias.instrument.instrument`.
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
    _labels: RunLabels = PrivateAttr()
    _stopped: bool = PrivateAttr(default=False)
    _view: tuple[int, type, Any] = PrivateAttr(default=(0, object, None))

    def __init__(self, retriever: Any, observer: Any, **options: Any) -> None:  # noqa: ANN401
        if isinstance(retriever, VectorStore):
            retriever = retriever.as_retriever()
        if not isinstance(retriever, Runnable):
            raise DataError(
                f"{retriever!r:.80} is not a retriever; expected a LangChain retriever, a vector "
                "store, or a runnable that returns documents"
            )
        given = {key: options[key] for key in ("labels", "doc_id", "query_key") if key in options}
        recorder = Recorder(
            observer,
            tags=options.get("tag_store"),
            queue=options.get("queue", True),
            **given,
        )
        super().__init__(retriever=retriever, observer=observer, **options)
        self._recorder = recorder
        self._labels = RunLabels(recorder)

    @property
    def dropped(self) -> DroppedEvents:
        """Events that were lost, by reason."""
        return self._recorder.dropped

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every retrieval so far was observed; False when ``timeout`` seconds passed."""
        return self._recorder.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> None:
        """Observe nothing any more, and wait up to ``timeout`` seconds for queued events."""
        self._stopped = True
        self.flush(timeout)

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
        first = False
        try:
            with searching() as gathered:
                yield found
        finally:
            first = recorder.end(run.int)
        documents = found[0]
        scores = gathered.of(documents, recorder.dropped)
        if first and not self._stopped:
            record_documents(
                recorder,
                documents,
                scores=scores,
                query=query,
                labels=self._labels.of(_name(self.retriever), _store_name(self.retriever)),
            )
        if self.score_key is not None and scores is not None:
            with guarded(recorder.dropped, "scores could not be written"):
                found.append(_with_scores(documents, scores, self.score_key))

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
                copy_class(inner, copied)
                return copied
        return inner


def _with_scores(documents: Sequence[Any], scores: Sequence[float], key: str) -> list[Any]:
    return [
        document.model_copy(update={"metadata": {**document.metadata, key: score}})
        for document, score in zip(documents, scores, strict=True)
    ]


def _name(retriever: Any) -> str:  # noqa: ANN401
    return str(retriever.__class__.__name__)


def _store_name(retriever: Any) -> str | None:  # noqa: ANN401
    store = getattr(retriever, "vectorstore", None)
    return None if store is None else str(store.__class__.__name__)
