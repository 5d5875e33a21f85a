"""Observe the queries of a Chroma collection, of a client's collections, or of all of them."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple

from chromadb import Collection
from chromadb.api import AsyncClientAPI, ClientAPI
from chromadb.api.models.AsyncCollection import AsyncCollection

from rag_sourcebias.observe.events import guarded
from rag_sourcebias.observe.patching import Call, Patch
from rag_sourcebias.observe.recorder import Attachment, Recorder
from rag_sourcebias_integrations._recording import inside, recorded

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


# One observed call of ``Collection.query``: what is asked beside, and given back as asked.


_TRANSPORT = ("httpx", "httpcore")


def _observed_query(name: str, method: Callable[..., Any], patch: Patch) -> Call:  # noqa: ARG001
    places = {name: at for at, name in enumerate([*inspect.signature(method).parameters][1:])}
    around = _ask_async if inspect.iscoroutinefunction(method) else _ask

    def query(
        ask: Callable[..., Any],
        collection: Any,  # noqa: ANN401
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:  # noqa: ANN401
        for recorder in patch.observers_of(collection):
            ask = partial(around, recorder, partial(_Query, recorder, collection, places), ask)
        return ask(*args, **kwargs)

    return query


def _ask(
    recorder: Recorder,
    start: Callable[..., Any],
    ask: Callable[..., Any],
    /,
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    with recorder.retrieval() as first:
        if not first:
            return ask(*args, **kwargs)
        query = start(args, kwargs)
        if query.added:
            with query:
                result = ask(*query.args, **query.kwargs)
                if query.finish(result):
                    return result
        result = ask(*args, **kwargs)
        query.finish_as_given(result)
        return result


async def _ask_async(
    recorder: Recorder,
    start: Callable[..., Any],
    ask: Callable[..., Any],
    /,
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    with recorder.retrieval() as first:
        if not first:
            return await ask(*args, **kwargs)
        query = start(args, kwargs)
        if query.added:
            with query:
                result = await ask(*query.args, **query.kwargs)
                if query.finish(result):
                    return result
        result = await ask(*args, **kwargs)
        query.finish_as_given(result)
        return result


class _Query:
    """The arguments of one call, with the fields that are needed for tags and scores.

    Around a call with these it keeps back what may be due to them: the call is then made as given.
    """

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

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        # A call that failed before Chroma was asked (arguments, encoder), or to which a server did
        # not answer, fails as given too, and asking again would make the application wait twice.
        if not isinstance(error, Exception) or isinstance(error, OSError):
            return False
        if type(error).__module__.startswith(_TRANSPORT):
            return False
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


def _observed_search(name: str, method: Callable[..., Any], patch: Patch) -> Call:  # noqa: ARG001
    """Observe ``search``: tags come from the metadata that is selected, or from a tag store."""
    return recorded(method, patch.observers_of, _record_search)


def _record_search(
    recorder: Recorder,
    collection: Any,  # noqa: ANN401
    result: Any,  # noqa: ANN401
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    """Record each search that ranks; one without a rank only filters."""
    searches = args[0] if args else kwargs.get("searches")
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
_OBSERVED = {"query": _observed_query, "search": _observed_search}
_patches = {
    kind: Patch(
        kind,
        _OBSERVED.__contains__,
        lambda name, method, patch: _OBSERVED[name](name, method, patch),
    )
    for kind in _COLLECTIONS
}


def _observe(collection: object, recorder: Recorder) -> None:
    for kind, patch in _patches.items():
        if isinstance(collection, kind):
            patch.add(recorder, collection)


def _observed_opener(name: str, method: Callable[..., Any], patch: Patch) -> Call:  # noqa: ARG001
    """Observe what a client opens."""

    @contextmanager
    def taken(client: Any, _args: object, _kwargs: object) -> Iterator[list[Any]]:  # noqa: ANN401
        found: list[Any] = []
        yield found
        for recorder in patch.observers_of(client):
            with guarded(recorder.dropped, "collection could not be instrumented"):
                for one in found[0] if isinstance(found[0], list | tuple) else found:
                    _observe(one, recorder)

    return inside(method, taken)


_clients = Patch(ClientAPI, _OPENERS.__contains__, _observed_opener)


def attach(obj: object, recorder: Recorder) -> Attachment | None:
    """Instrument a collection or a client in place, or all collections when given a name.

    ``query`` is observed, one event per query vector, and ``search``, one per search that ranks;
    ``get`` is no retrieval. A client stands for the collections obtained from it from now on.

    Returns None for an object that is none of these.
    """
    if isinstance(obj, str):
        for patch in _patches.values():
            patch.add(recorder)
    elif isinstance(obj, _COLLECTIONS):
        _observe(obj, recorder)
    elif isinstance(obj, (ClientAPI, AsyncClientAPI)):
        _clients.add(recorder, obj)
    else:
        return None

    def detach() -> None:
        for patch in (_clients, *_patches.values()):
            patch.remove(recorder)

    return Attachment(obj, detach)
