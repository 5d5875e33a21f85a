"""Instrument LlamaIndex through its dispatcher; no object of the application is touched."""

from __future__ import annotations

import threading

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.instrumentation import get_dispatcher

from rag_sourcebias.instrument import Attachment, Recorder
from rag_sourcebias_integrations.llama_index.handler import SourceBiasEventHandler
from rag_sourcebias_integrations.llama_index.spans import SourceBiasSpanHandler

__all__ = ["attach"]

_changing = threading.Lock()  # two handles that close at once would restore each other's handler


def attach(obj: object, recorder: Recorder) -> Attachment | None:
    """Observe all retrievals of the process, or those inside a retriever, query engine or index.

    Parameters
    ----------
    obj : str or BaseRetriever or BaseQueryEngine or BaseIndex
        A name stands for the whole process. Inside an object counts what it retrieves itself and
        what is retrieved on its behalf while it works.
    recorder : Recorder

    Returns
    -------
    Attachment or None
        None for any other object.
    """
    if isinstance(obj, str):
        # Without a span handler: events say when a retrieval failed, and every span costs.
        return _listen(obj, SourceBiasEventHandler(recorder), None)
    if isinstance(obj, BaseRetriever | BaseQueryEngine | BaseIndex):
        spans = SourceBiasSpanHandler(obj)
        return _listen(obj, SourceBiasEventHandler(recorder, spans=spans), spans)
    return None


def _listen(
    obj: object, events: SourceBiasEventHandler, spans: SourceBiasSpanHandler | None
) -> Attachment:
    root = get_dispatcher()

    def detach() -> None:
        with _changing:  # there is no method that removes a handler
            root.event_handlers = [item for item in root.event_handlers if item is not events]
            root.span_handlers = [item for item in root.span_handlers if item is not spans]

    with _changing:
        if spans is not None:
            root.add_span_handler(spans)
        root.add_event_handler(events)
    return Attachment(obj, detach)
