"""Encoders from a model's name and options on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.retrieval import BatchedEncoder

__all__ = ["ENCODER_OPTIONS", "EncoderRecipe", "number", "sentence_encoder", "whole_number"]

ENCODER_OPTIONS = ("dtype", "max_length", "batch_size", "device")


@dataclass(frozen=True, slots=True)
class EncoderRecipe:
    """Builds an encoder where it is called: the recipe can be sent to another process."""

    model: str
    options: tuple[tuple[str, str], ...]

    def __call__(self) -> Encoder:
        """Return the encoder, in the batches of every other audit."""
        return BatchedEncoder(sentence_encoder(self.model, dict(self.options)))


def sentence_encoder(model: str, options: Mapping[str, str], *, name: str | None = None) -> Encoder:
    """Return the sentence-transformers model that a name and options stand for.

    Raises
    ------
    DataError
        If the model is not found, or an option is out of range.
    """
    from rag_sourcebias.neural import SentenceEncoder

    dtype = options.get("dtype", "float32")
    if dtype not in ("float32", "bfloat16"):
        raise DataError(f"dtype {dtype!r} is not one of float32, bfloat16")
    path = Path(model)
    return SentenceEncoder(
        # Another process may run in another folder.
        str(path.absolute()) if path.is_dir() else model,
        batch_size=whole_number(options, "batch_size") or 32,
        max_length=whole_number(options, "max_length"),
        dtype="bfloat16" if dtype == "bfloat16" else "float32",
        device=options.get("device"),
        name=name,
    )


def number(options: Mapping[str, str], key: str) -> float:
    """Return an option that is a number."""
    try:
        return float(options[key])
    except ValueError:
        raise DataError(f"option {key}={options[key]!r} is not a number") from None


def whole_number(options: Mapping[str, str], key: str) -> int | None:
    """Return an option that counts something, None where it is not given."""
    if key not in options:
        return None
    value = number(options, key)
    if value != int(value) or value < 1:
        raise DataError(f"option {key}={options[key]!r} must be a whole number of at least 1")
    return int(value)
