"""Observe the queries of a Chroma collection, of a client's collections, or of all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, wraps
from inspect import iscoroutinefunction
from typing import Any
from weakref import WeakValueDictionary

from chromadb import Collection
from chromadb.api import AsyncClientAPI, ClientAPI
from chromadb.api.models.AsyncCollection import AsyncCollection

from rag_sourcebias.instrument import Attachment, Recorder, guarded
from rag_sourcebias_integrations.chroma.observe import observing
from rag_sourcebias_integrations.chroma.patch import Patch, subclass, swap_in, swap_out, swapped_in

__all__ = ["attach"]

_COLLECTIONS = (Collection, AsyncCollection)
_OPENERS = (
    "create_collection",
    "get_collection",
    "get_collection_by_id",
    "get_or_create_collection",
    "list_collections",
)
_patches = [Patch(kind, "query", observing) for kind in _COLLECTIONS]


def attach(obj: object, recorder: Recorder) -> Attachment | None:
    """Instrument a collection or a client in place, or all collections when given a name.

    ``query`` is observed, one event per query vector; ``get`` is no retrieval. A client stands
    for the collections obtained from it from now on.

    Returns None for an object that is none of these.
    """
    if isinstance(obj, str):
        for patch in _patches:
            patch.add(recorder)
        return Attachment(obj, partial(_unpatch, recorder))
    watch = _Watch(recorder)
    if isinstance(obj, _COLLECTIONS):
        watch.take(obj)
    elif isinstance(obj, (ClientAPI, AsyncClientAPI)):
        watch.take(obj, _client_class)
    else:
        return None
    return Attachment(obj, watch.end)


def _unpatch(recorder: Recorder) -> None:
    for patch in _patches:
        patch.remove(recorder)


def _collection_class(kind: Any) -> type:  # noqa: ANN401 - a class with a method "query"
    return _class_for(kind, kind.query)


@cache  # by the method too: another tool may replace it for a while
def _class_for(kind: Any, query: Callable[..., Any]) -> type:  # noqa: ANN401
    method = observing(
        query,
        lambda collection: [w.recorder for w in swapped_in(collection) if w.recorder is not None],
        call=lambda collection, *args, **kwargs: kind.query(collection, *args, **kwargs),  # noqa: PLW0108 - as it is then
    )
    return subclass(kind, {"query": method})


@cache
def _client_class(kind: type) -> type:
    names = [name for name in _OPENERS if hasattr(kind, name)]
    return subclass(kind, {name: _opener(kind, name) for name in names})


def _opener(kind: type, name: str) -> Callable[..., Any]:
    """Return a method of a client that gives out observed collections."""
    inner = getattr(kind, name)

    if iscoroutinefunction(inner):

        @wraps(inner)
        async def open_async(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            opened = await getattr(kind, name)(self, *args, **kwargs)
            _take_all(self, opened)
            return opened

        return open_async

    @wraps(inner)
    def open_(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        opened = getattr(kind, name)(self, *args, **kwargs)
        _take_all(self, opened)
        return opened

    return open_


def _take_all(client: Any, opened: Any) -> None:  # noqa: ANN401
    for watch in swapped_in(client):
        if watch.recorder is not None:
            with guarded(watch.recorder.dropped, "collection could not be instrumented"):
                for collection in opened if isinstance(opened, (list, tuple)) else (opened,):
                    if isinstance(collection, _COLLECTIONS):
                        watch.take(collection)


class _Watch:
    """A recorder on a collection, or on a client and what is obtained from it."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder: Recorder | None = recorder  # None when it ended: copies still hold this
        # By identity: collections cannot be hashed.
        self._watched: WeakValueDictionary[int, Any] = WeakValueDictionary()

    def take(self, obj: object, make: Callable[[type], type] = _collection_class) -> None:
        """Put the recorder on an object."""
        swap_in(obj, make, self)
        self._watched[id(obj)] = obj

    def end(self) -> None:
        """Restore everything; twice does no harm."""
        self.recorder = None
        for obj in list(self._watched.values()):
            swap_out(obj, self)
        self._watched.clear()
