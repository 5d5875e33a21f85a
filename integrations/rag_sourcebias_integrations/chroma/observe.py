"""Observe the queries of a Chroma collection, of a client's collections, or of all of them."""

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial, wraps
from typing import Any, NamedTuple, cast
from weakref import WeakValueDictionary

from chromadb import Collection
from chromadb.api import AsyncClientAPI, ClientAPI
from chromadb.api.models.AsyncCollection import AsyncCollection

from rag_sourcebias.observe.events import guarded
from rag_sourcebias.observe.patching import Patch
from rag_sourcebias.observe.recorder import Attachment, Recorder

# From what a Chroma query returns to ids, metadata and scores, one ranking per query vector.


class Ranking(NamedTuple):
    """What one query vector found, best first."""

    ids: Sequence[str]
    metadata: Sequence[Mapping[str, object] | None]
    scores: Sequence[float] | None

    def rows(self) -> Iterator[dict[str, object]]:
        """Return the documents one by one, as ``doc_id=`` of ``instrument`` is given them."""
        return (
            {
                "id": doc_id,
                "metadata": (self.metadata[index] if self.metadata else None) or {},
                "score": self.scores[index] if self.scores else None,
            }
            for index, doc_id in enumerate(self.ids)
        )


def best_score(collection: Any) -> float:  # noqa: ANN401
    """Return what distances are taken from: 1 of a cosine or inner product, otherwise 0."""
    settings = collection.configuration_json or {}
    space = (settings.get("hnsw") or settings.get("spann") or {}).get("space")
    return 1.0 if space in ("cosine", "ip") else 0.0


def rankings(result: Mapping[str, Any], collection: Any) -> Iterator[Ranking]:  # noqa: ANN401
    """Yield the ranking of each query vector.

    Parameters
    ----------
    result : mapping
        A ``QueryResult``; fields that were not asked for are None.
    collection : chromadb collection
        Scores are :func:`best_score` less the distance: higher is better.
    """
    top = best_score(collection)
    metadata = result["metadatas"]
    distances = result["distances"]
    for index, ids in enumerate(result["ids"]):
        scores = [top - distance for distance in distances[index]] if distances else None
        yield Ranking(ids, metadata[index] if metadata else (), scores)


# Change the class of one object, so that it can be undone in any order.


_ITEMS = "_rag_sourcebias_items"
_MARK = "_rag_sourcebias_subclass"
_lock = threading.RLock()


def subclass(kind: type, methods: dict[str, Any]) -> type:
    """Return a subclass that looks like its base, for :func:`swap_in`."""
    like = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(kind)(kind.__name__, (kind,), {**like, **methods, _MARK: True})


def swap_in(obj: Any, make: Callable[[type], type], item: object) -> None:  # noqa: ANN401
    """Give an object a subclass of its class, and an item for the methods of that class.

    Unlike a method put on the object, this keeps working when the object is copied.
    """
    with _lock:
        if _MARK not in vars(type(obj)):
            obj.__class__ = make(type(obj))
        vars(obj)[_ITEMS] = (*swapped_in(obj), item)


def swap_out(obj: Any, item: object) -> None:  # noqa: ANN401
    """Take an item back, and with the last one the class; twice does no harm."""
    with _lock:
        left = tuple(other for other in swapped_in(obj) if other is not item)
        if left:
            vars(obj)[_ITEMS] = left
            return
        vars(obj).pop(_ITEMS, None)
        if _MARK in vars(type(obj)):  # otherwise somebody changed the class after us
            obj.__class__ = type(obj).__base__


def swapped_in(obj: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """Return the items of an object, oldest first."""
    return cast("tuple[Any, ...]", vars(obj).get(_ITEMS, ()))


# One observed call of ``Collection.query``: what is asked beside, and given back as asked.


_TRANSPORT = ("httpx", "httpcore")


def observing(
    query: Callable[..., Any],
    recorders_of: Callable[[Any], Sequence[Recorder]],
    call: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Return a ``query`` method that is observed.

    Parameters
    ----------
    query : function
        ``Collection.query`` or ``AsyncCollection.query``.
    recorders_of : callable
        From the collection to those that record it at this moment.
    call : callable, optional
        Called in place of ``query``.
    """
    places = {name: at for at, name in enumerate([*inspect.signature(query).parameters][1:])}
    inner = call or query

    def observed(collection: Any, one: Callable[..., Any]) -> Callable[..., Any]:  # noqa: ANN401
        ask: Callable[..., Any] = partial(inner, collection)
        for recorder in recorders_of(collection):
            ask = partial(one, recorder, collection, places, ask)
        return ask

    if inspect.iscoroutinefunction(query):

        @wraps(query)
        async def method(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            return await observed(self, _ask_async)(*args, **kwargs)

    else:

        @wraps(query)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            return observed(self, _ask)(*args, **kwargs)

    return method


def _ask(
    recorder: Recorder,
    collection: Any,  # noqa: ANN401
    places: dict[str, int],
    ask: Callable[..., Any],
    /,
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    with recorder.retrieval() as first:
        if not first:
            return ask(*args, **kwargs)
        query = _Query(recorder, collection, places, args, kwargs)
        if query.added:
            try:
                result = ask(*query.args, **query.kwargs)
            except Exception as error:
                if not query.may_be_to_blame(error):
                    raise
            else:
                if query.finish(result):
                    return result
        result = ask(*args, **kwargs)
        query.finish_as_given(result)
        return result


async def _ask_async(
    recorder: Recorder,
    collection: Any,  # noqa: ANN401
    places: dict[str, int],
    ask: Callable[..., Any],
    /,
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    with recorder.retrieval() as first:
        if not first:
            return await ask(*args, **kwargs)
        query = _Query(recorder, collection, places, args, kwargs)
        if query.added:
            try:
                result = await ask(*query.args, **query.kwargs)
            except Exception as error:
                if not query.may_be_to_blame(error):
                    raise
            else:
                if query.finish(result):
                    return result
        result = await ask(*args, **kwargs)
        query.finish_as_given(result)
        return result


class _Query:
    """The arguments of one call, with the fields that are needed for tags and scores."""

    __slots__ = (
        "_collection",
        "_failure",
        "_include",
        "_recorder",
        "_texts",
        "added",
        "args",
        "kwargs",
    )

    def __init__(
        self,
        recorder: Recorder,
        collection: Any,  # noqa: ANN401
        places: dict[str, int],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._recorder = recorder
        self._collection = collection
        self.args = args
        self.kwargs = kwargs
        self.added: tuple[str, ...] = ()
        self._failure: BaseException | None = None
        self._include: Any = None
        self._texts: Any = None
        with guarded(recorder.dropped, "query could not be read"):
            self._texts = _argument(args, kwargs, "query_texts", places)
            include = self._include = _argument(args, kwargs, "include", places)
            # Without "include" Chroma returns all we need. With "data" it returns fields nobody
            # asked for, which could not be told from ours.
            if type(include) is list and "data" not in include:
                needed = ("metadatas", "distances") if recorder.reads_metadata else ("distances",)
                added = tuple(name for name in needed if name not in include)
                if "include" in kwargs:
                    self.kwargs = {**kwargs, "include": [*include, *added]}
                else:
                    at = places["include"]
                    self.args = (*args[:at], [*include, *added], *args[at + 1 :])
                self.added = added

    def finish(self, result: Any) -> bool:  # noqa: ANN401
        """Record a result and take out what was added; False when that was not possible."""
        recorder = self._recorder
        with guarded(recorder.dropped, "result could not be read"):
            texts = [self._texts] if isinstance(self._texts, str) else self._texts or ()
            labels = {"collection": self._collection.name}
            for index, found in enumerate(rankings(result, self._collection)):
                query = texts[index] if index < len(texts) else None
                _record(recorder, found, query=query, labels=labels)
        with guarded(recorder.dropped, "added fields could not be taken out"):
            if self.added:
                result.update(dict.fromkeys(self.added), included=self._include)
            return True
        return False

    def finish_as_given(self, result: Any) -> None:  # noqa: ANN401
        """Record the result of the call as the application made it."""
        if not self.added:
            self.finish(result)
        elif self._failure is not None:
            self._recorder.dropped.add("query with added fields failed", error=self._failure)

    def may_be_to_blame(self, error: BaseException) -> bool:
        """Return whether a call may have failed for what was added to it.

        A call that failed before Chroma was asked (arguments, encoder), or to which a server did
        not answer, fails as given too, and asking again would make the application wait twice.
        """
        if isinstance(error, OSError) or type(error).__module__.startswith(_TRANSPORT):
            return False
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_name != "_query":
            trace = trace.tb_next
        self._failure = error
        return trace is not None


def _argument(
    args: tuple[Any, ...], kwargs: dict[str, Any], name: str, places: dict[str, int]
) -> Any:  # noqa: ANN401
    if name in kwargs:
        return kwargs[name]
    at = places.get(name, len(args))
    return args[at] if at < len(args) else None


# One observed call of ``Collection.search``, which hosted Chroma has: nothing is asked beside.


def observing_search(
    search: Callable[..., Any],
    recorders_of: Callable[[Any], Sequence[Recorder]],
    call: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Return a ``search`` method that is observed; arguments as of :func:`observing`.

    Tags come from the metadata that the application selects, or from a tag store.
    """
    inner = call or search

    @contextmanager
    def around(collection: Any, searches: Any) -> Iterator[list[Any]]:  # noqa: ANN401
        found: list[Any] = []
        with ExitStack() as stack:
            recorders = recorders_of(collection)
            first = [r for r in recorders if stack.enter_context(r.retrieval())]
            yield found
            for recorder in first:
                with guarded(recorder.dropped, "result could not be read"):
                    _record_search(recorder, collection, searches, found[0])

    if inspect.iscoroutinefunction(search):

        @wraps(search)
        async def method(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            with around(self, args[0] if args else kwargs.get("searches")) as found:
                found.append(await inner(self, *args, **kwargs))
            return found[0]

    else:

        @wraps(search)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            with around(self, args[0] if args else kwargs.get("searches")) as found:
                found.append(inner(self, *args, **kwargs))
            return found[0]

    return method


def _record_search(recorder: Recorder, collection: Any, searches: Any, result: Any) -> None:  # noqa: ANN401
    """Record each search that ranks; one without a rank only filters."""
    asked = searches if isinstance(searches, list) else [searches]
    for index, (search, ids) in enumerate(zip(asked, result["ids"], strict=True)):
        if search.to_dict().get("rank"):
            metadata: Any = (result.get("metadatas") or [None] * len(asked))[index] or ()
            scores: Any = (result.get("scores") or [None] * len(asked))[index] or (None,)
            # Chroma ranks by distance, nearest first
            higher = None if None in scores else [-score for score in scores]
            labels = {"collection": collection.name}
            _record(recorder, Ranking(ids, metadata, higher), query=None, labels=labels)


def _record(
    recorder: Recorder, found: Ranking, *, query: str | None, labels: Mapping[str, str]
) -> None:
    doc_id = recorder.doc_id
    recorder.record(
        found.ids if doc_id is None else (doc_id(row) for row in found.rows()),
        metadata=found.metadata,
        scores=found.scores,
        query=query,
        labels=labels,
    )


# Observe the queries of a Chroma collection, of a client's collections, or of all of them.


_COLLECTIONS = (Collection, AsyncCollection)
_OPENERS = (
    "create_collection",
    "get_collection",
    "get_collection_by_id",
    "get_or_create_collection",
    "list_collections",
)
_OBSERVED = {"query": observing, "search": observing_search}
_patches = [
    Patch(
        kind,
        _OBSERVED.__contains__,
        lambda name, method, patch: _OBSERVED[name](method, lambda _: patch.observers),
    )
    for kind in _COLLECTIONS
]


def attach(obj: object, recorder: Recorder) -> Attachment | None:
    """Instrument a collection or a client in place, or all collections when given a name.

    ``query`` is observed, one event per query vector, and ``search``, one per search that ranks;
    ``get`` is no retrieval. A client stands for the collections obtained from it from now on.

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


def _collection_class(kind: Any) -> type:  # noqa: ANN401 - a class with these methods
    return _class_for(kind, *(getattr(kind, name, None) for name in _OBSERVED))


@cache  # by the methods too: another tool may replace them for a while
def _class_for(kind: Any, *methods: Callable[..., Any] | None) -> type:  # noqa: ANN401
    return subclass(
        kind,
        {
            name: observe(method, _recorders_on, call=_as_it_is_then(kind, name))
            for (name, observe), method in zip(_OBSERVED.items(), methods, strict=True)
            if method is not None
        },
    )


def _recorders_on(collection: Any) -> list[Recorder]:  # noqa: ANN401
    return [w.recorder for w in swapped_in(collection) if w.recorder is not None]


def _as_it_is_then(kind: Any, name: str) -> Callable[..., Any]:  # noqa: ANN401
    return lambda collection, *args, **kwargs: getattr(kind, name)(collection, *args, **kwargs)  # noqa: PLW0108


@cache
def _client_class(kind: type) -> type:
    return subclass(kind, {name: _opener(kind, name) for name in _OPENERS if hasattr(kind, name)})


def _opener(kind: type, name: str) -> Callable[..., Any]:
    """Return a method of a client that gives out observed collections."""
    inner = getattr(kind, name)

    if inspect.iscoroutinefunction(inner):

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
        swap_in(obj, make, self)
        self._watched[id(obj)] = obj

    def end(self) -> None:
        """Restore everything; twice does no harm."""
        self.recorder = None
        for obj in list(self._watched.values()):
            swap_out(obj, self)
        self._watched.clear()
