"""Models as ``debias`` reads, writes and times them."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rag_sourcebias.cli.specs import parse_spec
from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.retrieval import CachedEncoder, VectorCache

__all__ = ["encode_cost", "model_of", "removed_on_failure", "require_new", "written_model"]

_FIXED = ("dtype", "max_length")
_TEXTS, _ROUNDS = 8, 5


def model_of(text: str) -> str:
    """Return the model that ``--encoder`` names, refusing options that a folder does not keep."""
    spec = parse_spec(f"dense:{text}")
    fixed = [name for name in _FIXED if name in spec.options]
    if fixed:
        raise DataError(
            f"--encoder {text!r}: {', '.join(fixed)} cannot be set here: the folder written is "
            "loaded with settings of its own; change them in the model first"
        )
    return spec.model


def require_new(option: str, path: Path, *, what: str = "folder") -> None:
    """Refuse a result that could not be put in place, before the work."""
    if path.exists():
        raise DataError(f"--{option} {path} exists; name a {what} that does not")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise DataError(f"--{option} {path}: folder {parent} does not exist")
    if not os.access(parent, os.W_OK):
        raise DataError(f"--{option} {path}: {parent} is not writable")


@contextmanager
def removed_on_failure(path: Path) -> Iterator[None]:
    """Take a result away again where what follows fails, so that the same command can be run."""
    done = False
    try:
        yield
        done = True
    finally:
        if not done and path.is_dir():
            shutil.rmtree(path)
        elif not done:
            path.unlink(missing_ok=True)


def written_model(
    folder: Path, cache: Path, progress: Callable[[int, int], None], *, name: str | None = None
) -> Encoder:
    """Load a model that was just written, with cached vectors."""
    from rag_sourcebias.neural import SentenceEncoder

    encoder = SentenceEncoder(folder, name=name)
    return CachedEncoder(encoder, VectorCache(cache / "vectors.sqlite"), progress=progress)


def encode_cost(before: Encoder, after: Encoder, texts: Sequence[str]) -> float:
    """Time to encode with the second as a multiple of the first: median over rounds in turns.

    On a processor, its time is what counts: it does not grow when others use the machine too.
    """
    sample = list(texts[:: max(1, len(texts) // _TEXTS)][:_TEXTS])
    pair = [getattr(encoder, "encoder", encoder) for encoder in (before, after)]
    on_cpu = all(encoder.settings.get("device") == "cpu" for encoder in pair)
    clock = time.process_time if on_cpu else time.perf_counter
    ratios = []
    for turn in range(_ROUNDS + 1):
        seconds = [0.0, 0.0]
        for side in (0, 1) if turn % 2 else (1, 0):
            start = clock()
            pair[side].encode_documents(sample)
            seconds[side] = clock() - start
        if turn and min(seconds) > 0:  # the first round loads the models
            ratios.append(seconds[1] / seconds[0])
    return statistics.median(ratios) if ratios else 1.0
