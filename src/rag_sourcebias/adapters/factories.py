"""Retrievers, engines and metrics that installed packages offer."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.protocols import Engine, RetrieverSpec

__all__ = [
    "ENGINE_GROUP",
    "METRICS_GROUP",
    "RETRIEVER_GROUP",
    "engine_factory",
    "metrics_factory",
    "retriever_factory",
]

ENGINE_GROUP = "rag_sourcebias.engines"
METRICS_GROUP = "rag_sourcebias.metrics"
RETRIEVER_GROUP = "rag_sourcebias.retrievers"


def retriever_factory(kind: str) -> Callable[..., RetrieverSpec]:
    """Return the factory registered for a kind of retriever.

    A factory is called with an encoder and string options and returns a ``RetrieverSpec``. A
    package offers one by an entry point in the group ``rag_sourcebias.retrievers``.

    Raises
    ------
    DataError
        If no installed package offers that kind.
    MissingExtraError
        If the adapter's framework is not installed.
    """
    factory: Callable[..., RetrieverSpec] = _offered(
        RETRIEVER_GROUP, "retriever kind", kind, built_in=("bm25", "dense")
    )
    return factory


def engine_factory(kind: str) -> Callable[..., Engine]:
    """Return the factory registered for a kind of engine, such as "ray".

    It is called with ``workers`` (int or None) and ``address`` (str or None). A package offers one
    by an entry point in the group ``rag_sourcebias.engines``.

    Raises
    ------
    DataError
        If no installed package offers that kind.
    MissingExtraError
        If the engine's package is not installed.
    """
    factory: Callable[..., Engine] = _offered(ENGINE_GROUP, "engine", kind)
    return factory


def metrics_factory(kind: str) -> Callable[..., Any] | None:
    """Return what writes metrics of a kind, such as "prometheus"; None where it is not installed.

    It is called with ``snapshots`` (callable) and ``canary=`` (callable or None) and returns an
    object whose ``alarm(alarm)`` counts an alarm and whose ``text()`` returns the metrics as bytes.
    A package offers one by an entry point in the group ``rag_sourcebias.metrics``.
    """
    for entry in entry_points(group=METRICS_GROUP, name=kind):
        try:
            factory: Callable[..., Any] = entry.load()
        except MissingExtraError:
            return None
        return factory
    return None


def _offered(group: str, what: str, kind: str, *, built_in: tuple[str, ...] = ()) -> Any:  # noqa: ANN401
    found = entry_points(group=group)
    for entry in found:
        if entry.name == kind:
            return entry.load()
    known = sorted({*built_in, *(entry.name for entry in found)})
    raise DataError(f"{what} {kind!r} is unknown; there are {', '.join(known) or 'none'}")
