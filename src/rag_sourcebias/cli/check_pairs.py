"""``check-pairs``: is a paired corpus fit for an audit."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from rag_sourcebias.cli import check_pairs_options as own
from rag_sourcebias.cli import options as opt
from rag_sourcebias.cli.check_pairs_data import has_judgments, load_paired
from rag_sourcebias.cli.checks import require_writable, whole_numbers
from rag_sourcebias.cli.console import err, stages
from rag_sourcebias.cli.delivery import deliver, say_written
from rag_sourcebias.cli.specs import SpecBuilder
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import cache_dir
from rag_sourcebias.io.beir_write import write_beir
from rag_sourcebias.io.pairs_csv import pair_files, write_pair_checks
from rag_sourcebias.types import Corpus, Dataset
from rag_sourcebias.types.pair_checks import PairChecks
from rag_sourcebias.types.pair_report import PairCheckConfig, PairReport

__all__ = ["check_pairs"]

_BROKEN = 1


def check_pairs(
    folder: opt.Folder = None,
    *,
    sample: opt.Sample = False,
    dataset: opt.DatasetName = None,
    split: opt.Split = "test",
    baseline_source: opt.BaselineSource = "human",
    source: own.OtherSources = None,
    encoder: own.EncoderName = None,
    threshold: own.ThresholdOptions = None,
    worst: own.Worst = 20,
    fail_above: own.FailAbove = None,
    sound: own.SoundFolder = None,
    sole_corpus: own.SoleCorpus = True,
    retriever: own.Retrievers = None,
    cutoffs: opt.Cutoffs = "1,3,5,10",
    margin: own.MarginOption = 0.05,
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
    thresholds = own.read_thresholds(threshold or ())
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
    from rag_sourcebias.audit.pairs import check_paired_corpus

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
            _say(str(error))
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
    from rag_sourcebias.corpora import sound_pairs

    kept = sound_pairs(data, every, baseline_source=baseline)
    write_beir(kept, folder)
    n = kept.corpus.tags.counts()[baseline]
    _say(f"sound: {folder} ({n} documents of each source, {len(kept.queries)} queries)")


def _judge(found: PairReport, fail_above: float | None) -> None:
    """End with code 1 where too many pairs are broken."""
    if fail_above is None:
        return
    failed = [part for part in found.sources if part.broken_share > fail_above]
    for part in failed:
        _say(
            f"failed: {part.summary.n_broken} of {part.summary.n_pairs} pairs with {part.source} "
            f"are broken, more than --fail-above {fail_above:g}"
        )
    empty = [part.source for part in found.sources if not part.summary.n_pairs]
    if empty:
        _say(f"failed: no pairs with {', '.join(empty)}")
    if failed or empty:
        raise typer.Exit(_BROKEN)


def _say(text: str) -> None:
    err.print(text, markup=False, highlight=False, soft_wrap=True)
