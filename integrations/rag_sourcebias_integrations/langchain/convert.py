"""LangChain documents to what a recorder takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from langchain_core.documents import Document

from rag_sourcebias.instrument import Recorder, text_id
from rag_sourcebias.instrument.events import CheckedLabels

__all__ = ["documents_in", "id_of", "ids_of", "metadata_of", "record_documents", "scores_in"]

_ID, _METADATA = attrgetter("id"), attrgetter("metadata")  # a generator costs twice as much


def id_of(document: Any) -> str:  # noqa: ANN401 - a Document
    """Return the id of a document; one without an id is known by its text."""
    found = document.id
    if found is None or found == "":
        return text_id(document.page_content)
    return found if isinstance(found, str) else str(found)


def ids_of(
    documents: Sequence[Any], doc_id: Callable[[Any], object] | None = None
) -> Sequence[str]:
    """Return the id of each document, by the user's accessor where there is one."""
    if doc_id is not None:
        given = [doc_id(document) for document in documents]
        return [found if isinstance(found, str) else str(found) for found in given]
    ids = tuple(map(_ID, documents))
    if ids.count(None) == len(ids):  # many stores give none
        return [text_id(document.page_content) for document in documents]
    try:
        "".join(ids)  # only texts can be joined: asking each for its type takes three times as long
    except TypeError:
        return [id_of(document) for document in documents]
    return ids if all(ids) else [id_of(document) for document in documents]


def metadata_of(documents: Iterable[Any]) -> Iterator[Mapping[str, object]]:
    """Iterate over the metadata of each document."""
    return map(_METADATA, documents)


def record_documents(
    recorder: Recorder,
    documents: Sequence[Any],
    *,
    query: str | None,
    labels: CheckedLabels,
    scores: Iterable[float] | None = None,
) -> None:
    """Record what was retrieved, best first; never raises."""
    try:
        recorder.record(
            ids_of(documents, recorder.doc_id),
            metadata=map(_METADATA, documents),
            scores=scores,
            query=query,
            labels=labels,
        )
    except Exception as error:  # noqa: BLE001 - as guarded, which costs more on this hot path
        recorder.dropped.add("result could not be read", error=error)


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
