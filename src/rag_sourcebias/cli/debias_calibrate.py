"""``debias calibrate``: scores of LLM-written documents brought level with those of their twins."""

from __future__ import annotations

from rag_sourcebias.cli import debias_options as opt
from rag_sourcebias.cli.checks import choice
from rag_sourcebias.cli.console import err, stages
from rag_sourcebias.cli.debias_job import prepare
from rag_sourcebias.cli.debias_judging import Figures
from rag_sourcebias.cli.debias_methods import calibration_method
from rag_sourcebias.cli.debias_models import removed_on_failure, require_new
from rag_sourcebias.cli.specs import SpecBuilder
from rag_sourcebias.cli.spread import spread
from rag_sourcebias.io import cache_dir
from rag_sourcebias.mitigate.fit import fit_parity_calibration
from rag_sourcebias.mitigate.parity_file import write_parity
from rag_sourcebias.mitigate.rescored import RescoredSpec
from rag_sourcebias.retrieval import DenseSpec

__all__ = ["calibrate"]


@spread
def calibrate(
    folder: opt.Folder = None,
    *,
    encoder: opt.Encoder,
    output: opt.CalibrationFile,
    sample: opt.Sample = False,
    split: opt.Split = "train",
    source: opt.Source = None,
    baseline_source: opt.BaselineSource = "human",
    unseen: opt.Unseen = False,
    form: opt.Form = "offset",
    judge: opt.Judge = None,
    figures: Figures,
    seed: opt.Seed = 0,
    report: opt.ReportFolder = None,
    cache: opt.Cache = None,
) -> None:
    r"""Move the scores of documents tagged as LLM-written so that twins score alike.

    The model and the index stay as they are, and so does the order within each source. It needs the
    source tags of what is retrieved, and takes effect where scores are read: DebiasCompressor
    (LangChain) or DebiasPostprocessor (LlamaIndex). It is what every debiased model must beat.

    [bold]Examples[/]

        rag-sourcebias debias calibrate my-data --encoder all-MiniLM-L6-v2 --output parity.json

        rag-sourcebias debias calibrate my-data --encoder all-MiniLM-L6-v2 --output parity.json \
            --form quantiles --judge other-data --report report
    """
    kind = choice("form", form, ("offset", "quantiles"))
    require_new("output", output, what="file")
    job = prepare(
        folder, sample=sample, split=split, source=source, several=True, judge=judge,
        report=report, unseen=unseen, figures=figures, seed=seed, baseline_source=baseline_source,
    )  # fmt: skip
    with stages() as progress:
        before = SpecBuilder(cache or cache_dir(), progress.advance).encoder(encoder)
        progress.begin(f"scoring twins of {job.fitting.name}")
        found = fit_parity_calibration(
            job.fitting.judged, before, sources=job.sources, baseline=baseline_source, form=kind,
            exclude=job.excluded,
        )  # fmt: skip
        write_parity(found, output)
        after = RescoredSpec(DenseSpec(before), found, name=f"{before.name}+{output.stem}")
        made = calibration_method(found, after.name, fitted_on=job.fitting.name)
        with removed_on_failure(output):
            measured = job.judged.report(
                DenseSpec(before), [after], methods=[made], fitted_texts=job.fitted_texts,
                progress=progress,
            )  # fmt: skip
    job.judged.deliver(measured)
    err.print(f"calibration: {output}", highlight=False, soft_wrap=True)
