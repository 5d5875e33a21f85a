"""``debias search``: the strength, offset or weight with the least skew that keeps quality."""

from __future__ import annotations

import math

from rag_sourcebias.cli import debias_options as opt
from rag_sourcebias.cli import debias_train_options as run
from rag_sourcebias.cli.checks import choice
from rag_sourcebias.cli.console import stages
from rag_sourcebias.cli.debias_choice import conclude, measured_choice
from rag_sourcebias.cli.debias_job import prepare
from rag_sourcebias.cli.debias_judging import Figures
from rag_sourcebias.cli.debias_methods import projection_choice
from rag_sourcebias.cli.debias_models import model_of, require_new
from rag_sourcebias.cli.debias_training import read_settings, training_settings
from rag_sourcebias.cli.debias_tried import TriedOffsets, TriedStrengths, TriedSystems
from rag_sourcebias.cli.debias_weights import tried_weights
from rag_sourcebias.cli.specs import SpecBuilder
from rag_sourcebias.cli.spread import spread
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import cache_dir

__all__ = ["search"]

_VALUES = {
    "strength": "0,0.25,0.5,0.75,1",
    "offset": "0,0.25,0.5,0.75,1,1.25",
    "weight": "0,0.003,0.01,0.03",
}
_LARGEST = {"strength": 1.0}
_MIN_SEEDS = 3


@spread
def search(
    folder: opt.Folder = None,
    *,
    encoder: opt.Encoder,
    output: run.SearchOutput,
    over: run.Over = "strength",
    values: run.Values = None,
    seeds: run.Seeds = 3,
    training: run.Training = None,
    method: opt.Method = "pca",
    directions: opt.Directions = None,
    sides: opt.Sides = "both",
    form: opt.Form = "offset",
    sample: opt.Sample = False,
    split: opt.Split = "train",
    source: opt.Source = None,
    baseline_source: opt.BaselineSource = "human",
    unseen: opt.Unseen = False,
    judge: opt.Judge = None,
    figures: Figures,
    seed: opt.Seed = 0,
    report: opt.ReportFolder = None,
    cache: opt.Cache = None,
) -> None:
    r"""Find the value with the least skew among those that keep quality, and write that model.

    Measures Relative Δ and three qualities at every value on the first judged data, and admits a
    value only where one-sided tests exclude a loss of --margin in each. If none is admitted,
    nothing is written and the exit code is 1.

    [bold]Examples[/]

        rag-sourcebias debias search my-data --encoder all-MiniLM-L6-v2 --output my-model

        rag-sourcebias debias search my-data --over offset --judge my-data:dev --judge other-data \
            --encoder all-MiniLM-L6-v2 --output parity.json --report report

        rag-sourcebias debias search my-data --over weight --values 0,0.003,0.01,0.03 --seeds 3 \
            --training max_steps=300 --encoder all-MiniLM-L6-v2 --output my-model
    """
    numbers = search_values(choice("over", over, tuple(_VALUES)), values or _VALUES[over])
    chosen = projection_choice(method, directions, sides)
    kind = choice("form", form, ("offset", "quantiles"))
    if seeds < _MIN_SEEDS:
        raise DataError(f"--seeds {seeds}: at least {_MIN_SEEDS}, to tell luck from effect")
    if training and over != "weight":
        raise DataError("--training goes with --over weight")
    require_new("output", output, what="file" if over == "offset" else "folder")
    model = model_of(encoder)
    job = prepare(
        folder, sample=sample, split=split, source=source, judge=judge, report=report,
        unseen=unseen, figures=figures, seed=seed, baseline_source=baseline_source,
    )  # fmt: skip
    place = cache or cache_dir()
    with stages() as progress:
        before = SpecBuilder(place, progress.advance).encoder(encoder)
        progress.begin(f"fitting on {job.fitting.name}")
        tried: TriedSystems
        if over == "strength":
            tried = TriedStrengths(job, model, before, numbers, chosen)
        elif over == "offset":
            tried = TriedOffsets(job, before, numbers, kind)
        else:
            tried = tried_weights(
                job, before, numbers, model=model, seeds=range(seed, seed + seeds),
                settings=training_settings(**read_settings(training)), output=output,
                cache=place, progress=progress,
            )  # fmt: skip
        measured = measured_choice(job, before, tried, output, progress)
    job.judged.deliver(measured)
    conclude(measured.search, tried.searched, output)


def search_values(over: str, text: str) -> list[float]:
    """Read the numbers to try; 0 is added, as it is what the others are compared with."""
    try:
        found = sorted({0.0, *(float(part) for part in text.split(",") if part.strip())})
    except ValueError:
        raise DataError(
            f"--values {text!r}: write numbers separated by commas, as 0,0.5,1"
        ) from None
    largest = _LARGEST.get(over, math.inf)
    bad = [value for value in found if not (math.isfinite(value) and 0 <= value <= largest)]
    if bad or len(found) < 2:
        raise DataError(
            f"--values {text!r}: --over {over} takes numbers from 0"
            + (f" to {largest:g}" if largest < math.inf else "")
            + " and at least one above 0"
        )
    return found
