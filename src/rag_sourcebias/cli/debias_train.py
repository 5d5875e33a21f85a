"""``debias train``: fine-tune a model not to prefer the rewrite of a text to the text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rag_sourcebias.cli import debias_options as opt
from rag_sourcebias.cli import debias_train_options as run
from rag_sourcebias.cli.console import err, stages
from rag_sourcebias.cli.debias_job import Job, prepare
from rag_sourcebias.cli.debias_judging import Figures
from rag_sourcebias.cli.debias_methods import distinct_name
from rag_sourcebias.cli.debias_models import encode_cost, model_of, require_new, written_model
from rag_sourcebias.cli.debias_training import train_model, training_method, training_settings
from rag_sourcebias.cli.specs import SpecBuilder
from rag_sourcebias.cli.spread import spread
from rag_sourcebias.io import cache_dir
from rag_sourcebias.retrieval import DenseSpec

if TYPE_CHECKING:
    from rag_sourcebias.neural.train_settings import TrainingSettings

__all__ = ["train"]

_INTERRUPTED = 130


@spread
def train(
    folder: opt.Folder = None,
    *,
    encoder: opt.Encoder,
    output: opt.ModelFolder,
    sample: opt.Sample = False,
    split: opt.Split = "train",
    source: opt.Source = None,
    baseline_source: opt.BaselineSource = "human",
    unseen: opt.Unseen = False,
    weight: run.Weight = 0.01,
    reduction: run.Reduction = "sum",
    scale: run.Scale = 20.0,
    hinge_target: run.HingeTarget = "human",
    loss: run.Loss = "mnrl",
    epochs: run.Epochs = None,
    steps: run.Steps = None,
    batch_size: run.BatchSize = 16,
    learning_rate: run.LearningRate = 2e-5,
    negatives: run.Negatives = 1,
    max_length: run.MaxLength = None,
    precision: run.Precision = "auto",
    seed: run.TrainingSeed = 0,
    eval_every: run.EvalEvery = None,
    checkpoint_every: run.CheckpointEvery = 100,
    resume: run.Resume = True,
    judge: opt.Judge = None,
    figures: Figures,
    report: opt.ReportFolder = None,
    cache: opt.Cache = None,
) -> None:
    r"""Fine-tune a model so that it does not prefer rewrites to their originals.

    A ranking loss on your queries, plus weight × the hinge of Dai et al. (KDD 2024): what the
    rewrite of a relevant text scores above the text. Interrupted, the same command goes on from the
    last checkpoint. Compare with debias project, which needs no training, before you adopt it.

    [bold]Examples[/]

        rag-sourcebias debias train my-data --encoder all-MiniLM-L6-v2 --output my-model

        rag-sourcebias debias train my-data --encoder all-MiniLM-L6-v2 --output my-model \
            --weight 0.03 --steps 500 --eval-every 100 --judge my-data:test --report report
    """
    require_new("output", output)
    model_of(encoder)
    job = prepare(
        folder, sample=sample, split=split, source=source, judge=judge, report=report,
        unseen=unseen, figures=figures, seed=seed, baseline_source=baseline_source,
    )  # fmt: skip
    settings = training_settings(
        debias_weight=weight, reduction=reduction, scale=scale, target=hinge_target, loss=loss,
        epochs=epochs, max_steps=steps, batch_size=batch_size, learning_rate=learning_rate,
        hard_negatives=negatives, max_length=max_length, precision=precision, seed=seed,
        eval_every=eval_every, checkpoint_every=checkpoint_every,
    )  # fmt: skip
    _run(job, settings, encoder=encoder, output=output, cache=cache or cache_dir(), resume=resume)


def _run(
    job: Job,
    settings: TrainingSettings,
    *,
    encoder: str,
    output: Path,
    cache: Path,
    resume: bool,
) -> None:
    said = ""
    try:
        with stages() as progress:
            before = SpecBuilder(cache, progress.advance).encoder(encoder)
            said = f"checkpoints are kept in {output}.training; the same command goes on from there"
            trained = train_model(
                job, model_of(encoder), settings, output, untrained=before, progress=progress,
                judge=True, resume=resume,
            )  # fmt: skip
            said = (
                f"the model {output} is complete; for its report: rag-sourcebias debias compare "
                f"{encoder} {output} --judge …"
            )
            after = written_model(
                output, cache, progress.advance, name=distinct_name(output.name, [before.name])
            )
            measured = job.judged.report(
                DenseSpec(before),
                [DenseSpec(after)],
                methods=[
                    training_method(
                        trained.history,
                        after.name,
                        fitted_on=job.fitting.name,
                        encode_cost=encode_cost(before, after, job.twins.baseline_texts),
                    )
                ],
                fitted_texts=job.fitted_texts,
                training=[trained.history],
                progress=progress,
            )
    except KeyboardInterrupt:
        err.print(f"\ninterrupted: {said}", highlight=False, soft_wrap=True)
        raise SystemExit(_INTERRUPTED) from None
    job.judged.deliver(measured)
    err.print(f"model: {output}", highlight=False, soft_wrap=True)
