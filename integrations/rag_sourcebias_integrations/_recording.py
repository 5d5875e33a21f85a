"""Replacements of methods whose outermost calls are recorded."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from rag_sourcebias.observe.events import guarded
from rag_sourcebias.observe.patching import Call


def inside(
    method: Callable[..., Any],
    block: Callable[[Any, tuple[Any, ...], dict[str, Any]], AbstractContextManager[list[Any]]],
) -> Call:
    """Return what stands for a method, plain or ``async``, each call of which is in a block.

    To the list of the block, made of the object and the arguments, the result is added.
    """

    def call(ask: Any, obj: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        with block(obj, args, kwargs) as found:
            found.append(ask(*args, **kwargs))
        return found[0]

    async def acall(ask: Any, obj: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        with block(obj, args, kwargs) as found:
            found.append(await ask(*args, **kwargs))
        return found[0]

    return acall if inspect.iscoroutinefunction(method) else call


@contextmanager
def outermost_of(recorders: Iterable[Any]) -> Iterator[list[Any]]:
    """Stand around a call; give those of the recorders by whom it is to be recorded."""
    with ExitStack() as stack:
        yield [one for one in recorders if stack.enter_context(one.retrieval())]


def recorded(
    method: Callable[..., Any],
    observers_of: Callable[[Any], Iterable[Any]],
    record: Callable[[Any, Any, Any, tuple[Any, ...], dict[str, Any]], None],
) -> Call:
    """Return what stands for a method of which each outermost call is recorded.

    Parameters
    ----------
    method : function
        Plain or ``async``.
    observers_of : callable
        From an object to those that record its calls now: recorders, or what stands before them.
    record : callable
        Of one of these, the object, the result and the arguments; what it raises is counted.
    """

    @contextmanager
    def block(obj: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[list[Any]]:  # noqa: ANN401
        found: list[Any] = []
        with outermost_of(observers_of(obj)) as recorders:
            yield found
        for recorder in recorders:
            with guarded(recorder.dropped, "result could not be read"):
                record(recorder, obj, found[0], args, kwargs)

    return inside(method, block)
