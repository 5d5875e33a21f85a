"""How many documents one request may hold."""

from __future__ import annotations

from typing import Any

from rag_sourcebias.errors import DataError

__all__ = ["async_request_size", "request_size"]

_SMALLEST = 166  # the lowest limit that any release of Chroma had


def request_size(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    wanted: int | None,
) -> int:
    """Documents per request: what is wanted, or the most that the collection's client takes.

    Raises
    ------
    DataError
        If more is wanted than the client takes, or less than 1.
    """
    client = getattr(collection, "_client", None)
    return _checked(wanted, _SMALLEST if client is None else client.get_max_batch_size())


async def async_request_size(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    wanted: int | None,
) -> int:
    """:func:`request_size` for a collection of an asynchronous client."""
    client = getattr(collection, "_client", None)
    return _checked(wanted, _SMALLEST if client is None else await client.get_max_batch_size())


def _checked(wanted: int | None, most: int) -> int:
    if wanted is None:
        return most
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= most:
        raise DataError(
            f"batch_size {wanted!r} is not a whole number from 1 to {most}, the most that this "
            "Chroma client takes in one request"
        )
    return wanted
