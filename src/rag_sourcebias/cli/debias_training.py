"""One training of ``debias train``, or of the many of ``debias search --over weight``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_sourcebias.cli.console import Stages, err
from rag_sourcebias.cli.debias_job import Job
from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.twin_texts import training_pairs
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.types import DebiasMethod, TrainingHistory

if TYPE_CHECKING:
    from rag_sourcebias.neural.train import TrainedModel
    from rag_sourcebias.neural.train_settings import TrainingSettings

__all__ = ["read_settings", "train_model", "trained_model", "training_method", "training_settings"]

# These leave the result as it is, or are resolved by the machine.
_MAY_DIFFER = frozenset({"checkpoint_every", "precision"})


def train_model(
    job: Job,
    model: str,
    settings: TrainingSettings,
    output: Path,
    *,
    untrained: Encoder,
    progress: Stages,
    judge: bool,
    resume: bool = True,
) -> TrainedModel:
    """Train one model; ``judge`` measures its skew on the first judged data."""
    from rag_sourcebias.neural.train import train_debiased

    progress.begin(f"training {output.name} on {len(job.twins):,} pairs of {job.fitting.name}")
    return train_debiased(
        model,
        job.fitting.judged,
        output,
        settings=settings,
        judge=job.judged.datasets[0] if judge else None,
        config=job.judged.config,
        source=job.source,
        exclude=job.excluded,
        resume=resume,
        untrained=untrained,
        on_stage=progress.begin,
        on_progress=progress.advance,
    )


def training_method(
    history: TrainingHistory, name: str, *, fitted_on: str, encode_cost: float | None = None
) -> DebiasMethod:
    """Return the row of a trained model in a report."""
    return DebiasMethod(
        name=name,
        kind="training",
        settings=history.settings,
        fitted_on=fitted_on,
        n_pairs=history.n_pairs,
        encode_cost=encode_cost,
    )


def training_settings(**values: Any) -> TrainingSettings:  # noqa: ANN401 - checked there
    """Return settings of a training; texts are checked to be among those accepted."""
    from rag_sourcebias.neural.train_settings import TrainingSettings

    return TrainingSettings(**values)


def read_settings(text: str | None) -> dict[str, Any]:
    """Read ``name=value,…`` as settings of a training; weight and seed are searched over."""
    from rag_sourcebias.neural.train_settings import TrainingSettings

    known = {f.name: f for f in fields(TrainingSettings)}
    del known["debias_weight"], known["seed"]
    found: dict[str, Any] = {}
    for part in (p.strip() for p in (text or "").split(",") if p.strip()):
        name, _, value = part.partition("=")
        if name not in known or not value:
            raise DataError(
                f"--training {part!r}: write settings as name=value; there are {', '.join(known)}"
            )
        kind = str(known[name].type)
        try:
            number = {"int": int, "float": float}.get(kind.removesuffix(" | None"), str)
            found[name] = number(value)
        except ValueError:
            raise DataError(f"--training {part!r}: {value!r} is not a number of {kind}") from None
    return found


def trained_model(
    job: Job,
    model: str,
    settings: TrainingSettings,
    place: Path,
    *,
    before: Encoder,
    progress: Stages,
) -> TrainingHistory:
    """Train a model of a search, unless that was done; judged only where points are asked for."""
    from rag_sourcebias.neural.train_history import read_history

    if not place.exists():
        judge = settings.eval_every is not None
        return train_model(
            job, model, settings, place, untrained=before, progress=progress, judge=judge
        ).history
    found = read_history(place)
    _check_same(job, settings, found, place, before)
    err.print(f"[dim]·[/] {place.name} is trained already", highlight=False)
    return found


def _check_same(
    job: Job,
    settings: TrainingSettings,
    found: TrainingHistory,
    place: Path,
    before: Encoder,
) -> None:
    """Refuse a model that another search left."""
    from rag_sourcebias.neural.train_columns import data_identity

    pairs = training_pairs(
        job.fitting.judged, source=job.source, baseline=job.baseline, exclude=job.excluded
    )
    asked = {
        **{k: v for k, v in settings.to_dict().items() if k not in _MAY_DIFFER},
        "data": data_identity(job.fitting.judged, pairs),
    }
    there = {**dict.fromkeys(asked, "left out"), **found.settings}
    differing = [f"{k} {there[k]}, not {v}" for k, v in asked.items() if there[k] != v]
    if not found.settings.get("model", "").startswith(f"{before.name} ("):
        differing.append(f"model {found.settings.get('model')}, not {before.name}")
    if differing:
        raise DataError(
            f"{place} was trained with {'; '.join(differing)}: name another --output, or delete "
            f"{place.parent}"
        )
