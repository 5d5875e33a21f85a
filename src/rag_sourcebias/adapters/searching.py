"""Ask a retriever of any framework, and read ids off what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from rag_sourcebias.adapters.installed import CALLABLE, candidates, installed, roots, type_name
from rag_sourcebias.errors import DataError

__all__ = ["as_search", "document_id"]


def as_search(obj: object) -> Callable[[str], Iterable[Any]]:
    """Return what takes the text of a query to what an object retrieves, best first.

    Parameters
    ----------
    obj : object
        A LangChain retriever, chain or vector store, a LlamaIndex retriever, query engine or
        index, or a function. :func:`document_id` reads ids off what comes back.

    Raises
    ------
    DataError
        If no adapter can ask such an object; the message says what is accepted.
    MissingExtraError, UnsupportedVersionError
        If the framework is missing or too old.
    """
    found = installed()
    for entry in () if isinstance(obj, str) else candidates(obj, found):
        make = getattr(entry.load(), "search", None)
        made: Callable[[str], Iterable[Any]] | None = make(obj) if make is not None else None
        if made is not None:
            return made
    adapters = (entry.load() for entry in found)
    known = dict.fromkeys(getattr(adapter, "searches", "") for adapter in adapters)
    raise DataError(
        f"an object of type {type_name(obj)} cannot be asked; expected "
        f"{'; '.join(filter(None, known)) or 'nothing: no adapter is installed'}"
    )


def document_id(found: Any, *, key: str | None = None) -> str:  # noqa: ANN401
    """Return the id of a document as a retriever gave it out; an id as it is.

    Parameters
    ----------
    found : object
        A LangChain document, a LlamaIndex node, or what a function returns: an id, or a dict or
        an object with one.
    key : str, optional
        Where the id stands in the metadata; otherwise it is the framework's own.

    Raises
    ------
    DataError
        If there is none.
    """
    return found if isinstance(found, str) else str(_id_reader(roots(found))(found, key))


@lru_cache(maxsize=64)  # looking through the entry points takes longer than a search
def _id_reader(packages: tuple[str, ...]) -> Callable[[object, str | None], str]:
    by_name = {entry.name: entry for entry in installed()}
    for name in (*packages, CALLABLE):
        read = getattr(by_name[name].load(), "document_id", None) if name in by_name else None
        if read is not None:
            reader: Callable[[object, str | None], str] = read
            return reader
    raise DataError("nothing reads ids off documents: no adapter is installed")
