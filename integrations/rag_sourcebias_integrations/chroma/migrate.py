"""Give a Chroma collection another encoder, without a moment in which it cannot be queried."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
from rag_sourcebias_integrations.chroma.limits import request_size
from rag_sourcebias_integrations.chroma.migration import BEFORE, Migration
from rag_sourcebias_integrations.chroma.shadow import fill_shadow, open_shadow, verify_shadow
from rag_sourcebias_integrations.chroma.vectors import EncodedVectors, VectorSource

__all__ = ["as_function", "copy_collection", "migrate_encoder", "restore_collection"]

_BATCH = 256  # encoding takes most of the time, so a small batch loses little when it is killed


def migrate_encoder(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    encoder: str | Path | Encoder | EncoderEmbeddingFunction,
    *,
    client: Any,  # noqa: ANN401 - a chromadb client
    batch_size: int | None = None,
    keep_old: bool = True,
    on_progress: Callable[[int], None] | None = None,
) -> Migration:
    """Encode a collection's documents again, into a copy beside it, and verify the copy.

    Chroma cannot change the encoder of a collection. The copy is named
    ``<name>--rsb-<8 digits of the encoder's fingerprint>``; it has the same ids, texts, metadata
    and index settings. Nothing changes for applications until :meth:`Migration.switch`. A run that
    was killed goes on where it was. What LlamaIndex stored is embedded as LlamaIndex embeds it,
    with the metadata that is not excluded.

    Parameters
    ----------
    collection : chromadb.Collection
        Of a synchronous client.
    encoder : str, Path, Encoder or EncoderEmbeddingFunction
        As :class:`EncoderEmbeddingFunction` takes it.
    client : chromadb client
        The client of the collection.
    batch_size : int, optional
        Documents per request; 256, or fewer where the client takes fewer, by default.
    keep_old : bool
        Whether the original is kept, under another name, after the switch.
    on_progress : callable, optional
        Told how many documents are done.

    Raises
    ------
    DataError
        If documents have no stored text (their ids are listed), the collection is written to
        meanwhile, or the encoder does not give the same vector twice.
    """
    source = EncodedVectors(as_function(encoder))
    most = request_size(collection, None)
    return copy_collection(
        collection,
        source,
        client=client,
        size=min(_BATCH, most) if batch_size is None else request_size(collection, batch_size),
        verify_size=most,
        keep_old=keep_old,
        on_progress=on_progress,
    )


def as_function(
    encoder: str | Path | Encoder | EncoderEmbeddingFunction,
) -> EncoderEmbeddingFunction:
    """Return the encoder as Chroma takes it."""
    if isinstance(encoder, EncoderEmbeddingFunction):
        return encoder
    return EncoderEmbeddingFunction(encoder)


def copy_collection(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    source: VectorSource,
    *,
    client: Any,  # noqa: ANN401 - a chromadb client
    size: int,
    verify_size: int,
    keep_old: bool,
    on_progress: Callable[[int], None] | None,
) -> Migration:
    """Fill a copy beside a collection, or go on with one, and verify it."""
    mark = blake2b(source.function.encoder.fingerprint.encode(), digest_size=4).hexdigest()
    shadow = open_shadow(client, collection, f"{collection.name}--rsb-{mark}", source.function)
    fill_shadow(collection, shadow, source, size=size, on_progress=on_progress)
    return Migration(
        client=client,
        name=collection.name,
        old=collection,
        new=shadow,
        n_documents=verify_shadow(collection, shadow, source, size=verify_size),
        keep_old=keep_old,
    )


def restore_collection(client: Any, name: str) -> Any:  # noqa: ANN401 - chromadb client and collection
    """Give a collection its name again after a switch that was killed between its two renames.

    Returns
    -------
    chromadb.Collection
        The original; as it is where the name is not missing.

    Raises
    ------
    DataError
        If the name is missing and there is no original to restore, or more than one.
    """
    found = {collection.name: collection for collection in client.list_collections()}
    if name in found:
        return found[name]
    kept = sorted(other for other in found if other.startswith(name + BEFORE))
    if len(kept) != 1:
        raise DataError(
            f"collection {name!r} is missing and {len(kept)} collections are named "
            f"{name + BEFORE!r}…, expected one; there are {sorted(found)}"
        )
    original = found[kept[0]]
    original.modify(name=name)
    return original
