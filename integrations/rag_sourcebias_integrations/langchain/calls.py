"""A retriever observed in place: what stands around each of its calls.

The callbacks of the application are left as they are. Callbacks of our own would cost more: in an
asynchronous call, LangChain's dispatch to a handler that does nothing takes as long as all of this.
A retriever that asks others on threads of its own must copy the context to them, as LangChain's
executors do; otherwise theirs count as well.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.vectorstores import VectorStoreRetriever

from rag_sourcebias.instrument import Recorder
from rag_sourcebias.instrument.scope import leave
from rag_sourcebias_integrations.langchain.convert import record_documents
from rag_sourcebias_integrations.langchain.labels import RunLabels
from rag_sourcebias_integrations.langchain.subclass import Layer

__all__ = ["Watch", "retriever_members"]


class Watch:
    """Record the retrievals of one retriever.

    Parameters
    ----------
    recorder : Recorder
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.stopped = False
        self._labels = RunLabels(recorder)

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
            store = None
            if isinstance(retriever, VectorStoreRetriever):
                store = retriever.vectorstore.__class__.__name__
            labels = self._labels.of(name or type(retriever).__name__, store)
        except Exception as error:  # noqa: BLE001 - as guarded, which costs more on this hot path
            self.recorder.dropped.add("result could not be read", error=error)
        else:
            text = query if isinstance(query, str) else None
            record_documents(self.recorder, documents, query=text, labels=labels)


class _Call:
    """Stands around one call."""

    __slots__ = ("_entered",)

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._entered = [(watch, watch.recorder.enter()) for watch in watches]

    def __enter__(self) -> _Call:
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
    original: Any = layer.original

    @functools.wraps(original.invoke)
    def invoke(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with _Call(layer.observers) as call:
            found = original.invoke(self, *args, **kwargs)
        call.record(self, found, args, kwargs)
        return found

    @functools.wraps(original.ainvoke)
    async def ainvoke(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with _Call(layer.observers) as call:
            found = await original.ainvoke(self, *args, **kwargs)
        call.record(self, found, args, kwargs)
        return found

    return {"invoke": invoke, "ainvoke": ainvoke}
