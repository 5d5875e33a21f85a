"""``debias``: make a model treat sources alike, and prove what that changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from rag_sourcebias.core.caches import cache_dir
from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.errors import DataError, InsufficientDataError, setting
from rag_sourcebias.core.progress import Stages
from rag_sourcebias.core.protocols import Encoder, RetrieverSpec
from rag_sourcebias.core.training import TrainingHistory
from rag_sourcebias.debias.audit import other_sources
from rag_sourcebias.debias.data import (
    JUDGE,
    MIN_SEEDS,
    DebiasConfig,
    DebiasMethod,
)
from rag_sourcebias.debias.fit import fit_parity_calibration, fit_source_projection
from rag_sourcebias.debias.job_command import (
    Job,
    Judging,
    Pairs,
    distinct_name,
    encode_cost,
    judging,
    model_of,
    prepare,
    read_fitting,
    read_seen,
    read_settings,
    remove,
    removed_on_failure,
    train_model,
    trained_model,
    written_model,
)
from rag_sourcebias.debias.legacy_report import DebiasReport
from rag_sourcebias.debias.methods import (
    calibration_method,
    projection_method,
    training_method,
    twins_method,
)
from rag_sourcebias.debias.parity import ParityCalibration, read_parity, write_parity
from rag_sourcebias.debias.rescore import RescoredSpec, TwinSpec
from rag_sourcebias.debias.search import debias_curve
from rag_sourcebias.debias.twins import (
    TwinRescorer,
    fit_twins,
    write_twins,
)
from rag_sourcebias.debias.words import short, verdicts
from rag_sourcebias.neural.loading import SentenceEncoder, write_projected_model
from rag_sourcebias.neural.named import SpecBuilder
from rag_sourcebias.neural.training_data import HISTORY_FILE, TrainingSettings, read_history
from rag_sourcebias.retrieval.projection import (
    PROJECTION_FILE,
    ProjectedEncoder,
    ProjectionMethod,
    SourceProjection,
    read_projection,
)
from rag_sourcebias.retrieval.search import DenseSpec, named_retriever, parse_spec
from rag_sourcebias.terminal.console import INTERRUPTED, deliver, err, stages, tell
from rag_sourcebias.terminal.options import (
    TableFile,
    Texts,
    choice,
    require_writable_file,
    spread,
    used,
)

# ``--search``: systems at several weights or strengths.


class _Tried(NamedTuple):
    """One system of a search."""

    weight: float
    spec: RetrieverSpec
    method: DebiasMethod
    training: TrainingHistory | None = None


def _tried_strengths(
    job: Job, before: Encoder, values: Sequence[float], chosen: Projecting
) -> Iterator[_Tried]:
    """Fit one projection and take it out by several shares."""
    whole = _fitted(job, before, replace(chosen, strength=1.0))
    for strength in filter(None, values):
        name = f"{before.name}+projection×{strength:g}"
        projection = replace(whole, strength=strength)
        yield _Tried(
            weight=strength,
            spec=DenseSpec(ProjectedEncoder(before, projection, name=name)),
            method=projection_method(projection, name, fitted_on=job.fitting.name),
        )


def _tried_weights(
    asked: _Asked,
    before: Encoder,
    values: Sequence[float],
    *,
    seeds: Sequence[int],
    settings: TrainingSettings,
    progress: Stages,
) -> Iterator[_Tried]:
    """Train what is missing, seed by seed, so that an interrupted search has whole seeds."""
    job = asked.job
    try:
        asked.output.mkdir(exist_ok=True)
    except OSError as error:
        raise DataError(f"{asked.output} cannot be written: {error.strerror or error}") from error
    for seed, weight in product(seeds, filter(None, values)):
        place = asked.output / f"weight-{weight:g}-seed-{seed}"
        wanted = replace(settings, debias_weight=weight, seed=seed)
        history = trained_model(job, asked.model, wanted, place, before=before, progress=progress)
        encoder = written_model(place, asked.cache, progress.advance)
        yield _Tried(
            weight=weight,
            spec=DenseSpec(encoder),
            method=training_method(history, encoder.name, fitted_on=job.fitting.name),
            training=history,
        )


def _searched(
    asked: _Asked,
    method: str,
    way: Any,  # noqa: ANN401 - settings of the method
    *,
    numbers: Sequence[float],
    n_seeds: int,
    progress: Stages,
) -> DebiasReport:
    """Report on every value, and on the curve through them."""
    job, before = asked.job, asked.before(progress)
    data = job.judged.datasets[0]
    other = _searched_source(data, job)
    progress.begin(f"fitting on {job.fitting.name}")
    if method == "project":
        n_seeds, searched = 1, "strength"
        tried = [*_tried_strengths(job, before, numbers, way)]
    else:
        first, searched = way[0].seed, "debias weight"
        seeds = range(first, first + n_seeds)
        tried = [
            *_tried_weights(asked, before, numbers, seeds=seeds, settings=way[0], progress=progress)
        ]
    measured = job.judged.report(
        DenseSpec(before),
        [one.spec for one in tried],
        methods=[one.method for one in tried],
        fitted_texts=job.fitted_texts,
        training=[one.training for one in tried if one.training is not None],
        progress=progress,
    )
    judged = next(d for d in measured.datasets if (d.data.name, d.other) == (data.name, other))
    scores = {0.0: [judged.outcomes[0].scores] * n_seeds}
    for one in tried:
        scores.setdefault(one.weight, []).append(judged.outcome(one.spec.name).scores)
    try:
        curve = debias_curve(scores, searched=searched, data=data.name, config=job.judged.config)
    except InsufficientDataError as error:
        return replace(measured, warnings=(*measured.warnings, f"there is no curve: {error}"))
    return replace(measured, search=curve)


def _searched_source(data: Dataset, job: Job) -> str:
    """Return the source that the curve compares with the baseline."""
    others = other_sources(data, job.baseline)
    if job.source in others:
        return job.source
    if len(others) > 1:
        raise DataError(
            f"data set {data.name!r} has several sources beside {job.baseline!r}: {list(others)}; "
            "judge on data that hold the one that is fitted on, or one alone"
        )
    return others[0]


# Options of ``debias`` that belong together.


METHODS = ("calibrate", "twins", "project", "train")
_PCA_DIRECTIONS = 4  # skew falls little with more: see fit_source_projection
_FILES = ("calibrate", "twins")
_VALUES = {"project": "0,0.25,0.5,0.75,1", "train": "0,0.003,0.01,0.03"}  # of --search
_WAYS, _SEARCH, _COMPARE = "How", "Search", "Compare what is there already"


@dataclass(frozen=True, kw_only=True)
class Projecting:
    """Settings of ``--method project``."""

    panel = _WAYS

    projection: ProjectionMethod = setting(
        "pca",
        "project: pca (leading directions of the differences) or mean (one direction).",
    )
    directions: int | None = setting(
        None, "project: directions taken out; 4 for pca, always 1 otherwise.", least=1
    )
    strength: float = setting(1.0, "project: 0 leaves vectors as they are, 1 removes all.")


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of ``--method train``."""

    panel = _WAYS

    training: list[str] | None = setting(
        None,
        "train: debias_weight=0.01 (at 1 human texts may be favoured as much as LLM texts "
        "were), max_steps, epochs, batch_size, learning_rate, eval_every and all other "
        "fields of TrainingSettings; repeatable.",
        metavar="NAME=VALUE,…",
    )
    resume: bool = setting(True, "train: go on from checkpoints of the same command.")


@dataclass(frozen=True, kw_only=True)
class Searching:
    """Settings of ``--search``."""

    panel = _SEARCH

    search: bool = setting(
        False,
        "Report on several strengths (project) or weights (train, models in --output), and where "
        "Relative Δ meets --target.",
    )
    values: str | None = setting(
        None,
        "Numbers to try, separated by commas; 0, the model as it is, is added. "
        "\\[default: 0,0.25,0.5,0.75,1 of project; 0,0.003,0.01,0.03 of train]",
    )
    seeds: int = setting(3, "Trainings per weight, at least 3: results must hold for new seeds.")


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """What is compared, where nothing is to be fitted."""

    panel = _COMPARE

    compare: list[str] | None = setting(
        None,
        "Fit nothing: report what this model, or file of --method calibrate or twins, "
        "changes against --encoder; repeatable.",
        metavar="MODEL",
    )
    fitted_on: list[str] | None = setting(
        None,
        "What it was fitted on, so that pairs it has seen are counted; a folder alone "
        "means all its pairs; repeatable.",
        metavar="FOLDER[:SPLIT]",
    )


# ``debias``: the command, and the three ways.


class _Asked(NamedTuple):
    """What a way is asked for, once checked."""

    job: Job
    model: str
    encoder: str
    output: Path
    cache: Path

    def before(self, progress: Stages) -> Encoder:
        """Return the encoder as it is."""
        return SpecBuilder(self.cache, progress.advance).encoder(self.encoder)


@spread
def debias(
    ctx: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="BEIR folder with corpus/<source>.jsonl per source (same _id = same document "
            "rewritten), queries.jsonl and qrels/<split>.tsv.",
        ),
    ] = None,
    *,
    encoder: Annotated[
        str,
        typer.Option(
            help="The model: a sentence-transformers name or path[,batch_size=…,device=…]; with "
            "twins also bm25[:k1=…,b=…]."
        ),
    ] = "all-MiniLM-L6-v2",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File of --method calibrate (JSON) or twins, or model folder, to write; must not "
            "exist.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="calibrate (move the scores of tagged documents; model and index stay), twins "
            "(copies share their score; needs no tags where it runs), project (take what tells "
            "the sources apart out of the vectors) or train (fine-tune).",
            rich_help_panel=_WAYS,
        ),
    ] = "calibrate",
    pairs: Pairs,
    projecting: Projecting,
    training: Training,
    searching: Searching,
    comparing: Comparing,
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on",
            metavar="FOLDER[:SPLIT]",
            help="Data for the before/after report; repeatable. Without a split: test, else dev. "
            "Default: the same folder's dev split, else test.",
            rich_help_panel=JUDGE,
        ),
    ] = None,
    config: DebiasConfig,
    force: Annotated[
        bool, typer.Option("--force", help="Write the result even if it made things worse.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Folder for report.html, report.md and report.json.", rich_help_panel=JUDGE
        ),
    ] = None,
    texts: Texts = None,
    table: TableFile = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder of cached embeddings; an interrupted command goes on from it."),
    ] = None,
) -> None:
    r"""Make a model treat human and LLM texts alike, and prove what that changed.

    Ends in a before/after report: skew, quality with paired tests, and on which data. If a method
    made things worse, it says so, writes nothing and ends with exit code 1.

    For example:

        rag-sourcebias debias --sample --output parity.json

        rag-sourcebias debias my-data --output parity.json --on my-data:test --report report

        rag-sourcebias debias my-data --method twins --output twins.sqlite

        rag-sourcebias debias my-data --method project --output my-model

        rag-sourcebias debias my-data --method train --training max_steps=500 --output my-model

        rag-sourcebias debias my-data --method project --search --report report

        rag-sourcebias debias --compare my-model --compare parity.json --on my-data:test

    Load my-model where the model was: LangChain, LlamaIndex, Chroma, sentence-transformers.
    parity.json takes effect in DebiasCompressor (LangChain) and DebiasPostprocessor (LlamaIndex).
    """
    choice("method", method, METHODS)
    _refuse_useless(ctx, method, searching, comparing)
    _refuse_words(encoder, method, comparing.compare)
    place = cache or cache_dir()
    if comparing.compare:
        fitting = read_fitting(folder, pairs) if folder is not None or pairs.sample else None
        judged = judging(on, fitting, report=report, config=config)
        found = _compared(encoder, comparing, judged=judged, cache=place)
        deliver(found, report, texts=texts, table=table)
        return
    if output is None and not (searching.search and method == "project"):
        raise DataError(
            "--output missing: name what is to be written, or --compare a model that is there"
        )
    model, way = model_of(encoder), _way(method, projecting, training, config.seed)
    numbers = search_values(method, searching.values or _VALUES.get(method, "0,1"))
    if searching.seeds < MIN_SEEDS:
        raise DataError(
            f"--seeds {searching.seeds}: at least {MIN_SEEDS}, to tell luck from effect"
        )
    if searching.search and method == "project" and output is not None:
        raise DataError(
            f"--output {output}: --search writes no projection; run --method project with the "
            "--strength you choose"
        )
    place_out = output or Path()  # a search over strengths writes nothing
    if not searching.search:
        if place_out.exists():
            what = "file" if method in _FILES else "folder"
            raise DataError(f"--output {place_out} exists; name a {what} that does not")
        require_writable_file("output", place_out)
    job = prepare(folder, pairs, method, on=on, report=report, config=config)
    asked = _Asked(job=job, model=model, encoder=encoder, output=place_out, cache=place)
    with stages() as progress:
        if searching.search:
            found = _searched(
                asked, method, way, numbers=numbers, n_seeds=searching.seeds, progress=progress
            )
        else:
            fit: dict[str, Callable[[_Asked, Any, Stages], DebiasReport]] = {
                "project": _project,
                "calibrate": _calibrate,
                "twins": _twins,
                "train": _train,
            }
            found = fit[method](asked, way, progress)
    deliver(found, report, texts=texts, table=table)
    if searching.search:
        kept = "" if output is None else f"; the trained models are in {output}"
        tell(f"choose a value from the report and train or project with it{kept}")
    else:
        _conclude(found, place_out, force=force)


def _refuse_useless(
    ctx: typer.Context,
    method: str,
    searching: Searching,
    comparing: Comparing,
) -> None:
    """Refuse options of another way."""
    ways = {"project": Projecting, "train": Training}
    for name, kind in ways.items():
        if (name != method or comparing.compare) and (given := used(ctx, kind)):
            raise DataError(f"{', '.join(given)}: goes with --method {name}")
    if (comparing.compare or not searching.search) and (given := used(ctx, Searching)):
        raise DataError(f"{', '.join(given)}: goes with --search, and without --compare")
    if searching.search and method not in _VALUES:
        raise DataError("--search goes with --method project or --method train")
    if comparing.fitted_on and not comparing.compare:
        raise DataError("--fitted-on goes with --compare")
    given = [name for name in used(ctx, Pairs) if name != "--sample"]
    if given and method == "twins" and not comparing.compare:
        raise DataError(f"{', '.join(given)}: nothing is fitted on pairs with --method twins")


def _of_words(encoder: str) -> bool:
    return encoder.partition(":")[0] == "bm25"


def _refuse_words(encoder: str, method: str, compared: Sequence[str] | None) -> None:
    """Refuse to change the vectors of a retriever that has none."""
    others = [text for text in compared or () if not text.endswith(".sqlite")]
    if _of_words(encoder) and (others or not (compared or method == "twins")):
        what = f"--compare {others[0]}" if others else f"--method {method}"
        raise DataError(
            f"--encoder {encoder} has no vectors to change: {what} is for models, --method twins "
            "(and --compare with its file) for words too"
        )


def _retriever(builder: SpecBuilder, text: str) -> tuple[RetrieverSpec, Encoder | None]:
    """Return a retriever as it is and its encoder; BM25 has none."""
    if _of_words(text):
        return named_retriever(text, builder), None
    encoder = builder.encoder(text)
    return DenseSpec(encoder), encoder


def _way(method: str, projecting: Projecting, training: Training, seed: int) -> Any:  # noqa: ANN401 - settings of the method
    """Return the checked settings of a method."""
    if method in _FILES:
        return None
    if method == "train":
        return read_settings(training.training, seed=seed), training.resume
    if not 0 <= projecting.strength <= 1:
        raise DataError(f"--strength {projecting.strength:g} is outside [0, 1]")
    kind, directions = projecting.projection, projecting.directions
    if kind != "pca" and directions not in (None, 1):
        raise DataError(
            f"--directions {directions}: --projection {kind} has one direction; use "
            "--projection pca"
        )
    return projecting


def search_values(method: str, text: str) -> list[float]:
    """Read the numbers to try; 0 is added, as it is what the others are compared with."""
    try:
        found = sorted({0.0, *(float(part) for part in text.split(",") if part.strip())})
    except ValueError:
        raise DataError(
            f"--values {text!r}: write numbers separated by commas, as 0,0.5,1"
        ) from None
    largest = 1.0 if method == "project" else math.inf
    if len(found) < 2 or not all(math.isfinite(value) and 0 <= value <= largest for value in found):
        raise DataError(
            f"--values {text!r}: --method {method} takes numbers from 0"
            + (f" to {largest:g}" if largest < math.inf else "")
            + " and at least one above 0"
        )
    return found


def _conclude(found: DebiasReport, output: Path, *, force: bool) -> None:
    """Say what was written, or take away what made things worse."""
    worse = [f"{verdict.on}: {short(verdict)}" for verdict in verdicts(found) if verdict.made_worse]
    for line in worse:
        tell(f"made it worse: {line}")
    if worse and not force:
        aside = output.with_name(f"{output.name}.worse")
        if found.training and not aside.exists():  # hours of work
            output.replace(aside)
            tell(f"{output} was not written (--force does); the trained model is kept as {aside}")
        else:
            remove(output)
            tell(f"{output} was not written; --force writes it all the same")
        raise typer.Exit(1)
    tell(f"written: {output}")


def _project(asked: _Asked, way: Projecting, progress: Stages) -> DebiasReport:
    """Take what tells human from LLM texts out of a model's vectors."""
    job, output, before = asked.job, asked.output, asked.before(progress)
    progress.begin(f"encoding {len(job.twins):,} pairs of {job.fitting.name}")
    found = _fitted(job, before, way)
    progress.begin(f"writing {output}")
    write_projected_model(asked.model, found, output)
    after = ProjectedEncoder(before, found, name=distinct_name(output.name, [before.name]))
    with removed_on_failure(output):
        made = projection_method(
            found,
            after.name,
            fitted_on=job.fitting.name,
            encode_cost=encode_cost(before, SentenceEncoder(output), job.twins.baseline_texts),
        )
        return job.judged.report(
            DenseSpec(before), [DenseSpec(after)], methods=[made],
            fitted_texts=job.fitted_texts, progress=progress,
        )  # fmt: skip


def _fitted(job: Job, before: Encoder, chosen: Projecting) -> SourceProjection:
    """Fit the projection, naming what takes fewer pairs where they are too few."""
    try:
        return fit_source_projection(
            job.twins,
            before,
            method=chosen.projection,
            n_directions=chosen.directions or _PCA_DIRECTIONS,
            strength=chosen.strength,
        )
    except InsufficientDataError as error:
        if chosen.projection != "pca" or chosen.directions == 1:
            raise
        raise InsufficientDataError(
            f"{error}; fewer --directions, or --projection mean, take fewer pairs",
            n=error.n,
            n_needed=error.n_needed,
        ) from error


def _calibrate(asked: _Asked, _: None, progress: Stages) -> DebiasReport:
    """Move the scores of documents tagged as LLM-written so that twins score alike."""
    job, output, before = asked.job, asked.output, asked.before(progress)
    progress.begin(f"scoring twins of {job.fitting.name}")
    found = fit_parity_calibration(
        job.fitting.judged, before, sources=job.sources, baseline=job.baseline,
        exclude=job.excluded,
    )  # fmt: skip
    write_parity(found, output)
    after = RescoredSpec(DenseSpec(before), found, name=f"{before.name}+{output.stem}")
    made = calibration_method(found, after.name, fitted_on=job.fitting.name)
    with removed_on_failure(output):
        return job.judged.report(
            DenseSpec(before), [after], methods=[made], fitted_texts=job.fitted_texts,
            progress=progress,
        )  # fmt: skip


def _twins(asked: _Asked, _: None, progress: Stages) -> DebiasReport:
    """Let copies share their score, and measure it on groups of each judged corpus."""
    job, output = asked.job, asked.output
    first, encoder = _retriever(SpecBuilder(asked.cache, progress.advance), asked.encoder)
    progress.begin(f"looking for copies in {job.fitting.name}")
    groups = fit_twins(job.fitting.corpus, encoder)
    write_twins(groups, output)
    after = TwinSpec(first, encoder, name=f"{first.name}+{output.stem}")
    made = twins_method(groups, after.name, fitted_on=job.fitting.name)
    with removed_on_failure(output):
        return job.judged.report(
            first, [after], methods=[made], progress=progress,
        )  # fmt: skip


def _train(asked: _Asked, way: tuple[TrainingSettings, bool], progress: Stages) -> DebiasReport:
    """Fine-tune a model not to prefer the rewrite of a text to the text."""
    job, output = asked.job, asked.output
    settings, resume = way
    said = ""
    try:
        before = asked.before(progress)
        said = f"checkpoints, if any, are in {output}.training; the same command goes on from there"
        trained = train_model(
            job, asked.model, settings, output, untrained=before, progress=progress,
            resume=resume,
        )  # fmt: skip
        said = (
            f"the model {output} is complete; for its report: rag-sourcebias debias --encoder "
            f"{asked.encoder} --compare {output} --on …"
        )
        after = written_model(
            output, asked.cache, progress.advance, name=distinct_name(output.name, [before.name])
        )
        made = training_method(
            trained.history,
            after.name,
            fitted_on=job.fitting.name,
            encode_cost=encode_cost(before, after, job.twins.baseline_texts),
        )
        return job.judged.report(
            DenseSpec(before), [DenseSpec(after)], methods=[made], progress=progress,
            fitted_texts=job.fitted_texts, training=[trained.history],
        )  # fmt: skip
    except KeyboardInterrupt:
        err.print(f"\ninterrupted: {said}", soft_wrap=True)
        raise SystemExit(INTERRUPTED) from None


# ``--compare``: the before/after report of models that are there already.


def _compared(encoder: str, comparing: Comparing, *, judged: Judging, cache: Path) -> DebiasReport:
    seen = read_seen(comparing.fitted_on, baseline=judged.config.baseline_source)
    data = ", ".join(comparing.fitted_on or ())
    with stages() as progress:
        builder = SpecBuilder(cache, progress.advance)
        first, before = _retriever(builder, encoder)
        names, of = [first.name], first.name if before is None else before.fingerprint
        after: list[RetrieverSpec] = []
        methods = []
        for text in comparing.compare or ():
            if text.endswith((".json", ".sqlite")):
                names.append(distinct_name(f"{first.name}+{Path(text).stem}", names))
                rescorer: ParityCalibration | TwinRescorer
                if text.endswith(".json"):
                    rescorer = read_parity(Path(text), encoder=of)
                    methods.append(calibration_method(rescorer, names[-1], fitted_on=data))
                else:
                    rescorer = TwinRescorer.read(text, encoder=of)
                    methods.append(twins_method(rescorer.groups, names[-1], fitted_on=data))
                after.append(RescoredSpec(first, rescorer, name=names[-1]))
                continue
            other = builder.encoder(text)
            names.append(distinct_name(other.name, names))
            progress.begin(f"timing {names[-1]}")
            cost = encode_cost(builder.encoder(encoder), other, judged.datasets[0].corpus.texts)
            after.append(DenseSpec(other, name=names[-1]))
            methods.append(_method(names[-1], text, data, cost))
        return judged.report(first, after, methods=methods, fitted_texts=seen, progress=progress)


def _method(name: str, text: str, data: str, cost: float) -> DebiasMethod:
    """Say how a model was made where its folder tells."""
    folder = Path(parse_spec(f"dense:{text}").model).expanduser()
    file = folder / PROJECTION_FILE
    # Looked for first: a projection of a trained model keeps the history of that model.
    if file.is_file():
        return projection_method(read_projection(file), name, fitted_on=data, encode_cost=cost)
    if (folder / HISTORY_FILE).is_file():
        return training_method(read_history(folder), name, fitted_on=data, encode_cost=cost)
    return DebiasMethod(name=name, kind="model", settings={}, fitted_on=data, encode_cost=cost)
