"""A retriever that reports what another one returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument import DroppedEvents, Recorder, RetrievalEvent
from rag_sourcebias.protocols import Observer
from rag_sourcebias.tagging import TagStore
from rag_sourcebias_integrations.llama_index.convert import record_nodes

__all__ = ["InstrumentedRetriever"]


class InstrumentedRetriever(BaseRetriever):
    """Wrap a retriever; results are the very objects it returns.

    For applications that would rather pass a retriever than use the process-wide dispatcher
    (:func:`rag_sourcebias.adapters.instrument`). Both together count a retrieval once.

    Parameters
    ----------
    inner : BaseRetriever
    observer : Observer of RetrievalEvent
    labels, tags, doc_id, query_key, queue
        As for :func:`~rag_sourcebias.adapters.instrument`. ``doc_id`` is given the
        ``NodeWithScore``: ``lambda n: n.node.ref_doc_id`` names the source document.

    Raises
    ------
    DataError
        If ``inner`` is no retriever, or the observer has no ``observe``.
    """

    def __init__(
        self,
        inner: Any,  # noqa: ANN401
        observer: Observer[RetrievalEvent],
        *,
        labels: Mapping[str, str] | None = None,
        tags: TagStore | None = None,
        doc_id: Callable[[Any], str] | None = None,
        query_key: bytes | None = None,
        queue: bool = True,
    ) -> None:
        if not isinstance(inner, BaseRetriever):
            raise DataError(
                f"an object of type {type(inner).__qualname__} cannot be wrapped; expected a "
                "LlamaIndex retriever, such as index.as_retriever()"
            )
        self._inner = inner
        self._recorder = Recorder(
            observer, labels=labels, tags=tags, doc_id=doc_id, query_key=query_key, queue=queue
        )
        self._labels = self._recorder.labels_beside({"retriever": type(inner).__name__})
        self._stopped = False
        super().__init__(callback_manager=getattr(inner, "callback_manager", None))

    @property
    def inner(self) -> Any:  # noqa: ANN401
        """The wrapped retriever."""
        return self._inner

    @property
    def dropped(self) -> DroppedEvents:
        """Events that were lost, by reason."""
        return self._recorder.dropped

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every retrieval so far was observed; False when ``timeout`` passed."""
        return self._recorder.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> None:
        """Observe nothing any more, and wait up to ``timeout`` seconds for queued events."""
        self._stopped = True
        self.flush(timeout)

    # LlamaIndex passes query_bundle by name: another name would fail, in the async path only.
    def _retrieve(self, query_bundle: Any) -> list[Any]:  # noqa: ANN401
        with self._recorder.retrieval() as first:
            nodes: list[Any] = self._inner.retrieve(query_bundle)
        if first and not self._stopped:
            self._record(nodes, query_bundle)
        return nodes

    async def _aretrieve(self, query_bundle: Any) -> list[Any]:  # noqa: ANN401
        with self._recorder.retrieval() as first:
            nodes: list[Any] = await self._inner.aretrieve(query_bundle)
        if first and not self._stopped:
            self._record(nodes, query_bundle)
        return nodes

    # The inner retriever has followed its index nodes; doing it again could follow them further.
    def _handle_recursive_retrieval(self, query_bundle: Any, nodes: list[Any]) -> list[Any]:  # noqa: ANN401, ARG002
        return nodes

    async def _ahandle_recursive_retrieval(self, query_bundle: Any, nodes: list[Any]) -> list[Any]:  # noqa: ANN401, ARG002
        return nodes

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {"retriever": self._inner}

    def _record(self, nodes: list[Any], query: Any) -> None:  # noqa: ANN401
        record_nodes(self._recorder, nodes, query=query, labels=self._labels)
