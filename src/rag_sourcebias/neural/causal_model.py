"""The causal language model that a user names: found at once, loaded when first used."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from rag_sourcebias.io.cache import cache_dir
from rag_sourcebias.neural.causal import CausalScorer, load_causal
from rag_sourcebias.neural.loading import Dtype, ModelFolder, checked_dtype, find_model
from rag_sourcebias.neural.packaged import SMOLLM2, smollm2_folder

__all__ = ["CausalModel"]


class CausalModel:
    """A causal language model by name.

    Parameters
    ----------
    model : str or Path
        ``"smollm2"`` (packaged), the folder of a causal language model, or a hub name.
    dtype : {"bfloat16", "float32"}
    device : str, optional
    cache : Path, optional
        Folder in which the packaged model is converted once.

    Raises
    ------
    DataError
        If the model cannot be found or the dtype is unknown.
    MissingExtraError
        If a hub name is given and the libraries are not installed.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        dtype: Dtype,
        device: str | None = None,
        cache: str | Path | None = None,
    ) -> None:
        self.cache = Path(cache) if cache is not None else cache_dir() / "models"
        self._found = None if model == "smollm2" else find_model(model, packaged="smollm2")
        self.dtype = checked_dtype(dtype)
        self.device = device

    @property
    def name(self) -> str:
        """Short name, as in the name of a system."""
        return "smollm2" if self._found is None else self._found.name

    @property
    def described(self) -> str:
        """Name that a report states."""
        return "SmolLM2-135M-Instruct Q4_1" if self._found is None else self._found.name

    @property
    def identity(self) -> str:
        """A string that changes with the model's files."""
        return SMOLLM2.identity if self._found is None else self._found.identity

    @cached_property
    def scorer(self) -> CausalScorer:
        """The loaded model.

        Raises
        ------
        DataError
            If the folder holds no such model.
        """
        folder = self._found or ModelFolder(name="smollm2", path=smollm2_folder(self.cache))
        return load_causal(folder, dtype=self.dtype, device=self.device)
