"""What a training run has seen so far; part of its checkpoints."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import read_json, write_atomic
from rag_sourcebias.neural.debias_hinge import HingeStatistics
from rag_sourcebias.neural.debias_loss import DebiasedRankingLoss
from rag_sourcebias.neural.train_judge import SkewJudge
from rag_sourcebias.types.debias_training import TrainingPoint
from rag_sourcebias.types.serial import from_plain, to_plain

__all__ = ["PROGRESS_FILE", "Progress"]

PROGRESS_FILE = "progress.json"
"""Written last: a checkpoint without it is not complete."""


class Progress:
    """Collects the points of a history.

    Parameters
    ----------
    loss : DebiasedRankingLoss
    judge : SkewJudge, optional
    eval_every : int, optional
    on_stage : callable, optional
        Told what is going on where it takes long.
    """

    def __init__(
        self,
        loss: DebiasedRankingLoss,
        judge: SkewJudge | None,
        *,
        eval_every: int | None,
        on_stage: Callable[[str], None] | None = None,
    ) -> None:
        self.loss = loss
        self.judge = judge
        self.eval_every = eval_every
        self.on_stage = on_stage
        self.step = 0
        self.points: list[TrainingPoint] = []
        self._seconds = 0.0
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """Training time, evaluations left out."""
        running = 0.0 if self._since is None else time.perf_counter() - self._since
        return self._seconds + running

    def run(self) -> None:
        """Start the clock."""
        self._since = time.perf_counter()

    def pause(self) -> None:
        """Stop the clock."""
        self._seconds, self._since = self.seconds, None

    def stepped(self, step: int, model: Any) -> None:  # noqa: ANN401 - torch is not typed here
        """Note a step, and what the model prefers if it is time."""
        self.step = step
        if self.eval_every is not None and step % self.eval_every == 0:
            self.pause()
            self.add_point(model)
            self.run()

    def add_point(self, model: Any) -> None:  # noqa: ANN401
        """Add a point for the step reached, unless it has one."""
        if self.points and self.points[-1].step == self.step:
            return
        skew = None
        if self.judge is not None:
            if self.on_stage is not None:
                self.on_stage(f"judging on {self.judge.dataset.name} after step {self.step}")
            skew = self.judge(model)
        seen = self.loss.reset_statistics()
        self.points.append(
            TrainingPoint(
                step=self.step,
                rank_loss=_number(seen.mean_rank_loss),
                debias_loss=_number(seen.mean_debias_loss),
                hinge_share=_number(seen.hinge_share),
                relative_delta=None if skew is None else skew.relative_delta,
                baseline=None if skew is None else skew.baseline,
                other=None if skew is None else skew.other,
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
        with sound(file, "the progress of a training", remedy=remedy, names_file=False):
            self.step = int(content["step"])
            self._seconds = float(content["seconds"])
            self.loss.step = int(content["forward"])
            self.loss.statistics = HingeStatistics(**content["statistics"])
            self.points = [from_plain(TrainingPoint, point) for point in content["points"]]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
