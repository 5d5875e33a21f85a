"""Options of the commands about judged evaluations, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []

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
