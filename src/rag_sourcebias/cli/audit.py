"""``audit``: measure skew on a data set or on finished runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import typer

from rag_sourcebias.audit import audit_source, measure_source_bias
from rag_sourcebias.audit.combined import combine_reports
from rag_sourcebias.cli import options as opt
from rag_sourcebias.cli.audit_settings import Retrieval, Statistics
from rag_sourcebias.cli.audit_sharded import audit_shards
from rag_sourcebias.cli.checks import require_writable
from rag_sourcebias.cli.console import err, out, stages
from rag_sourcebias.cli.delivery import deliver
from rag_sourcebias.cli.engine_options import Scale
from rag_sourcebias.cli.specs import SpecBuilder
from rag_sourcebias.cli.spread import spread
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import (
    cache_dir,
    load_dataset,
    load_sample,
    read_beir,
    read_clusters,
    read_qrels,
    read_run,
    read_tags,
)
from rag_sourcebias.report.format import delta, interval
from rag_sourcebias.types import AuditConfig, Dataset, SkewReport

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Measure what rankings and scores favour besides relevance."
)


@app.command()
@spread
def source(
    folders: opt.Folders = None,
    *,
    sample: opt.Sample = False,
    dataset: opt.DatasetName = None,
    run: opt.Runs = None,
    qrels: opt.QrelsFile = None,
    tags: opt.TagsFile = None,
    split: opt.Split = "test",
    asked: Retrieval,
    statistics: Statistics,
    scale: Scale,
    report: opt.ReportFolder = None,
) -> None:
    """Measure whether rankings favour human-written or LLM-written documents.

    Scores every source on the mixed corpus (NDCG, MAP), reports Relative Δ with intervals and
    corrected tests, and checks what else could explain it: ties, length, content.

    [bold]Examples[/]

        rag-sourcebias audit source --sample --retriever bm25 --report report

        rag-sourcebias audit source path/to/beir --retriever dense:all-MiniLM-L6-v2

        rag-sourcebias audit source --run bm25.run --qrels qrels.txt --tags tags.tsv

        rag-sourcebias audit source big --engine local --retriever dense:all-MiniLM-L6-v2

        rag-sourcebias audit source nfcorpus scifact nq --report reports
    """
    audit_one = partial(
        _audit_one,
        sample=sample,
        dataset=dataset,
        run=run,
        qrels=qrels,
        tags=tags,
        split=split,
        asked=asked,
        statistics=statistics,
        scale=scale,
    )
    if not folders or len(folders) == 1:
        audit_one(folders[0] if folders else None, report=report)
        return
    if statistics.clusters is not None:
        raise DataError("--clusters names the queries of one data set; audit them one by one")
    _audit_many(folders, audit_one, report)


def _audit_many(
    folders: Sequence[Path], audit_one: Callable[..., SkewReport], report: Path | None
) -> None:
    """Audit folder by folder, then say what they have in common."""
    names = [folder.resolve().name for folder in folders]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise DataError(
            f"two folders are named {repeated[0]!r}; their reports need different names"
        )
    found = []
    for folder, name in zip(folders, names, strict=True):
        err.print(f"data set {name}", highlight=False)
        found.append(audit_one(folder, report=None if report is None else report / name))
    for one in combine_reports(found):
        where = f"{one.system}, {one.measure} over {len(one.studies)} data sets"
        figure = (
            f"no common figure: {one.refusal}"
            if one.interval is None
            else f"centred Relative Δ {delta(one.interval.estimate)} {interval(one.interval)} "
            "(random effects)"
        )
        out.print(f"{where}: {figure}", highlight=False, markup=False, soft_wrap=True)


def _audit_one(
    folder: Path | None,
    *,
    sample: bool,
    dataset: str | None,
    run: Sequence[Path] | None,
    qrels: Path | None,
    tags: Path | None,
    split: str,
    asked: Retrieval,
    statistics: Statistics,
    scale: Scale,
    report: Path | None,
) -> SkewReport:
    config = statistics.config()
    clusters = None if statistics.clusters is None else read_clusters(statistics.clusters)
    require_writable(report)
    if run or qrels or tags:
        others = (folder, sample, dataset, asked.retriever, asked.rerank)
        _require_runs_alone(*others, texts=asked.text_statistics)
        found = _audit_runs(run, qrels, tags, config, clusters)
    elif scale.name == "memory":
        data = _load(folder, sample=sample, dataset=dataset, split=split)
        found = _audit(data, asked, config, clusters)
    else:
        where = None if sample or dataset else folder
        if clusters is not None or config.merge_llms:
            raise DataError("--clusters and --merge-llms need --engine memory")
        found = audit_shards(where, asked, scale, split=split, config=config)
    deliver(found, report)
    return found


def _audit(
    data: Dataset, asked: Retrieval, config: AuditConfig, clusters: Mapping[str, str] | None
) -> SkewReport:
    with stages() as progress:
        builder = SpecBuilder(asked.cache or cache_dir(), progress.advance)
        specs = [builder.retriever(text) for text in asked.retriever or ["bm25"]]
        specs += [
            builder.reranked(specs[0], model, depth=asked.rerank_depth)
            for model in asked.rerank or []
        ]
        return audit_source(
            data,
            specs,
            config=config,
            depth=asked.depth,
            sole_corpus=asked.sole_corpus,
            length_matched=asked.length_matched,
            rerank_controls=asked.rerank_controls,
            text_statistics=asked.text_statistics,
            settings_strip=asked.settings_strip,
            clusters=clusters,
            on_stage=progress.begin,
        )


def _require_runs_alone(*others: object, texts: bool) -> None:
    if any(others):
        raise DataError("--run, --qrels and --tags replace a data set and retrievers")
    if texts:
        raise DataError("--text-statistics needs texts, and finished runs hold none")


def _audit_runs(
    run: Sequence[Path] | None,
    qrels: Path | None,
    tags: Path | None,
    config: AuditConfig,
    clusters: Mapping[str, str] | None,
) -> SkewReport:
    if not run or qrels is None or tags is None:
        missing = [
            name
            for name, value in (("--run", run), ("--qrels", qrels), ("--tags", tags))
            if not value
        ]
        raise DataError(f"{', '.join(missing)} missing: finished runs need --run, --qrels, --tags")
    return measure_source_bias(
        [read_run(path) for path in run],
        read_qrels(qrels),
        read_tags(tags),
        config=config,
        name=", ".join(path.name for path in run),
        clusters=clusters,
    )


def _load(folder: Path | None, *, sample: bool, dataset: str | None, split: str) -> Dataset:
    given = [bool(folder), sample, bool(dataset)]
    if sum(given) != 1:
        raise DataError(
            "give one data set: a BEIR folder, --sample, --dataset <name>, or --run with --qrels "
            "and --tags"
        )
    if folder is not None:
        return read_beir(folder, split=split)
    return load_sample() if sample else load_dataset(dataset or "")
