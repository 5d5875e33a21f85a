"""Open a store of documents by its address, ``KIND:PLACE``."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.corpus_store import CorpusStore
from rag_sourcebias.tagging.document_store import DocumentStore

__all__ = ["STORE_GROUP", "open_document_store"]

STORE_GROUP = "rag_sourcebias.stores"
_CORPUS = "corpus"


def open_document_store(spec: str, *, collection: str | None = None) -> DocumentStore:
    """Open the store that an address names.

    Parameters
    ----------
    spec : str
        ``corpus:PLACE`` is a BEIR folder or a file of JSON lines, only read. Any other kind comes
        from an installed package: an entry point of that name in the group
        ``rag_sourcebias.stores``, a callable ``(place, collection)`` that opens the store.
    collection : str, optional
        Name of the collection, where a store holds several.

    Raises
    ------
    DataError
        If the address has no kind or no place, no installed package offers the kind, or the store
        cannot be opened.
    MissingExtraError
        If the package of the store is not installed.
    """
    openers = {entry.name: entry for entry in entry_points(group=STORE_GROUP)}
    kind, colon, place = spec.partition(":")
    known = ", ".join(sorted({_CORPUS, *openers}))
    if not colon or not place.strip():
        raise DataError(f"store {spec!r} is not KIND:PLACE, such as chroma:./db; kinds are {known}")
    if kind == _CORPUS:
        if collection is not None:
            raise DataError(f"store {spec!r} has no collections; leave {collection!r} out")
        return CorpusStore(place)
    if kind not in openers:
        raise DataError(f"store kind {kind!r} in {spec!r} is unknown; there are {known}")
    opener: Callable[[str, str | None], DocumentStore] = openers[kind].load()
    return opener(place, collection)
