"""The columns of texts and labels that a training goes through."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.io.arrays import read_array
from rag_sourcebias.io.files import write_atomic
from rag_sourcebias.mitigate.twin_texts import TrainingPairs
from rag_sourcebias.neural.train_batches import plan_batches
from rag_sourcebias.neural.train_negatives import mine_negatives
from rag_sourcebias.neural.train_settings import TrainingSettings
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.types.arrays import Float32Array, IntArray
from rag_sourcebias.types.dataset import Dataset

__all__ = ["TrainingColumns", "data_identity", "training_columns"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingColumns:
    """Texts of the rows that are trained on, and the rows of each step.

    Parameters
    ----------
    texts : dict of str to list of str
        ``query``, ``human``, ``llm``, ``negative_1``, … in this order.
    labels : float32 array of shape (m, labels) or None
        Of regressions.
    batches : int64 array of shape (steps, batch size)
        Rows of the columns.
    """

    texts: dict[str, list[str]] = field(repr=False)
    labels: Float32Array | None = field(repr=False)
    batches: IntArray = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts["query"])


def training_columns(
    dataset: Dataset,
    pairs: TrainingPairs,
    settings: TrainingSettings,
    encoder: Encoder,
    *,
    folder: Path,
) -> TrainingColumns:
    """Lay out the rows that the planned steps use.

    Parameters
    ----------
    encoder : Encoder
        Untrained: finds the hard negatives and scores for regressions.
    folder : Path
        Keeps what it found, so that a training that is taken up again need not look again.

    Raises
    ------
    InsufficientDataError, DataError
        As :func:`plan_batches` and :func:`mine_negatives`.
    """
    plan = plan_batches(pairs, settings)
    rows, flat = np.unique(plan, return_inverse=True)
    twins = pairs.twins
    position = pairs.rows[rows].tolist()
    texts = {
        "query": [pairs.queries[row] for row in rows],
        "human": [twins.baseline_texts[row] for row in position],
        "llm": [twins.source_texts[row] for row in position],
    }
    if settings.hard_negatives:
        sources = (twins.baseline,) if settings.regression else (twins.baseline, twins.source)
        negatives = _kept(
            folder / "negatives.npy",
            lambda: mine_negatives(
                dataset,
                pairs,
                rows,
                encoder,
                sources=sources,
                per_source=settings.hard_negatives,
                depth=settings.mine_depth,
                rng=settings.seed,
            ),
        )
        for number, column in enumerate(negatives.T.tolist(), start=1):
            texts[f"negative_{number}"] = [dataset.corpus.texts[row] for row in column]
    labels = None
    if settings.regression:
        labels = _kept(folder / "labels.npy", lambda: _labels(texts, encoder, settings))
    return TrainingColumns(texts=texts, labels=labels, batches=flat.reshape(plan.shape))


def data_identity(dataset: Dataset, pairs: TrainingPairs) -> str:
    """Return a string that changes with the texts and judgments a training would see."""
    digest = hashlib.blake2b(digest_size=12)
    parts = (dataset.corpus.texts, pairs.query_ids, pairs.queries, pairs.twins.pair_ids)
    for part in parts:
        digest.update(f"{len(part)}\0".encode())
        for text in part:
            digest.update(f"{text}\0".encode(errors="surrogatepass"))
    for array in (dataset.corpus.tags.source_codes, pairs.rows, dataset.qrels.grades):
        digest.update(np.ascontiguousarray(array).tobytes())
    return f"{dataset.name} ({digest.hexdigest()})"


def _kept(file: Path, make: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Read an array, or make it and write it."""
    if file.is_file():
        return read_array(file, remedy="delete it and start again to make it again")
    made = make()
    buffer = io.BytesIO()
    np.save(buffer, made, allow_pickle=False)
    write_atomic(file, buffer.getvalue())
    return made


def _labels(
    texts: dict[str, list[str]], encoder: Encoder, settings: TrainingSettings
) -> Float32Array:
    """Similarities of the encoder, or margins between the first and each other; shape (m, …)."""
    queries = encoder.encode_queries(texts["query"])
    columns = [name for name in texts if name not in ("query", "llm")]
    scores = np.stack(
        [np.sum(queries * encoder.encode_documents(texts[name]), axis=1) for name in columns],
        axis=1,
    )
    if settings.loss == "margin-mse":
        scores = scores[:, :1] - scores[:, 1:]
    return np.asarray(scores, dtype=np.float32)
