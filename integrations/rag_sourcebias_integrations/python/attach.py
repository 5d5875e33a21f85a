"""Observe a function from a query to documents."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from functools import update_wrapper
from types import FunctionType, MethodType
from typing import Any

from rag_sourcebias.instrument import Attachment, Recorder
from rag_sourcebias_integrations.python.watch import Watch

__all__ = ["attach"]


def attach(obj: object, recorder: Recorder) -> Attachment | None:
    """Return a wrapper around a function, a method or a callable object.

    The wrapper is of the same kind (plain, ``async def``, generator, async generator) and gives
    out what the function gives out. A generator is observed when it is exhausted or closed. The
    query is the first argument.

    Returns None for a class and for what cannot be called.
    """
    if not callable(obj) or isinstance(obj, type):
        return None
    watch = Watch(obj, recorder)
    kinds = (obj, type(obj).__call__)
    if any(map(inspect.iscoroutinefunction, kinds)):
        wrapper = _coroutine_function(obj, watch)
    elif any(map(inspect.isgeneratorfunction, kinds)):
        wrapper = _generator_function(obj, watch)
    elif any(map(inspect.isasyncgenfunction, kinds)):
        wrapper = _async_generator_function(obj, watch)
    else:
        wrapper = _function(obj, watch)
    updated = ("__dict__",) if isinstance(obj, (FunctionType, MethodType)) else ()
    return Attachment(update_wrapper(wrapper, obj, updated=updated), watch.end)


def _function(function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def plain(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        recorder = watch.recorder
        if recorder is None:
            return function(*args, **kwargs)
        with recorder.retrieval() as first:
            result = function(*args, **kwargs)
            if not isinstance(result, list):
                for is_kind, wrap in _UNFINISHED:  # of a lambda around a coroutine function
                    if is_kind(result):
                        return wrap(lambda *_, **__: result, watch)(*args, **kwargs)
            if first:
                watch.record(result, watch.query(args, kwargs))
            return result

    return plain


def _coroutine_function(function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    async def coroutine(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        recorder = watch.recorder
        if recorder is None:
            return await function(*args, **kwargs)
        with recorder.retrieval() as first:
            result = await function(*args, **kwargs)
            if first:
                watch.record(result, watch.query(args, kwargs))
            return result

    return coroutine


def _generator_function(function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:  # noqa: ANN401
        return (yield from watch.steps(function(*args, **kwargs), watch.query(args, kwargs)))

    return generator


def _async_generator_function(function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    async def generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:  # noqa: ANN401
        steps = watch.async_steps(function(*args, **kwargs), watch.query(args, kwargs))
        step, value = steps.asend, None
        while True:
            try:
                row = await step(value)
            except StopAsyncIteration:
                return
            try:
                step, value = steps.asend, (yield row)
            except GeneratorExit:
                await steps.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - thrown in: it is the function's
                step, value = steps.athrow, error

    return generator


_UNFINISHED = (
    (inspect.iscoroutine, _coroutine_function),
    (inspect.isgenerator, _generator_function),
    (inspect.isasyncgen, _async_generator_function),
)
