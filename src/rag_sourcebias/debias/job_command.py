"""Options and work that the commands of ``debias`` share: data, models, report, training."""

from __future__ import annotations

import shutil
import statistics
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import formatannotation
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from rag_sourcebias.core.data import Corpus, Dataset, Qrels
from rag_sourcebias.core.errors import DataError, setting
from rag_sourcebias.core.progress import Stages
from rag_sourcebias.core.protocols import Encoder, RetrieverSpec
from rag_sourcebias.core.tags import (
    TwinTexts,
    chosen_sources,
    paired_sources,
    training_pairs,
    twin_texts,
)
from rag_sourcebias.core.training import TrainingHistory
from rag_sourcebias.debias.audit import measure_debias
from rag_sourcebias.debias.data import FIT, DebiasConfig, DebiasMethod
from rag_sourcebias.debias.legacy_report import DebiasReport
from rag_sourcebias.intake.beir import read_beir, read_corpus, splits_of
from rag_sourcebias.intake.samples import list_datasets, load_sample
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.neural.training_data import TrainingSettings, data_identity, read_history
from rag_sourcebias.retrieval.cache import CachedEncoder, VectorCache
from rag_sourcebias.retrieval.search import parse_spec
from rag_sourcebias.terminal.console import err
from rag_sourcebias.terminal.options import require_writable

if TYPE_CHECKING:
    from rag_sourcebias.neural.train import TrainedModel


# Work that the commands of ``debias`` share: data, models, methods, the report, one training.


# What ``debias`` is fitted on and judged on: BEIR folders, their splits, the bundled sample.


_SAMPLE = "outfox-essays"


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """What is fitted on."""

    panel = FIT

    sample: bool = setting(
        False,
        "Use a bundled sample: openings of 640 essays by students and by ChatGPT. Those "
        "on 340 problem statements are fitted on, the others judged on.",
    )
    split: str | None = setting(
        None,
        "Split whose judged pairs are used (both versions of a relevant document). "
        "\\[default: train, or the only one there is]",
    )
    all_pairs: bool = setting(
        False,
        "Use every pair of the corpus, whatever the judgments; needs neither queries nor "
        "qrels. With --method project.",
    )
    source: str | None = setting(
        None,
        "LLM source to fit on, such as llm:gpt-4o; needed where the corpus has several.",
    )
    unseen: bool = setting(
        False,
        "Leave out the pairs that the judged data judge: the report is then on documents "
        "that nothing was fitted on.",
    )


class FittingData(NamedTuple):
    """Pairs to fit on.

    Parameters
    ----------
    name : str
        As reports name it.
    corpus : Corpus
    dataset : Dataset or None
        None where every pair of the corpus is used, whatever the judgments.
    folder : Path or None
        None for the bundled sample.
    split : str
        Empty without judgments.
    """

    name: str
    corpus: Corpus
    dataset: Dataset | None = None
    folder: Path | None = None
    split: str = ""

    @property
    def judged(self) -> Dataset:
        """Queries and judgments, where a method needs them."""
        if self.dataset is None:
            raise DataError(f"{self.name}: this needs the judgments of a split")
        return self.dataset


def read_fitting(folder: Path | None, pairs: Pairs) -> FittingData:
    """Read the pairs; all of them need neither queries nor judgments.

    Without a split: train, or the only one there is.
    """
    if pairs.sample == (folder is not None):
        raise DataError("give one data set to fit on: a BEIR folder, or --sample")
    if folder is None:
        data = load_sample(_SAMPLE, split="train")
        fitted = None if pairs.all_pairs else data
        return FittingData(name=data.name, corpus=data.corpus, dataset=fitted)
    if pairs.all_pairs and folder.is_dir():
        corpus = read_corpus(folder, titles=True).corpus
        return FittingData(name=folder.resolve().name, corpus=corpus, folder=folder)
    split = pairs.split
    if split is None:
        found = list(splits_of(folder))
        split = found[0] if len(found) == 1 else "train"
        if found and split not in found:
            raise DataError(
                f"{folder} has the splits {', '.join(found)}: name the one to fit on with "
                f"--split {found[0]}"
            )
    data = _read_split(folder, split)
    return FittingData(name=data.name, corpus=data.corpus, dataset=data, folder=folder, split=split)


def read_seen(specs: Sequence[str] | None, *, baseline: str) -> frozenset[str]:
    """Baseline texts of the pairs of ``FOLDER`` (all) or ``FOLDER:SPLIT`` (those judged)."""
    found: set[str] = set()
    for text in specs or ():
        qrels = None
        if Path(text).is_dir():
            corpus = read_corpus(Path(text), titles=True).corpus
        else:
            data = _read_spec("fitted-on", text)
            corpus, qrels = data.corpus, data.qrels
        found |= pair_texts(corpus, qrels, baseline=baseline)
    return frozenset(found)


def pair_texts(corpus: Corpus, qrels: Qrels | None, *, baseline: str) -> frozenset[str]:
    """Baseline texts of the pairs that judgments call relevant, or of all."""
    return frozenset(
        text
        for source in paired_sources(corpus.tags, baseline=baseline)
        for text in twin_texts(corpus, source=source, baseline=baseline, qrels=qrels).baseline_texts
    )


def _default(fitting: FittingData) -> Dataset:
    """Another split of the folder or sample, or the data itself."""
    folder = fitting.folder
    if folder is None:
        return load_sample(_SAMPLE, split="test")
    others = [s for s in splits_of(folder) if s != fitting.split]
    for split in ("dev", "test", *others):
        if split in others:
            return _read_split(folder, split)
    if fitting.dataset is not None:
        return fitting.dataset
    raise DataError(
        f"{folder} has no judgments (qrels/<split>.tsv) to judge the result on: give "
        "--on <folder>[:<split>]"
    )


def _read_spec(option: str, text: str) -> Dataset:
    """Read ``FOLDER[:SPLIT]``, or a name that ``datasets`` lists."""
    whole = Path(text)
    head, colon, tail = text.rpartition(":")
    if not whole.exists() and colon and head and tail:
        return _read_split(Path(head), tail)
    if not whole.exists() and text in (info.name for info in list_datasets()):
        return load_sample(text)
    splits = list(splits_of(whole))
    split = next((s for s in ("test", "dev", *splits[:1]) if s in splits), "test")
    if split not in ("test", "dev") and len(splits) > 1:
        raise DataError(
            f"--{option} {text} has the splits {', '.join(splits)}: name one as {text}:{splits[0]}"
        )
    return _read_split(whole, split)


def _read_split(folder: Path, split: str) -> Dataset:
    """Read a split, with the name of the folder, and of the split where it has several."""
    name = folder.resolve().name
    several = len(splits_of(folder)) > 1
    return read_beir(folder, split=split, name=f"{name}/{split}" if several else name)


# Models as ``debias`` reads, writes and times them.


_FIXED = ("dtype", "max_length")
_TEXTS, _ROUNDS = 8, 5


def model_of(text: str) -> str:
    """Return the model that ``--encoder`` names, refusing options that a folder does not keep."""
    spec = parse_spec(f"dense:{text}")
    fixed = [name for name in _FIXED if name in spec.options]
    if fixed:
        raise DataError(
            f"--encoder {text!r}: {', '.join(fixed)} cannot be set here: the folder written is "
            "loaded with settings of its own; change them in the model first"
        )
    return spec.model


@contextmanager
def removed_on_failure(path: Path) -> Iterator[None]:
    """Take a result away again where what follows fails, so that the same command can be run."""
    try:
        yield
    except BaseException:
        remove(path)
        raise


def remove(path: Path) -> None:
    """Delete a folder or file."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def written_model(
    folder: Path, cache: Path, progress: Callable[[int, int], None], *, name: str | None = None
) -> Encoder:
    """Load a model that was just written, with cached vectors."""
    vectors = VectorCache(cache / "vectors.sqlite")
    return CachedEncoder(SentenceEncoder(folder, name=name), vectors, progress=progress)


def encode_cost(before: Encoder, after: Encoder, texts: Sequence[str]) -> float:
    """Time to encode with the second as a multiple of the first: median over rounds in turns.

    On a processor, its time is what counts: it does not grow when others use the machine too.
    """
    sample = list(texts[:: max(1, len(texts) // _TEXTS)][:_TEXTS])
    pair = [getattr(encoder, "encoder", encoder) for encoder in (before, after)]
    on_cpu = all(encoder.settings.get("device") == "cpu" for encoder in pair)
    clock = time.process_time if on_cpu else time.perf_counter
    ratios = []
    for turn in range(_ROUNDS + 1):
        seconds = [0.0, 0.0]
        for side in (0, 1) if turn % 2 else (1, 0):
            start = clock()
            pair[side].encode_documents(sample)
            seconds[side] = clock() - start
        if turn and min(seconds) > 0:  # the first round loads the models
            ratios.append(seconds[1] / seconds[0])
    return statistics.median(ratios) if ratios else 1.0


# What ``debias`` says of a method: checked settings, and its row in the report.


def distinct_name(name: str, taken: Collection[str]) -> str:
    """Return the name, numbered where another system has it."""
    numbered = (f"{name} ({number})" for number in count(2))
    return next(found for found in chain([name], numbered) if found not in taken)


# The before/after report that every command of ``debias`` ends in.


class Judging(NamedTuple):
    """What a method is judged on, and how.

    Parameters
    ----------
    config : DebiasConfig
    datasets : tuple of Dataset
    cautions : tuple of str
        Why figures on these data say less than they seem to.
    unseen : bool
        Whether pairs that the data judge are left out of the fitting.
    """

    config: DebiasConfig
    datasets: tuple[Dataset, ...]
    cautions: tuple[str, ...]
    unseen: bool

    def report(
        self,
        before: RetrieverSpec,
        after: Sequence[RetrieverSpec],
        *,
        methods: Sequence[DebiasMethod],
        progress: Stages,
        fitted_texts: frozenset[str] = frozenset(),
        **more: Any,  # noqa: ANN401 - of measure_debias
    ) -> DebiasReport:
        """Measure all systems on all data, with the cautions among the warnings."""
        found = measure_debias(
            before,
            after,
            self.datasets,
            methods=methods,
            fitted_texts=fitted_texts,
            config=self.config,
            on_stage=progress.begin,
            **more,
        )
        return replace(found, warnings=(*self.cautions, *found.warnings))


def judging(
    on: Sequence[str] | None,
    fitting: FittingData | None,
    *,
    report: Path | None,
    unseen: bool = False,
    config: DebiasConfig,
) -> Judging:
    """Check the options of the report and read the data, before any model is loaded."""
    require_writable(report)
    if on:
        datasets = [_read_spec("on", text) for text in on]
    elif fitting is None:
        raise DataError("nothing to judge on: give --on <folder>[:<split>]")
    else:
        datasets = [_default(fitting)]
    times = Counter(data.name for data in datasets)
    datasets = [
        replace(data, name=text) if times[data.name] > 1 else data
        for data, text in zip(datasets, on or [""], strict=True)
    ]
    if len({data.name for data in datasets}) < len(datasets):
        raise DataError(f"--on names the same data twice: {', '.join(on or ())}")
    cautions = []
    for data in datasets:
        if fitting is None or unseen or data.corpus.texts != fitting.corpus.texts:
            continue
        if fitting.dataset is None or fitting.dataset.queries == data.queries:
            cautions.append(
                f"{data.name} is judged on what the method is fitted on: its figures show what can "
                "be reached, not what to expect elsewhere; name other data with "
                "--on <folder>[:<split>]"
            )
            err.print(f"[bold yellow]caution:[/] {cautions[-1]}", soft_wrap=True)
    return Judging(config=config, datasets=tuple(datasets), cautions=tuple(cautions), unseen=unseen)


# What a command of ``debias`` works on: pairs to fit on, data to judge on.


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """Pairs of one or several LLM sources, and the data for the report.

    Parameters
    ----------
    fitting : FittingData
    judged : Judging
    sources : tuple of str
    """

    fitting: FittingData
    judged: Judging
    sources: tuple[str, ...]

    @property
    def source(self) -> str:
        """The source, where there is one."""
        return self.sources[0]

    @property
    def baseline(self) -> str:
        """Source of the originals."""
        return self.judged.config.baseline_source

    @cached_property
    def excluded(self) -> frozenset[str]:
        """Pair ids that are not fitted on; texts say which, as ids differ between folders."""
        if not (self.judged.unseen and self.sources):
            return frozenset()
        texts = {
            text
            for data in self.judged.datasets
            for text in pair_texts(data.corpus, data.qrels, baseline=self.baseline)
        }
        pairs = [
            twin_texts(self.fitting.corpus, source=source, baseline=self.baseline)
            for source in self.sources
        ]
        return frozenset(
            pair
            for twins in pairs
            for pair, text in zip(twins.pair_ids, twins.baseline_texts, strict=True)
            if text in texts
        )

    @cached_property
    def twins_of(self) -> tuple[TwinTexts, ...]:
        """Pairs that are fitted on, of each source."""
        judged = self.fitting.dataset
        return tuple(
            twin_texts(
                self.fitting.corpus,
                source=source,
                baseline=self.baseline,
                qrels=None if judged is None else judged.qrels,
                exclude=self.excluded,
            )
            for source in self.sources
        )

    @property
    def twins(self) -> TwinTexts:
        """Pairs of the source."""
        return self.twins_of[0]

    @property
    def fitted_texts(self) -> frozenset[str]:
        """Originals of the pairs."""
        return frozenset(text for twins in self.twins_of for text in twins.baseline_texts)


def prepare(
    folder: Path | None,
    pairs: Pairs,
    method: str,
    *,
    on: Sequence[str] | None,
    report: Path | None,
    config: DebiasConfig,
) -> Job:
    """Read and check all data of a command, before any model is loaded."""
    sources: tuple[str, ...] = ()
    if method == "twins":  # nothing is fitted on pairs: the data need have none
        pairs = replace(pairs, all_pairs=True, unseen=True)
        fitting = read_fitting(folder, pairs)
    else:
        fitting = read_fitting(folder, pairs)
        asked = None if pairs.source is None else [pairs.source]
        sources = chosen_sources(fitting.corpus.tags, asked, config.baseline_source)
    if len(sources) > 1 and method != "calibrate":
        raise DataError(
            f"{fitting.name} has pairs of {', '.join(sources)}: name one with --source {sources[0]}"
        )
    judged = judging(on, fitting, report=report, unseen=pairs.unseen, config=config)
    job = Job(fitting=fitting, judged=judged, sources=sources)
    try:
        _ = job.twins_of  # says what is missing while nothing has been done
    except DataError as error:
        if not job.excluded:
            raise
        raise DataError(
            f"{error} (--unseen left out {len(job.excluded)} pairs that the judged data judge)"
        ) from error
    return job


# One training, or one of the many of a search.


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
    resume: bool = True,
) -> TrainedModel:
    """Train one model."""
    from rag_sourcebias.neural.train import train_debiased

    progress.begin(f"training {output.name} on {len(job.twins):,} pairs of {job.fitting.name}")
    return train_debiased(
        model,
        job.fitting.judged,
        output,
        settings=settings,
        baseline=job.baseline,
        source=job.source,
        exclude=job.excluded,
        resume=resume,
        untrained=untrained,
        on_stage=progress.begin,
        on_progress=progress.advance,
    )


def read_settings(given: Sequence[str] | None, *, seed: int) -> TrainingSettings:
    """Read ``name=value,…`` as settings of a training."""
    known = get_type_hints(TrainingSettings)
    del known["seed"]
    found: dict[str, Any] = {"seed": seed}
    for part in (p.strip() for p in ",".join(given or ()).split(",") if p.strip()):
        name, _, value = part.partition("=")
        if name not in known or not value:
            raise DataError(
                f"--training {part!r}: write settings as name=value; there are {', '.join(known)}"
            )
        kind = formatannotation(known[name])
        try:
            found[name] = {"int": int, "float": float}.get(kind.removesuffix(" | None"), str)(value)
        except ValueError:
            raise DataError(f"--training {part!r}: {value!r} is not a number of {kind}") from None
    return TrainingSettings(**found)


def trained_model(
    job: Job,
    model: str,
    settings: TrainingSettings,
    place: Path,
    *,
    before: Encoder,
    progress: Stages,
) -> TrainingHistory:
    """Train a model of a search, unless that was done; refuse one that another search left."""
    if not place.exists():
        return train_model(
            job, model, settings, place, untrained=before, progress=progress,
        ).history  # fmt: skip
    found = read_history(place)
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
    err.print(f"[dim]·[/] {place.name} is trained already")
    return found
