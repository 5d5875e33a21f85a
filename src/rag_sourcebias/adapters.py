"""Find the adapters that are installed, through entry points; imports no framework itself."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import RetrieverSpec

__all__ = ["RETRIEVER_GROUP", "retriever_factory"]

RETRIEVER_GROUP = "rag_sourcebias.retrievers"
_BUILT_IN = ("bm25", "dense")


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
    found = entry_points(group=RETRIEVER_GROUP)
    for entry in found:
        if entry.name == kind:
            factory: Callable[..., RetrieverSpec] = entry.load()
            return factory
    known = sorted({*_BUILT_IN, *(entry.name for entry in found)})
    raise DataError(f"retriever kind {kind!r} is unknown; there are {', '.join(known)}")
