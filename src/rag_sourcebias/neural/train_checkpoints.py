"""The folder of a training run: what it was asked for, and where it can be taken up again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import read_json, write_atomic
from rag_sourcebias.neural.train_progress import PROGRESS_FILE

__all__ = ["checked_output", "last_checkpoint", "open_run", "run_folder"]

_RUN_FILE = "run.json"
_PREFIX = "checkpoint-"
_MAY_DIFFER = frozenset({"checkpoint_every"})


def checked_output(output: str | Path) -> Path:
    """Return the folder a trained model goes to.

    Raises
    ------
    DataError
        If it exists, or the folder around it does not.
    """
    place = Path(output).expanduser()
    if place.exists():
        raise DataError(f"{place} exists; name a folder that does not")
    if not place.parent.is_dir():
        raise DataError(f"{place} cannot be written: folder {place.parent} does not exist")
    return place


def run_folder(output: Path) -> Path:
    """Return the folder beside the output that keeps checkpoints until it is complete."""
    return output.with_name(f"{output.name}.training")


def open_run(folder: Path, settings: Mapping[str, str], *, resume: bool) -> Path | None:
    """Make the folder of a run, or open the one that is there.

    Parameters
    ----------
    settings : mapping of str to str
        All that the result depends on.
    resume : bool
        Go on from what is there; without it, what is there is deleted.

    Returns
    -------
    Path or None
        Checkpoint to go on from.

    Raises
    ------
    DataError
        If what is there belongs to a run with other settings, or to something else, or the folder
        cannot be written.
    """
    try:
        if folder.exists():
            _check_ours(folder)
            difference = _difference(folder, settings)
            if resume and difference is None and (folder / _RUN_FILE).is_file():
                return _complete_only(folder)
            if resume and last_checkpoint(folder) is not None:
                raise DataError(
                    f"{folder} holds a training with {difference}: it cannot go on under other "
                    "settings. Give the same ones, name another output, or start over with "
                    "resume=False (or by deleting the folder)"
                )
            shutil.rmtree(folder)
        folder.mkdir()
        text = json.dumps(dict(settings), ensure_ascii=False, indent=1)
        write_atomic(folder / _RUN_FILE, text + "\n")
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror or error}") from error
    return None


def last_checkpoint(folder: Path) -> Path | None:
    """Return the complete checkpoint with the most steps."""
    complete = [path for path in _checkpoints(folder) if (path / PROGRESS_FILE).is_file()]
    return max(complete, key=_step, default=None)


def _checkpoints(folder: Path) -> list[Path]:
    found = folder.glob(f"{_PREFIX}*")
    return [path for path in found if path.name.removeprefix(_PREFIX).isdecimal()]


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix(_PREFIX))


def _complete_only(folder: Path) -> Path | None:
    """Delete what a kill left half-written, and return where to go on."""
    last = last_checkpoint(folder)
    for path in _checkpoints(folder):
        if not (path / PROGRESS_FILE).is_file():
            shutil.rmtree(path)
    return last


def _check_ours(folder: Path) -> None:
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / _RUN_FILE).is_file()):
        raise DataError(
            f"{folder} is where checkpoints of the training would go, but something else is "
            "there; move it away, or name another output"
        )


def _difference(folder: Path, settings: Mapping[str, str]) -> str | None:
    """Name the first setting that differs, None where all agree."""
    file = folder / _RUN_FILE
    if not file.is_file():
        return None
    expected, remedy = "the settings of a training", f"delete {folder}"
    before = read_json(file, expected, remedy=remedy)
    if not isinstance(before, dict):
        raise DataError(f"{file} is not {expected}; {remedy}")
    names = sorted({*before, *settings} - _MAY_DIFFER)
    for name in names:
        if before.get(name) != settings.get(name):
            was, now = (given.get(name, "left out") for given in (before, settings))
            return f"{name} {was}, not {now}"
    return None
