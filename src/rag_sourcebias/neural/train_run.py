"""One run of a debiased training, from a loaded model to a written folder."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from rag_sourcebias.errors import DataError, TrainingDivergedError
from rag_sourcebias.neural.loading import pick_device, quiet
from rag_sourcebias.neural.train_card import model_card
from rag_sourcebias.neural.train_checkpoints import checked_output, last_checkpoint, run_folder
from rag_sourcebias.neural.train_columns import TrainingColumns
from rag_sourcebias.neural.train_history import write_history
from rag_sourcebias.neural.train_judge import SkewJudge
from rag_sourcebias.neural.train_losses import debiased_loss
from rag_sourcebias.neural.train_progress import Progress
from rag_sourcebias.neural.train_settings import TrainingSettings
from rag_sourcebias.neural.train_trainer import (
    WRITING_ERRORS,
    DebiasTrainer,
    check_finite_weights,
    unwritable,
)
from rag_sourcebias.types.debias_training import TrainingHistory

__all__ = ["TrainingRun", "load_trainable", "seeded"]

_AGAIN = "the same call goes on from there"


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """Where a training keeps what it has, and what it says when it ends early.

    Parameters
    ----------
    place : Path
        Of the output.
    settings : TrainingSettings
    judge : SkewJudge or None
    on_stage : callable or None
    """

    place: Path
    settings: TrainingSettings
    judge: SkewJudge | None
    on_stage: Callable[[str], None] | None

    @property
    def folder(self) -> Path:
        """Where checkpoints are kept."""
        return run_folder(self.place)

    def tell(self, stage: str) -> None:
        """Tell the caller what is going on."""
        if self.on_stage is not None:
            self.on_stage(stage)

    def train(
        self,
        live: Any,  # noqa: ANN401 - torch is not typed here
        columns: TrainingColumns,
        checkpoint: Path | None,
        on_progress: Callable[[int, int], None] | None,
    ) -> Progress:
        """Train the loaded model to the end of the planned steps."""
        progress = Progress(
            debiased_loss(live, self.settings),
            self.judge,
            eval_every=self.settings.eval_every,
            on_stage=self.on_stage,
        )
        trainer = DebiasTrainer(
            live,
            columns,
            self.settings,
            progress=progress,
            folder=self.folder,
            on_progress=on_progress,
        )
        with self._explained(), quiet():
            if checkpoint is None:
                progress.add_point(live)
            else:
                progress.read(checkpoint)
            self.tell(f"training, step {progress.step} of {len(columns.batches)}")
            progress.run()
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
            progress.pause()
            check_finite_weights(live, progress.step)
            progress.add_point(live)
        return progress

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what is left when training ends early."""
        try:
            yield
        except TrainingDivergedError as error:
            left = self._left("train anew with other settings, and resume=False or another output")
            raise TrainingDivergedError(f"{error}. {left}", step=error.step) from error
        except DataError as error:
            raise DataError(f"{error}. {self._left(_AGAIN)}") from error
        except KeyboardInterrupt as error:
            message = f"training was interrupted. {self._left(_AGAIN)}"
            self.tell(message)
            raise KeyboardInterrupt(message) from error

    def _left(self, advice: str) -> str:
        last = last_checkpoint(self.folder)
        if last is None:
            return (
                f"No checkpoint was written before: the untrained model is the last good; {advice}"
            )
        return f"The last good checkpoint is {last}, a model folder that can be loaded; {advice}"

    def write(self, live: Any, history: TrainingHistory, *, model: str, data: str) -> None:  # noqa: ANN401
        """Write the model beside its place and move it there."""
        card = model_card(
            history,
            model=model,
            data=data,
            judged="" if self.judge is None else self.judge.dataset.name,
            cutoff=0 if self.judge is None else self.judge.config.skew_cutoff,
        )
        self.tell(f"writing {self.place}")
        scratch = None
        try:
            scratch = Path(tempfile.mkdtemp(prefix=f".{self.place.name}-", dir=self.place.parent))
            made = scratch / self.place.name
            live.save_pretrained(str(made), create_model_card=False)
            (made / "README.md").write_text(card, encoding="utf-8")
            write_history(history, made)
            made.rename(checked_output(self.place))
        except DataError as error:
            raise DataError(f"{error}. {self._left(_AGAIN)}") from error
        except WRITING_ERRORS as error:
            raise DataError(f"{unwritable(self.place, error)}. {self._left(_AGAIN)}") from error
        finally:
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def load_trainable(folder: Path) -> Any:  # noqa: ANN401 - torch is not typed here
    """Load a model in float32.

    Raises
    ------
    DataError
        If it is no model of sentence-transformers that makes one vector of a text.
    """
    try:
        with quiet():
            model = SentenceTransformer(
                str(folder),
                device=pick_device(None),
                local_files_only=True,
                model_kwargs={"dtype": torch.float32},
            )
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise DataError(
            f"{folder} cannot be loaded as a sentence-transformers model ({reason})"
        ) from error
    model.model_card_data.local_files_only = True  # cards of checkpoints must not ask a hub
    with torch.no_grad():
        features = model.preprocess(["text"])
        moved = {k: v.to(model.device) if isinstance(v, Tensor) else v for k, v in features.items()}
        made = model.eval()(moved)
    if "sentence_embedding" not in made:
        raise DataError(
            f"{folder} has no pooling module and makes no vector of a text; add one "
            "(sentence_transformers.models.Pooling) and save the model again"
        )
    return model


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed every generator, and leave the caller's as they were."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002 - the trainer seeds it
    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002
