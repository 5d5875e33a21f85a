"""What functions and clients of stores return, as lists of documents with ids and scores."""

import contextlib
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.objects import a, name_of

# Values by name.


def at(value: Any, path: str) -> Any:  # noqa: ANN401
    """Return what stands at a path such as ``"payload.author"``; None where nothing does.

    Each name is a key of a mapping, the position in a list or tuple ("0"), an attribute, or what
    square brackets take.
    """
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(name)
        elif name.isdecimal() and isinstance(value, Sequence):
            value = value[int(name)] if int(name) < len(value) else None
        else:
            inner = getattr(value, name, None)
            if inner is None:
                with contextlib.suppress(TypeError, LookupError, ValueError, AttributeError):
                    inner = value[name]
            value = inner
    return value


def value_of(document: object, name: str) -> Any:  # noqa: ANN401
    """Return what a document holds under a name, None where it holds nothing."""
    return document.get(name) if isinstance(document, Mapping) else getattr(document, name, None)


def id_text(value: object, what: str = "an id") -> str:
    """Return an id as text.

    Raises
    ------
    DataError
        If it is no text, number or UUID, or empty.
    """
    name = name_of(value)
    if name is None or not name.strip():
        raise DataError(f"{what} is {a(value)}; expected a text, a number or a UUID")
    return name


def is_number(value: object) -> bool:
    """Whether a value can be a score."""
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


# The list of documents in what came back.


# Where clients put it, none of which is imported: Qdrant, Elasticsearch and OpenSearch, rows of
# pgvector and Haystack, Pinecone, Weaviate, Vespa, OpenAI, Bedrock, DSPy, tools of MCP.
_HITS = (
    "points", "hits.hits", "hits", "documents", "matches", "objects", "root.children", "data",
    "retrievalResults", "passages", "structuredContent.result",
)  # fmt: skip
_NONE_FOUND = -1  # what FAISS returns in place of a row where there are too few


def listed(result: Any) -> Any:  # noqa: ANN401
    """Return the list of documents in what a function or client returned; others as they are.

    Raises
    ------
    DataError
        If it has no order, or holds the results of several queries.
    """
    if isinstance(result, set | frozenset):
        raise DataError("a set has no order; return a list of documents, best first")
    if isinstance(result, np.ndarray):
        result = result.tolist()
    if type(result) is tuple and list(map(type, result)) == [np.ndarray, np.ndarray]:
        return _of_faiss(*result)
    if isinstance(result, list | tuple):
        if len(result) == 1 and isinstance(result[0], list) and not is_pair(result[0]):
            return result[0]  # of one query, as Milvus returns it
        padded = bool(result) and _is_none(result[-1])
        return [row for row in result if not _is_none(row)] if padded else result
    if isinstance(result, Mapping) and isinstance(result.get("ids"), list):
        return _of_chroma(result)
    for path in _HITS:
        hits = at(result, path)
        if not isinstance(hits, list) and not _is_attr_list(hits):
            continue
        # Chroma's "documents" are texts, which name nothing
        if path != "documents" or not any(isinstance(hit, str) for hit in hits):
            return list(hits)
    return list(result) if _is_attr_list(result) else result


def _is_attr_list(value: object) -> bool:
    """Whether a value is of the search objects of Elasticsearch and OpenSearch."""
    return type(value).__name__ == "AttrList"


def _is_none(row: object) -> bool:
    """Whether a row says that FAISS found too few, by its number."""
    return isinstance(row, int | np.integer) and row == _NONE_FOUND


def _of_faiss(distances: Any, rows: Any) -> list[tuple[int, float]]:  # noqa: ANN401
    """Return the rows of an index with what they are ranked by."""
    if distances.dtype.kind in "iu":
        distances, rows = rows, distances
    if rows.ndim == 2 and len(rows) == 1:
        distances, rows = distances[0], rows[0]
    if rows.ndim != 1 or rows.shape != distances.shape or rows.dtype.kind not in "iu":
        raise DataError(
            f"arrays of shape {distances.shape} and {rows.shape} are not the distances and rows of "
            "one query; return them for the query asked"
        )
    pairs = zip(rows.tolist(), distances.tolist(), strict=True)
    return [(row, distance) for row, distance in pairs if row != _NONE_FOUND]


def _of_chroma(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a collection of Chroma returned for one query."""
    keys = {"ids": "id", "documents": "text", "metadatas": "metadata", "distances": "distance"}
    columns = {name: result[key] for key, name in keys.items() if result.get(key)}
    if columns and isinstance(result["ids"][0], list):
        n = len(result["ids"])
        if n > 1:
            raise DataError(f"results of {n} queries at once; return those of the query asked")
        columns = {name: column[0] for name, column in columns.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# Rows of databases, and hits that are objects.


def row_of(document: Any) -> Any:  # noqa: ANN401
    """Return a row of a database or a hit of a search object as a mapping, others as they are."""
    kind = type(document)
    if issubclass(kind, Mapping):
        return document
    names = {base.__name__ for base in kind.__mro__} if hasattr(kind, "to_dict") else set()
    if names & {"Hit", "ObjectBase"}:  # of a search object; of a document class
        score = getattr(document.meta, "score", None)
        return {"_id": document.meta.id, "_score": score, "_source": document.to_dict()}
    if "AttrDict" in names:  # a hit as the server sent it
        return document.to_dict()
    if hasattr(kind, "_mapping"):  # of SQLAlchemy
        return document._mapping
    if hasattr(kind, "_asdict"):
        return document._asdict()
    keyed = hasattr(kind, "keys") and hasattr(kind, "__getitem__")  # of asyncpg, sqlite3
    return dict(document) if keyed else document


def is_pair(row: Any) -> bool:  # noqa: ANN401
    """Whether a row is a document with its score, a list where it comes from JSON."""
    return type(row) in (tuple, list) and len(row) == 2 and is_number(row[1])


# Ids and scores of documents of any kind.


_IDS = (
    "id", "doc_id", "_id", "node_id", "langchain_id", "uuid", "file_id", "key", "docid", "docno",
    "pid",
)  # fmt: skip
_SCORES = ("score", "_score", "@search.score", "relevance", "distance", "_distance")
_DISTANCES = ("distance", "_distance")


def id_in(document: object) -> Any:  # noqa: ANN401
    """Return the id that a document holds, of whatever type; None where it holds none."""
    for name in _IDS:
        found = value_of(document, name)
        if found is not None:
            return found
    places = value_of(document, "location")  # of Bedrock: its kind, and a mapping with an address
    inner = places.values() if isinstance(places, Mapping) else ()
    addresses = (at(place, name) for place in inner for name in ("uri", "url"))
    return next((found for found in addresses if isinstance(found, str)), None)


def scores_in(documents: Sequence[Any]) -> Sequence[Any]:
    """Return the score of each document; distances of several are turned round."""
    places = documents
    if value_of(documents[0], "score") is None and value_of(documents[0], "properties") is not None:
        places = [value_of(document, "metadata") for document in documents]  # of Weaviate
    held = (name for name in _SCORES if value_of(places[0], name) is not None)
    name = next(held, "score")
    scores = [value_of(place, name) for place in places]
    if not all(map(is_number, scores)) or scores == sorted(scores, reverse=True):
        return scores
    # Qdrant's scores are distances where its metric is Euclid or Manhattan; what Milvus calls a
    # distance is a similarity where its metric is the cosine
    rising = hasattr(documents[0], "payload") and scores == sorted(scores)
    return [-score for score in scores] if rising or name in _DISTANCES else scores
