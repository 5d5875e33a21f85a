"""Train an encoder on twins until it treats sources alike."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from rag_sourcebias.errors import MissingExtraError
from rag_sourcebias.mitigate.twin_texts import TrainingPairs, training_pairs
from rag_sourcebias.neural.encoder import SentenceEncoder
from rag_sourcebias.neural.loading import (
    find_model,
    library_versions,
    pick_device,
    require_torch,
)
from rag_sourcebias.neural.packaged import ENCODERS
from rag_sourcebias.neural.train_checkpoints import checked_output, open_run
from rag_sourcebias.neural.train_columns import data_identity, training_columns
from rag_sourcebias.neural.train_history import read_history
from rag_sourcebias.neural.train_judge import LiveEncoder, SkewJudge
from rag_sourcebias.neural.train_settings import TrainingSettings
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.debias_report import DebiasConfig
from rag_sourcebias.types.debias_training import TrainingHistory

__all__ = ["TrainedModel", "TrainingSettings", "read_history", "train_debiased"]


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A model folder and how it came about."""

    path: Path
    history: TrainingHistory


def train_debiased(
    model: str | Path,
    dataset: Dataset,
    output: str | Path,
    *,
    settings: TrainingSettings | None = None,
    judge: Dataset | None = None,
    config: DebiasConfig | None = None,
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
    judge : Dataset, optional
        Data the skew is measured on before and after (and every ``eval_every`` steps). It is
        encoded anew each time.
    config : DebiasConfig, optional
        Baseline source, and the cutoff of the skew.
    source : str, optional
        LLM source; may be left out where only one has pairs.
    exclude : collection of str
        Pair ids to leave out of training.
    resume : bool
        Go on from a checkpoint; without it, what an interrupted training left is deleted.
    untrained : Encoder, optional
        Finds the hard negatives (and scores for regressions) in place of the model itself: the
        same model with cached vectors saves its encoding of the corpus.
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
    config = config or DebiasConfig()
    place = checked_output(output)
    pairs = training_pairs(
        dataset,
        source=source,
        baseline=config.baseline_source,
        min_grade=settings.min_grade,
        exclude=exclude,
    )
    judged = (
        SkewJudge(judge, config, source=pairs.twins.source, similarity=settings.similarity)
        if judge is not None
        else None
    )
    require_torch("debiased training")
    _require_training()
    from rag_sourcebias.neural.train_run import TrainingRun, load_trainable, seeded

    named = SentenceEncoder(model, normalize=settings.similarity == "cosine")
    stated = _stated(settings, named, untrained) | _data_stated(dataset, pairs, judged)
    run = TrainingRun(place=place, settings=settings, judge=judged, on_stage=on_stage)
    checkpoint = open_run(run.folder, stated, resume=resume)
    with seeded(settings.seed):
        live = load_trainable(_folder(model))
        used = untrained or LiveEncoder(
            live, name=named.name, fingerprint=named.fingerprint, normalize=named.normalize
        )
        run.tell(f"choosing pairs and hard negatives of {dataset.name}")
        columns = training_columns(dataset, pairs, settings, used, folder=run.folder)
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


def _stated(
    settings: TrainingSettings, named: SentenceEncoder, untrained: Encoder | None
) -> dict[str, str]:
    from rag_sourcebias.neural.train_trainer import resolved_precision

    device = pick_device(None)
    return {
        **settings.to_dict(),
        "precision": resolved_precision(settings, device),
        "device": device,
        "model": f"{named.name} ({named.fingerprint.split(':')[1]})",
        "negatives found with": named.name if untrained is None else untrained.fingerprint,
        **library_versions(),
    }


def _data_stated(dataset: Dataset, pairs: TrainingPairs, judge: SkewJudge | None) -> dict[str, str]:
    return {
        "data": data_identity(dataset, pairs),
        "sources": f"{pairs.twins.baseline}, {pairs.twins.source}",
        "judged on": (
            "nothing" if judge is None else f"{judge.dataset.name} @{judge.config.skew_cutoff}"
        ),
    }


def _folder(model: str | Path) -> Path:
    packaged = ENCODERS.get(str(model))
    path = None if packaged is None else packaged.find()
    return path or find_model(model, packaged="all-MiniLM-L6-v2").path


def _require_training() -> None:
    """Raise unless the libraries of the trainer are installed.

    Raises
    ------
    MissingExtraError
    """
    for package in ("datasets", "accelerate"):
        try:
            __import__(package)
        except ModuleNotFoundError as error:
            if error.name != package:
                raise
            raise MissingExtraError(
                package=package, extra="neural", feature="debiased training"
            ) from error
