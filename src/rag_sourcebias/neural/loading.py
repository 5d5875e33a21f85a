"""Load a model, or say what would have been accepted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from rag_sourcebias.errors import DataError, MissingExtraError

__all__ = ["Dtype", "device_for", "load_model", "require_neural", "revision_of", "torch_dtype"]

Dtype = Literal["float32", "bfloat16"]
T = TypeVar("T")


def require_neural(feature: str) -> None:
    """Raise a helpful error when torch or sentence-transformers is not installed."""
    try:
        import sentence_transformers  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        if error.name not in ("torch", "sentence_transformers"):
            raise
        raise MissingExtraError(
            package=error.name.replace("_", "-"), extra="neural", feature=feature
        ) from error


def load_model(name: str, load: Callable[[], T], *, what: str) -> T:
    """Run a loader of model ``name``; translate its failures."""
    looks_like_path = name.startswith((".", "/", "~")) or Path(name).exists()
    if looks_like_path and not Path(name).expanduser().is_dir():
        raise DataError(f"{what}: model folder {name!r} does not exist")
    try:
        return load()
    except (OSError, ValueError, KeyError) as error:
        # Hub clients wrap everything from "no network" to "no such repository" in OSError.
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(
            f"{what} {name!r} cannot be loaded ({reason[0]:.200}); give the path of a model "
            "folder, a hub name while the hub can be reached, or a packaged model "
            "(all-MiniLM-L6-v2 as encoder, smollm2 as language model)"
        ) from error


def device_for(device: str | None) -> str:
    """Return the named device, else the accelerator when there is one."""
    import torch

    if device is not None:
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def torch_dtype(dtype: Dtype) -> Any:  # noqa: ANN401 - torch is not typed here
    """Return the torch dtype of that name."""
    import torch

    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[dtype]


def revision_of(name: str, config: Any) -> str:  # noqa: ANN401 - a transformers config
    """Identity of loaded weights: the hub commit, else sizes and times of the local files."""
    commit = getattr(config, "_commit_hash", None)
    if commit:
        return str(commit)
    folder = Path(getattr(config, "_name_or_path", "") or name).expanduser()
    if not folder.is_dir():
        return "unknown"
    return ";".join(
        f"{path.relative_to(folder)}:{path.stat().st_size}:{path.stat().st_mtime_ns}"
        for path in sorted(folder.rglob("*"))
        if path.suffix in {".safetensors", ".bin", ".json"} and path.name != "README.md"
    )
