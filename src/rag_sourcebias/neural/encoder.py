"""Sentence-transformers models behind the ``Encoder`` seam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.loading import (
    Dtype,
    device_for,
    load_model,
    require_neural,
    revision_of,
    torch_dtype,
)
from rag_sourcebias.neural.packaged import packaged_encoder

__all__ = ["SentenceEncoder"]

FloatArray = npt.NDArray[np.float32]


class SentenceEncoder:
    """Any sentence-transformers model, by path, hub name or packaged name.

    Parameters
    ----------
    model : str or Path
        ``"all-MiniLM-L6-v2"`` comes from a package when that is installed.
    batch_size : int
    max_length : int, optional
        Tokens per text; the model's own limit by default. A shorter limit can hide a skew.
    dtype : {"float32", "bfloat16"}
        bfloat16 is faster where the processor supports it, and moves scores by about 1e-3.
    device : str, optional
        The accelerator when there is one.
    normalize : bool
        Scale vectors to length 1.
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
    ) -> None:
        require_neural(f"encoding with {str(model)!r}")
        from sentence_transformers import SentenceTransformer

        source = packaged_encoder(str(model)) or Path(model).expanduser()
        place = str(source) if source.is_dir() else str(model)
        self._model = load_model(
            str(model) if place == str(model) else place,
            lambda: SentenceTransformer(
                place, device=device_for(device), model_kwargs={"dtype": torch_dtype(dtype)}
            ),
            what="encoder",
        )
        self._model.eval()
        limit = self._model.max_seq_length
        if max_length is not None:
            if limit is not None and max_length > limit:
                raise DataError(f"max_length {max_length} exceeds the model's limit of {limit}")
            self._model.max_seq_length = max_length
        self.name = Path(model).name if Path(model).is_dir() else str(model)
        self._batch_size = batch_size
        self._dtype = dtype
        self._normalize = normalize
        config = getattr(self._model[0], "auto_model", None)
        self._identity = (
            self.name
            if source.is_dir() and packaged_encoder(str(model))
            else revision_of(place, getattr(config, "config", None))
        )

    @property
    def fingerprint(self) -> str:
        """Identity of weights and settings, as a short digest."""
        parts = (
            self._identity,
            str(self._model.max_seq_length),
            self._dtype,
            str(self._normalize),
            repr(sorted(self._model.prompts.items())),
        )
        return blake2b("\x1f".join(parts).encode(), digest_size=12).hexdigest()

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self.name,
            "dtype": self._dtype,
            "maximum length": f"{self._model.max_seq_length} tokens",
            "device": str(self._model.device),
            "sentence-transformers": version("sentence-transformers"),
        }

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        """Encode the query side, with the model's query prompt; shape (len(texts), d)."""
        return self._array(self._model.encode_query, texts)

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Encode the document side, with the model's document prompt; shape (len(texts), d)."""
        return self._array(self._model.encode_document, texts)

    def _array(self, encode: object, texts: Sequence[str]) -> FloatArray:
        if not texts:
            dimension = self._model.get_embedding_dimension()
            return np.empty((0, dimension), dtype=np.float32)
        tensors = encode(  # type: ignore[operator]
            list(texts),
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=False,
            convert_to_tensor=True,
            normalize_embeddings=self._normalize,
        )
        return np.asarray(tensors.float().cpu().numpy(), dtype=np.float32)
