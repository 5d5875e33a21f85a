"""What is done with the results of an observed function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rag_sourcebias.instrument import Recorder, guarded
from rag_sourcebias_integrations.python.convert import SHAPES, read_documents

__all__ = ["Watch"]

_UNREADABLE = f"result is no list of documents ({SHAPES})"


class Watch:
    """The recorder of one function, until it ends."""

    def __init__(self, function: Callable[..., Any], recorder: Recorder) -> None:
        self.recorder: Recorder | None = recorder
        self._first = ""
        with guarded(recorder.dropped, "signature could not be read"):
            self._first = _first_parameter(function)

    def end(self) -> None:
        """Make the wrapper pass everything on."""
        self.recorder = None

    def query(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Return the query, the first argument, where it is a text."""
        value = args[0] if args else kwargs.get(self._first)
        return value if isinstance(value, str) else None

    def record(self, rows: object, query: str | None) -> None:
        """Record a result; count it as dropped where it is no list of documents."""
        recorder = self.recorder
        if recorder is not None:
            with guarded(recorder.dropped, _UNREADABLE):
                ids, metadata, scores = read_documents(rows, recorder.doc_id)
                recorder.record(ids, metadata=metadata, scores=scores, query=query)

    def steps(self, inner: Any, query: str | None) -> Any:  # noqa: ANN401
        """Return a generator, or what records it when it ends."""
        return inner if self.recorder is None else _Steps(inner, self, self.recorder, query)

    def async_steps(self, inner: Any, query: str | None) -> Any:  # noqa: ANN401
        """Return an async generator, or what records it when it ends."""
        return inner if self.recorder is None else _AsyncSteps(inner, self, self.recorder, query)


def _first_parameter(function: Callable[..., Any]) -> str:
    try:
        return next(iter(inspect.signature(function).parameters), "")
    except ValueError:  # some built-in functions have none
        return ""


class _Steps:
    """A generator of which every step is a block of its own, recorded when it ends.

    One block around all of it would take the retrievals of whoever iterates for nested.
    """

    def __init__(self, inner: Any, watch: Watch, recorder: Recorder, query: str | None) -> None:  # noqa: ANN401
        self._inner, self._watch, self._recorder, self._query = inner, watch, recorder, query
        self._rows: list[Any] = []
        self._first = True

    def __iter__(self) -> _Steps:
        return self

    def __next__(self) -> Any:  # noqa: ANN401
        return self.send(None)

    def send(self, value: Any) -> Any:  # noqa: ANN401
        return self._step(self._inner.send, value)

    def throw(self, *error: Any) -> Any:  # noqa: ANN401
        return self._step(self._inner.throw, *error)

    def close(self) -> None:
        self._inner.close()
        self._end()

    def _step(self, step: Callable[..., Any], *values: Any) -> Any:  # noqa: ANN401
        try:
            with self._recorder.retrieval() as first:
                self._first &= first
                row = step(*values)
        except StopIteration:
            self._end()
            raise
        self._rows.append(row)
        return row

    def _end(self) -> None:
        if self._first:
            self._watch.record(self._rows, self._query)


class _AsyncSteps(_Steps):
    """The same of an async generator."""

    async def asend(self, value: Any) -> Any:  # noqa: ANN401
        return await self._async_step(self._inner.asend, value)

    async def athrow(self, error: BaseException) -> Any:  # noqa: ANN401
        return await self._async_step(self._inner.athrow, error)

    async def aclose(self) -> None:
        await self._inner.aclose()
        self._end()

    async def _async_step(self, step: Callable[..., Any], value: Any) -> Any:  # noqa: ANN401
        try:
            with self._recorder.retrieval() as first:
                self._first &= first
                row = await step(value)
        except StopAsyncIteration:
            self._end()
            raise
        self._rows.append(row)
        return row
