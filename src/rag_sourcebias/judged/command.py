"""``interval``: a confidence interval for a judged evaluation."""

import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, cast

import typer

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.io.trec import read_qrels, read_run, read_tags
from rag_sourcebias.judged import options as opt
from rag_sourcebias.judged.audit import judge_items_with_intervals, judge_ranking_with_intervals
from rag_sourcebias.judged.data import (
    JudgedConfig,
)
from rag_sourcebias.judged.files import (
    JUDGED_SAMPLE_LICENSE,
    join_judged,
    judged_sample_file,
    read_judged_items,
    read_label_distributions,
    read_ragas_result,
)
from rag_sourcebias.judged.labels_command import sheet_interval
from rag_sourcebias.judged.legacy_report import JudgedReport
from rag_sourcebias.judged.sheets import manifest_path
from rag_sourcebias.report.files import print_report, write_report_json
from rag_sourcebias.terminal.console import (
    deliver,
    err,
    out,
    print_json,
    say,
    say_written,
    stages,
    write_json,
)
from rag_sourcebias.terminal.options import (
    TableFile,
    Texts,
    choice,
    number_pair,
    require_writable,
    require_writable_file,
    spread,
)

_ITEMS, _RANKINGS, _STATISTICS, _OUTPUT = (
    opt.ITEMS,
    opt.RANKINGS,
    opt.STATISTICS,
    opt.OUTPUT,
)
METHODS = ("regression", "labels", "ppi", "ppi++", "ppi-crossfit", "ppi-paper", "bootstrap", "crc")
TARGETS = ("population", "pool", "unlabeled")


# Which files an interval is computed from, and how they are read.


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOptions:
    """Files with one value per item."""

    file: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, TSV, JSON lines (also .gz) or Parquet, one row per item: a judge value for "
            "each, a human label for some, empty otherwise.",
        ),
    ] = None
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Use the bundled sample: five systems on 300 questions, 60 of them graded by "
            "people.",
            rich_help_panel=_ITEMS,
        ),
    ] = False
    human_file: Annotated[
        Path | None,
        typer.Option(
            help="Human labels in a file of their own: id and label. With --judge-file or --ragas.",
            rich_help_panel=_ITEMS,
        ),
    ] = None
    judge_file: Annotated[
        Path | None,
        typer.Option(help="Judge values of every item: id and value.", rich_help_panel=_ITEMS),
    ] = None
    ragas: Annotated[
        Path | None,
        typer.Option(
            help="What ragas wrote: EvaluationResult.to_pandas() as CSV, JSON lines or Parquet, "
            "or the CSV of an experiment. Human labels: a column of it, or --human-file joined by "
            "id or user_input.",
            rich_help_panel=_ITEMS,
        ),
    ] = None
    metric: Annotated[
        str | None,
        typer.Option(
            help="Column of the ragas result, such as answer_correctness.", rich_help_panel=_ITEMS
        ),
    ] = None
    bounds: Annotated[
        str | None,
        typer.Option(
            help="Range of the human labels as low,high; a label outside it is refused.",
            rich_help_panel=_ITEMS,
        ),
    ] = None
    worst_case: Annotated[
        bool,
        typer.Option(
            "--worst-case",
            help="Widen the interval to whatever the judge might have said where it failed.",
            rich_help_panel=_ITEMS,
        ),
    ] = False

    def read(self, columns: opt.Columns) -> tuple[JudgedItems, str, str]:
        """Return the items, the name of what is measured, and the name of the data."""
        if self.sample:
            with judged_sample_file() as file:
                err.print(
                    f"sample: {file} ({JUDGED_SAMPLE_LICENSE}); the judge is lexical match",
                    highlight=False,
                    soft_wrap=True,
                )
                return read_judged_items(file), "correctness", "EVOUNA sample"
        if self.ragas is not None:
            named = asdict(columns)
            del named["judge"]
            found = read_ragas_result(
                self.ragas, metric=self.metric, human_path=self.human_file, **named
            )
            err.print(f"joined by {found.joined_by}", highlight=False)
            return found.items, found.metric, self.ragas.name
        if self.human_file is not None and self.judge_file is not None:
            items = join_judged(self.human_file, self.judge_file, **asdict(columns))
            return items, "score", self.judge_file.name
        file = cast("Path", self.file)  # one input is given
        return read_judged_items(file, **asdict(columns)), "score", file.name


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingOptions:
    """Rankings with human and judge labels of their documents."""

    run: Annotated[
        list[Path] | None,
        typer.Option(
            help="TREC run (.gz allowed); repeatable. Needs --qrels and --labels.",
            rich_help_panel=_RANKINGS,
        ),
    ] = None
    qrels: Annotated[
        Path | None,
        typer.Option(
            help="Human judgments (TREC or BEIR qrels) of some queries.", rich_help_panel=_RANKINGS
        ),
    ] = None
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            help="The judge's label distributions of all queries: query_id, doc_id and p0 … pR, "
            "votes or grade, as rag-sourcebias judge grade writes them. Repeatable: several "
            "judges are combined.",
            rich_help_panel=_RANKINGS,
        ),
    ] = None
    tags: Annotated[
        Path | None,
        typer.Option(
            help="Table with doc_id and source (--id, --group): adds Relative Δ between sources.",
            rich_help_panel=_RANKINGS,
        ),
    ] = None
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            help="DCG@k, NDCG@k, P@k, MAP@k, MRR@k, Recall@k; repeatable (NDCG@10). For "
            "items: the name of the value.",
            rich_help_panel=_RANKINGS,
        ),
    ] = None
    baseline_source: Annotated[
        str,
        typer.Option(help="Source that the others are compared with.", rich_help_panel=_RANKINGS),
    ] = "human"
    gain: opt.Gain = "exponential"
    min_grade: opt.MinGrade = 1
    grades: opt.Grades = None
    manifest: Annotated[
        Path | None,
        typer.Option(
            help="Manifest of a sheet of documents that labels drew; beside FILE by default.",
            rich_help_panel=_RANKINGS,
        ),
    ] = None
    per_query: Annotated[
        bool,
        typer.Option(help="An interval for every query (DCG and P).", rich_help_panel=_RANKINGS),
    ] = True

    @property
    def given(self) -> bool:
        """Whether any of the files is named."""
        return bool(self.run or self.qrels or self.labels)

    def report(
        self, config: JudgedConfig, columns: opt.Columns, on_stage: Callable[[str], None]
    ) -> JudgedReport:
        """Compute the intervals, once all files are named."""
        runs = self.run or []
        names = {"doc_id": (columns.id or ["doc_id"])[0], "source": columns.group or "source"}
        return judge_ranking_with_intervals(
            [read_run(path) for path in runs],
            read_qrels(cast("Path", self.qrels)),
            {
                str(path): read_label_distributions(path, n_grades=self.grades)
                for path in self.labels or ()
            },
            measures=self.measure or ("NDCG@10",),
            tags=None if self.tags is None else read_tags(self.tags, **names),
            baseline_source=self.baseline_source,
            config=config,
            name=", ".join(path.name for path in runs[:3]) + f", … ({len(runs)})" * (len(runs) > 3),
            on_stage=on_stage,
        )


def check_input(items: ItemOptions, rankings: RankingOptions, columns: opt.Columns) -> None:
    """Refuse none and several inputs, one that lacks a part, and options that would do nothing.

    Raises
    ------
    DataError
        In all these cases.
    """
    pair = items.judge_file is not None or (items.human_file is not None and items.ragas is None)
    inputs = (rankings.given, items.file is not None, items.sample, items.ragas is not None, pair)
    if sum(inputs) != 1:
        raise DataError(
            "give one input: a file of items, --human-file with --judge-file, --ragas, --sample, "
            "or --run with --qrels and --labels"
        )
    if rankings.given:
        _check_ranking(rankings, columns, items)
        return
    if pair and (items.human_file is None or items.judge_file is None):
        lacking = "--human-file" if items.human_file is None else "--judge-file"
        raise DataError(f"{lacking} missing: two files are joined by id, or give one file")
    measures = rankings.measure or []
    useless = [
        *(columns.given() if items.sample else ()),
        *["--tags"] * bool(rankings.tags),
        *["--grades"] * bool(rankings.grades),
    ]
    _refuse(
        (
            items.metric and items.ragas is None,
            "--metric is a column of a --ragas result; a file's column is --judge",
        ),
        (
            items.ragas is not None and columns.judge,
            "--judge is a column of a file; of a --ragas result it is --metric",
        ),
        (
            len(measures) > 1,
            f"items have one value; --measure names it once, not {', '.join(measures)}",
        ),
        (useless, f"{', '.join(useless)}: no use with this input; leave it out"),
    )


def _inputs(items: ItemOptions, rankings: RankingOptions, columns: opt.Columns) -> str:
    """Return what ``labels`` takes as well: of several runs or judges the first."""
    if rankings.run and rankings.labels:
        files = {
            "--run": rankings.run[0],
            "--labels": rankings.labels[0],
            "--qrels": rankings.qrels,
        }
        return shlex.join(str(part) for pair in files.items() for part in pair)
    if items.sample:
        return "--sample"
    return f"{shlex.quote(str(items.file))} {columns.arguments()}".strip() if items.file else ""


def _refuse(*rules: tuple[object, str]) -> None:
    for broken, message in rules:
        if broken:
            raise DataError(message)


def _check_ranking(rankings: RankingOptions, columns: opt.Columns, items: ItemOptions) -> None:
    missing = [f"--{part}" for part in ("run", "qrels", "labels") if not getattr(rankings, part)]
    judges = rankings.labels or []
    of_tags = ("--id", "--group") if rankings.tags and len(columns.id or ()) < 2 else ()
    useless = [name for name in columns.given() if name not in of_tags]
    twice = next((path for path in judges if judges.count(path) > 1), None)
    _refuse(
        (
            missing,
            f"{', '.join(missing)} missing: rankings need --run, --qrels (by people) and --labels "
            "(by the judge)",
        ),
        (rankings.manifest, "--manifest goes with a filled sheet of documents, as FILE"),
        (twice, f"--labels {twice} is given twice; give each judge once"),
        (
            items.bounds is not None or items.worst_case,
            "--bounds and --worst-case are for items; for rankings see --failures of "
            "rag-sourcebias judge grade",
        ),
        (useless, f"{', '.join(useless)}: no use with rankings; leave it out"),
    )


# ``interval``: a confidence interval for a judged evaluation.


def _of_sheet(
    file: Path, rankings: RankingOptions, *, target: str, confidence_level: float, json: str | None
) -> None:
    """Print the interval of a filled sheet of documents."""
    runs, labels = rankings.run or [], rankings.labels or []
    if len(runs) != 1 or len(labels) != 1 or rankings.qrels or rankings.measure:
        raise DataError(
            f"{file} is a sheet that rag-sourcebias labels drew: give the --run and the --labels "
            "it was drawn from, each once, and no --qrels or --measure"
        )
    measure, found = sheet_interval(
        file,
        run=runs[0],
        labels=labels[0],
        manifest=rankings.manifest,
        grades=rankings.grades,
        target=target,
        confidence_level=confidence_level,
    )
    if not write_json(json, found.to_dict()):
        say("\n• ".join((f"{measure} {found}", *map(str, found.assumptions))))


@spread
def interval(
    *,
    items: ItemOptions,
    columns: opt.Columns,
    rankings: RankingOptions,
    method: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(METHODS)}. Choose before you look. crc: conformal risk control of "
            "Oosterhuis et al. for DCG, P and probabilities; needs --target unlabeled, and covers "
            "less than it says.",
            rich_help_panel=_STATISTICS,
        ),
    ] = "regression",
    target: Annotated[
        str,
        typer.Option(
            help="What the mean is of: all items like these (population), these (pool), or those "
            "without a human label (unlabeled).",
            rich_help_panel=_STATISTICS,
        ),
    ] = "population",
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline-system",
            help="System (group or run) that each other one is compared with; without it all pairs "
            "are, and ranked.",
            rich_help_panel=_STATISTICS,
        ),
    ] = "",
    confidence_level: opt.ConfidenceLevel = 0.95,
    seed: opt.Seed = 0,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Folder for report.html, report.md and report.json.", rich_help_panel=_OUTPUT
        ),
    ] = None,
    texts: Texts = True,
    table: TableFile = None,
    json: opt.JsonFile = None,
) -> None:
    """Put an interval on a score that a judge gave and people checked in part.

    The judge's error is estimated from the items people labelled too, and corrected; a judge that
    tells nothing is called useless. The labelled items must be a random draw. Systems on the same
    items are ranked, with comparisons that hold all at once.

    For example:

        rag-sourcebias interval --sample

        rag-sourcebias interval answers.csv --group system --cluster question --report report

        rag-sourcebias interval --human-file labels.csv --judge-file judged.jsonl

        rag-sourcebias interval --ragas result.csv --human-file labels.csv

        rag-sourcebias interval sheet.csv --run bm25.run --labels judge.tsv

        rag-sourcebias interval --run bm25.run --run dense.run --qrels human.qrels \
--labels judge.tsv --measure NDCG@10 --measure DCG@10
    """
    config = JudgedConfig(
        method=choice("method", method, METHODS),
        target=choice("target", target, TARGETS),
        confidence_level=confidence_level,
        gain=choice("gain", rankings.gain, ("exponential", "linear")),
        min_grade=rankings.min_grade,
        per_query=rankings.per_query,
        baseline=baseline,
        seed=seed,
    )
    scale = None if items.bounds is None else number_pair("bounds", items.bounds)
    require_writable(report)
    require_writable_file("json", json)
    sheet = items.file
    if sheet is not None and (
        rankings.manifest
        or manifest_path(sheet).is_file()
        or (rankings.run and rankings.labels and not rankings.qrels)
    ):
        _of_sheet(sheet, rankings, target=target, confidence_level=confidence_level, json=json)
        return
    check_input(items, rankings, columns)
    with stages() as progress:
        progress.begin("reading")
        if rankings.given:
            found = rankings.report(config, columns, progress.begin)
        else:
            data, measure, name = items.read(columns)
            found = judge_items_with_intervals(
                data,
                measure=rankings.measure[0] if rankings.measure else measure,
                config=config,
                name=name,
                bounds=scale,
                missing="worst-case" if items.worst_case else "mean",
                on_stage=progress.begin,
            )
    found = replace(found, inputs=_inputs(items, rankings, columns))
    if json not in (None, "-"):
        write_report_json(found, json)
        say_written("json", json)
    show = (
        partial(print_json, found.to_dict()) if json == "-" else partial(print_report, found, out)
    )
    if report is None and json is not None:
        show()
    else:
        deliver(found, report, show=show, texts=texts, table=table)
