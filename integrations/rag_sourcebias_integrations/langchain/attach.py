"""Instrument a LangChain retriever or vector store in place, or all retrievers of the process."""

from __future__ import annotations

from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.vectorstores import VectorStore

from rag_sourcebias.instrument import Attachment, Recorder
from rag_sourcebias_integrations.langchain.calls import Watch, retriever_members
from rag_sourcebias_integrations.langchain.everything import observe_everything
from rag_sourcebias_integrations.langchain.handler import RecordingHandler
from rag_sourcebias_integrations.langchain.searches import store_members
from rag_sourcebias_integrations.langchain.subclass import add_observer

__all__ = ["attach"]


def attach(obj: object, recorder: Recorder) -> Attachment | None:
    """Observe a retriever, what it is bound in, a vector store, or ``"langchain"``.

    Objects are observed in place: their class is exchanged for a subclass that passes for it.
    Copies and pickles of them are not observed.
    """
    if isinstance(obj, str):
        handler = RecordingHandler(recorder)
        return Attachment(obj, observe_everything(handler))
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
