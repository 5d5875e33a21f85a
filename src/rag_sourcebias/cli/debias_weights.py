"""Train a model per debias weight and seed; those that are finished are not trained again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rag_sourcebias.cli.console import Stages
from rag_sourcebias.cli.debias_job import Job
from rag_sourcebias.cli.debias_models import encode_cost, written_model
from rag_sourcebias.cli.debias_training import trained_model, training_method
from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder, RetrieverSpec
from rag_sourcebias.retrieval import DenseSpec
from rag_sourcebias.types import DebiasMethod, TrainingHistory

if TYPE_CHECKING:
    from rag_sourcebias.audit.debias_search import DebiasVariant
    from rag_sourcebias.neural.train_settings import TrainingSettings

__all__ = ["TriedWeights", "tried_weights"]


class TriedWeights:
    """Models trained at several debias weights, with several seeds each."""

    searched = "debias weight"
    deterministic = False

    def __init__(
        self,
        job: Job,
        before: Encoder,
        variants: Sequence[DebiasVariant],
        histories: dict[tuple[float, int], TrainingHistory],
        folders: dict[tuple[float, int], Path],
    ) -> None:
        self._job = job
        self._before = before
        self.variants = variants
        self._histories = histories
        self._folders = folders
        self.training = tuple(histories.values())

    def system(self, variant: DebiasVariant, name: str) -> RetrieverSpec:
        """Return the trained model."""
        return DenseSpec(cast("DenseSpec", variant.spec).encoder, name=name)

    def write(self, variant: DebiasVariant, path: Path) -> None:
        """Copy the model folder."""
        shutil.copytree(self._folders[_key(variant)], path)

    def method(self, variant: DebiasVariant, name: str, path: Path | None) -> DebiasMethod:
        """Return how the model was trained."""
        cost = None
        if path is not None:
            texts = self._job.twins.baseline_texts
            cost = encode_cost(self._before, cast("DenseSpec", variant.spec).encoder, texts)
        return training_method(
            self._histories[_key(variant)],
            name,
            fitted_on=self._job.fitting.name,
            encode_cost=cost,
        )


def _search_folder(output: Path) -> Path:
    """Return the folder that keeps the models of a search."""
    return output.with_name(f"{output.name}.search")


def tried_weights(
    job: Job,
    before: Encoder,
    values: Sequence[float],
    *,
    model: str,
    seeds: Sequence[int],
    settings: TrainingSettings,
    output: Path,
    cache: Path,
    progress: Stages,
) -> TriedWeights:
    """Train what is missing; weight 0 is the model as it is, for every seed."""
    from rag_sourcebias.audit.debias_search import DebiasVariant

    folder = _search_folder(output)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror or error}") from error
    variants = [DebiasVariant(weight=0.0, spec=DenseSpec(before))]
    histories: dict[tuple[float, int], TrainingHistory] = {}
    folders: dict[tuple[float, int], Path] = {}
    # Seed by seed, so that what an interrupted search leaves spans all weights.
    for seed in seeds:
        for weight in values:
            if not weight:
                continue
            asked = replace(settings, debias_weight=weight, seed=seed)
            place = folder / f"weight-{weight:g}-seed-{seed}"
            key = weight, seed
            folders[key] = place
            histories[key] = trained_model(
                job, model, asked, place, before=before, progress=progress
            )
            trained = written_model(place, cache, progress.advance)
            variants.append(DebiasVariant(weight=weight, spec=DenseSpec(trained), seed=seed))
    return TriedWeights(job, before, variants, histories, folders)


def _key(variant: DebiasVariant) -> tuple[float, int]:
    return variant.weight, variant.seed or 0
