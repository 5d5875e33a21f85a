"""LangChain documents to what a recorder takes; nothing is read before the recorder iterates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from langchain_core.documents import Document

from rag_sourcebias.instrument import text_id

__all__ = ["documents_in", "id_of", "ids_of", "metadata_of", "scores_in"]

_ID, _METADATA = attrgetter("id"), attrgetter("metadata")  # a generator costs twice as much
_TEXT = {str}


def id_of(document: Any) -> str:  # noqa: ANN401 - a Document
    """Return the id of a document; one without an id is known by its text."""
    found = document.id
    if found is None or found == "":
        return text_id(document.page_content)
    return found if isinstance(found, str) else str(found)


class ids_of:  # noqa: N801 - used as a function
    """Iterate over the id of each document, by the user's accessor where there is one."""

    __slots__ = ("_doc_id", "_documents")

    def __init__(
        self, documents: Iterable[Any], doc_id: Callable[[Any], object] | None = None
    ) -> None:
        self._documents = documents
        self._doc_id = doc_id

    def __iter__(self) -> Iterator[str]:
        if self._doc_id is not None:
            given = [self._doc_id(document) for document in self._documents]
            return iter([found if isinstance(found, str) else str(found) for found in given])
        found = list(map(_ID, self._documents))
        if all(found) and set(map(type, found)) == _TEXT:
            return iter(found)
        return iter([id_of(document) for document in self._documents])


class metadata_of:  # noqa: N801 - used as a function
    """Iterate over the metadata of each document."""

    __slots__ = ("_documents",)

    def __init__(self, documents: Iterable[Any]) -> None:
        self._documents = documents

    def __iter__(self) -> Iterator[Mapping[str, object]]:
        return map(_METADATA, self._documents)


def documents_in(found: Iterable[Any]) -> list[Any]:
    """Return the documents in what a search returned: documents, or tuples that begin with one."""
    return [item if isinstance(item, Document) else item[0] for item in found]


def scores_in(found: Iterable[Any]) -> list[float] | None:
    """Return the numbers beside the documents; None where there are none."""
    rows = list(found)
    if not all(isinstance(row, tuple) and len(row) == 2 for row in rows):
        return None
    numbers = [row[1] for row in rows]
    # numpy scalars are what FAISS returns; a vector beside the document has no float value
    if not all(isinstance(n, float | int) or getattr(n, "ndim", None) == 0 for n in numbers):
        return None
    return [float(number) for number in numbers]
