"""Give a Chroma collection the vectors of a projected encoder; no text is encoded again."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.projected_encoder import ProjectedEncoder
from rag_sourcebias.mitigate.projection import SourceProjection, read_projection
from rag_sourcebias.protocols import Encoder
from rag_sourcebias_integrations.chroma.carry import pages, sample_of
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction, as_function
from rag_sourcebias_integrations.chroma.limits import request_size
from rag_sourcebias_integrations.chroma.migrate import copy_collection
from rag_sourcebias_integrations.chroma.migration import Migration
from rag_sourcebias_integrations.chroma.vectors import (
    CLOSE,
    ProjectedVectors,
    far_apart,
    texts_of,
)

__all__ = ["migrate_projection"]

_PAGE = 1_000  # vectors pass through Python's own numbers, at ten times their size


def migrate_projection(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    projection: SourceProjection,
    *,
    client: Any,  # noqa: ANN401 - a chromadb client
    encoder: str | Path | Encoder | EncoderEmbeddingFunction,
    batch_size: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Migration:
    """Project a collection's stored vectors into a copy beside it, and verify the copy.

    As :func:`migrate_encoder`, with the vectors of the copy computed from the stored ones: only a
    sample of the texts is encoded, to show that the debiased encoder gives these vectors. Stored
    vectors of length 1 have length 1 afterwards; others are projected without scaling, as the
    encoder does. Documents without text are copied too, but cannot be among the sample.

    Parameters
    ----------
    collection : chromadb.Collection
        Of a synchronous client; filled with the encoder that the projection was fitted on.
    projection : SourceProjection
    client : chromadb client
        The client of the collection.
    encoder : str, Path, Encoder or EncoderEmbeddingFunction
        What encodes queries of the copy: the folder that
        :func:`~rag_sourcebias.neural.projected.write_projected_model` wrote, which Chroma
        remembers by its path, or a
        :class:`~rag_sourcebias.mitigate.projected_encoder.ProjectedEncoder`.
    batch_size : int, optional
        Documents per request; 1,000, or fewer where the client takes fewer, by default.
    on_progress : callable, optional
        Told how many documents are done.

    Raises
    ------
    DataError
        Before anything is written, if the stored vectors have another dimension, the collection
        was filled by another encoder than the projection was fitted on, the encoder holds another
        projection or does not give the projected vectors, or there is no text to tell by; also if
        documents have no vector.
    """
    source = ProjectedVectors(as_function(encoder), projection)
    _check_projection(source.function, projection)
    recorded = _recorded_encoder(collection)
    if projection.encoder and recorded and _model(projection.encoder) != _model(recorded):
        raise DataError(
            f"collection {collection.name!r} was filled by {recorded!r}, but the projection was "
            f"fitted on vectors of {projection.encoder!r}; fit one on the collection's encoder"
        )
    most = request_size(collection, None)
    size = min(_PAGE, most) if batch_size is None else request_size(collection, batch_size)
    _check_vectors(collection, source, size=size)
    return copy_collection(
        collection,
        source,
        client=client,
        size=size,
        page_size=min(_PAGE, most),
        on_progress=on_progress,
    )


def _check_projection(function: EncoderEmbeddingFunction, projection: SourceProjection) -> None:
    """Refuse an encoder that is known to hold another projection: query vectors would not fit."""
    found = None
    folder = function.get_config().get("model")
    if folder is not None:
        name = import_module("rag_sourcebias.neural.projected").PROJECTION_FILE
        file = Path(folder).expanduser() / name
        found = read_projection(file) if file.is_file() else None
    elif isinstance(function.encoder, ProjectedEncoder):
        found = function.encoder.projection
    if found is not None and found.fingerprint != projection.fingerprint:
        raise DataError(
            f"encoder {function.encoder.name!r} holds the projection {found.fingerprint!r}, given "
            f"is {projection.fingerprint!r}; give the one it was made with"
        )


def _recorded_encoder(collection: Any) -> str:  # noqa: ANN401 - a chromadb collection
    """Fingerprint of the encoder that filled the collection; empty where it is not known."""
    stored = (collection.configuration_json or {}).get("embedding_function") or {}
    if stored.get("name") != EncoderEmbeddingFunction.name():
        return ""
    return str(stored.get("config", {}).get("fingerprint") or "")


def _model(fingerprint: str) -> tuple[str, ...]:
    """Part of a fingerprint that names the model: dtype or device do not move vectors far."""
    first, *others = fingerprint.split("|")  # others: what is done to its vectors
    kind, _, rest = first.partition(":")
    known = kind == "sentence-transformers"
    return (rest.partition(":")[0] if known else first, *others)


def _check_vectors(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    source: ProjectedVectors,
    *,
    size: int,
) -> None:
    """Refuse, before anything is written, stored vectors that are not of the encoder given."""
    page = next(pages(collection, size, include=["documents", "metadatas", *source.reads]), None)
    if page is None:
        return
    source.require(page)
    ids = sample_of(page)
    if not ids:
        raise DataError(
            f"the first {len(page['ids'])} documents of collection {collection.name!r} have no "
            "stored text: whether the encoder gives their vectors cannot be told; add some texts"
        )
    again = np.stack(source.function(texts_of(page, ids)))
    projected = source.vectors(page, ids)
    if again.shape != projected.shape:
        raise DataError(
            f"encoder {source.function.encoder.name!r} gives {again.shape[1]} dimensions, the "
            f"collection has {projected.shape[1]}; give the projected model of its encoder"
        )
    wrong = far_apart(again, projected, CLOSE)
    if wrong.any():
        raise DataError(
            f"encoder {source.function.encoder.name!r} does not give the projected vectors of "
            f"{int(wrong.sum())} of {len(ids)} documents, among them "
            f"{ids[int(wrong.argmax())]!r}; it must be the encoder that filled the collection, "
            "with this projection"
        )
