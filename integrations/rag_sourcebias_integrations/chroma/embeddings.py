"""Our encoders as Chroma embedding functions; importing this module registers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias_integrations._require import require, require_encoder

require("chromadb", package="chromadb", extra="chroma", feature="Chroma")

from chromadb import EmbeddingFunction  # noqa: E402 - after the check that says what is missing
from chromadb.utils.embedding_functions import register_embedding_function  # noqa: E402

_NAME = "rag_sourcebias"
_SETTINGS = ("dtype", "max_length", "batch_size", "device", "normalize")


@register_embedding_function
class EncoderEmbeddingFunction(EmbeddingFunction):
    """Embed documents and queries with an encoder, each by its own method.

    A collection made with a model's name or path can be opened by another process without naming
    the function again, as soon as ``rag_sourcebias_integrations.chroma`` is imported there.

    Chroma compares only the names of embedding functions, and every model goes by the same one
    here: :meth:`check` says whether a collection was made with this encoder. Releases of Chroma
    before 1.1 embed query texts as documents.

    Parameters
    ----------
    encoder : str, Path or Encoder
        Name of a packaged or hub model, folder of a model, or any
        :class:`~rag_sourcebias.core.Encoder`. A path is stored as it is given. An object
        cannot be rebuilt, so a collection made with one has to be opened with
        ``embedding_function=EncoderEmbeddingFunction(that encoder)``.
    **settings : str, int or bool
        For a model by name: ``dtype``, ``max_length``, ``batch_size``, ``device``, ``normalize``.

    Raises
    ------
    DataError
        For an unknown setting, a model that cannot be found, or settings beside an object.
    MissingExtraError
        If sentence-transformers is not installed (when a model by name is loaded).
    """

    def __init__(
        self,
        encoder: str | Path | Encoder = "all-MiniLM-L6-v2",
        **settings: str | int | bool | None,
    ) -> None:
        by_name = isinstance(encoder, str | Path)
        unknown = sorted(set(settings) - set(_SETTINGS if by_name else ()))
        if unknown:
            known = ", ".join(_SETTINGS) if by_name else "none beside an encoder object"
            raise DataError(f"encoder settings {', '.join(unknown)} are unknown; there are {known}")
        if not by_name:
            require_encoder(encoder)
        self._model = str(encoder) if by_name else None
        self._settings = {key: value for key, value in settings.items() if value is not None}
        self._encoder: Encoder | None = None if by_name else cast("Encoder", encoder)
        self._recorded: str | None = None  # fingerprint in the collection's configuration
        self._checked = False

    @property
    def encoder(self) -> Encoder:
        """The encoder, built on first use.

        Raises
        ------
        DataError
            If it cannot be rebuilt, or is not the one that the collection was made with.
        """
        if self._encoder is None:
            if self._model is None:
                raise DataError(
                    f"the collection was made with an encoder object ({self._recorded}) that "
                    "cannot be rebuilt; open it with embedding_function="
                    "EncoderEmbeddingFunction(encoder)"
                )
            self._encoder = SentenceEncoder(self._model, **self._settings)  # type: ignore[arg-type]
        if self._recorded is not None and not self._checked:
            if self._encoder.fingerprint != self._recorded:
                raise _other_model(self._recorded, self._encoder.fingerprint)
            self._checked = True
        return self._encoder

    def __call__(self, input: Sequence[str]) -> list[npt.NDArray[np.float32]]:
        """Embed documents."""
        return _rows(self.encoder.encode_documents(list(input)), input)

    def embed_query(self, input: Sequence[str]) -> list[npt.NDArray[np.float32]]:
        """Embed queries."""
        return _rows(self.encoder.encode_queries(list(input)), input)

    @staticmethod
    def name() -> str:
        """Name under which Chroma knows the function."""
        return _NAME

    def get_config(self) -> dict[str, Any]:
        """Return what Chroma stores: the model and its settings, never a vector or a weight."""
        if self._model is None:
            recorded = self._recorded if self._encoder is None else self._encoder.fingerprint
            return {"fingerprint": recorded}
        return {
            "model": self._model,
            "settings": self._settings,
            "fingerprint": self._recorded or self.encoder.fingerprint,
        }

    @staticmethod
    def build_from_config(config: Mapping[str, Any]) -> EncoderEmbeddingFunction:
        """Build the function that a collection was made with; the model is loaded when used."""
        function = EncoderEmbeddingFunction(config.get("model", ""), **config.get("settings", {}))
        function._model = config.get("model")
        function._recorded = config.get("fingerprint")
        return function

    @staticmethod
    def validate_config(config: Mapping[str, Any]) -> None:
        """Refuse a stored configuration that is not one of these."""
        if not isinstance(config.get("fingerprint"), str):
            raise DataError(f"embedding function configuration {config!r} has no fingerprint")

    def validate_config_update(
        self, old_config: Mapping[str, Any], new_config: Mapping[str, Any]
    ) -> None:
        """Refuse another model: the vectors in the collection are of the old one."""
        if old_config.get("fingerprint") != new_config.get("fingerprint"):
            raise _other_model(old_config.get("fingerprint"), new_config.get("fingerprint"))

    def default_space(self) -> str:
        """Cosine; vectors are scaled to length 1 by default."""
        return "cosine"

    def supported_spaces(self) -> list[str]:
        """Every space of Chroma."""
        return ["cosine", "l2", "ip"]

    def check(self, collection: Any) -> None:  # noqa: ANN401 - a chromadb collection
        """Check that a collection was made with this encoder.

        Raises
        ------
        DataError
            If it was made with another one.
        """
        stored = (collection.configuration_json or {}).get("embedding_function") or {}
        recorded = stored.get("config", {}).get("fingerprint")
        if stored.get("name") != _NAME or recorded != self.encoder.fingerprint:
            raise _other_model(recorded or stored.get("name"), self.encoder.fingerprint)


def as_function(
    encoder: str | Path | Encoder | EncoderEmbeddingFunction,
) -> EncoderEmbeddingFunction:
    """Return the encoder as Chroma takes it."""
    if isinstance(encoder, EncoderEmbeddingFunction):
        return encoder
    return EncoderEmbeddingFunction(encoder)


def _other_model(recorded: object, found: object) -> DataError:
    return DataError(
        f"the collection was made with the encoder {recorded!r}, this one is {found!r}; their "
        "vectors cannot be compared: use the first one, or migrate_encoder"
    )


def _rows(vectors: npt.NDArray[np.float32], texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
    rows = np.asarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or len(rows) != len(texts):
        raise DataError(f"the encoder gave shape {rows.shape} for {len(texts)} texts")
    if not np.isfinite(rows).all():
        bad = texts[int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])]
        raise DataError(f"the encoder gave a number that is not finite for the text {bad[:80]!r}")
    return list(rows)
