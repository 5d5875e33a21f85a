"""A cross-encoder as a :class:`~rag_sourcebias.protocols.Reranker`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.loading import (
    Dtype,
    checked_dtype,
    find_model,
    library_versions,
    pick_device,
    quiet,
    require_torch,
)

__all__ = ["CrossEncoderReranker"]


class CrossEncoderReranker:
    """Score pairs with a sentence-transformers cross-encoder.

    Scores are the model's raw logits: the sigmoid that many models end in keeps the order but
    saturates in float32, which makes ties out of good matches.

    Parameters
    ----------
    model : str or Path
        Folder of a cross-encoder with one output, or a hub name.
    batch_size : int
        Pairs per forward pass.
    max_length : int, optional
        Tokens of query and document together after which the document is cut; the model's own
        setting by default.
    dtype : {"float32", "bfloat16"}
    device : str, optional
        CUDA if there is any, else the CPU, by default.
    name : str, optional
        Name in reports; the name of the model by default.

    Raises
    ------
    DataError
        If the model cannot be found, or has more than one output (on loading).
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
        name: str | None = None,
    ) -> None:
        if batch_size < 1:
            raise DataError(f"batch_size must be at least 1, got {batch_size}")
        self._folder = find_model(model, packaged="no cross-encoder is packaged")
        self.name = name or self._folder.name
        self.batch_size = batch_size
        self.max_length = max_length
        self.dtype = checked_dtype(dtype)
        self.device = device

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its scores."""
        return (
            f"cross-encoder:{self._folder.identity}:{self.max_length or 'model'}:{self.dtype}:"
            f"{self.device or 'auto'}"
        )

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self._folder.name,
            "maximum length": f"{self._model.max_seq_length} tokens",
            "dtype": self.dtype,
            "device": pick_device(self.device),
            **library_versions(),
        }

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """Score (query, text) pairs, in the given order; shape ``(len(pairs),)``."""
        if not pairs:
            return np.empty(0, np.float32)
        import torch

        tensor = self._model.predict(
            [list(pair) for pair in pairs],
            batch_size=self.batch_size,
            show_progress_bar=False,
            activation_fn=torch.nn.Identity(),
            convert_to_tensor=True,
        )
        scores: npt.NDArray[np.float32] = tensor.float().cpu().numpy()
        return scores.reshape(len(pairs))

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 - torch is not typed here
        library = require_torch(f"reranker {self.name!r}")
        import torch

        try:
            with quiet():
                model = library.CrossEncoder(
                    str(self._folder.path),
                    device=pick_device(self.device),
                    max_length=self.max_length,
                    local_files_only=True,
                    model_kwargs={"dtype": getattr(torch, self.dtype)},
                )
        except (OSError, ValueError) as error:
            raise DataError(
                f"{self._folder.path} cannot be loaded as a cross-encoder "
                f"({str(error).strip().partition(chr(10))[0]})"
            ) from error
        if model.num_labels != 1:
            raise DataError(
                f"cross-encoder {self._folder.name!r} has {model.num_labels} outputs; a reranker "
                "needs a model with one"
            )
        return model.eval()
