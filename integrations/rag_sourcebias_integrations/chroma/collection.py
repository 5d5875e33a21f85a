"""Fill a collection with a corpus, or go on with one that was left half filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types import Corpus
from rag_sourcebias_integrations._require import require

__all__ = ["collection_name", "fill_collection", "stored_ids"]

_PAGE = 5_000


def collection_name(prefix: str, corpus: Corpus, identity: Sequence[str]) -> str:
    """Name of the collection for these texts, this encoder and these index settings.

    Another text, id, model or setting gives another name, so a collection is never reused for
    something else.
    """
    digest = blake2b(digest_size=12)
    for part in (*identity, *(item for pair in corpus for item in pair)):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return f"{prefix}-{digest.hexdigest()}"


def stored_ids(collection: Any) -> set[str]:  # noqa: ANN401 - a chromadb collection
    """All ids of a collection, read page by page."""
    found: set[str] = set()
    for offset in range(0, collection.count(), _PAGE):
        found.update(collection.get(limit=_PAGE, offset=offset, include=[])["ids"])
    return found


def fill_collection(
    client: Any,  # noqa: ANN401 - a chromadb client
    name: str,
    *,
    doc_ids: Sequence[str],
    vectors: npt.NDArray[np.float32],
    space: str,
    hnsw: Mapping[str, int],
) -> Any:  # noqa: ANN401 - a chromadb collection
    """Return a collection that holds exactly these vectors; only missing ones are added.

    Ids and vectors are stored, texts and tags are not.

    Raises
    ------
    DataError
        If Chroma refuses the name or a setting, or the collection holds other documents too.
    """
    chromadb = require("chromadb", package="chromadb", extra="chroma", feature="Chroma")
    try:
        collection = client.get_or_create_collection(
            name, embedding_function=None, configuration={"hnsw": {"space": space, **hnsw}}
        )
    except (ValueError, TypeError, chromadb.errors.ChromaError) as error:
        raise DataError(
            f"Chroma refused collection {name!r} with index settings {dict(hnsw)}: {error}"
        ) from error
    there = stored_ids(collection)
    missing = [row for row, doc_id in enumerate(doc_ids) if doc_id not in there]
    size = client.get_max_batch_size()
    for start in range(0, len(missing), size):
        part = missing[start : start + size]
        collection.add(ids=[doc_ids[row] for row in part], embeddings=vectors[part])
    if collection.count() != len(doc_ids):
        raise DataError(
            f"Chroma collection {name!r} holds {collection.count()} documents, expected "
            f"{len(doc_ids)}; delete it and run again"
        )
    return collection
