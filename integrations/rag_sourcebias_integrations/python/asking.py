"""Ask a function, and read the ids off what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias_integrations.python.convert import read_documents

__all__ = ["document_id", "search"]


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
