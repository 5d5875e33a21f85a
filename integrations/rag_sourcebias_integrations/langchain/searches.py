"""A vector store whose searches are observed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from rag_sourcebias.instrument import Recorder, guarded
from rag_sourcebias_integrations.langchain.convert import documents_in, record_documents
from rag_sourcebias_integrations.langchain.scores import note_search, searching
from rag_sourcebias_integrations.langchain.subclass import Layer, is_observed, observed_class

__all__ = ["store_members", "view_of"]

_SEARCHES = ("similarity_search", "max_marginal_relevance_search", "hybrid_search")


def store_members(layer: Layer) -> Mapping[str, Any]:
    """Return a store's search methods, each observed."""
    members: dict[str, Any] = {}
    for name in dir(layer.original):
        base = name.removeprefix("a")
        if base == "search" or base.startswith(_SEARCHES):
            method = inspect.getattr_static(layer.original, name)
            if inspect.isfunction(method):
                members[name] = _observed(layer, name)
    return members


def view_of(store: Any, *recorders: Recorder) -> Any | None:  # noqa: ANN401
    """Return a second face of a store, over the same attributes, whose searches are observed.

    The store itself is not touched. None for a store that keeps attributes in slots.
    """
    if is_observed(store) and not recorders:
        return store  # as it is, its searches give their scores
    kind = type(store)
    if not hasattr(store, "__dict__") or any(vars(base).get("__slots__") for base in kind.__mro__):
        return None

    def members(layer: Layer) -> Mapping[str, Any]:
        # a store that closes its client when it is collected must not do so with its view
        ending = {"__del__": lambda _: None} if hasattr(kind, "__del__") else {}
        return {**store_members(layer), **ending}

    view: Any = object.__new__(observed_class(Layer(kind, *recorders), members))
    view.__dict__ = store.__dict__
    return view


def _observed(layer: Layer, name: str) -> Any:  # noqa: ANN401
    method: Any = getattr(layer.original, name)

    @functools.wraps(method)
    def search(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with _search(self, layer.observers, _query(args, kwargs)) as found:
            result = method(self, *args, **kwargs)
            note_search(self, name, result)
            found.append(result)
        return result

    @functools.wraps(method)
    async def asearch(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with _search(self, layer.observers, _query(args, kwargs)) as found:
            result = await method(self, *args, **kwargs)
            note_search(self, name, result)
            found.append(result)
        return result

    return asearch if inspect.iscoroutinefunction(method) else search


@contextmanager
def _search(store: Any, recorders: Sequence[Recorder], query: str | None) -> Iterator[list[Any]]:  # noqa: ANN401
    """Stand around one search; record what was put into the list, if it is the outermost."""
    found: list[Any] = []
    with searching() as scores, ExitStack() as stack:
        first = [recorder for recorder in recorders if stack.enter_context(recorder.retrieval())]
        yield found
        for recorder in first:
            with guarded(recorder.dropped, "result could not be read"):
                documents = documents_in(found[0])
                record_documents(
                    recorder,
                    documents,
                    scores=scores.of(documents, recorder.dropped),
                    query=query,
                    labels=recorder.labels_beside({"store": store.__class__.__name__}),
                )


def _query(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """Return the query where it is a text; it may be a vector."""
    query = args[0] if args else kwargs.get("query")
    return query if isinstance(query, str) else None
