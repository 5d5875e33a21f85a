"""Observe a function from a query to documents."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import update_wrapper
from numbers import Real
from types import FunctionType, MethodType
from typing import Any, NamedTuple
from uuid import UUID

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.instrument.events import guarded, text_id
from rag_sourcebias.instrument.recorder import Attachment, Recorder

# From what a function returns to ids, metadata and scores.


SHAPES = (
    "str ids, (document, score) pairs, or dicts or objects with id or doc_id; score and metadata "
    "where there are any"
)


class Documents(NamedTuple):
    """The documents of one result, best first."""

    ids: Sequence[str]
    metadata: Sequence[Mapping[str, object] | None]
    scores: Sequence[float] | None


def read_documents(rows: object, doc_id: Callable[[Any], str] | None = None) -> Documents:
    """Read a result.

    Parameters
    ----------
    rows : sequence
        Of one of the shapes of ``SHAPES``. A string with white space in it is taken for a text
        and named by its hash.
    doc_id : callable, optional
        From a document (without the score of a pair) to its id.

    Raises
    ------
    DataError
        If the rows have another shape.
    """
    if not isinstance(rows, Sequence) or isinstance(rows, (str, bytes)):
        raise DataError(f"expected a list of documents, got {type(rows).__name__}")
    documents: Sequence[Any] = rows
    scores: Sequence[Any] | None = None
    if rows and all(type(row) is tuple and len(row) == 2 and _is_number(row[1]) for row in rows):
        documents, scores = zip(*rows, strict=True)
    # By columns, and looking at types first: half the time of a loop over documents.
    dicts = set(map(type, documents)) == {dict}
    if doc_id is not None:
        ids = [doc_id(document) for document in documents]
    else:
        ids = _column(documents, "id", dicts=dicts)
        if set(map(type, ids)) != {str}:
            ids = [_id_of(*both) for both in zip(documents, ids, strict=True)]
    metadata = _column(documents, "metadata", dicts=dicts)
    if set(map(type, metadata)) != {dict}:  # the tags may stand beside the id
        pairs = zip(metadata, documents, strict=True)
        metadata = [_mapping(inner) or _mapping(document) for inner, document in pairs]
    if scores is None:
        scores = _column(documents, "score", dicts=dicts)
    numbers = set(map(type, scores)) == {float} or all(map(_is_number, scores))
    return Documents(ids, metadata, scores if numbers else None)


def _column(documents: Sequence[Any], name: str, *, dicts: bool) -> list[Any]:
    if dicts:
        return [document.get(name) for document in documents]
    return [_value(document, name) for document in documents]


def _value(document: object, name: str) -> Any:  # noqa: ANN401
    return document.get(name) if isinstance(document, Mapping) else getattr(document, name, None)


def _mapping(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, Mapping) else None


def _id_of(document: object, value: object) -> str:
    if isinstance(document, str):
        return text_id(document) if len(document.split(maxsplit=1)) > 1 else document
    if value is None:
        value = _value(document, "doc_id")
    if isinstance(value, (str, int, UUID)) and not isinstance(value, bool):
        return str(value)
    raise DataError(f"a document of type {type(document).__name__} has no id; expected {SHAPES}")


def _is_number(value: object) -> bool:
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


# Ask a function, and read the ids off what it answers.


def search(obj: object) -> Callable[[str], Iterable[Any]] | None:
    """Return the function itself; None where it is none."""
    return obj if callable(obj) else None


def document_id(found: Any, key: str | None) -> str:  # noqa: ANN401 - whatever a function returns
    """Return what stands under ``key`` in the metadata, or else the id.

    Raises
    ------
    DataError
        If there is none of these.
    """
    if key is None:
        return read_documents([found]).ids[0]
    (metadata,) = read_documents([found], lambda _: "").metadata
    value = (metadata or {}).get(key)
    if not value:
        raise DataError(f"a document of type {type(found).__name__} has no {key!r} in its metadata")
    return str(value)


# What is done with the results of an observed function.


_UNREADABLE = f"result is no list of documents ({SHAPES})"


class Watch:
    """The recorder of one function, until it ends."""

    def __init__(self, function: Callable[..., Any], recorder: Recorder) -> None:
        self.recorder: Recorder | None = recorder
        self._first = ""
        with guarded(recorder.dropped, "signature could not be read"), suppress(ValueError):
            # some built-in functions have none
            self._first = next(iter(inspect.signature(function).parameters), "")

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

    def steps(self, kind: type[_Steps], inner: Any, query: str | None) -> Any:  # noqa: ANN401
        """Return a generator of this kind, or what records it when it ends."""
        return inner if self.recorder is None else kind(inner, self, self.recorder, query)


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


# Observe a function from a query to documents.


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
    found = (wrap for makes, _, wrap in _UNFINISHED if any(map(makes, kinds)))
    wrapper = next(found, _function)(obj, watch)
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
                for _, is_kind, wrap in _UNFINISHED:  # of a lambda around a coroutine function
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
        inner = function(*args, **kwargs)
        return (yield from watch.steps(_Steps, inner, watch.query(args, kwargs)))

    return generator


def _async_generator_function(function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    async def generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:  # noqa: ANN401
        inner = function(*args, **kwargs)
        steps = watch.steps(_AsyncSteps, inner, watch.query(args, kwargs))
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


# What makes a result that is not finished, what tells one, and how the function is observed.
_UNFINISHED = (
    (inspect.iscoroutinefunction, inspect.iscoroutine, _coroutine_function),
    (inspect.isgeneratorfunction, inspect.isgenerator, _generator_function),
    (inspect.isasyncgenfunction, inspect.isasyncgen, _async_generator_function),
)
