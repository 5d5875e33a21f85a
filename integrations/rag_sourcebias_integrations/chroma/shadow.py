"""A second collection that is filled to equal a first one, under another encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
from rag_sourcebias_integrations.chroma.layout import embedded_text

__all__ = ["fill_shadow", "open_shadow", "verify_shadow"]

_CONTENT = ["documents", "metadatas", "uris"]
_SAMPLE = 16
_CLOSE = 1e-2  # distance of unit vectors; another batch rounds differently, most at bfloat16


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
    function: EncoderEmbeddingFunction,
    *,
    size: int,
    on_progress: Callable[[int], None] | None,
) -> None:
    """Embed what the shadow lacks, and take out what the original does not hold any more.

    Raises
    ------
    DataError
        If documents have no stored text; lists their ids.
    """
    done = 0
    for page in _pages(collection, size):
        _require_texts(page)
        there = _by_id(shadow.get(ids=page["ids"], include=_CONTENT))
        rows = _by_id(page)
        stale = [doc_id for doc_id, row in rows.items() if there.get(doc_id, row) != row]
        if stale:  # changed since an interrupted run; an upsert would merge the metadata
            shadow.delete(ids=stale)
        todo = [doc_id for doc_id in rows if doc_id not in there or doc_id in set(stale)]
        if todo:
            texts = [embedded_text(i, str(rows[i][0]), rows[i][1] or {}) for i in todo]
            uris = [rows[i][2] for i in todo]
            shadow.add(
                ids=todo,
                embeddings=np.stack(function(texts)),
                documents=[rows[i][0] for i in todo],
                metadatas=[rows[i][1] for i in todo],
                uris=uris if all(uris) else None,
            )
        done += len(rows)
        if on_progress is not None:
            on_progress(done)
    if shadow.count() > collection.count():
        _delete_strays(collection, shadow, size=size)


def verify_shadow(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    shadow: Any,  # noqa: ANN401 - a chromadb collection
    function: EncoderEmbeddingFunction,
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
    for page in _pages(collection, size):
        rows, others = _by_id(page), _by_id(shadow.get(ids=page["ids"], include=_CONTENT))
        differ = [doc_id for doc_id, row in rows.items() if others.get(doc_id) != row]
        if differ:
            raise _changed(collection, f"{len(differ)} documents differ, among them {differ[:5]}")
        if n == 0:
            _verify_vectors(shadow, function, rows)
        n += len(rows)
    if shadow.count() != n:
        raise _changed(collection, f"the copy holds {shadow.count()} documents, expected {n}")
    return n


def _delete_strays(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    shadow: Any,  # noqa: ANN401 - a chromadb collection
    *,
    size: int,
) -> None:
    gone: list[str] = []
    for page in _pages(shadow, size, include=[]):
        kept = set(collection.get(ids=page["ids"], include=[])["ids"])
        gone += [doc_id for doc_id in page["ids"] if doc_id not in kept]
    for start in range(0, len(gone), size):
        shadow.delete(ids=gone[start : start + size])


def _verify_vectors(
    shadow: Any,  # noqa: ANN401 - a chromadb collection
    function: EncoderEmbeddingFunction,
    rows: Mapping[str, tuple[Any, ...]],
) -> None:
    ids = list(rows)[:: max(len(rows) // _SAMPLE, 1)][:_SAMPLE]
    found = shadow.get(ids=ids, include=["embeddings"])
    stored = dict(zip(found["ids"], found["embeddings"], strict=True))
    again = function([embedded_text(i, str(rows[i][0]), rows[i][1] or {}) for i in ids])
    for doc_id, vector in zip(ids, again, strict=True):
        other = np.asarray(stored[doc_id], dtype=np.float64)
        scale = max(float(np.linalg.norm(vector)), float(np.linalg.norm(other)))
        if float(np.linalg.norm(vector - other)) > _CLOSE * scale:
            raise DataError(
                f"document {doc_id!r} is encoded to another vector than the copy holds; does the "
                f"encoder {function.encoder.name!r} give the same vector twice? Delete the "
                f"collection {shadow.name!r} to start again"
            )


def _pages(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    size: int,
    *,
    include: list[str] | None = None,
) -> Iterator[Mapping[str, Any]]:
    offset = 0
    while True:
        page = collection.get(
            limit=size, offset=offset, include=_CONTENT if include is None else include
        )
        if not page["ids"]:
            return
        offset += len(page["ids"])
        yield page


def _by_id(page: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    blank = [None] * len(page["ids"])
    columns = [page.get(name) or blank for name in _CONTENT]
    return dict(zip(page["ids"], zip(*columns, strict=True), strict=True))


def _require_texts(page: Mapping[str, Any]) -> None:
    without = [
        doc_id for doc_id, text in zip(page["ids"], page["documents"], strict=True) if text is None
    ]
    if without:
        raise DataError(
            f"{len(without)} documents have no stored text to encode, among them {without[:10]}; "
            "add their texts, or delete them, first"
        )


def _changed(collection: Any, what: str) -> DataError:  # noqa: ANN401
    return DataError(
        f"collection {collection.name!r} changed while it was copied ({what}); run "
        "migrate_encoder again, it goes on where it was"
    )
