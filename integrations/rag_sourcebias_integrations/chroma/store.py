"""A Chroma collection as a store of documents whose tags are read and written in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.result import TagResult
from rag_sourcebias.tagging.taggers import Tagger
from rag_sourcebias.types import DocTags
from rag_sourcebias_integrations.chroma.client import open_client, shown
from rag_sourcebias_integrations.chroma.ledger import is_bookkeeping
from rag_sourcebias_integrations.chroma.limits import request_size
from rag_sourcebias_integrations.chroma.metadata import read_tags
from rag_sourcebias_integrations.chroma.tagging import tag_collection

__all__ = ["ChromaStore", "open_store", "open_stored"]

_DATABASE = "chroma.sqlite3"


class ChromaStore:
    """One collection as a :class:`~rag_sourcebias.tagging.document_store.DocumentStore`.

    Parameters
    ----------
    collection : chromadb.Collection
        Of a synchronous client.
    """

    def __init__(self, collection: Any) -> None:  # noqa: ANN401 - a chromadb collection
        self.collection = collection
        self.name = f"chroma:{collection.name}"

    def __len__(self) -> int:
        return int(self.collection.count())

    def documents(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        """Id, text (``""`` where none is stored) and metadata, in the order of the collection."""
        for page in self._pages("documents", "metadatas"):
            rows = zip(page["ids"], page["documents"], page["metadatas"], strict=True)
            yield from ((doc_id, text or "", metadata or {}) for doc_id, text, metadata in rows)

    def tags(self) -> Iterator[tuple[str, DocTags]]:
        """Id and stored tags of every document."""
        for page in self._pages("metadatas"):
            for doc_id, metadata in zip(page["ids"], page["metadatas"], strict=True):
                yield doc_id, read_tags(doc_id, metadata or {})

    def tag(
        self,
        taggers: Sequence[Tagger],
        *,
        dry_run: bool = False,
        overwrite: bool = False,
        backup: str | Path | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> TagResult:
        """Write the tags of every document; see :func:`tag_collection`."""
        return tag_collection(
            self.collection,
            taggers,
            dry_run=dry_run,
            overwrite=overwrite,
            backup=backup,
            on_progress=on_progress,
        )

    def _pages(self, *include: str) -> Iterator[Mapping[str, Any]]:
        size, offset = request_size(self.collection, None), 0
        while True:
            page = self.collection.get(limit=size, offset=offset, include=list(include))
            if not page["ids"]:
                return
            offset += len(page["ids"])
            yield page


def open_store(place: str, collection: str | None = None) -> ChromaStore:
    """Open a collection that is there; nothing is created.

    Parameters
    ----------
    place : str
        Folder of a Chroma database, or the ``http(s)://host:port`` URL of a server.
    collection : str, optional
        Its name; needed where there are several.

    Raises
    ------
    DataError
        If there is no such database, server or collection, or there are several and none is named.
    MissingExtraError
        If chromadb is not installed.
    """
    client = open_stored(place)
    names = sorted(
        found.name
        for found in client.list_collections()
        if found.name == collection or not is_bookkeeping(found.name)
    )
    if not names:
        raise DataError(f"Chroma store {shown(place)!r} has no collection")
    if collection is None and len(names) > 1:
        raise DataError(
            f"Chroma store {shown(place)!r} has {len(names)} collections, name one of them: "
            + ", ".join(names)
        )
    name = names[0] if collection is None else collection
    if name not in names:
        raise DataError(
            f"Chroma store {shown(place)!r} has no collection {name!r}; there are "
            + ", ".join(names)
        )
    # Tagging embeds nothing, so a collection whose embedding function is not installed will do.
    return ChromaStore(client.get_collection(name, embedding_function=None))


def open_stored(place: str) -> Any:  # noqa: ANN401 - a chromadb client
    """Open a database that is there, or a server.

    Raises
    ------
    DataError
        If there is none.
    """
    if not str(place).startswith(("http://", "https://")):
        folder = Path(place)
        if not (folder / _DATABASE).is_file():
            what = f"holds no {_DATABASE}" if folder.is_dir() else "is not a folder"
            raise DataError(
                f"Chroma store {shown(place)!r} {what}; expected the folder of a Chroma database, "
                "or the http:// URL of a server"
            )
    try:
        return open_client(place)
    except DataError:
        raise
    except ValueError as error:  # Chroma opens a folder once per process, with one set of settings
        raise DataError(
            f"Chroma store {shown(place)!r} cannot be opened ({error!s:.200}); if this process has "
            "it open already, use ChromaStore(collection) or tag_collection(collection, …)"
        ) from error
