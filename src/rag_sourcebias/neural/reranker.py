"""Cross-encoders behind the ``Reranker`` seam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_sourcebias.neural.loading import (
    Dtype,
    device_for,
    load_model,
    require_neural,
    revision_of,
    torch_dtype,
)

__all__ = ["CrossEncoderReranker"]


class CrossEncoderReranker:
    """Any sentence-transformers cross-encoder with one output, by path or hub name.

    Parameters
    ----------
    model : str or Path
    batch_size : int
    max_length : int, optional
        Tokens per (query, text) pair.
    dtype : {"float32", "bfloat16"}
    device : str, optional
    """

    def __init__(
        self,
        model: str | Path,
        *,
        batch_size: int = 32,
        max_length: int | None = None,
        dtype: Dtype = "float32",
        device: str | None = None,
    ) -> None:
        require_neural(f"reranking with {str(model)!r}")
        from sentence_transformers import CrossEncoder

        self._model = load_model(
            str(model),
            lambda: CrossEncoder(
                str(Path(model).expanduser()) if Path(model).expanduser().is_dir() else str(model),
                device=device_for(device),
                max_length=max_length,
                model_kwargs={"dtype": torch_dtype(dtype)},
            ),
            what="cross-encoder",
        )
        self._model.eval()
        self.name = Path(model).name if Path(model).is_dir() else str(model)
        self._batch_size = batch_size
        self._dtype = dtype
        self._identity = revision_of(str(model), self._model.config)

    @property
    def fingerprint(self) -> str:
        """Identity of weights and settings, as a short digest."""
        parts = (self._identity, str(self._model.max_seq_length), self._dtype)
        return blake2b("\x1f".join(parts).encode(), digest_size=12).hexdigest()

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "reranker": self.name,
            "dtype": self._dtype,
            "maximum length": f"{self._model.max_seq_length} tokens",
        }

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """Score pairs, in the given order; shape (len(pairs),)."""
        if not pairs:
            return np.empty(0, dtype=np.float32)
        # The raw output: a sigmoid would press high scores together into ties.
        from torch.nn import Identity

        scores = self._model.predict(
            [list(pair) for pair in pairs],
            batch_size=self._batch_size,
            show_progress_bar=False,
            activation_fn=Identity(),
            convert_to_tensor=True,
        )
        return np.asarray(scores.float().cpu().numpy(), dtype=np.float32).reshape(len(pairs))
