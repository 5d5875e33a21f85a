"""Encoders trained with the debiasing hinge, one run per weight and seed, kept when finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.core.training import TrainingHistory
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.neural.train import train_debiased
from rag_sourcebias.neural.training_data import TrainingSettings, read_history
from rag_sourcebias.retrieval.cache import CachedEncoder, VectorCache
from rag_sourcebias.retrieval.search import DenseSpec

MODEL = "all-MiniLM-L6-v2"
WEIGHTS = (0.0, 0.01, 0.1, 1.0)
SEEDS = (0, 1, 2)
Stage = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """A finished training."""

    weight: float
    seed: int
    place: Path
    history: TrainingHistory

    def spec(self, vectors: Path) -> DenseSpec:
        """Judged in the precision it was trained in: in float32 a run takes twice as long."""
        low = self.history.settings["precision"] == "bf16"
        encoder = SentenceEncoder(self.place, dtype="bfloat16" if low else "float32")
        return DenseSpec(CachedEncoder(encoder, VectorCache(vectors)))


def settings_of(weight: float, seed: int, *, steps: int, precision: str) -> TrainingSettings:
    """Triples as they are, no further negatives."""
    return TrainingSettings(
        debias_weight=weight,
        reduction="sum",
        scale=20.0,
        rank_columns="human",
        batch_size=16,
        max_steps=steps,
        max_length=128,
        hard_negatives=0,
        seed=seed,
        precision=precision,
        checkpoint_every=50,
    )


def runs(
    train: Dataset,
    encoder: Encoder,
    work: Path,
    *,
    weights: Sequence[float],
    seeds: Sequence[int],
    steps: int,
    precision: str,
    only_finished: bool,
    stage: Stage,
) -> Iterator[Run]:
    """Every run, seed by seed, so that an interrupted study has whole seeds.

    A run that is there is read; one that was interrupted goes on from its last checkpoint.
    """
    folder = work / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for weight in weights:
            place = folder / f"weight-{weight:g}-seed-{seed}-steps-{steps}-{precision}"
            if place.is_dir():
                yield Run(weight, seed, place, read_history(place))
            elif not only_finished:
                stage(f"training: weight {weight:g}, seed {seed}")
                trained = train_debiased(
                    MODEL,
                    train,
                    place,
                    settings=settings_of(weight, seed, steps=steps, precision=precision),
                    untrained=encoder,
                    on_stage=stage,
                    on_progress=lambda done, total: (
                        None if done % 25 else stage(f"  step {done} of {total}")
                    ),
                )
                yield Run(weight, seed, trained.path, trained.history)
