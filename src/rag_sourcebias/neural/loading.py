"""From what a user names to a folder with a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from rag_sourcebias.errors import DataError, MissingExtraError

__all__ = ["Dtype", "ModelFolder", "find_model", "library_versions", "quiet", "require_torch"]

Dtype = Literal["float32", "bfloat16"]

_READ = {".json", ".safetensors", ".bin", ".txt", ".model", ".jinja"}
_NEVER_NEEDED = [
    "onnx/*",
    "openvino/*",
    "*.onnx",
    "*.h5",
    "*.msgpack",
    "*.ot",
    "*.gguf",
    "*.tflite",
]
_LIBRARIES = ("torch", "transformers", "sentence_transformers")


@dataclass(frozen=True, kw_only=True)
class ModelFolder:
    """A model on disk.

    Parameters
    ----------
    name : str
        How reports call it.
    path : Path
    known_identity : str
        Identity of the files when it is known without reading them, else empty.
    """

    name: str
    path: Path
    known_identity: str = ""

    @cached_property
    def identity(self) -> str:
        """A string that changes with any file that loading reads."""
        if self.known_identity:
            return self.known_identity
        digest = hashlib.blake2b(digest_size=16)
        files = (f for f in self.path.rglob("*") if f.is_file() and f.suffix in _READ)
        for file in sorted(files):
            digest.update(f"{file.relative_to(self.path).as_posix()}\0".encode())
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "blake2b").digest())
        return digest.hexdigest()


def find_model(model: str | Path, *, packaged: str) -> ModelFolder:
    """Find a model by the path of its folder, or download it from the hub.

    Parameters
    ----------
    model : str or Path
    packaged : str
        Names that need neither, for the message.

    Raises
    ------
    DataError
        If there is no such folder and the hub does not have it or cannot be reached.
    MissingExtraError
        If the libraries are not installed.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return ModelFolder(name=folder.resolve().name, path=folder)
    accepted = (
        "accepted are the path of a folder that save_pretrained wrote, a hub name when the hub can "
        f"be reached or the model is already downloaded, and the packaged names: {packaged}"
    )
    if isinstance(model, Path) or folder.is_absolute() or str(model).startswith((".", "~")):
        raise DataError(f"there is no model folder {str(model)!r}; {accepted}")
    require_torch(f"model {model!r}")
    from huggingface_hub import snapshot_download

    try:
        path = Path(snapshot_download(model, ignore_patterns=[*_NEVER_NEEDED, "*.bin"]))
        if not any(path.rglob("*.safetensors")):
            path = Path(snapshot_download(model, ignore_patterns=_NEVER_NEEDED))
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise DataError(f"model {model!r} cannot be loaded ({reason}); {accepted}") from error
    # The folder of a snapshot is named after the commit it holds.
    return ModelFolder(name=model, path=path, known_identity=f"{model}@{path.name}")


def require_torch(feature: str) -> Any:  # noqa: ANN401 - an untyped module
    """Import sentence-transformers (and with it torch), or say how to install it.

    Raises
    ------
    MissingExtraError
        If torch, transformers or sentence-transformers is missing.
    """
    try:
        import sentence_transformers
    except ModuleNotFoundError as error:
        if error.name not in _LIBRARIES:
            raise
        raise MissingExtraError(
            package=str(error.name).replace("_", "-"), extra="neural", feature=feature
        ) from error
    return sentence_transformers


def library_versions() -> dict[str, str]:
    """Return the versions a report must state."""
    return {name: version(name) for name in ("torch", "transformers", "sentence-transformers")}


def checked_dtype(dtype: str) -> Dtype:
    """Return ``dtype`` if it is one that is supported.

    Raises
    ------
    DataError
        If it is not.
    """
    if dtype == "float32":
        return "float32"
    if dtype == "bfloat16":
        return "bfloat16"
    raise DataError(f"dtype {dtype!r} is not one of float32, bfloat16")


def pick_device(device: str | None) -> str:
    """Return the device to compute on: the one asked for, else CUDA if there is one, else CPU."""
    if device is not None:
        return device
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from drawing progress bars while a model loads."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    level = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
