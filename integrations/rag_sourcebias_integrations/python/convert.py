"""From what a function returns to ids, metadata and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple
from uuid import UUID

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument import text_id

__all__ = ["SHAPES", "Documents", "read_documents"]

SHAPES = (
    "str ids, (document, score) pairs, or dicts or objects with id or doc_id; score and metadata "
    "where there are any"
)


class Documents(NamedTuple):
    """The documents of one result, best first."""

    ids: Sequence[str]
    metadata: Sequence[Mapping[str, object] | None]
    scores: Sequence[float] | None


def read_documents(rows: object, doc_id: Callable[[Any], str] | None = None) -> Documents:
    """Read a result.

    Parameters
    ----------
    rows : sequence
        Of one of the shapes of ``SHAPES``. A string with white space in it is taken for a text
        and named by its hash.
    doc_id : callable, optional
        From a document (without the score of a pair) to its id.

    Raises
    ------
    DataError
        If the rows have another shape.
    """
    if not isinstance(rows, Sequence) or isinstance(rows, (str, bytes)):
        raise DataError(f"expected a list of documents, got {type(rows).__name__}")
    documents: Sequence[Any] = rows
    scores: Sequence[Any] | None = None
    if rows and all(type(row) is tuple and len(row) == 2 and _is_number(row[1]) for row in rows):
        documents, scores = zip(*rows, strict=True)
    # By columns, and looking at types first: half the time of a loop over documents.
    dicts = set(map(type, documents)) == {dict}
    if doc_id is not None:
        ids = [doc_id(document) for document in documents]
    else:
        ids = _column(documents, "id", dicts=dicts)
        if set(map(type, ids)) != {str}:
            ids = [_id_of(*both) for both in zip(documents, ids, strict=True)]
    metadata = _column(documents, "metadata", dicts=dicts)
    if set(map(type, metadata)) != {dict}:  # the tags may stand beside the id
        pairs = zip(metadata, documents, strict=True)
        metadata = [_mapping(inner) or _mapping(document) for inner, document in pairs]
    if scores is None:
        scores = _column(documents, "score", dicts=dicts)
    numbers = set(map(type, scores)) == {float} or all(map(_is_number, scores))
    return Documents(ids, metadata, scores if numbers else None)


def _column(documents: Sequence[Any], name: str, *, dicts: bool) -> list[Any]:
    if dicts:
        return [document.get(name) for document in documents]
    return [_value(document, name) for document in documents]


def _value(document: object, name: str) -> Any:  # noqa: ANN401
    if isinstance(document, Mapping):
        return document.get(name)
    return getattr(document, name, None)


def _mapping(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, Mapping) else None


def _id_of(document: object, value: object) -> str:
    if isinstance(document, str):
        return text_id(document) if len(document.split(maxsplit=1)) > 1 else document
    if value is None:
        value = _value(document, "doc_id")
    if isinstance(value, (str, int, UUID)) and not isinstance(value, bool):
        return str(value)
    raise DataError(f"a document of type {type(document).__name__} has no id; expected {SHAPES}")


def _is_number(value: object) -> bool:
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
