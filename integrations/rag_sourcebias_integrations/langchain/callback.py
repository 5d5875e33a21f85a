"""The callback handler that users add to a call, to a bound retriever or to a chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rag_sourcebias.instrument import Recorder, RetrievalEvent
from rag_sourcebias.protocols import Observer
from rag_sourcebias.tagging import TagStore
from rag_sourcebias_integrations.langchain.handler import RecordingHandler

__all__ = ["SourceBiasCallbackHandler"]


class SourceBiasCallbackHandler(RecordingHandler):
    """Observe the retrievals of the calls it is given to, sync and async.

    Per call (``config={"callbacks": [handler]}``) or bound
    (``retriever.with_config(callbacks=[handler])``). Callbacks given to a constructor of a chain
    reach that chain only, not the retrievers inside it. To observe a retriever in place, or every
    retriever of the process, use :func:`rag_sourcebias.adapters.instrument`.

    Callbacks carry no scores (see :class:`InstrumentedRetriever`), and a direct call of a vector
    store fires none (instrument the store).

    Parameters
    ----------
    observer : Observer of RetrievalEvent
    labels, tags, doc_id, query_key, queue
        As for :func:`~rag_sourcebias.adapters.instrument`. The class of the retriever is added
        as the label "retriever" and that of its vector store as "store", where there is room.

    Raises
    ------
    DataError
        If the observer has no ``observe``, or the key has a wrong length.

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> from langchain_core.retrievers import BaseRetriever
    >>> from rag_sourcebias.instrument import CountingObserver
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

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every retrieval so far was observed; False when ``timeout`` seconds passed.

        Blocks: use ``asyncio.to_thread`` on an event loop.
        """
        return self._recorder.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> None:
        """Observe nothing any more, and wait up to ``timeout`` seconds for queued events."""
        self.stop()
        self.flush(timeout)
