"""``check-pairs``: is a paired corpus fit for an audit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from rag_sourcebias.cli import options as opt
from rag_sourcebias.cli.console import (
    deliver,
    number_pair,
    require_writable,
    say_written,
    stages,
    tell,
    whole_numbers,
)
from rag_sourcebias.cli.models import SpecBuilder
from rag_sourcebias.core.data import Corpus, Dataset
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.io.beir import read_beir, read_corpus, write_beir
from rag_sourcebias.io.samples import cache_dir, load_dataset, load_sample
from rag_sourcebias.pairs.audit import check_paired_corpus, pair_files, write_pair_checks
from rag_sourcebias.pairs.checks import sound_pairs
from rag_sourcebias.pairs.data import PairCheckConfig, PairChecks, PairReport, PairThresholds

# Options of ``check-pairs``.


_CHECKS, _RETRIEVAL = "Checks", "Retrieval"
_SWITCHES = ("language", "writing")
_OFF, _ON = ("off", "none", "false", "no"), ("on", "true", "yes")

OtherSources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        help="Check only this source against the baseline; repeatable. \\[default: all others]",
        rich_help_panel=_CHECKS,
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        help="Also compare both texts by this encoder, a sentence-transformers name or path.",
        rich_help_panel=_CHECKS,
    ),
]
ThresholdOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        help="name=value, such as length_ratio=0.5,2 · copied=0.8 · repeated=0.2 · end_kept=0.25 "
        "· chance=0.99 · cosine=0.7 · numbers_kept=1 · names_kept=0.6 · language=off · "
        "writing=off; off switches a check off; repeatable.",
        rich_help_panel=_CHECKS,
    ),
]
Worst = Annotated[
    int,
    typer.Option(
        min=0, help="Flagged pairs shown with both texts, per source.", rich_help_panel=_CHECKS
    ),
]
FailAbove = Annotated[
    float | None,
    typer.Option(
        help="End with code 1 if more than this share of any source's pairs is broken, such as "
        "0.05: for continuous integration.",
        min=0,
        max=1,
        rich_help_panel=_CHECKS,
    ),
]
SoundFolder = Annotated[
    Path | None,
    typer.Option(
        "--sound",
        help="Write the pairs that are not broken, with their queries and judgments, as a BEIR "
        "folder to audit with.",
        rich_help_panel=_CHECKS,
    ),
]
Retrievers = Annotated[
    list[str] | None,
    typer.Option(
        "--retriever",
        help="Search each corpus alone with bm25[:…] · dense:<model> · chroma:<model>[,…], as in "
        "audit source; repeatable. \\[default: bm25, where there are judgments]",
        rich_help_panel=_RETRIEVAL,
    ),
]
MarginOption = Annotated[
    float,
    typer.Option(
        help="Difference of two means in [0, 1] that counts as none; 0.05 is 5 points of NDCG.",
        rich_help_panel=_RETRIEVAL,
    ),
]


def read_thresholds(given: Sequence[str]) -> PairThresholds:
    """Read ``name=value`` pairs.

    Raises
    ------
    DataError
        If a name is unknown or given twice, or a value is not of its kind.
    """
    known = list(PairThresholds.__dataclass_fields__)
    values: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in known:
            raise DataError(f"--threshold {text!r}: write name=value; names are {', '.join(known)}")
        if name in values:
            raise DataError(f"--threshold {name} is given twice")
        values[name] = _value(name, value.lower(), text)
    return PairThresholds(**values)


def _value(name: str, value: str, text: str) -> Any:  # noqa: ANN401 - of the threshold
    if name in _SWITCHES:
        if value not in (*_OFF, *_ON):
            raise DataError(f"--threshold {text!r}: {name} is on or off")
        return value in _ON
    if value in _OFF:
        return None
    if name == "length_ratio":
        return number_pair("threshold length_ratio", value)
    try:
        return float(value)
    except ValueError:
        raise DataError(f"--threshold {text!r}: {value!r} is not a number, nor off") from None


# The data that ``check-pairs`` reads: with judgments where there are some.


def load_paired(
    folder: Path | None, *, sample: bool, dataset: str | None, split: str
) -> Dataset | Corpus:
    """Read a BEIR folder, which may lack ``qrels/`` or ``queries.jsonl``, or a named data set.

    Raises
    ------
    DataError
        If none or several are given, or the folder holds no corpus.
    """
    if sum([bool(folder), sample, bool(dataset)]) != 1:
        raise DataError("give one data set: a BEIR folder, --sample, or --dataset <name>")
    if folder is None:
        return load_sample() if sample else load_dataset(dataset or "")
    if not folder.is_dir() or _judged(folder):
        return read_beir(folder, split=split)
    return read_corpus(folder, sources=None, titles=True).corpus


def has_judgments(data: Dataset | Corpus) -> bool:
    """Whether each corpus can be searched alone."""
    return isinstance(data, Dataset) and len(data.qrels) > 0


def _judged(folder: Path) -> bool:
    queries = any((folder / f"queries.jsonl{gz}").is_file() for gz in ("", ".gz"))
    qrels = folder / "qrels"
    return queries and qrels.is_dir() and any(qrels.iterdir())


# ``check-pairs``: is a paired corpus fit for an audit.


_BROKEN = 1


def check_pairs(
    folder: opt.Folder = None,
    *,
    sample: opt.Sample = False,
    dataset: opt.DatasetName = None,
    split: opt.Split = "test",
    baseline_source: opt.BaselineSource = "human",
    source: OtherSources = None,
    encoder: EncoderName = None,
    threshold: ThresholdOptions = None,
    worst: Worst = 20,
    fail_above: FailAbove = None,
    sound: SoundFolder = None,
    sole_corpus: Annotated[
        bool, typer.Option(help="Search each corpus alone.", rich_help_panel=_RETRIEVAL)
    ] = True,
    retriever: Retrievers = None,
    cutoffs: opt.Cutoffs = "1,3,5,10",
    margin: MarginOption = 0.05,
    depth: opt.Depth = 100,
    seed: opt.Seed = 0,
    cache: opt.Cache = None,
    report: opt.ReportFolder = None,
) -> None:
    """Check that rewrites say what their originals say, before you audit with them.

    Pairs: refusals, leftovers, copies, cut ends, loops, other languages,
    numbers and names lost or added. Corpus: source known, judgments copied,
    one to one. Each source's corpus is also searched alone, with a test of
    whether both are equally hard. --report writes the worst pairs side by
    side, and a CSV file with all values of all pairs.

    [bold]Examples[/]

        rag-sourcebias check-pairs --sample --report report

        rag-sourcebias check-pairs my-corpus --encoder all-MiniLM-L6-v2 --retriever bm25

        rag-sourcebias check-pairs my-corpus --threshold cosine=0.7 --fail-above 0.05

        rag-sourcebias check-pairs my-corpus --sound sound
    """
    thresholds = read_thresholds(threshold or ())
    config = PairCheckConfig(
        cutoffs=whole_numbers("cutoffs", cutoffs),
        margin=margin,
        depth=depth,
        worst=worst,
        seed=seed,
    )
    require_writable(report)
    if retriever and not sole_corpus:
        raise DataError("--retriever searches each corpus alone, which --no-sole-corpus forbids")
    data = load_paired(folder, sample=sample, dataset=dataset, split=split)
    _check_sound(sound, data)
    searched = (retriever or ["bm25"]) if retriever or has_judgments(data) else []
    every: dict[str, PairChecks] = {}
    with stages() as progress:
        builder = SpecBuilder(cache or cache_dir(), progress.advance)
        found = check_paired_corpus(
            data,
            baseline_source=baseline_source,
            sources=source,
            encoder=None if encoder is None else builder.encoder(encoder),
            retrievers=[builder.retriever(text) for text in searched if sole_corpus],
            thresholds=thresholds,
            config=config,
            on_stage=progress.begin,
            on_checks=every.__setitem__,
        )
    deliver(found, report, figures=partial(_write_values, every))
    if sound is not None and isinstance(data, Dataset):
        _write_sound(data, every, sound, baseline=baseline_source)
    _judge(found, fail_above)


def _write_values(every: dict[str, PairChecks], folder: Path) -> None:
    for source, name in pair_files(list(every)).items():
        try:
            write_pair_checks(every[source], folder / name)
        except DataError as error:  # costs this file, not the report
            tell(str(error))
        else:
            say_written("csv", folder / name)


def _check_sound(folder: Path | None, data: Dataset | Corpus) -> None:
    """Refuse before the checks, not after them."""
    if folder is None:
        return
    if not has_judgments(data):
        raise DataError(f"--sound {folder}: there are no queries and judgments to audit with")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"--sound {folder} is there already; name a new folder")


def _write_sound(
    data: Dataset, every: dict[str, PairChecks], folder: Path, *, baseline: str
) -> None:
    kept = sound_pairs(data, every, baseline_source=baseline)
    write_beir(kept, folder)
    n = kept.corpus.tags.counts()[baseline]
    tell(f"sound: {folder} ({n} documents of each source, {len(kept.queries)} queries)")


def _judge(found: PairReport, fail_above: float | None) -> None:
    """End with code 1 where too many pairs are broken."""
    if fail_above is None:
        return
    failed = [part for part in found.sources if part.broken_share > fail_above]
    for part in failed:
        tell(
            f"failed: {part.summary.n_broken} of {part.summary.n_pairs} pairs with {part.source} "
            f"are broken, more than --fail-above {fail_above:g}"
        )
    empty = [part.source for part in found.sources if not part.summary.n_pairs]
    if empty:
        tell(f"failed: no pairs with {', '.join(empty)}")
    if failed or empty:
        raise typer.Exit(_BROKEN)
