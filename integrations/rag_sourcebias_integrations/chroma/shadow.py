"""A second collection that is filled to equal a first one, under another encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
from rag_sourcebias_integrations.chroma.vectors import (
    CLOSE,
    VectorSource,
    far_apart,
    texts_of,
)

__all__ = ["fill_shadow", "open_shadow", "pages", "sample_of", "verify_shadow"]

_CONTENT = ["documents", "metadatas", "uris"]
_SAMPLE = 16


def open_shadow(
    client: Any,  # noqa: ANN401 - a chromadb client
    collection: Any,  # noqa: ANN401 - a chromadb collection
    name: str,
    function: EncoderEmbeddingFunction,
) -> Any:  # noqa: ANN401 - a chromadb collection
    """Return the shadow, made with the index settings and metadata of the original.

    One that an interrupted run left is gone on with.
    """
    configuration = collection.configuration_json or {}
    index = {kind: configuration[kind] for kind in ("hnsw", "spann") if configuration.get(kind)}
    return client.get_or_create_collection(
        name,
        embedding_function=function,
        configuration=index or None,
        metadata=collection.metadata or None,
    )


def fill_shadow(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    shadow: Any,  # noqa: ANN401 - a chromadb collection
    source: VectorSource,
    *,
    size: int,
    on_progress: Callable[[int], None] | None,
) -> None:
    """Add what the shadow lacks, and take out what the original does not hold any more.

    Raises
    ------
    DataError
        If documents have no text, or vector, to make the new vector of; lists their ids.
    """
    done = 0
    fields = [*_CONTENT, *source.reads]
    for page in pages(collection, size, include=fields):
        source.require(page)
        copied = shadow.get(ids=page["ids"], include=fields)
        rows, there = _by_id(page), _by_id(copied)
        stale = {doc_id for doc_id, row in rows.items() if there.get(doc_id, row) != row}
        stale.update(source.differ(page, copied))
        if stale:  # changed since an interrupted run; an upsert would merge the metadata
            shadow.delete(ids=[*stale])
        todo = [doc_id for doc_id in rows if doc_id not in there or doc_id in stale]
        for part in _alike(rows, todo):
            texts, metadata, uris = (
                list(column) for column in zip(*(rows[i] for i in part), strict=True)
            )
            shadow.add(
                ids=part,
                embeddings=source.vectors(page, part),
                documents=texts if texts[0] is not None else None,
                metadatas=metadata,
                uris=uris if uris[0] is not None else None,
            )
        done += len(rows)
        if on_progress is not None:
            on_progress(done)
    if shadow.count() > collection.count():
        _delete_strays(collection, shadow, size=size)


def _alike(rows: Mapping[str, tuple[Any, ...]], ids: Sequence[str]) -> list[list[str]]:
    """Documents in groups of which all or none have a text, and all or none a URI.

    Chroma takes no list with gaps.
    """
    groups: dict[tuple[bool, bool], list[str]] = {}
    for doc_id in ids:
        text, _, uri = rows[doc_id]
        groups.setdefault((text is None, uri is None), []).append(doc_id)
    return list(groups.values())


def verify_shadow(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    shadow: Any,  # noqa: ANN401 - a chromadb collection
    source: VectorSource,
    *,
    size: int,
) -> int:
    """Compare ids, texts and metadata of both, and encode a sample again; return the count.

    Raises
    ------
    DataError
        Naming what differs.
    """
    n = 0
    fields = [*_CONTENT, *source.reads]
    for page in pages(collection, size, include=fields):
        copied = shadow.get(ids=page["ids"], include=fields)
        rows, others = _by_id(page), _by_id(copied)
        differ = [doc_id for doc_id, row in rows.items() if others.get(doc_id) != row]
        differ = differ or source.differ(page, copied)
        if differ:
            raise _changed(collection, f"{len(differ)} documents differ, among them {differ[:5]}")
        _verify_sample(shadow, source.function, page)
        n += len(rows)
    if shadow.count() != n:
        raise _changed(collection, f"the copy holds {shadow.count()} documents, expected {n}")
    return n


def sample_of(page: Mapping[str, Any]) -> list[str]:
    """Ids of a few documents that have a text, spread over a page."""
    texts = page["documents"] or [None] * len(page["ids"])
    ids = [i for i, text in zip(page["ids"], texts, strict=True) if text is not None]
    return ids[:: max(len(ids) // _SAMPLE, 1)][:_SAMPLE]


def _verify_sample(
    shadow: Any,  # noqa: ANN401 - a chromadb collection
    function: EncoderEmbeddingFunction,
    page: Mapping[str, Any],
) -> None:
    ids = sample_of(page)
    if not ids:
        return
    found = shadow.get(ids=ids, include=["embeddings"])
    stored = dict(zip(found["ids"], found["embeddings"], strict=True))
    again = np.stack(function(texts_of(page, ids)))
    wrong = far_apart(again, np.asarray([stored[i] for i in ids]), CLOSE)
    if wrong.any():
        raise DataError(
            f"document {ids[int(wrong.argmax())]!r} is encoded to another vector than the copy "
            f"holds; does the encoder {function.encoder.name!r} give the same vector twice? Delete "
            f"the collection {shadow.name!r} to start again"
        )


def _delete_strays(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    shadow: Any,  # noqa: ANN401 - a chromadb collection
    *,
    size: int,
) -> None:
    gone: list[str] = []
    for page in pages(shadow, size, include=[]):
        kept = set(collection.get(ids=page["ids"], include=[])["ids"])
        gone += [doc_id for doc_id in page["ids"] if doc_id not in kept]
    for start in range(0, len(gone), size):
        shadow.delete(ids=gone[start : start + size])


def pages(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    size: int,
    *,
    include: list[str],
) -> Iterator[Mapping[str, Any]]:
    """Read a collection page by page."""
    offset = 0
    while True:
        page = collection.get(limit=size, offset=offset, include=include)
        if not page["ids"]:
            return
        offset += len(page["ids"])
        yield page


def _by_id(page: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    blank = [None] * len(page["ids"])
    columns = [page.get(name) or blank for name in _CONTENT]
    columns[1] = [metadata or None for metadata in columns[1]]  # Chroma takes no empty ones
    return dict(zip(page["ids"], zip(*columns, strict=True), strict=True))


def _changed(collection: Any, what: str) -> DataError:  # noqa: ANN401
    return DataError(
        f"collection {collection.name!r} changed while it was copied ({what}); run "
        "the migration again, it goes on where it was"
    )
