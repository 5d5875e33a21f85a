"""``judge``: grade pairs or answers with a model, and hold a judge against people."""

from __future__ import annotations

from pathlib import Path

import typer

from rag_sourcebias.cli import interval_options as columns_opt
from rag_sourcebias.cli import judge_audit
from rag_sourcebias.cli import judge_options as opt
from rag_sourcebias.cli.checks import choice, require_writable_file
from rag_sourcebias.cli.console import err
from rag_sourcebias.cli.judge_inputs import (
    pair_items,
    read_answers,
    sample_texts,
    texts_of_files,
)
from rag_sourcebias.cli.judge_models import Asking
from rag_sourcebias.cli.judge_run import ask, require_complete, show_estimate, summarise
from rag_sourcebias.cli.judge_where import Where
from rag_sourcebias.cli.spread import spread
from rag_sourcebias.errors import DataError
from rag_sourcebias.io.judgments_write import (
    beside,
    table_ending,
    write_item_judgments,
    write_judgment_status,
    write_label_distributions,
)
from rag_sourcebias.judges import CorrectnessJudge, RelevanceJudge

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Grade with a model, hold a judge against people, watch it for drift.",
)


@app.command()
@spread
def relevance(
    *,
    output: opt.Output = Path("labels.tsv"),
    run: opt.Runs = None,
    depth: opt.Depth = 10,
    qrels: opt.PairsOfQrels = None,
    queries: opt.Queries = None,
    documents: opt.Documents = None,
    sample: opt.Sample = False,
    limit: opt.Limit = None,
    model: opt.Model,
    base_url: opt.BaseUrl = None,
    api: opt.Api = "chat",
    timeout: opt.Timeout = 60.0,
    concurrency: opt.Concurrency = 8,
    mode: opt.Mode = "scoring",
    prompt: opt.Prompt = None,
    grade_names: opt.GradeNames = "0,1,2,3",
    votes: opt.Votes = 5,
    temperature: opt.Temperature = None,
    smoothing: opt.Smoothing = 0.0,
    max_chars: opt.MaxChars = None,
    failures: opt.Failures = "leave-out",
    cache: opt.Cache = None,
    price_in: opt.PriceIn = None,
    price_out: opt.PriceOut = None,
    max_cost: opt.MaxCost = None,
    dry_run: opt.DryRun = False,
    where: Where,
) -> None:
    """Grade how relevant documents are to queries; writes a distribution over grades per pair.

    Exit code 1 if the run stopped before everything was asked; the same command goes on.

    [bold]Examples[/]

        rag-sourcebias judge relevance --sample --limit 20 --model local:smollm2

        rag-sourcebias judge relevance --run bm25.run --queries queries.jsonl \
--documents corpus.jsonl --model openai:gpt-4o-mini --price-in 0.15 --price-out 0.60 --dry-run

    Then: rag-sourcebias interval --run bm25.run --qrels human.qrels --labels labels.tsv
    """
    asking = Asking(
        model=model, base_url=base_url, api=api, timeout=timeout, concurrency=concurrency,
        mode=mode, prompt=prompt, grade_names=grade_names, votes=votes, temperature=temperature,
        smoothing=smoothing, max_chars=max_chars, cache=cache, price_in=price_in,
        price_out=price_out, max_cost=max_cost,
    )  # fmt: skip
    left = choice("failures", failures, opt.FAILURES)
    _check_output(output)
    if sample and (queries or documents):
        raise DataError("--sample brings its own queries and documents; leave the others out")
    texts = sample_texts() if sample else texts_of_files(queries, documents)
    items = pair_items(texts, runs=run or (), depth=depth, qrels=qrels)[:limit]
    judge = asking.judge(RelevanceJudge)
    engine = where.engine_of(asking)
    if dry_run:
        show_estimate(judge, items, asking)
        return
    judgments = ask(judge, items, engine, asking.recipe(RelevanceJudge))
    status = beside(output, "status")
    write_judgment_status(judgments, status)
    summarise(judgments)
    err.print(f"status: {status}", highlight=False, soft_wrap=True)
    judgments.distributions()  # raises if there is none
    n = write_label_distributions(judgments, output, failures=left)
    err.print(f"labels: {output} ({n} pairs)", highlight=False, soft_wrap=True)
    require_complete(judgments)


@app.command()
@spread
def answers(
    file: opt.AnswersFile,
    *,
    output: opt.Output = Path("judged.csv"),
    limit: opt.Limit = None,
    id_column: columns_opt.IdColumns = None,
    question: opt.QuestionColumn = None,
    reference: opt.ReferenceColumn = None,
    answer: opt.AnswerColumn = None,
    human: columns_opt.HumanColumn = None,
    group: columns_opt.GroupColumn = None,
    cluster: columns_opt.ClusterColumn = None,
    stratum: columns_opt.StratumColumn = None,
    model: opt.Model,
    base_url: opt.BaseUrl = None,
    api: opt.Api = "chat",
    timeout: opt.Timeout = 60.0,
    concurrency: opt.Concurrency = 8,
    mode: opt.Mode = "scoring",
    prompt: opt.Prompt = None,
    grade_names: opt.GradeNames = "0,1",
    votes: opt.Votes = 5,
    temperature: opt.Temperature = None,
    smoothing: opt.Smoothing = 0.0,
    max_chars: opt.MaxChars = None,
    cache: opt.Cache = None,
    price_in: opt.PriceIn = None,
    price_out: opt.PriceOut = None,
    max_cost: opt.MaxCost = None,
    dry_run: opt.DryRun = False,
    where: Where,
) -> None:
    """Grade answers against reference answers; writes a judge value per item.

    A human column (labels of some items), group, cluster and stratum of the file are written
    beside it, so that the result goes straight into an interval.

    [bold]Examples[/]

        rag-sourcebias judge answers answers.csv --model openai:gpt-4o-mini -o judged.csv

        rag-sourcebias interval judged.csv
    """
    asking = Asking(
        model=model, base_url=base_url, api=api, timeout=timeout, concurrency=concurrency,
        mode=mode, prompt=prompt, grade_names=grade_names, votes=votes, temperature=temperature,
        smoothing=smoothing, max_chars=max_chars, cache=cache, price_in=price_in,
        price_out=price_out, max_cost=max_cost,
    )  # fmt: skip
    _check_output(output)
    named = {
        "question": question, "reference": reference, "answer": answer, "human": human,
        "group": group, "cluster": cluster, "stratum": stratum,
    }  # fmt: skip
    found = read_answers(file, id=id_column, columns=named)
    judge = asking.judge(CorrectnessJudge)
    engine = where.engine_of(asking)
    if dry_run:
        show_estimate(judge, found.items[:limit], asking)
        return
    judgments = ask(judge, found.items[:limit], engine, asking.recipe(CorrectnessJudge))
    kept = {name: column[:limit] for name, column in found.columns.items()}
    write_item_judgments(judgments, output, kept)
    summarise(judgments)
    err.print(f"judged: {output}", highlight=False, soft_wrap=True)
    judgments.distributions()
    labels = beside(output, "labels")
    write_label_distributions(judgments, labels)
    err.print(f"labels: {labels}", highlight=False, soft_wrap=True)
    require_complete(judgments)


app.command("audit")(judge_audit.audit)
app.command("drift")(judge_audit.drift)


def _check_output(path: Path) -> None:
    table_ending(path)
    require_writable_file("output", path)
