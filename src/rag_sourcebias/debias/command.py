"""``debias``: make a model indifferent to who wrote a text, and prove what that changed."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rag_sourcebias.cli.console import Stages, choice, deliver, err, spread, stages, writes_report
from rag_sourcebias.cli.models import SpecBuilder, parse_spec
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.protocols import Encoder, RetrieverSpec
from rag_sourcebias.debias import job as opt
from rag_sourcebias.debias.data import DebiasMethod, DebiasReport, DebiasSearch, TrainingHistory
from rag_sourcebias.debias.fit import fit_parity_calibration, fit_source_projection
from rag_sourcebias.debias.job import (
    Figures,
    Job,
    ProjectionChoice,
    calibration_method,
    distinct_name,
    encode_cost,
    judging,
    model_of,
    prepare,
    projection_choice,
    projection_settings,
    read_seen,
    read_settings,
    removed_on_failure,
    require_new,
    train_model,
    trained_model,
    training_method,
    written_model,
)
from rag_sourcebias.debias.parity import read_parity, write_parity
from rag_sourcebias.debias.projection import ProjectedEncoder, SourceProjection, read_projection
from rag_sourcebias.debias.rescore import RescoredSpec
from rag_sourcebias.io.samples import cache_dir
from rag_sourcebias.retrieval.search import DenseSpec

if TYPE_CHECKING:
    from rag_sourcebias.debias.parity import ParityForm
    from rag_sourcebias.debias.search import DebiasVariant
    from rag_sourcebias.neural.training_data import TrainingSettings


# ``debias search``: systems tried at several weights, the choice, and the command itself.


@dataclass(frozen=True, kw_only=True)
class _Tried:
    """Systems at several weights, 0 (the model as it is) among them, and what to make of one."""

    searched: str
    variants: Sequence[DebiasVariant]
    system: Callable[[DebiasVariant, str], RetrieverSpec]  # under its name in the report
    write: Callable[[DebiasVariant, Path], object]
    method: Callable[[DebiasVariant, str, Path | None], DebiasMethod]  # None: was not written
    deterministic: bool = True
    training: tuple[TrainingHistory, ...] = ()


def _tried_weights(
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
) -> _Tried:
    """Train what is missing; weight 0 is the model as it is, for every seed."""
    from rag_sourcebias.debias.search import DebiasVariant

    folder = output.with_name(f"{output.name}.search")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror or error}") from error
    variants = [DebiasVariant(weight=0.0, spec=DenseSpec(before))]
    histories: dict[tuple[float, int | None], TrainingHistory] = {}
    folders: dict[tuple[float, int | None], Path] = {}
    # Seed by seed, so that what an interrupted search leaves spans all weights.
    for seed, weight in product(seeds, filter(None, values)):
        place = folders[weight, seed] = folder / f"weight-{weight:g}-seed-{seed}"
        asked = replace(settings, debias_weight=weight, seed=seed)
        histories[weight, seed] = trained_model(
            job, model, asked, place, before=before, progress=progress
        )
        spec = DenseSpec(written_model(place, cache, progress.advance))
        variants.append(DebiasVariant(weight=weight, spec=spec, seed=seed))

    def method(variant: DebiasVariant, name: str, path: Path | None) -> DebiasMethod:
        texts = job.twins.baseline_texts
        return training_method(
            histories[variant.weight, variant.seed],
            name,
            fitted_on=job.fitting.name,
            encode_cost=None if path is None else encode_cost(before, _encoder(variant), texts),
        )

    return _Tried(
        searched="debias weight",
        variants=variants,
        system=_dense,
        write=lambda variant, path: shutil.copytree(folders[variant.weight, variant.seed], path),
        method=method,
        deterministic=False,
        training=tuple(histories.values()),
    )


def _tried_strengths(
    job: Job, model: str, before: Encoder, values: Sequence[float], chosen: ProjectionChoice
) -> _Tried:
    from rag_sourcebias.debias.search import projection_variants
    from rag_sourcebias.neural.loading import SentenceEncoder, write_projected_model

    def method(variant: DebiasVariant, name: str, path: Path | None) -> DebiasMethod:
        texts = job.twins.baseline_texts
        return DebiasMethod(
            name=name,
            kind="projection",
            settings=projection_settings(_encoder(variant).projection),
            fitted_on=job.fitting.name,
            n_pairs=len(job.twins),
            encode_cost=None if path is None else encode_cost(before, SentenceEncoder(path), texts),
        )

    return _Tried(
        searched="strength",
        variants=projection_variants(
            before,
            job.twins,
            strengths=values,
            method=chosen.method,
            n_directions=chosen.directions,
            sides=chosen.sides,
        ),
        system=_dense,
        write=lambda variant, path: write_projected_model(
            model, _encoder(variant).projection, path
        ),
        method=method,
    )


def _tried_offsets(job: Job, before: Encoder, values: Sequence[float], form: ParityForm) -> _Tried:
    from rag_sourcebias.debias.search import calibration_variants

    first = DenseSpec(before)
    fitted = fit_parity_calibration(
        job.fitting.judged,
        before,
        sources=[job.source],
        baseline=job.baseline,
        form=form,
        exclude=job.excluded,
    )
    return _Tried(
        searched="share of the calibration",
        variants=calibration_variants(first, fitted, shares=values),
        # over the first stage itself: a report tells from it what cannot have changed
        system=lambda variant, name: RescoredSpec(first, _calibration(variant), name=name),
        write=lambda variant, path: write_parity(_calibration(variant), path),
        method=lambda variant, name, _: calibration_method(
            _calibration(variant),
            name,
            fitted_on=job.fitting.name,
            share=f"{variant.weight:g}",
        ),
    )


def _dense(variant: DebiasVariant, name: str) -> RetrieverSpec:
    return DenseSpec(_encoder(variant), name=name)


def _encoder(variant: DebiasVariant) -> Any:  # noqa: ANN401 - projected or plain
    return cast("DenseSpec", variant.spec).encoder


def _calibration(variant: DebiasVariant) -> Any:  # noqa: ANN401
    return cast("RescoredSpec", variant.spec).rescorer


# What ``debias search`` makes of its curves: one choice, written and compared, or none.


def _measured_choice(
    job: Job, before: Encoder, tried: _Tried, output: Path, progress: Stages
) -> DebiasReport:
    """Search, write what was chosen, and compare it (or the nearest to the target) with before."""
    from rag_sourcebias.debias.search import search_debias

    judged = job.judged
    data = judged.datasets[0]
    found = search_debias(
        data,
        tried.variants,
        other=job.source if job.source in data.corpus.tags.sources else None,
        config=judged.config,
        deterministic=tried.deterministic,
        on_stage=progress.begin,
        rng=judged.config.seed,
    )
    shown = _shown(tried.variants, found)
    written = bool(found.chosen)  # at 0 the encoder stays as it is
    name = shown.spec.name
    if written:
        tried.write(shown, output)
        name = distinct_name(output.stem if output.is_file() else output.name, [before.name])
    with removed_on_failure(output) if written else nullcontext():
        measured = judged.report(
            DenseSpec(before),
            [tried.system(shown, name)],
            methods=[tried.method(shown, name, output if written else None)],
            fitted_texts=job.fitted_texts,
            search=found,
            searched=tried.searched,
            search_data=data.name,
            training=tried.training,
            progress=progress,
        )
    of_seed = "" if shown.seed is None else f", seed {shown.seed}"
    said = (
        f"{name} is {tried.searched} {shown.weight:g}{of_seed}, chosen on {data.name}: its figures "
        "there are those of a choice, other data show what it is worth"
        if written
        else f"{_as_it_is(before)}; {name} is the nearest of the others and was not written"
        if found.chosen is not None
        else f"{name} was not admitted and not written; it is shown as the nearest to the target"
    )
    return replace(measured, warnings=(*measured.warnings, said))


def _as_it_is(encoder: Encoder) -> str:
    return f"{encoder.name} as it is comes nearest to the target"


def _shown(variants: Sequence[DebiasVariant], found: DebiasSearch) -> DebiasVariant:
    """Return the chosen variant, of the first seed, or the one nearest the target."""
    weight = found.chosen or found.selected
    if not weight:
        weight = min(
            (point for point in found.points if point.weight > 0),
            key=lambda p: abs(p.relative_delta.estimate - found.target),
        ).weight
    return next(variant for variant in variants if variant.weight == weight)


# ``debias search``: the strength, offset or weight with the least skew that keeps quality.


_VALUES = {
    "strength": "0,0.25,0.5,0.75,1",
    "offset": "0,0.25,0.5,0.75,1,1.25",
    "weight": "0,0.003,0.01,0.03",
}
_LARGEST = {"strength": 1.0}
_MIN_SEEDS = 3


@writes_report
@spread
def search(
    folder: opt.Folder = None,
    *,
    encoder: opt.EncoderOption,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Model folder to write (a JSON file with --over offset); must not exist. Nothing "
            "is written if no value keeps quality.",
            show_default=False,
        ),
    ],
    over: Annotated[
        str,
        typer.Option(
            help="strength (of a projection), offset (share of a calibration) or weight (of the "
            "debias term: trains a model per weight and seed).",
            rich_help_panel=opt.SEARCH,
        ),
    ] = "strength",
    values: Annotated[
        str | None,
        typer.Option(
            help="Numbers separated by commas; 0, the model as it is, is added. \\[default: "
            "0,0.25,0.5,0.75,1 for strength, and 1.25 for offset; 0,0.003,0.01,0.03 for weight]",
            rich_help_panel=opt.SEARCH,
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            help="Trainings per weight, at least 3: results must hold for new seeds.",
            rich_help_panel=opt.SEARCH,
        ),
    ] = 3,
    training: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE,…",
            help="Settings of every training, as in debias train, such as "
            "max_steps=200,batch_size=32,learning_rate=1e-5. With --over weight.",
            rich_help_panel=opt.SEARCH,
        ),
    ] = None,
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
        if over == "strength":
            tried = _tried_strengths(job, model, before, numbers, chosen)
        elif over == "offset":
            tried = _tried_offsets(job, before, numbers, kind)
        else:
            tried = _tried_weights(
                job, before, numbers, model=model, seeds=range(seed, seed + seeds),
                settings=read_settings(training), output=output,
                cache=place, progress=progress,
            )  # fmt: skip
        measured = _measured_choice(job, before, tried, output, progress)
    deliver(measured, job.judged.folder)
    found = measured.search
    if found is None or not found.chosen:
        refusal = "" if found is None else found.refusal or _as_it_is(before)
        err.print(f"nothing was written: {refusal}", highlight=False, soft_wrap=True, markup=False)
        raise typer.Exit(1)
    err.print(f"{tried.searched} {found.chosen:g}: {output}", highlight=False, soft_wrap=True)


def search_values(over: str, text: str) -> list[float]:
    """Read the numbers to try; 0 is added, as it is what the others are compared with."""
    try:
        found = sorted({0.0, *(float(part) for part in text.split(",") if part.strip())})
    except ValueError:
        raise DataError(
            f"--values {text!r}: write numbers separated by commas, as 0,0.5,1"
        ) from None
    largest = _LARGEST.get(over, math.inf)
    if len(found) < 2 or not all(math.isfinite(value) and 0 <= value <= largest for value in found):
        raise DataError(
            f"--values {text!r}: --over {over} takes numbers from 0"
            + (f" to {largest:g}" if largest < math.inf else "")
            + " and at least one above 0"
        )
    return found


# ``debias project``: a model whose vectors do not show who wrote a text, without training.


@writes_report
@spread
def project(
    folder: opt.Folder = None,
    *,
    encoder: opt.EncoderOption,
    output: opt.ModelFolder,
    sample: opt.Sample = False,
    split: opt.Split = "train",
    all_pairs: Annotated[
        bool,
        typer.Option(
            "--all-pairs",
            help="Use every pair of the corpus, whatever the judgments; needs neither queries nor "
            "qrels.",
            rich_help_panel=opt.FIT,
        ),
    ] = False,
    source: opt.Source = None,
    baseline_source: opt.BaselineSource = "human",
    unseen: opt.Unseen = False,
    method: opt.Method = "pca",
    directions: opt.Directions = None,
    strength: Annotated[
        float,
        typer.Option(help="0 leaves vectors as they are, 1 removes all.", rich_help_panel=opt.FIT),
    ] = 1.0,
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
    from rag_sourcebias.neural.loading import SentenceEncoder, write_projected_model

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
            measured = job.judged.report(
                DenseSpec(before), [DenseSpec(after)], methods=[made],
                fitted_texts=job.fitted_texts, progress=progress,
            )  # fmt: skip
    deliver(measured, job.judged.folder)
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


# ``debias calibrate``: scores of LLM-written documents brought level with those of their twins.


@writes_report
@spread
def calibrate(
    folder: opt.Folder = None,
    *,
    encoder: opt.EncoderOption,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="JSON file to write; must not exist.", show_default=False
        ),
    ],
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
    deliver(measured, job.judged.folder)
    err.print(f"calibration: {output}", highlight=False, soft_wrap=True)


# ``debias compare``: the before/after report of models that are there already.


@writes_report
@spread
def compare(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="BEFORE AFTER…",
            help="Models by name or path[,dtype=…,max_length=…,batch_size=…,device=…]; the first "
            "one is what the others are compared with.",
            show_default=False,
        ),
    ],
    *,
    judge: Annotated[
        list[str],
        typer.Option(
            "--judge",
            metavar="FOLDER[:SPLIT]",
            help="Data to compare on; repeatable. Without a split: test, else dev.",
            rich_help_panel=opt.JUDGE,
            show_default=False,
        ),
    ],
    calibration: Annotated[
        list[Path] | None,
        typer.Option(
            help="File of debias calibrate, put on the first model as one more system; repeatable."
        ),
    ] = None,
    fitted_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FOLDER[:SPLIT]",
            help="What the models were fitted on, so that pairs they have seen are counted; a "
            "folder alone means all its pairs. Repeatable.",
        ),
    ] = None,
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
    data = ", ".join(fitted_on or ())
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
            methods.append(_method(names[-1], text, data, cost))
        for path in calibration or ():
            names.append(distinct_name(f"{before.name}+{path.stem}", names))
            found = read_parity(path, encoder=before.fingerprint)
            after.append(RescoredSpec(DenseSpec(before), found, name=names[-1]))
            methods.append(calibration_method(found, names[-1], fitted_on=data))
        measured = judged.report(
            DenseSpec(before), after, methods=methods, fitted_texts=seen, progress=progress
        )
    deliver(measured, judged.folder)


def _method(name: str, text: str, data: str, cost: float) -> DebiasMethod:
    """Say how a model was made where its folder tells."""
    from rag_sourcebias.neural.loading import PROJECTION_FILE
    from rag_sourcebias.neural.training_data import HISTORY_FILE, read_history

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


# ``debias train``: fine-tune a model not to prefer the rewrite of a text to the text.


_INTERRUPTED = 130


@writes_report
@spread
def train(
    folder: opt.Folder = None,
    *,
    encoder: opt.EncoderOption,
    output: opt.ModelFolder,
    sample: opt.Sample = False,
    split: opt.Split = "train",
    source: opt.Source = None,
    baseline_source: opt.BaselineSource = "human",
    unseen: opt.Unseen = False,
    weight: Annotated[
        float,
        typer.Option(
            min=0,
            help="Of the debias term. Over-correction comes early: at 1 human texts may be "
            "favoured as much as LLM texts were. debias search --over weight finds it.",
            rich_help_panel=opt.LOSS,
        ),
    ] = 0.01,
    reduction: Annotated[
        str,
        typer.Option(
            help="sum (over the pairs of a batch, as in the paper) or mean (as in its code); the "
            "same weight means batch-size times less under mean.",
            rich_help_panel=opt.LOSS,
        ),
    ] = "sum",
    scale: Annotated[
        float,
        typer.Option(
            help="Factor on the similarities in the debias term.", rich_help_panel=opt.LOSS
        ),
    ] = 20.0,
    hinge_target: Annotated[
        str,
        typer.Option(
            help="human (do not prefer rewrites: the paper's hinge), parity (prefer neither) or "
            "llm.",
            rich_help_panel=opt.LOSS,
        ),
    ] = "human",
    loss: Annotated[
        str,
        typer.Option(
            help="Ranking loss beside it: mnrl, cached-mnrl (large batches in little memory), or "
            "margin-mse and cosine, which hold the ranking where the untrained model has it.",
            rich_help_panel=opt.LOSS,
        ),
    ] = "mnrl",
    epochs: Annotated[
        int | None,
        typer.Option(help="Passes over the pairs. \\[default: 1]", rich_help_panel=opt.RUN),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="Optimiser steps, instead of epochs.", rich_help_panel=opt.RUN),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Pairs in a step.", rich_help_panel=opt.RUN)] = 16,
    learning_rate: Annotated[
        float, typer.Option(help="Peak; falls to 0 at the end.", rich_help_panel=opt.RUN)
    ] = 2e-5,
    negatives: Annotated[
        int,
        typer.Option(
            help="Hard negatives per pair and source, mined with the untrained model; 0 leaves the "
            "other documents of a batch.",
            rich_help_panel=opt.RUN,
        ),
    ] = 1,
    max_length: Annotated[
        int | None,
        typer.Option(
            help="Tokens after which training texts are cut (faster); the written model keeps its "
            "own.",
            rich_help_panel=opt.RUN,
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            help="auto (bf16 or fp16 on a GPU, float32 on the CPU), float32, bf16 or fp16.",
            rich_help_panel=opt.RUN,
        ),
    ] = "auto",
    seed: Annotated[
        int,
        typer.Option(
            help="Of the order of pairs, negatives and dropout, and of resampling in the report.",
            rich_help_panel=opt.RUN,
        ),
    ] = 0,
    eval_every: Annotated[
        int | None,
        typer.Option(
            help="Steps between measurements of skew for the history; each encodes the first "
            "judged corpus anew. \\[default: start and end]",
            rich_help_panel=opt.RUN,
        ),
    ] = None,
    checkpoint_every: Annotated[
        int,
        typer.Option(
            help="Steps between checkpoints; an interrupted training goes on from the last.",
            rich_help_panel=opt.RUN,
        ),
    ] = 100,
    resume: Annotated[
        bool,
        typer.Option(help="Go on from checkpoints of the same command.", rich_help_panel=opt.RUN),
    ] = True,
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
    model = model_of(encoder)
    job = prepare(
        folder, sample=sample, split=split, source=source, judge=judge, report=report,
        unseen=unseen, figures=figures, seed=seed, baseline_source=baseline_source,
    )  # fmt: skip
    from rag_sourcebias.neural.training_data import TrainingSettings

    checked_there: dict[str, Any] = {
        "reduction": reduction, "target": hinge_target, "loss": loss, "precision": precision,
    }  # fmt: skip
    settings = TrainingSettings(
        debias_weight=weight, scale=scale, epochs=epochs, max_steps=steps, batch_size=batch_size,
        learning_rate=learning_rate, hard_negatives=negatives, max_length=max_length, seed=seed,
        eval_every=eval_every, checkpoint_every=checkpoint_every, **checked_there,
    )  # fmt: skip
    place = cache or cache_dir()
    said = ""
    try:
        with stages() as progress:
            before = SpecBuilder(place, progress.advance).encoder(encoder)
            said = f"checkpoints are kept in {output}.training; the same command goes on from there"
            trained = train_model(
                job, model, settings, output, untrained=before, progress=progress, judge=True,
                resume=resume,
            )  # fmt: skip
            said = (
                f"the model {output} is complete; for its report: rag-sourcebias debias compare "
                f"{encoder} {output} --judge …"
            )
            after = written_model(
                output, place, progress.advance, name=distinct_name(output.name, [before.name])
            )
            made = training_method(
                trained.history,
                after.name,
                fitted_on=job.fitting.name,
                encode_cost=encode_cost(before, after, job.twins.baseline_texts),
            )
            measured = job.judged.report(
                DenseSpec(before), [DenseSpec(after)], methods=[made], progress=progress,
                fitted_texts=job.fitted_texts, training=[trained.history],
            )  # fmt: skip
    except KeyboardInterrupt:
        err.print(f"\ninterrupted: {said}", highlight=False, soft_wrap=True)
        raise SystemExit(_INTERRUPTED) from None
    deliver(measured, job.judged.folder)
    err.print(f"model: {output}", highlight=False, soft_wrap=True)


# ``debias``: make a model indifferent to who wrote a text, and prove what that changed.


app = typer.Typer(
    no_args_is_help=True,
    help="""Make a model indifferent to who wrote a text, and prove what that changed.

    Each command ends in a before/after report: skew, quality with paired tests, and on which data.

        rag-sourcebias debias project my-data --encoder all-MiniLM-L6-v2 --output my-model
    """,
)
for command in (project, calibrate, train, search, compare):
    app.command()(command)
