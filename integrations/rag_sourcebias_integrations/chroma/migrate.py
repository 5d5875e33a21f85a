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

__all__ = ["migrate_encoder", "restore_collection"]

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
    function = (
        encoder
        if isinstance(encoder, EncoderEmbeddingFunction)
        else EncoderEmbeddingFunction(encoder)
    )
    most = request_size(collection, None)
    size = min(_BATCH, most) if batch_size is None else request_size(collection, batch_size)
    mark = blake2b(function.encoder.fingerprint.encode(), digest_size=4).hexdigest()
    shadow = open_shadow(client, collection, f"{collection.name}--rsb-{mark}", function)
    fill_shadow(collection, shadow, function, size=size, on_progress=on_progress)
    return Migration(
        client=client,
        name=collection.name,
        old=collection,
        new=shadow,
        n_documents=verify_shadow(collection, shadow, function, size=most),
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
