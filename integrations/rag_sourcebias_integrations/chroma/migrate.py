"""Copy a Chroma collection under another encoder, beside the original."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder
from rag_sourcebias_integrations.chroma.carry import make_equal, verify_vectors
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction, as_function
from rag_sourcebias_integrations.chroma.ledger import MOVING, Ledger, Phase, Progress, ledger_name
from rag_sourcebias_integrations.chroma.limits import request_size
from rag_sourcebias_integrations.chroma.migration import Migration, clear_finished, give_name_back
from rag_sourcebias_integrations.chroma.vectors import EncodedVectors, VectorSource

__all__ = ["copy_collection", "migrate_encoder"]

_BATCH = 256  # encoding takes most of the time, so a small batch loses little when it is killed


def migrate_encoder(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    encoder: str | Path | Encoder | EncoderEmbeddingFunction,
    *,
    client: Any,  # noqa: ANN401 - a chromadb client
    batch_size: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Migration:
    """Encode a collection's documents again, into a copy beside it, and verify the copy.

    Chroma cannot change the encoder of a collection. The copy is named
    ``<name>--rsb-<8 digits of the encoder's fingerprint>``; it has the same ids, texts, metadata
    and index settings. Nothing changes for applications until :meth:`Migration.switch`, and writes
    go on throughout. A run that was killed goes on where it was, with what was switched or rolled
    back by then. What LlamaIndex stored is embedded as LlamaIndex embeds it,
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
    on_progress : callable, optional
        Told how many documents are done.

    Raises
    ------
    DataError
        If documents have no stored text (their ids are listed), the encoder does not give the same
        vector twice, or another encoder's migration of the collection is not finished.
    """
    source = EncodedVectors(as_function(encoder))
    most = request_size(collection, None)
    return copy_collection(
        collection,
        source,
        client=client,
        size=min(_BATCH, most) if batch_size is None else request_size(collection, batch_size),
        page_size=most,
        on_progress=on_progress,
    )


def copy_collection(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    source: VectorSource,
    *,
    client: Any,  # noqa: ANN401 - a chromadb client
    size: int,
    page_size: int,
    on_progress: Callable[[int], None] | None,
) -> Migration:
    """Fill a copy beside a collection and verify it, or go on with a migration."""
    ledger = Ledger(client, collection.name)
    progress = ledger.read()
    moving = progress is not None and progress.phase in MOVING
    if progress is not None and moving:
        progress.phase = give_name_back(client, collection.name, progress, ledger)
        collection = client.get_collection(collection.name, embedding_function=None)
    name = collection.name
    if progress is not None and progress.phase is Phase.FINISHED:
        clear_finished(client, name, progress)
        progress = None
    mark = blake2b(source.function.encoder.fingerprint.encode(), digest_size=4).hexdigest()
    shadow_name = f"{name}--rsb-{mark}"
    if progress is None:
        old, shadow = collection, _open_shadow(client, collection, shadow_name, source.function)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        progress = Progress(
            phase=Phase.READY,
            old=str(old.id),
            new=str(shadow.id),
            shadow_name=shadow_name,
            before_name=f"{name}--before-{stamp}",
        )
    elif progress.shadow_name != shadow_name:
        raise DataError(
            f"collection {name!r} is in a migration to another encoder "
            f"({progress.shadow_name!r}, {progress.phase}); finish it, or roll it back and "
            "finish it, first"
        )
    else:
        old, shadow = _both(client, collection, progress, source.function)
    migration = Migration(
        client=client,
        name=name,
        old=old,
        new=shadow,
        source=source,
        size=page_size,
        n_documents=0,
        progress=progress,
    )
    migration.carry()
    if moving:  # handles that follow the name waited for this
        ledger.write(progress)
    if progress.phase is Phase.ROLLED_BACK:  # from here on the copy follows the original again
        progress.phase = Phase.READY
        ledger.write(progress)
    if progress.phase is Phase.READY:
        make_equal(old, shadow, source, migration.agreed, size=size, on_progress=on_progress)
        verify_vectors(shadow, source.function, size=page_size)
    migration.n_documents = shadow.count()
    return migration


def _both(
    client: Any,  # noqa: ANN401 - a chromadb client
    collection: Any,  # noqa: ANN401 - a chromadb collection
    progress: Progress,
    function: EncoderEmbeddingFunction,
) -> tuple[Any, Any]:
    """Return the original and the copy of a migration under way."""
    names = {str(one.id): one.name for one in client.list_collections()}
    missing = sorted({progress.old, progress.new} - names.keys())
    if missing:
        raise DataError(
            f"collection {collection.name!r} is in a migration of which a collection was deleted "
            f"(id {missing[0]}); delete {ledger_name(collection.name)!r} to start again"
        )
    old = collection
    if str(collection.id) != progress.old:
        old = client.get_collection(names[progress.old])
    return old, client.get_collection(names[progress.new], embedding_function=function)


def _open_shadow(
    client: Any,  # noqa: ANN401 - a chromadb client
    collection: Any,  # noqa: ANN401 - a chromadb collection
    name: str,
    function: EncoderEmbeddingFunction,
) -> Any:  # noqa: ANN401 - a chromadb collection
    """Return the copy, made with the index settings and metadata of the original.

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
