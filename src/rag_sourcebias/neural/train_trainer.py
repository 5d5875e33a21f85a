"""The trainer of sentence-transformers, with our batches and checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError, TrainingDivergedError
from rag_sourcebias.neural.loading import require_torch
from rag_sourcebias.neural.train_columns import TrainingColumns
from rag_sourcebias.neural.train_progress import Progress
from rag_sourcebias.neural.train_settings import TrainingSettings

# ruff: noqa: E402 - the message on a missing extra must come before torch is imported
require_torch("debiased training")

import torch
from safetensors import SafetensorError
from sentence_transformers import (
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.modules import Router
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.sentence_transformer.data_collator import (
    SentenceTransformerDataCollator,
)
from transformers import PrinterCallback, TrainerCallback

__all__ = [
    "WRITING_ERRORS",
    "DebiasTrainer",
    "check_finite_weights",
    "resolved_precision",
    "unwritable",
]

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
        data: dict[str, Any] = dict(columns.texts)
        if columns.labels is not None:
            data["label"] = columns.labels.tolist()
        super().__init__(
            model=model,
            args=_arguments(settings, model, folder, len(columns.batches)),
            train_dataset=Dataset.from_dict(data),
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

    def on_step_end(self, _args: object, state: Any, _control: object, **given: Any) -> None:  # noqa: ANN401
        """Note the step."""
        self._progress.stepped(state.global_step, given["model"])
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
    """Return ``"float32"``, ``"bf16"`` or ``"fp16"``.

    Raises
    ------
    DataError
        If the device cannot train in what the settings ask for.
    """
    on_gpu = not device.startswith("cpu")
    bf16 = not on_gpu or not device.startswith("cuda") or torch.cuda.is_bf16_supported()
    if settings.precision == "auto":
        return ("bf16" if bf16 else "fp16") if on_gpu else "float32"
    if settings.precision == "fp16" and not on_gpu:
        raise DataError("precision 'fp16' needs a GPU; accepted on the CPU are float32 and bf16")
    if settings.precision == "bf16" and not bf16:
        raise DataError(f"device {device!r} has no bf16; accepted are fp16 and float32")
    return settings.precision


def _arguments(
    settings: TrainingSettings,
    model: Any,  # noqa: ANN401
    folder: Path,
    steps: int,
) -> SentenceTransformerTrainingArguments:
    device = str(model.device)
    precision = resolved_precision(settings, device)
    return SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        warmup_steps=round(settings.warmup_ratio * steps),
        weight_decay=settings.weight_decay,
        seed=settings.seed,
        bf16=precision == "bf16",
        fp16=precision == "fp16",
        use_cpu=device.startswith("cpu"),
        dataloader_pin_memory=not device.startswith("cpu"),
        eval_strategy="no",
        logging_strategy="no",
        save_strategy="steps",
        save_steps=settings.checkpoint_every,
        save_total_limit=2,
        report_to=[],
        disable_tqdm=True,
    )


def _collator(
    model: Any,  # noqa: ANN401
    columns: list[str],
    max_length: int | None,
) -> SentenceTransformerDataCollator:
    """Texts are prepared as encode_query and encode_document do, cut at ``max_length``."""
    sides = {name: "query" if name == "query" else "document" for name in columns}
    document = next((name for name in _DOCUMENT_PROMPTS if name in model.prompts), "")
    prompts = {"query": model.prompts.get("query"), "document": model.prompts.get(document)}
    routed = any(isinstance(module, Router) for module in model.children())
    return SentenceTransformerDataCollator(
        preprocess_fn=model.preprocess,
        prompts={name: prompts[side] for name, side in sides.items() if prompts[side]},
        router_mapping=sides if routed else {},
        max_length=max_length,
    )
