"""Train an encoder on twins until it treats sources alike: trainer, one run, and the call."""

import random
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rag_sourcebias.neural.loading import (
    SentenceEncoder,
    checked_output,
    find_encoder,
    library_versions,
    load_sentence_model,
    pick_device,
    quiet,
    require_torch,
)

# ruff: noqa: E402 - the message on a missing extra must come before torch is imported
require_torch("debiased training")

import torch
from safetensors import SafetensorError
from sentence_transformers import (
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.sentence_transformer.data_collator import (
    SentenceTransformerDataCollator,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import cos_sim, dot_score
from torch import Tensor
from transformers import PrinterCallback, TrainerCallback

from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.errors import DataError, TrainingDivergedError, import_extra
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.core.tags import training_pairs
from rag_sourcebias.core.training import TrainingHistory
from rag_sourcebias.neural.losses import DebiasedRankingLoss
from rag_sourcebias.neural.training_data import (
    TrainingColumns,
    TrainingSettings,
    data_identity,
    model_card,
    training_columns,
    write_history,
)
from rag_sourcebias.neural.training_state import (
    Progress,
    last_checkpoint,
    open_run,
)

# The trainer of sentence-transformers, with our batches and checkpoints.

WRITING_ERRORS = (OSError, SafetensorError, RuntimeError)
"""What writing a model raises on a full disk, torch's own writer included."""

_DOCUMENT_PROMPTS = ("document", "passage", "corpus")  # as encode_document looks for them


class DebiasTrainer(SentenceTransformerTrainer):  # type: ignore[misc] # not typed here
    """Trains on planned batches; checkpoints count only when complete and finite.

    Parameters
    ----------
    model : SentenceTransformer
    columns : TrainingColumns
    settings : TrainingSettings
    progress : Progress
        Holds the loss.
    folder : Path
        For checkpoints.
    on_progress : callable, optional
        Told ``(step, steps)``.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - torch is not typed here
        columns: TrainingColumns,
        settings: TrainingSettings,
        *,
        progress: Progress,
        folder: Path,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        from datasets import Dataset  # type: ignore[import-untyped]

        self._batches = columns.batches
        self._progress = progress
        device = str(model.device)
        steps = len(columns.batches)
        precision = resolved_precision(settings, device)
        super().__init__(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=str(folder),
                max_steps=steps,
                per_device_train_batch_size=settings.batch_size,
                learning_rate=settings.learning_rate,
                warmup_steps=round(settings.warmup_ratio * steps),
                seed=settings.seed,
                bf16=precision == "bf16",
                use_cpu=device.startswith("cpu"),
                dataloader_pin_memory=not device.startswith("cpu"),
                eval_strategy="no",
                logging_strategy="no",
                save_strategy="steps",
                save_steps=settings.checkpoint_every,
                save_total_limit=2,
                report_to=[],
                disable_tqdm=True,
            ),
            train_dataset=Dataset.from_dict(dict(columns.texts)),
            loss=progress.loss,
            data_collator=_collator(model, list(columns.texts), settings.max_length),
            callbacks=[_Steps(progress, on_progress)],
        )
        self.remove_callback(PrinterCallback)

    def get_batch_sampler(self, dataset: Any, *_: object, **__: object) -> DefaultBatchSampler:  # noqa: ANN401
        """Return the planned batches."""
        return _Planned(dataset, self._batches)

    def add_model_card_callback(self, _defaults: dict[str, Any]) -> None:
        """Add none: it would encode examples and describe the data for a card that is not kept."""

    def _save_checkpoint(self, model: Any, trial: Any) -> None:  # noqa: ANN401
        step = self.state.global_step
        check_finite_weights(self.model, step)
        folder = Path(self.args.output_dir) / f"checkpoint-{step}"
        try:
            super()._save_checkpoint(model, trial)
            self._progress.write(folder)
        except (*WRITING_ERRORS, DataError) as error:
            shutil.rmtree(folder, ignore_errors=True)  # a full disk gets its space back
            raise unwritable(folder, error) from error


class _Steps(TrainerCallback):  # type: ignore[misc] # not typed here
    def __init__(self, progress: Progress, told: Callable[[int, int], None] | None) -> None:
        self._progress = progress
        self._told = told

    def on_step_end(self, _args: object, state: Any, _control: object, **_: object) -> None:  # noqa: ANN401
        self._progress.stepped(state.global_step)
        if self._told is not None:
            self._told(state.global_step, state.max_steps)


class _Planned(DefaultBatchSampler):  # type: ignore[misc] # not typed here
    def __init__(self, dataset: Any, batches: Any) -> None:  # noqa: ANN401
        super().__init__(dataset, batch_size=batches.shape[1], drop_last=True)
        self._batches = batches.tolist()

    def __iter__(self) -> Any:  # noqa: ANN401
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)


def check_finite_weights(model: Any, step: int) -> None:  # noqa: ANN401 - torch is not typed here
    """Raise :class:`TrainingDivergedError` if a weight is not a finite number."""
    for name, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            raise TrainingDivergedError(
                f"weights of {name} are not finite after training step {step}. Accepted are finite "
                "ones: lower the learning rate or the debias weight, or train in float32",
                step=step,
            )


def unwritable(folder: Path, error: Exception) -> DataError:
    """Return the error for a folder that could not be written."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DataError(f"{folder} cannot be written: {reason.strip().partition(chr(10))[0]}")


def resolved_precision(settings: TrainingSettings, device: str) -> str:
    """Return ``"float32"`` or ``"bf16"``.

    Raises
    ------
    DataError
        If the device cannot train in what the settings ask for.
    """
    on_gpu = not device.startswith("cpu")
    bf16 = not on_gpu or not device.startswith("cuda") or torch.cuda.is_bf16_supported()
    if settings.precision == "auto":
        return "bf16" if on_gpu and bf16 else "float32"
    if settings.precision == "bf16" and not bf16:
        raise DataError(f"device {device!r} has no bf16; accepted is float32")
    return settings.precision


def _collator(
    model: Any,  # noqa: ANN401
    columns: list[str],
    max_length: int | None,
) -> SentenceTransformerDataCollator:
    """Texts are prepared as encode_query and encode_document do, cut at ``max_length``."""
    document = next((name for name in _DOCUMENT_PROMPTS if name in model.prompts), "")
    sides = {name: "query" if name == "query" else document for name in columns}
    return SentenceTransformerDataCollator(
        preprocess_fn=model.preprocess,
        prompts={
            name: prompt for name, side in sides.items() if (prompt := model.prompts.get(side))
        },
        max_length=max_length,
    )


# One run of a debiased training, from a loaded model to a written folder.


_AGAIN = "the same call goes on from there"


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """Where a training keeps what it has, and what it says when it ends early.

    Parameters
    ----------
    place : Path
        Of the output.
    settings : TrainingSettings
    on_stage : callable
    """

    place: Path
    settings: TrainingSettings
    on_stage: Callable[[str], None]

    @property
    def folder(self) -> Path:
        """Where checkpoints are kept until the output is complete: beside it."""
        return self.place.with_name(f"{self.place.name}.training")

    def train(
        self,
        live: Any,  # noqa: ANN401 - torch is not typed here
        columns: TrainingColumns,
        checkpoint: Path | None,
        on_progress: Callable[[int, int], None] | None,
    ) -> Progress:
        """Train the loaded model to the end of the planned steps."""
        settings = self.settings
        cosine = settings.similarity == "cosine"
        rank = MultipleNegativesRankingLoss(
            live, scale=20.0 if cosine else 1.0, similarity_fct=cos_sim if cosine else dot_score
        )
        loss = DebiasedRankingLoss(rank, settings.hinge, rank_columns=settings.rank_columns)
        progress = Progress(loss, eval_every=settings.eval_every)
        trainer = DebiasTrainer(
            live,
            columns,
            settings,
            progress=progress,
            folder=self.folder,
            on_progress=on_progress,
        )
        with self._explained(), quiet():
            if checkpoint is None:
                progress.add_point()
            else:
                progress.read(checkpoint)
            self.on_stage(f"training, step {progress.step} of {len(columns.batches)}")
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
            check_finite_weights(live, progress.step)
            progress.add_point()
        return progress

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except TrainingDivergedError as error:
            left = self._left("train anew with other settings, and resume=False or another output")
            raise TrainingDivergedError(f"{error}. {left}", step=error.step) from error
        except DataError as error:
            raise DataError(f"{error}. {self._left(_AGAIN)}") from error
        except KeyboardInterrupt as error:
            message = f"training was interrupted. {self._left(_AGAIN)}"
            self.on_stage(message)
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
        card = model_card(history, model=model, data=data)
        self.on_stage(f"writing {self.place}")
        try:
            with tempfile.TemporaryDirectory(
                prefix=f".{self.place.name}-", dir=self.place.parent, ignore_cleanup_errors=True
            ) as scratch:
                made = Path(scratch) / self.place.name
                live.save_pretrained(str(made), create_model_card=False)
                (made / "README.md").write_text(card, encoding="utf-8")
                write_history(history, made)
                made.rename(checked_output(self.place))
        except DataError as error:
            raise DataError(f"{error}. {self._left(_AGAIN)}") from error
        except WRITING_ERRORS as error:
            raise DataError(f"{unwritable(self.place, error)}. {self._left(_AGAIN)}") from error
        shutil.rmtree(self.folder, ignore_errors=True)


def load_trainable(folder: Path) -> Any:  # noqa: ANN401 - torch is not typed here
    """Load a model in float32.

    Raises
    ------
    DataError
        If it is no model of sentence-transformers that makes one vector of a text.
    """
    model = load_sentence_model("SentenceTransformer", folder, "float32", None)
    model.model_card_data.local_files_only = True  # cards of checkpoints must not ask a hub
    with torch.no_grad():
        features = model.preprocess(["text"])
        made = model(
            {k: v.to(model.device) if isinstance(v, Tensor) else v for k, v in features.items()}
        )
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


# Train an encoder on twins until it treats sources alike.


class TrainedModel(NamedTuple):
    """A model folder and how it came about."""

    path: Path
    history: TrainingHistory


def train_debiased(
    model: str | Path,
    dataset: Dataset,
    output: str | Path,
    *,
    settings: TrainingSettings | None = None,
    baseline: str = "human",
    source: str | None = None,
    exclude: Collection[str] = (),
    resume: bool = True,
    untrained: Encoder | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> TrainedModel:
    """Train an encoder with a ranking loss and the debiasing hinge ([K] Eq. 1–2).

    The output is an ordinary sentence-transformers model folder with a model card, and appears
    only when it is complete. Until then checkpoints are kept beside it, in ``<output>.training``:
    the same call goes on from the last one, with the result of a run that was never interrupted.
    On the CPU the same seed gives the same weights.

    Parameters
    ----------
    model : str or Path
        As for :class:`SentenceEncoder`. Needs a pooling module, or embeds texts as a whole.
    dataset : Dataset
        Paired data with judgments: a pair is trained on with each query it is relevant to.
    output : str or Path
        Folder to write; must not exist.
    settings : TrainingSettings, optional
    baseline : str
        Source of the originals.
    source : str, optional
        LLM source; may be left out where only one has pairs.
    exclude : collection of str
        Pair ids to leave out of training.
    resume : bool
        Go on from a checkpoint; without it, what an interrupted training left is deleted.
    untrained : Encoder, optional
        Finds the hard negatives; the same model with cached vectors saves its encoding.
    on_stage, on_progress : callable, optional
        Told what is going on, and ``(step, steps)``.

    Raises
    ------
    DataError
        If the output exists or cannot be written (a full disk keeps the last checkpoint), the
        model cannot be loaded or trained, the data has no pairs, or an interrupted training with
        other settings is there.
    InsufficientDataError
        If there are too few pairs for one batch.
    TrainingDivergedError
        If the loss or a weight is not finite any more; names the last good checkpoint.
    MissingExtraError
        If the libraries are not installed.
    KeyboardInterrupt
        With what was kept, when the user interrupts.
    """
    settings = settings or TrainingSettings()
    place = checked_output(output)
    pairs = training_pairs(
        dataset,
        source=source,
        baseline=baseline,
        min_grade=settings.min_grade,
        exclude=exclude,
    )
    for package in ("datasets", "accelerate"):
        import_extra(package, package, "neural", "debiased training")
    named = SentenceEncoder(model, normalize=settings.similarity == "cosine")
    device = pick_device(None)
    stated = {
        **settings.to_dict(),
        "precision": resolved_precision(settings, device),
        "device": device,
        "model": f"{named.name} ({named.fingerprint.split(':')[1]})",
        "negatives found with": named.name if untrained is None else untrained.fingerprint,
        **library_versions(),
        "data": data_identity(dataset, pairs),
        "sources": f"{pairs.twins.baseline}, {pairs.twins.source}",
    }
    run = TrainingRun(
        place=place,
        settings=settings,
        on_stage=on_stage or (lambda _: None),
    )
    checkpoint = open_run(run.folder, stated, resume=resume)
    with seeded(settings.seed):
        live = load_trainable(find_encoder(model).path)
        run.on_stage(f"choosing pairs and hard negatives of {dataset.name}")
        columns = training_columns(dataset, pairs, settings, untrained or named)
        progress = run.train(live, columns, checkpoint, on_progress)
    history = TrainingHistory(
        name=place.name,
        debias_weight=settings.debias_weight,
        seed=settings.seed,
        n_pairs=len(columns),
        n_steps=progress.step,
        seconds=progress.seconds,
        settings=stated,
        points=tuple(progress.points),
    )
    run.write(live, history, model=named.name, data=dataset.name)
    return TrainedModel(path=place, history=history)
