"""How a model was trained, kept in its folder."""

from __future__ import annotations

from pathlib import Path

from rag_sourcebias.io.fitted import read_fitted, write_fitted
from rag_sourcebias.types.debias_training import TrainingHistory

__all__ = ["HISTORY_FILE", "read_history", "write_history"]

HISTORY_FILE = "training_history.json"
_KIND = "training history"
_SCHEMA_VERSION = 1


def write_history(history: TrainingHistory, folder: Path) -> None:
    """Add the history to a model folder.

    Raises
    ------
    DataError
        If it cannot be written.
    """
    write_fitted(history, folder / HISTORY_FILE, kind=_KIND, version=_SCHEMA_VERSION)


def read_history(folder: str | Path) -> TrainingHistory:
    """Read how a model that :func:`~rag_sourcebias.neural.train.train_debiased` wrote was trained.

    Raises
    ------
    DataError
        If the folder is no such model.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    file = Path(folder).expanduser() / HISTORY_FILE
    return read_fitted(TrainingHistory, file, kind=_KIND, version=_SCHEMA_VERSION)
