"""Observed Chroma collections for those who like a wrapper better, or all of them at once."""

from __future__ import annotations

from types import MethodType
from typing import Any

from rag_sourcebias.adapters import instrument
from rag_sourcebias.instrument import Attachment, Instrumentation, Recorder, RetrievalEvent
from rag_sourcebias.protocols import Observer
from rag_sourcebias_integrations.chroma.observe import observing

__all__ = ["InstrumentedCollection", "instrument_chroma"]


def instrument_chroma(
    observer: Observer[RetrievalEvent],
    **options: Any,  # noqa: ANN401 - those of instrument
) -> Instrumentation:
    """Observe every query of every collection in this process.

    The same as ``instrument("chroma", observer, **options)``, see
    :func:`rag_sourcebias.adapters.instrument`.
    """
    return instrument("chroma", observer, **options)


class InstrumentedCollection:
    """A collection whose ``query`` is observed; everything else is the collection's.

    The collection itself is left alone, but ``isinstance(x, chromadb.Collection)`` is False:
    where that matters use :func:`rag_sourcebias.adapters.instrument`, which works in place.

    Parameters
    ----------
    collection : chromadb.Collection or AsyncCollection
    observer : Observer of RetrievalEvent
    **options
        ``labels``, ``tags``, ``doc_id``, ``query_key``, ``queue`` of ``instrument``.

    Attributes
    ----------
    instrumentation : Instrumentation
        ``close()`` ends the observation, ``dropped`` counts what was lost.

    Raises
    ------
    DataError
        If the observer or an option is not one.
    """

    def __init__(
        self,
        collection: Any,  # noqa: ANN401
        observer: Observer[RetrievalEvent],
        **options: Any,  # noqa: ANN401
    ) -> None:
        recorder = Recorder(observer, **options)
        recorders = [recorder]
        query = collection.query
        method = observing(
            getattr(query, "__func__", query),
            lambda _: tuple(recorders),
            call=lambda inner, *args, **kwargs: inner.query(*args, **kwargs),
        )
        self._collection = collection
        self.query = MethodType(method, collection)
        self.instrumentation = Instrumentation(recorder, Attachment(self, recorders.clear))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name == "_collection":  # not there yet: while being copied
            raise AttributeError(name)
        return getattr(self._collection, name)

    def __repr__(self) -> str:
        return f"InstrumentedCollection({self._collection!r})"
