"""State of a debiased training: its progress and its checkpoints."""

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from rag_sourcebias.neural.loading import require_torch

# ruff: noqa: E402 - the message on a missing extra must come before torch is imported
require_torch("debiased training")

from rag_sourcebias.core.codec import from_plain, sound, to_plain, write_atomic
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.training import TrainingPoint
from rag_sourcebias.intake.files import read_json
from rag_sourcebias.neural.losses import DebiasedRankingLoss, HingeStatistics

# What a training run has seen so far; part of its checkpoints.


PROGRESS_FILE = "progress.json"
"""Written last: a checkpoint without it is not complete."""


class Progress:
    """Collects the points of a history.

    Parameters
    ----------
    loss : DebiasedRankingLoss
    eval_every : int, optional
    """

    def __init__(
        self,
        loss: DebiasedRankingLoss,
        *,
        eval_every: int | None,
    ) -> None:
        self.loss = loss
        self.eval_every = eval_every
        self.step = 0
        self.points: list[TrainingPoint] = []
        self._since = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Training time, that of the run before a checkpoint included."""
        return time.perf_counter() - self._since

    def stepped(self, step: int) -> None:
        """Note a step, and a point if it is time."""
        self.step = step
        if self.eval_every is not None and step % self.eval_every == 0:
            self.add_point()

    def add_point(self) -> None:
        """Add a point for the step reached, unless it has one."""
        if self.points and self.points[-1].step == self.step:
            return
        seen, self.loss.statistics = self.loss.statistics, HingeStatistics()
        self.points.append(
            TrainingPoint(
                step=self.step,
                rank_loss=seen.mean_rank_loss,
                debias_loss=seen.mean_debias_loss,
                hinge_share=seen.hinge_share,
            )
        )

    def write(self, checkpoint: Path) -> None:
        """Complete a checkpoint."""
        content = {
            "step": self.step,
            "seconds": self.seconds,
            "forward": self.loss.step,
            "statistics": asdict(self.loss.statistics),
            "points": to_plain(tuple(self.points)),
        }
        write_atomic(checkpoint / PROGRESS_FILE, json.dumps(content, allow_nan=False))

    def read(self, checkpoint: Path) -> None:
        """Go back to where a checkpoint was.

        Raises
        ------
        DataError
            If it cannot be read.
        """
        file = checkpoint / PROGRESS_FILE
        remedy = f"delete the folder {checkpoint} to go on from the checkpoint before it"
        content = read_json(file, "the progress of a training", remedy=remedy)
        with sound(file, "the progress of a training", remedy=remedy):
            self.step = int(content["step"])
            self._since = time.perf_counter() - float(content["seconds"])
            self.loss.step = int(content["forward"])
            self.loss.statistics = from_plain(HingeStatistics, content["statistics"])
            self.points = [from_plain(TrainingPoint, point) for point in content["points"]]


# The folder of a training run: what it was asked for, and where it can be taken up again.


_RUN_FILE = "run.json"
_PREFIX = "checkpoint-"
_MAY_DIFFER = frozenset({"checkpoint_every"})


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
            ours = (folder / _RUN_FILE).is_file()
            if not folder.is_dir() or (any(folder.iterdir()) and not ours):
                raise DataError(
                    f"{folder} is where checkpoints of the training would go, but something else "
                    "is there; move it away, or name another output"
                )
            difference = _difference(folder, settings)
            if resume and difference is None and ours:
                for path in _checkpoints(folder):
                    if not (path / PROGRESS_FILE).is_file():  # a kill left it half-written
                        shutil.rmtree(path)
                return last_checkpoint(folder)
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
    return max(complete, key=lambda path: int(path.name.removeprefix(_PREFIX)), default=None)


def _checkpoints(folder: Path) -> list[Path]:
    found = folder.glob(f"{_PREFIX}*")
    return [path for path in found if path.name.removeprefix(_PREFIX).isdecimal()]


def _difference(folder: Path, settings: Mapping[str, str]) -> str | None:
    """Name the first setting that differs, None where all agree."""
    file = folder / _RUN_FILE
    if not file.is_file():
        return None
    expected, remedy = "the settings of a training", f"delete {folder}"
    before = read_json(file, expected, remedy=remedy)
    if not isinstance(before, dict):
        raise DataError(f"{file} is not {expected}; {remedy}")
    for name in sorted({*before, *settings} - _MAY_DIFFER):
        if before.get(name) != settings.get(name):
            was, now = (given.get(name, "left out") for given in (before, settings))
            return f"{name} {was}, not {now}"
    return None
