"""A retriever observed in place: our handlers join the callbacks of each call."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables.config import var_child_runnable_config

from rag_sourcebias.instrument import guarded
from rag_sourcebias_integrations.langchain.handler import RecordingHandler
from rag_sourcebias_integrations.langchain.subclass import Layer

__all__ = ["retriever_members"]


def retriever_members(layer: Layer) -> Mapping[str, Any]:
    """Return the methods through which every query passes, batches and streams as well."""
    original: Any = layer.original

    @functools.wraps(original.invoke)
    def invoke(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        args, kwargs = _joined(layer.observers, args, kwargs)
        return original.invoke(self, *args, **kwargs)

    @functools.wraps(original.ainvoke)
    async def ainvoke(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        args, kwargs = _joined(layer.observers, args, kwargs)
        return await original.ainvoke(self, *args, **kwargs)

    return {"invoke": invoke, "ainvoke": ainvoke}


def _joined(
    handlers: Sequence[RecordingHandler], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of ``invoke(input, config=None, **kwargs)`` with our handlers in."""
    if not handlers:
        return args, kwargs
    with guarded(handlers[0].dropped, "callbacks could not be joined"):
        given = args[1] if len(args) > 1 else kwargs.get("config")
        config = {**(given or {})}
        callbacks = config.get("callbacks")
        if callbacks is None:  # then those of the chain around the call would be inherited
            around = var_child_runnable_config.get()
            callbacks = around.get("callbacks") if around else None
        config["callbacks"] = _with_ours(callbacks, handlers)
        if len(args) > 1:
            return (args[0], config, *args[2:]), kwargs
        return args, {**kwargs, "config": config}
    return args, kwargs


def _with_ours(callbacks: Any, handlers: Sequence[RecordingHandler]) -> Any:  # noqa: ANN401
    there = callbacks or [] if isinstance(callbacks, list | None) else callbacks.handlers
    ours = [h for h in handlers if not any(h is other for other in there)]
    if isinstance(callbacks, list | None):
        return [*there, *ours]
    manager = callbacks.copy()
    for handler in ours:
        manager.add_handler(handler, inherit=True)
    return manager
