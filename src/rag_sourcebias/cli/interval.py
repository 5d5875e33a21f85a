"""``interval``: a confidence interval for a judged evaluation."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rag_sourcebias.cli import interval_options as opt
from rag_sourcebias.cli.checks import (
    choice,
    number_pair,
    require_writable,
    require_writable_file,
)
from rag_sourcebias.cli.console import out, print_json, stages
from rag_sourcebias.cli.delivery import deliver, say_written
from rag_sourcebias.cli.interval_inputs import (
    Asked,
    Columns,
    ItemFiles,
    RankingFiles,
    chosen_input,
)
from rag_sourcebias.io import write_report_json
from rag_sourcebias.report.kinds import print_report
from rag_sourcebias.types.judged import JudgedConfig, JudgedReport

__all__ = ["interval"]


def interval(
    file: opt.ItemsFile = None,
    *,
    sample: opt.Sample = False,
    human_file: opt.HumanFile = None,
    judge_file: opt.JudgeFile = None,
    ragas: opt.Ragas = None,
    metric: opt.Metric = None,
    bounds: opt.Bounds = None,
    worst_case: opt.WorstCase = False,
    id_column: opt.IdColumns = None,
    human: opt.HumanColumn = None,
    judge: opt.JudgeColumn = None,
    group: opt.GroupColumn = None,
    cluster: opt.ClusterColumn = None,
    stratum: opt.StratumColumn = None,
    run: opt.Runs = None,
    qrels: opt.HumanQrels = None,
    labels: opt.JudgeLabels = None,
    tags: opt.TagsFile = None,
    measure: opt.Measures = None,
    baseline_source: opt.BaselineSource = "human",
    gain: opt.Gain = "exponential",
    min_grade: opt.MinGrade = 1,
    grades: opt.Grades = None,
    per_query: opt.PerQuery = True,
    method: opt.Method = "regression",
    target: opt.Target = "population",
    confidence_level: opt.ConfidenceLevel = 0.95,
    seed: opt.Seed = 0,
    report: opt.ReportFolder = None,
    json: opt.JsonFile = None,
) -> None:
    """Put an interval on a score that a judge gave and people checked in part.

    The judge's error is estimated from the items people labelled too, and corrected; a judge that
    tells nothing is called useless. The labelled items must be a random draw.

    [bold]Examples[/]

        rag-sourcebias interval --sample

        rag-sourcebias interval answers.csv --group system --cluster question --report report

        rag-sourcebias interval --human-file labels.csv --judge-file judged.jsonl

        rag-sourcebias interval --ragas result.csv --human-file labels.csv

        rag-sourcebias interval --run bm25.run --run dense.run --qrels human.qrels \
--labels judge.tsv --measure NDCG@10 --measure DCG@10
    """
    columns = Columns(id_column, human, judge, group, cluster, stratum)
    items = ItemFiles(
        file=file, sample=sample, human=human_file, judge=judge_file, ragas=ragas, metric=metric
    )
    rankings = RankingFiles(
        runs=run or [], qrels=qrels, labels=labels, tags=tags, grades=grades,
        baseline_source=baseline_source,
    )  # fmt: skip
    config = JudgedConfig(
        method=choice("method", method, opt.METHODS),
        target=choice("target", target, opt.TARGETS),
        confidence_level=confidence_level,
        gain=choice("gain", gain, ("exponential", "linear")),
        min_grade=min_grade,
        per_query=per_query,
        coverage_runs=200 if report else 0,  # the curves stand in the pages only
        seed=seed,
    )
    scale = None if bounds is None else number_pair("bounds", bounds)
    asked = Asked(measures=measure or (), bounds=scale, worst_case=worst_case)
    compute = chosen_input(items, rankings, columns, asked)
    require_writable(report)
    require_writable_file("json", None if json in (None, "-") else Path(json))
    with stages() as progress:
        found = compute(config, progress.begin)
    _deliver(found, report, json)


def _deliver(report: JudgedReport, folder: Path | None, json: str | None) -> None:
    if json not in (None, "-"):
        write_report_json(report, json)
        say_written("json", json)
    show = (
        partial(print_json, report.to_dict()) if json == "-" else partial(print_report, report, out)
    )
    if folder is None and json is not None:
        show()
    else:
        deliver(report, folder, show=show)
