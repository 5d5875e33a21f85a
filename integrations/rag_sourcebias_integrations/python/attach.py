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
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any, NamedTuple

from wrapt import FunctionWrapper

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import METADATA_KEYS
from rag_sourcebias.intake.results import (
    id_text,
    is_number,
    is_pair,
    listed,
    row_of,
    scores_in,
    value_of,
)
from rag_sourcebias.observe.events import guarded, text_id
from rag_sourcebias.observe.recorder import Attachment, Reader, Recorder, id_of

# What cannot be read, and what the user can do about it.


SHAPES = (
    "str ids, (document, score) pairs, or dicts or objects with id or doc_id; score and metadata "
    "where there are any"
)
_NO_LIST = f"result is no list of documents ({SHAPES}); say with hits= where they are"
_NO_ID = f"a document has no id (expected {SHAPES}); say with doc_id= where it is"
_HITS = "hits= failed: it takes what the function returns to the list of documents"
_DOC_ID = "doc_id= failed: it takes a document to its id, a text, an integer or a UUID"
_METADATA = "metadata= failed: it takes a document to a mapping, or to None"
_SCORE = "score= failed: it takes a document to a number, or to None"


class _UnreadableError(DataError):
    """One of these texts, without anything of a document."""


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


_PLACES = (
    "metadata", "payload", "_source", "meta", "cmetadata", "langchain_metadata", "properties",
    "fields", "entity", "attributes", "value",
)  # fmt: skip
_TAGS = METADATA_KEYS[:2]  # one of these makes a document tagged
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
    hits, doc_id, metadata_of, score_of = readers
    rows = _rows(result, hits)
    if not rows:
        return Documents((), (), ())
    natives: Sequence[Any] = rows
    scores: Sequence[Any] | None = None
    if all(map(is_pair, rows)):
        natives, scores = zip(*rows, strict=True)
    documents = [row_of(native) for native in natives]
    if doc_id is None:
        ids = _each(name_of, documents, _NO_ID)
    else:
        ids = _each(lambda native: id_text(doc_id(native)), natives, _DOC_ID)
    if metadata_of is None:
        metadata = [_metadata_of(document) for document in documents]
    else:
        metadata = _each(lambda native: _given_mapping(metadata_of(native)), natives, _METADATA)
    if score_of is not None:
        scores = _each(lambda row: _as_float(score_of(row)), rows, _SCORE)
    elif scores is None:
        scores = scores_in(documents)
    return Documents(ids, metadata, scores if all(map(is_number, scores)) else None)


def _id_in_row(row: object) -> str:
    return read_documents([row]).ids[0]


def _rows(result: object, hits: Reader | None) -> Sequence[Any]:
    if hits is not None:
        (result,) = _each(hits, [result], _HITS)
    else:
        with suppress(DataError):  # a set, or the results of several queries
            result = listed(result)
    if isinstance(result, Sequence) and not isinstance(result, (str, bytes)):
        return result
    raise _UnreadableError(_NO_LIST if hits is None else _HITS)


def _each(read: Reader, values: Iterable[Any], otherwise: str) -> list[Any]:
    try:
        return [read(value) for value in values]
    except Exception as error:
        raise _UnreadableError(otherwise) from error


# The id, the metadata and the scores of documents of any kind.


def name_of(document: object) -> str:
    """Return the id of a document; a text with white space in it is known by its hash."""
    if isinstance(document, str) and len(document.split(maxsplit=1)) > 1:
        return text_id(document)
    return id_of(document)


def _metadata_of(document: object) -> Mapping[str, object] | None:
    """Return the first mapping that holds tags, or else the first of all."""
    if isinstance(document, str):
        return None
    first, *others = _PLACES
    places = (value_of(document, first), document, *(value_of(document, name) for name in others))
    mappings = [found for place in places if (found := _mapping(place)) is not None]
    inner = (_mapping(found.get("metadata")) for found in mappings)  # as LangChain writes a payload
    tagged = (
        found for found in (*mappings, *inner) if found and not found.keys().isdisjoint(_TAGS)
    )
    return next(tagged, mappings[0] if mappings else None)


def _mapping(value: object) -> Mapping[str, object] | None:
    if isinstance(value, str) and value.startswith("{"):  # JSON, as asyncpg and SQLite return it
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return value if isinstance(value, Mapping) else None


def _given_mapping(value: object) -> Mapping[str, object] | None:
    found = _mapping(value)
    if found is None is not value:
        raise DataError(f"expected a mapping, got {type(value).__name__}")
    return found


def _as_float(value: Any) -> float | None:  # noqa: ANN401
    return None if value is None else float(value)


# Observe a function from a query to documents.


class _Observed(FunctionWrapper):  # type: ignore[type-arg]
    """A function, method or callable object in everything but what a call of it does besides."""

    def __deepcopy__(self, memo: object) -> _Observed:
        return self


class _Watch:
    """Record what a function returns, until the observation ends."""

    def __init__(self, function: Callable[..., Any], recorder: Recorder, readers: Readers) -> None:
        self._recorder = recorder
        self._is_on = True
        self._readers = readers
        self._first = ""
        with guarded(recorder.dropped, "signature could not be read"), suppress(ValueError):
            # some built-in functions have none
            self._first = next(iter(inspect.signature(function).parameters), "")
        recorder.read_ids_by(_id_in_row)

    def end(self) -> None:
        """Pass everything on."""
        self._is_on = False

    def __call__(
        self, function: Callable[..., Any], _: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:  # noqa: ANN401
        """Call the function; a result that is not finished is recorded when it is."""
        with self.retrieval() as first:
            result = function(*args, **kwargs)
        for is_kind, finishing in _UNFINISHED:
            if is_kind(result):
                return finishing(result, self, args, kwargs)
        if first:
            self.record(result, args, kwargs)
        return result

    def retrieval(self) -> AbstractContextManager[bool]:
        """Stand around a call; tell whether it is to be recorded."""
        return self._recorder.retrieval() if self._is_on else nullcontext(False)

    def record(self, rows: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record a result; count it as dropped where it is no list of documents."""
        if not self._is_on:
            return
        query = args[0] if args else kwargs.get(self._first)
        try:
            ids, metadata, scores = read_documents(rows, self._readers)
        except Exception as error:  # noqa: BLE001 - of the application's own objects
            reason = str(error) if isinstance(error, _UnreadableError) else _NO_LIST
            self._recorder.dropped.add(reason, error=error.__cause__ or error)
        else:
            text = query if isinstance(query, str) else None
            self._recorder.record(ids, metadata, scores, text)


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
    watch = _Watch(obj, recorder, Readers(doc_id=recorder.doc_id, **readers))
    return Attachment(_Observed(obj, watch), watch.end)


async def _awaited(
    coroutine: Any,  # noqa: ANN401
    watch: _Watch,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:  # noqa: ANN401
    with watch.retrieval() as first:
        result = await coroutine
    if first:
        watch.record(result, args, kwargs)
    return result


# Every step of a generator is a block of its own: one around all of it would take the retrievals of
# whoever iterates for nested.


def _generated(
    inner: Any,  # noqa: ANN401
    watch: _Watch,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Generator[Any, Any, Any]:
    rows: list[Any] = []
    observed = True
    step = partial(next, inner)
    while True:
        try:
            with watch.retrieval() as first:
                observed &= first
                rows.append(step())
        except StopIteration as stop:
            if observed:
                watch.record(rows, args, kwargs)
            return stop.value
        try:
            step = partial(inner.send, (yield rows[-1]))
        except GeneratorExit:
            inner.close()
            if observed:
                watch.record(rows, args, kwargs)
            raise
        except BaseException as error:  # noqa: BLE001 - thrown in: it is the function's
            step = partial(inner.throw, error)


async def _async_generated(
    inner: Any,  # noqa: ANN401
    watch: _Watch,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> AsyncGenerator[Any, Any]:
    rows: list[Any] = []
    observed = True
    step = inner.__anext__
    while True:
        try:
            with watch.retrieval() as first:
                observed &= first
                rows.append(await step())
        except StopAsyncIteration:
            if observed:
                watch.record(rows, args, kwargs)
            return
        try:
            step = partial(inner.asend, (yield rows[-1]))
        except GeneratorExit:
            await inner.aclose()
            if observed:
                watch.record(rows, args, kwargs)
            raise
        except BaseException as error:  # noqa: BLE001 - thrown in: it is the function's
            step = partial(inner.athrow, error)


# What tells a result that is not finished, and what hands it on.
_UNFINISHED = (
    (inspect.iscoroutine, _awaited),
    (inspect.isgenerator, _generated),
    (inspect.isasyncgen, _async_generated),
)
