"""Observe a function from a query to documents."""

from __future__ import annotations

import inspect
import json
from collections.abc import (
    AsyncGenerator,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, field
from functools import update_wrapper
from numbers import Integral
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import METADATA_KEYS
from rag_sourcebias.intake.results import (
    id_in,
    id_text,
    is_number,
    is_pair,
    listed,
    row_of,
    scores_in,
    value_of,
)
from rag_sourcebias.observe.events import guarded, text_id
from rag_sourcebias.observe.recorder import Attachment, Reader, Recorder

# What cannot be read, and what the user can do about it.


SHAPES = (
    "str ids, (document, score) pairs, or dicts or objects with id or doc_id; score and metadata "
    "where there are any"
)
_NO_LIST = f"result is no list of documents ({SHAPES}); say with hits= where they are"
_NO_ID = f"a document has no id (expected {SHAPES}); say with doc_id= where it is"
_FAILED = {
    "hits": "hits= failed: it takes what the function returns to the list of documents",
    "doc_id": "doc_id= failed: it takes a document to its id, a text, an integer or a UUID",
    "metadata": "metadata= failed: it takes a document to a mapping, or to None",
    "score": "score= failed: it takes a document to a number, or to None",
}


class _UnreadableError(DataError):
    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason
        """A fixed text, without anything of a document."""


# From what a function returns to ids, metadata and scores.


class Documents(NamedTuple):
    """The documents of one result, best first."""

    ids: Sequence[str]
    metadata: Sequence[Mapping[str, object] | None]
    scores: Sequence[float] | None


class Readers(NamedTuple):
    """What the user says about a result, each where it is given.

    ``doc_id`` and ``metadata`` are given a document without the score of a pair, ``score`` is
    given the pair.
    """

    hits: Reader | None = None
    doc_id: Reader | None = None
    metadata: Reader | None = None
    score: Reader | None = None


_METADATA = (
    "metadata", "payload", "_source", "meta", "cmetadata", "langchain_metadata", "properties",
    "fields", "entity", "attributes", "value",
)  # fmt: skip
_SOURCE, _STYLE = METADATA_KEYS[:2]
_NONE = Readers()


def read_documents(result: object, readers: Readers = _NONE) -> Documents:
    """Read a result.

    Parameters
    ----------
    result : object
        A list of one of the shapes of ``SHAPES``, or what a client returns that holds one. A
        string with white space in it is taken for a text and named by its hash.
    readers : Readers, optional

    Raises
    ------
    DataError
        If the result has another shape, or a reader fails.
    """
    _, doc_id, metadata_of, score_of = readers
    rows = _rows(result, readers.hits)
    if not rows:
        return Documents((), (), ())
    natives: Sequence[Any] = rows
    scores: Sequence[Any] | None = None
    if all(map(is_pair, rows)):
        natives, scores = zip(*rows, strict=True)
    documents = [row_of(native) for native in natives]
    if doc_id is None:
        ids = [_id_of(document) for document in documents]
    else:
        ids = _told("doc_id", doc_id, natives, id_text)
    if metadata_of is None:
        metadata = [_metadata_of(document) for document in documents]
    else:
        metadata = _told("metadata", metadata_of, natives, _mapping_or_none)
    if score_of is not None:
        scores = _told("score", score_of, rows, _float_or_none)
    elif scores is None:
        scores = scores_in(documents)
    return Documents(ids, metadata, scores if all(map(is_number, scores)) else None)


def _rows(result: object, hits: Reader | None) -> Sequence[Any]:
    if hits is not None:
        (result,) = _told("hits", hits, (result,))
    else:
        with suppress(DataError):  # a set, or the results of several queries
            result = listed(result)
    if isinstance(result, Sequence) and not isinstance(result, (str, bytes)):
        return result
    message = f"expected a list of documents, got {type(result).__name__}"
    raise _UnreadableError(message, _NO_LIST if hits is None else _FAILED["hits"])


def _told(
    name: str,
    read: Reader,
    values: Iterable[Any],
    check: Callable[[Any], Any] = lambda value: value,
) -> list[Any]:
    try:
        return [check(read(value)) for value in values]
    except Exception as error:
        message = f"{name}= raised {type(error).__name__}, or returned something else"
        raise _UnreadableError(message, _FAILED[name]) from error


# The id, the metadata and the scores of documents of any kind.


def _named(text: str) -> str:
    return text_id(text) if len(text.split(maxsplit=1)) > 1 else text


def _id_of(document: object) -> str:
    if isinstance(document, str):
        return _named(document)
    value = document if isinstance(document, Integral) else id_in(document)
    if value is None and isinstance(text := value_of(document, "page_content"), str):
        return text_id(text)  # as LangChain's documents are named where they are observed
    try:
        return id_text(value)
    except DataError as error:
        message = f"a document of type {type(document).__name__} has no id; expected {SHAPES}"
        raise _UnreadableError(message, _NO_ID) from error


def _metadata_of(document: object) -> Mapping[str, object] | None:
    """Return the first mapping that holds tags, or else the first of all."""
    if isinstance(document, str):
        return None
    first, *others = _METADATA
    places = (value_of(document, first), document, *(value_of(document, name) for name in others))
    mappings = [found for place in places if (found := _mapping(place)) is not None]
    for found in mappings:
        if _SOURCE in found or _STYLE in found:
            return found
    for found in mappings:  # as LangChain writes a payload
        inner = _mapping(found.get("metadata"))
        if inner and (_SOURCE in inner or _STYLE in inner):
            return inner
    return mappings[0] if mappings else None


def _mapping(value: object) -> Mapping[str, object] | None:
    if isinstance(value, str) and value.startswith("{"):  # JSON, as asyncpg and SQLite return it
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return value if isinstance(value, Mapping) else None


def _mapping_or_none(value: object) -> Mapping[str, object] | None:
    found = _mapping(value)
    if found is None and value is not None:
        raise DataError(f"expected a mapping, got {type(value).__name__}")
    return found


def _float_or_none(value: Any) -> float | None:  # noqa: ANN401
    return None if value is None else float(value)


# What is done with the results of an observed function.


class Watch:
    """The recorder of one function, until it ends."""

    def __init__(
        self, function: Callable[..., Any], recorder: Recorder, readers: Readers = _NONE
    ) -> None:
        self.recorder: Recorder | None = recorder
        doc_id = recorder.doc_id
        self._readers = readers if doc_id is None else readers._replace(doc_id=doc_id)
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
            try:
                ids, metadata, scores = read_documents(rows, self._readers)
            except _UnreadableError as error:
                recorder.dropped.add(error.reason, error=error.__cause__ or error)
            except Exception as error:  # noqa: BLE001 - of the application's own objects
                recorder.dropped.add(_NO_LIST, error=error)
            else:
                recorder.record(ids, metadata=metadata, scores=scores, query=query)

    def steps(self, kind: type[_Steps], inner: Any, query: str | None) -> Any:  # noqa: ANN401
        """Return a generator of this kind, or what records it when it ends."""
        return inner if self.recorder is None else kind(inner, self, self.recorder, query)


@dataclass
class _Steps:
    """A generator of which every step is a block of its own, recorded when it ends.

    One block around all of it would take the retrievals of whoever iterates for nested.
    """

    inner: Any
    watch: Watch
    recorder: Recorder
    query: str | None
    _rows: list[Any] = field(default_factory=list)
    _first: bool = True

    def __iter__(self) -> _Steps:
        return self

    def __next__(self) -> Any:  # noqa: ANN401
        return self.send(None)

    def send(self, value: Any) -> Any:  # noqa: ANN401
        return self._step(self.inner.send, value)

    def throw(self, *error: Any) -> Any:  # noqa: ANN401
        return self._step(self.inner.throw, *error)

    def close(self) -> None:
        self.inner.close()
        self._end()

    def _step(self, step: Callable[..., Any], *values: Any) -> Any:  # noqa: ANN401
        try:
            with self.recorder.retrieval() as first:
                self._first &= first
                row = step(*values)
        except StopIteration:
            self._end()
            raise
        self._rows.append(row)
        return row

    def _end(self) -> None:
        if self._first:
            self.watch.record(self._rows, self.query)


class _AsyncSteps(_Steps):
    async def asend(self, value: Any) -> Any:  # noqa: ANN401
        return await self._async_step(self.inner.asend, value)

    async def athrow(self, error: BaseException) -> Any:  # noqa: ANN401
        return await self._async_step(self.inner.athrow, error)

    async def aclose(self) -> None:
        await self.inner.aclose()
        self._end()

    async def _async_step(self, step: Callable[..., Any], value: Any) -> Any:  # noqa: ANN401
        try:
            with self.recorder.retrieval() as first:
                self._first &= first
                row = await step(value)
        except StopAsyncIteration:
            self._end()
            raise
        self._rows.append(row)
        return row


# Observe a function from a query to documents.


def attach(obj: object, recorder: Recorder, **readers: Reader) -> Attachment | None:
    """Return a wrapper around a function, a method or a callable object.

    The wrapper is of the same kind (plain, ``async def``, generator, async generator) and gives
    out what the function gives out. A generator is observed when it is exhausted or closed. The
    query is the first argument. ``hits``, ``metadata`` and ``score`` are those of
    :class:`Readers`.

    Returns None for a class and for what cannot be called.
    """
    if not callable(obj) or isinstance(obj, type):
        return None
    watch = Watch(obj, recorder, Readers(**readers))
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
        step = steps.asend
        value = None
        while True:
            try:
                row = await step(value)
            except StopAsyncIteration:
                return
            try:
                step = steps.asend
                value = yield row
            except GeneratorExit:
                await steps.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - thrown in: it is the function's
                step = steps.athrow
                value = error

    return generator


# What makes a result that is not finished, what tells one, and how the function is observed.
_UNFINISHED = (
    (inspect.iscoroutinefunction, inspect.iscoroutine, _coroutine_function),
    (inspect.isgeneratorfunction, inspect.isgenerator, _generator_function),
    (inspect.isasyncgenfunction, inspect.isasyncgen, _async_generator_function),
)
