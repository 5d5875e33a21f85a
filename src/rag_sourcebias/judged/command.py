"""``interval``: a confidence interval for a judged evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from rag_sourcebias.cli.console import (
    choice,
    err,
    number_pair,
    out,
    print_json,
    require_writable,
    require_writable_file,
    stages,
)
from rag_sourcebias.cli.delivery import deliver, say_written
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.judgments import JudgedItems
from rag_sourcebias.io.tags import read_tags
from rag_sourcebias.io.trec import read_qrels, read_run
from rag_sourcebias.judged.audit import judge_items_with_intervals, judge_ranking_with_intervals
from rag_sourcebias.judged.data import JudgedConfig, JudgedReport
from rag_sourcebias.judged.files import (
    JUDGED_SAMPLE_LICENSE,
    join_judged,
    judged_sample_file,
    read_judged_items,
    read_label_distributions,
    read_ragas_result,
)
from rag_sourcebias.reports import print_report, write_report_json

# Options of the commands about judged evaluations, named once.


_ITEMS, _RANKINGS, _STATISTICS = "Items", "Rankings", "Statistics"
_COLUMNS, _OUTPUT = "Columns (found by their usual names)", "Output"

ItemsFile = Annotated[
    Path | None,
    typer.Argument(
        help="CSV, TSV, JSON lines (also .gz) or Parquet, one row per item: a judge value for "
        "each, a human label for some, empty otherwise.",
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Use the bundled sample: five systems on 300 questions, 60 of them graded by people.",
        rich_help_panel=_ITEMS,
    ),
]
HumanFile = Annotated[
    Path | None,
    typer.Option(
        help="Human labels in a file of their own: id and label. With --judge-file or --ragas.",
        rich_help_panel=_ITEMS,
    ),
]
JudgeFile = Annotated[
    Path | None,
    typer.Option(help="Judge values of every item: id and value.", rich_help_panel=_ITEMS),
]
Ragas = Annotated[
    Path | None,
    typer.Option(
        help="What ragas wrote: EvaluationResult.to_pandas() as CSV, JSON lines or Parquet, or the "
        "CSV of an experiment. Human labels: a column of it, or --human-file joined by id, "
        "user_input or row (from 0).",
        rich_help_panel=_ITEMS,
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        help="Column of the ragas result, such as answer_correctness.", rich_help_panel=_ITEMS
    ),
]
Bounds = Annotated[
    str | None,
    typer.Option(
        help="Range of the human labels as low,high; a label outside it is refused.",
        rich_help_panel=_ITEMS,
    ),
]
WorstCase = Annotated[
    bool,
    typer.Option(
        "--worst-case",
        help="Widen the interval to whatever the judge might have said where it failed.",
        rich_help_panel=_ITEMS,
    ),
]
IdColumns = Annotated[
    list[str] | None,
    typer.Option("--id", help="Id; repeatable (query, document).", rich_help_panel=_COLUMNS),
]
HumanColumn = Annotated[
    str | None, typer.Option("--human", help="Human label.", rich_help_panel=_COLUMNS)
]
JudgeColumn = Annotated[
    str | None, typer.Option("--judge", help="Judge value.", rich_help_panel=_COLUMNS)
]
GroupColumn = Annotated[
    str | None,
    typer.Option("--group", help="What is compared: system, source.", rich_help_panel=_COLUMNS),
]
ClusterColumn = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Items that depend on each other: the question, where several systems answer it.",
        rich_help_panel=_COLUMNS,
    ),
]
StratumColumn = Annotated[
    str | None,
    typer.Option(
        "--stratum",
        help="Strata within which the labelled items were drawn.",
        rich_help_panel=_COLUMNS,
    ),
]
Runs = Annotated[
    list[Path] | None,
    typer.Option(
        help="TREC run (.gz allowed); repeatable. Needs --qrels and --labels.",
        rich_help_panel=_RANKINGS,
    ),
]
HumanQrels = Annotated[
    Path | None,
    typer.Option(
        help="Human judgments (TREC or BEIR qrels) of some queries.", rich_help_panel=_RANKINGS
    ),
]
JudgeLabels = Annotated[
    Path | None,
    typer.Option(
        help="The judge's label distributions of all queries: query_id, doc_id and p0 … pR, "
        "votes or grade, as rag-sourcebias judge relevance writes them.",
        rich_help_panel=_RANKINGS,
    ),
]
TagsFile = Annotated[
    Path | None,
    typer.Option(
        help="Table with doc_id and source: adds Relative Δ between sources.",
        rich_help_panel=_RANKINGS,
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        help="DCG@k, NDCG@k, P@k, MAP@k, MRR@k, Recall@k; repeatable (NDCG@10). For "
        "items: the name of the value.",
        rich_help_panel=_RANKINGS,
    ),
]
BaselineSource = Annotated[
    str,
    typer.Option(help="Source that the others are compared with.", rich_help_panel=_RANKINGS),
]
Gain = Annotated[
    str,
    typer.Option(
        help="exponential (2^r − 1) or linear (r), for DCG and NDCG.", rich_help_panel=_RANKINGS
    ),
]
MinGrade = Annotated[
    int, typer.Option(min=1, help="Lowest relevant grade.", rich_help_panel=_RANKINGS)
]
Grades = Annotated[
    int | None,
    typer.Option(
        "--grades",
        min=2,
        help="Number of grades, where --labels holds votes or grades and may lack the highest.",
        rich_help_panel=_RANKINGS,
    ),
]
PerQuery = Annotated[
    bool,
    typer.Option(help="An interval for every query (DCG and P).", rich_help_panel=_RANKINGS),
]
METHODS = ("regression", "labels", "ppi", "ppi++", "ppi-crossfit", "ppi-paper", "bootstrap")
Method = Annotated[
    str,
    typer.Option(
        help=f"{', '.join(METHODS)}. Choose before you look.", rich_help_panel=_STATISTICS
    ),
]
TARGETS = ("population", "pool", "unlabeled")
Target = Annotated[
    str,
    typer.Option(
        help="What the mean is of: all items like these (population), these (pool), or those "
        "without a human label (unlabeled).",
        rich_help_panel=_STATISTICS,
    ),
]
ConfidenceLevel = Annotated[float, typer.Option(rich_help_panel=_STATISTICS)]
Seed = Annotated[int, typer.Option(rich_help_panel=_STATISTICS)]
ReportFolder = Annotated[
    Path | None,
    typer.Option(
        help="Folder for report.html, report.md and report.json.", rich_help_panel=_OUTPUT
    ),
]
JsonFile = Annotated[
    str | None,
    typer.Option(
        "--json", help="Write the report as JSON; - is standard output.", rich_help_panel=_OUTPUT
    ),
]


# Which files an interval is computed from, and how they are read.


OnStage = Callable[[str], None]


class Factors(TypedDict):
    """Columns that tell how items belong together."""

    group: str | None
    cluster: str | None
    stratum: str | None


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns named on the command line."""

    id: list[str] | None = None
    human: str | None = None
    judge: str | None = None
    group: str | None = None
    cluster: str | None = None
    stratum: str | None = None

    def given(self) -> list[str]:
        """Return the options that were used."""
        return [f"--{name}" for name in self.__slots__ if getattr(self, name)]

    def factors(self) -> Factors:
        """Return group, cluster and stratum."""
        return Factors(group=self.group, cluster=self.cluster, stratum=self.stratum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of the input."""

    measures: Sequence[str]
    bounds: tuple[float, float] | None
    worst_case: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFiles:
    """Files with one value per item."""

    file: Path | None
    sample: bool
    human: Path | None
    judge: Path | None
    ragas: Path | None
    metric: str | None

    def read(self, columns: Columns) -> tuple[JudgedItems, str, str]:
        """Return the items, the name of what is measured, and the name of the data."""
        factors = columns.factors()
        if self.sample:
            with judged_sample_file() as file:
                err.print(
                    f"sample: {file} ({JUDGED_SAMPLE_LICENSE}); the judge is lexical match",
                    highlight=False,
                    soft_wrap=True,
                )
                items = read_judged_items(file)
            return items, "correctness", "EVOUNA sample"
        if self.ragas is not None:
            found = read_ragas_result(
                self.ragas,
                metric=self.metric,
                human_path=self.human,
                id=columns.id,
                human=columns.human,
                **factors,
            )
            err.print(f"joined by {found.joined_by}", highlight=False)
            return found.items, found.metric, self.ragas.name
        if self.human is not None and self.judge is not None:
            items = join_judged(
                self.human,
                self.judge,
                id=columns.id,
                human=columns.human,
                judge=columns.judge,
                allow_judge_missing=True,
                **factors,
            )
            return items, "score", self.judge.name
        if self.file is None:
            raise DataError("no file given")
        items = read_judged_items(
            self.file, id=columns.id, human=columns.human, judge=columns.judge, **factors
        )
        return items, "score", self.file.name

    def measure(
        self, columns: Columns, asked: Asked, config: JudgedConfig, on_stage: OnStage
    ) -> JudgedReport:
        """Compute the intervals."""
        on_stage("reading")
        items, measure, name = self.read(columns)
        return judge_items_with_intervals(
            items,
            measure=asked.measures[0] if asked.measures else measure,
            config=config,
            name=name,
            bounds=asked.bounds,
            missing="worst-case" if asked.worst_case else "mean",
            on_stage=on_stage,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingFiles:
    """Rankings with human and judge labels of their documents."""

    runs: list[Path]
    qrels: Path | None
    labels: Path | None
    tags: Path | None
    grades: int | None
    baseline_source: str

    def measure(
        self, measures: Sequence[str], config: JudgedConfig, on_stage: OnStage
    ) -> JudgedReport:
        """Compute the intervals."""
        if self.qrels is None or self.labels is None:
            raise DataError("rankings need --qrels and --labels")
        on_stage("reading")
        runs = [read_run(path) for path in self.runs]
        return judge_ranking_with_intervals(
            runs,
            read_qrels(self.qrels),
            read_label_distributions(self.labels, n_grades=self.grades),
            measures=measures or ("NDCG@10",),
            tags=None if self.tags is None else read_tags(self.tags),
            baseline_source=self.baseline_source,
            config=config,
            name=", ".join(path.name for path in self.runs),
            on_stage=on_stage,
        )


def chosen_input(
    items: ItemFiles, rankings: RankingFiles, columns: Columns, asked: Asked
) -> Callable[[JudgedConfig, OnStage], JudgedReport]:
    """Return how to compute the intervals of the one input that is given.

    Raises
    ------
    DataError
        If none or several are given, a part is missing, or an option would do nothing.
    """
    is_ranking = bool(rankings.runs or rankings.qrels or rankings.labels)
    pair = items.judge is not None or (items.human is not None and items.ragas is None)
    if sum((is_ranking, items.file is not None, items.sample, items.ragas is not None, pair)) != 1:
        raise DataError(
            "give one input: a file of items, --human-file with --judge-file, --ragas, --sample, "
            "or --run with --qrels and --labels"
        )
    if is_ranking:
        _check_ranking(rankings, columns, asked)
        return lambda config, on_stage: rankings.measure(asked.measures, config, on_stage)
    if pair and (items.human is None or items.judge is None):
        lacking = "--human-file" if items.human is None else "--judge-file"
        raise DataError(f"{lacking} missing: two files are joined by id, or give one file")
    if items.metric and items.ragas is None:
        raise DataError("--metric is a column of a --ragas result; a file's column is --judge")
    if items.ragas is not None and columns.judge:
        raise DataError("--judge is a column of a file; of a --ragas result it is --metric")
    if len(asked.measures) > 1:
        raise DataError(
            f"items have one value; --measure names it once, not {', '.join(asked.measures)}"
        )
    useless = columns.given() if items.sample else []
    useless += ["--tags"] if rankings.tags else []
    useless += ["--grades"] if rankings.grades else []
    if useless:
        raise DataError(f"{', '.join(useless)}: no use with this input; leave it out")
    return lambda config, on_stage: items.measure(columns, asked, config, on_stage)


def _check_ranking(rankings: RankingFiles, columns: Columns, asked: Asked) -> None:
    parts = (
        ("--run", rankings.runs),
        ("--qrels", rankings.qrels),
        ("--labels", rankings.labels),
    )
    missing = [name for name, value in parts if not value]
    if missing:
        raise DataError(
            f"{', '.join(missing)} missing: rankings need --run, --qrels (by people) and --labels "
            "(by the judge)"
        )
    if asked.bounds is not None or asked.worst_case:
        raise DataError(
            "--bounds and --worst-case are for items; for rankings see --failures of "
            "rag-sourcebias judge relevance"
        )
    if columns.given():
        raise DataError(f"{', '.join(columns.given())}: no use with rankings; leave it out")


# ``interval``: a confidence interval for a judged evaluation.


def interval(
    file: ItemsFile = None,
    *,
    sample: Sample = False,
    human_file: HumanFile = None,
    judge_file: JudgeFile = None,
    ragas: Ragas = None,
    metric: Metric = None,
    bounds: Bounds = None,
    worst_case: WorstCase = False,
    id_column: IdColumns = None,
    human: HumanColumn = None,
    judge: JudgeColumn = None,
    group: GroupColumn = None,
    cluster: ClusterColumn = None,
    stratum: StratumColumn = None,
    run: Runs = None,
    qrels: HumanQrels = None,
    labels: JudgeLabels = None,
    tags: TagsFile = None,
    measure: Measures = None,
    baseline_source: BaselineSource = "human",
    gain: Gain = "exponential",
    min_grade: MinGrade = 1,
    grades: Grades = None,
    per_query: PerQuery = True,
    method: Method = "regression",
    target: Target = "population",
    confidence_level: ConfidenceLevel = 0.95,
    seed: Seed = 0,
    report: ReportFolder = None,
    json: JsonFile = None,
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
        method=choice("method", method, METHODS),
        target=choice("target", target, TARGETS),
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
