"""``debias compare``: the before/after report of models that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_sourcebias.cli import debias_options as opt
from rag_sourcebias.cli.console import stages
from rag_sourcebias.cli.debias_data import read_seen
from rag_sourcebias.cli.debias_judging import Figures, judging
from rag_sourcebias.cli.debias_methods import (
    calibration_method,
    distinct_name,
    projection_settings,
)
from rag_sourcebias.cli.debias_models import encode_cost
from rag_sourcebias.cli.debias_training import training_method
from rag_sourcebias.cli.specs import SpecBuilder, parse_spec
from rag_sourcebias.cli.spread import spread
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import cache_dir
from rag_sourcebias.mitigate.parity_file import read_parity
from rag_sourcebias.mitigate.projection import read_projection
from rag_sourcebias.mitigate.rescored import RescoredSpec
from rag_sourcebias.protocols import Encoder, RetrieverSpec
from rag_sourcebias.retrieval import DenseSpec
from rag_sourcebias.types import DebiasMethod

__all__ = ["compare"]


@spread
def compare(
    models: opt.Models,
    *,
    judge: opt.CompareJudge,
    calibration: opt.Calibrations = None,
    fitted_on: opt.FittedOn = None,
    baseline_source: opt.BaselineSource = "human",
    figures: Figures,
    seed: opt.Seed = 0,
    report: opt.ReportFolder = None,
    cache: opt.Cache = None,
) -> None:
    r"""Report what other models change in skew and quality against the first one.

    [bold]Examples[/]

        rag-sourcebias debias compare all-MiniLM-L6-v2 my-model --judge my-data:test --report report

        rag-sourcebias debias compare all-MiniLM-L6-v2 projected trained --calibration parity.json \
            --judge my-data:test --judge other-data --fitted-on my-data:train
    """
    if len(models) < 2 and not calibration:
        raise DataError(
            f"nothing to compare {models[0]} with: name further models, or --calibration <file>"
        )
    judged = judging(
        judge, None, report=report, figures=figures, baseline_source=baseline_source, seed=seed,
    )  # fmt: skip
    seen = read_seen(fitted_on, baseline=baseline_source)
    with stages() as progress:
        builder = SpecBuilder(cache or cache_dir(), progress.advance)
        before, *others = [builder.encoder(text) for text in models]
        names = [before.name]
        after: list[RetrieverSpec] = []
        methods = []
        for text, encoder in zip(models[1:], others, strict=True):
            names.append(distinct_name(encoder.name, names))
            progress.begin(f"timing {names[-1]}")
            cost = encode_cost(before, encoder, judged.datasets[0].corpus.texts)
            after.append(DenseSpec(encoder, name=names[-1]))
            methods.append(_method(names[-1], text, fitted_on, cost))
        for path in calibration or ():
            names.append(distinct_name(f"{before.name}+{path.stem}", names))
            spec, made = _calibrated(before, path, names[-1], fitted_on)
            after.append(spec)
            methods.append(made)
        measured = judged.report(
            DenseSpec(before), after, methods=methods, fitted_texts=seen, progress=progress
        )
    judged.deliver(measured)


def _method(name: str, text: str, fitted_on: Sequence[str] | None, cost: float) -> DebiasMethod:
    """Say how a model was made where its folder tells."""
    from rag_sourcebias.neural.projected import PROJECTION_FILE
    from rag_sourcebias.neural.train_history import HISTORY_FILE, read_history

    data = ", ".join(fitted_on or ())
    folder = Path(parse_spec(f"dense:{text}").model).expanduser()
    file = folder / PROJECTION_FILE
    # A projection of a trained model keeps the history of the model it was made from.
    if (folder / HISTORY_FILE).is_file() and not file.is_file():
        return training_method(read_history(folder), name, fitted_on=data, encode_cost=cost)
    if not file.is_file():
        return DebiasMethod(name=name, kind="model", settings={}, fitted_on=data, encode_cost=cost)
    found = read_projection(file)
    return DebiasMethod(
        name=name,
        kind="projection",
        settings=projection_settings(found),
        fitted_on=data,
        n_pairs=found.n_pairs,
        encode_cost=cost,
    )


def _calibrated(
    before: Encoder, path: Path, name: str, fitted_on: Sequence[str] | None
) -> tuple[RetrieverSpec, DebiasMethod]:
    found = read_parity(path, encoder=before.fingerprint)
    made = calibration_method(found, name, fitted_on=", ".join(fitted_on or ()))
    return RescoredSpec(DenseSpec(before), found, name=name), made
