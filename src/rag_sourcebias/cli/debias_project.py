"""``debias project``: a model whose vectors do not show who wrote a text, without training."""

from __future__ import annotations

from pathlib import Path

from rag_sourcebias.cli import debias_options as opt
from rag_sourcebias.cli.console import Stages, err, stages
from rag_sourcebias.cli.debias_job import Job, prepare
from rag_sourcebias.cli.debias_judging import Figures
from rag_sourcebias.cli.debias_methods import (
    ProjectionChoice,
    distinct_name,
    projection_choice,
    projection_settings,
)
from rag_sourcebias.cli.debias_models import (
    encode_cost,
    model_of,
    removed_on_failure,
    require_new,
)
from rag_sourcebias.cli.specs import SpecBuilder
from rag_sourcebias.cli.spread import spread
from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.io import cache_dir
from rag_sourcebias.mitigate.fit import fit_source_projection
from rag_sourcebias.mitigate.projected_encoder import ProjectedEncoder
from rag_sourcebias.mitigate.projection import SourceProjection
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.retrieval import DenseSpec
from rag_sourcebias.types import DebiasMethod, DebiasReport

__all__ = ["project"]


@spread
def project(
    folder: opt.Folder = None,
    *,
    encoder: opt.Encoder,
    output: opt.ModelFolder,
    sample: opt.Sample = False,
    split: opt.Split = "train",
    all_pairs: opt.AllPairs = False,
    source: opt.Source = None,
    baseline_source: opt.BaselineSource = "human",
    unseen: opt.Unseen = False,
    method: opt.Method = "pca",
    directions: opt.Directions = None,
    strength: opt.Strength = 1.0,
    sides: opt.Sides = "both",
    judge: opt.Judge = None,
    figures: Figures,
    seed: opt.Seed = 0,
    report: opt.ReportFolder = None,
    cache: opt.Cache = None,
) -> None:
    r"""Take what tells human from LLM texts out of a model's vectors.

    Encodes both versions of your documents, finds the directions in which they differ, and writes a
    copy of the model with one more layer that removes them: an ordinary sentence-transformers
    folder. It takes as long as encoding the pairs, without a GPU. Fit it on the corpus you search:
    it need not carry over to other texts, which the report shows if you --judge on some.

    [bold]Examples[/]

        rag-sourcebias debias project my-data --encoder all-MiniLM-L6-v2 --output my-model

        rag-sourcebias debias project my-data --encoder all-MiniLM-L6-v2 --output my-model \
            --judge my-data:test --judge other-data --report report

        rag-sourcebias debias project my-data --all-pairs --encoder path/to/model --output my-model

    Then load my-model where the model was: LangChain, LlamaIndex, Chroma, sentence-transformers.
    """
    chosen = projection_choice(method, directions, sides)
    if not 0 <= strength <= 1:
        raise DataError(f"--strength {strength:g} is outside [0, 1]")
    model = model_of(encoder)
    require_new("output", output)
    job = prepare(
        folder, sample=sample, split=split, all_pairs=all_pairs, source=source, judge=judge,
        report=report, unseen=unseen, figures=figures, seed=seed, baseline_source=baseline_source,
    )  # fmt: skip
    with stages() as progress:
        before = SpecBuilder(cache or cache_dir(), progress.advance).encoder(encoder)
        progress.begin(f"encoding {len(job.twins):,} pairs of {job.fitting.name}")
        found = _fitted(job, before, chosen, strength)
        measured = _measured(job, before, found, model=model, output=output, progress=progress)
    job.judged.deliver(measured)
    err.print(f"model: {output}", highlight=False, soft_wrap=True)


def _fitted(
    job: Job, before: Encoder, chosen: ProjectionChoice, strength: float
) -> SourceProjection:
    """Fit the projection, naming what takes fewer pairs where they are too few."""
    try:
        return fit_source_projection(
            job.twins,
            before,
            method=chosen.method,
            n_directions=chosen.directions,
            strength=strength,
            sides=chosen.sides,
        )
    except InsufficientDataError as error:
        if chosen.directions == 1:
            raise
        raise InsufficientDataError(
            f"{error}; fewer --directions, or --method mean, take fewer pairs",
            n=error.n,
            n_needed=error.n_needed,
        ) from error


def _measured(
    job: Job,
    before: Encoder,
    found: SourceProjection,
    *,
    model: str,
    output: Path,
    progress: Stages,
) -> DebiasReport:
    """Write the model and compare it with the one before."""
    from rag_sourcebias.neural import SentenceEncoder
    from rag_sourcebias.neural.projected import write_projected_model

    progress.begin(f"writing {output}")
    write_projected_model(model, found, output)
    after = ProjectedEncoder(before, found, name=distinct_name(output.name, [before.name]))
    with removed_on_failure(output):
        made = DebiasMethod(
            name=after.name,
            kind="projection",
            settings=projection_settings(found),
            fitted_on=job.fitting.name,
            n_pairs=len(job.twins),
            encode_cost=encode_cost(before, SentenceEncoder(output), job.twins.baseline_texts),
        )
        return job.judged.report(
            DenseSpec(before),
            [DenseSpec(after)],
            methods=[made],
            fitted_texts=job.fitted_texts,
            progress=progress,
        )
