"""``rewrite``: a paired corpus from documents by people and a language model."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import Any

import typer

from rag_sourcebias.cli import judge_options as judge_opt
from rag_sourcebias.cli import rewrite_options as opt
from rag_sourcebias.cli.checks import require_writable
from rag_sourcebias.cli.completers import completer_of
from rag_sourcebias.cli.console import stages
from rag_sourcebias.cli.judge_budget import MeteredCompleter
from rag_sourcebias.cli.rewrite_check import print_checks, report_checks
from rag_sourcebias.cli.rewrite_prompts import read_prompts
from rag_sourcebias.cli.rewrite_summary import (
    print_next,
    print_rewrites,
    print_rewrites_estimate,
)
from rag_sourcebias.cli.wording import as_options
from rag_sourcebias.corpora.estimate import estimate_paired_corpus
from rag_sourcebias.corpora.humans import HumanInput
from rag_sourcebias.corpora.manifest import source_tag
from rag_sourcebias.corpora.paired import build_paired_corpus, check_paired_folder
from rag_sourcebias.corpora.plan import model_name
from rag_sourcebias.errors import DataError, UnsupportedVersionError
from rag_sourcebias.io import load_sample
from rag_sourcebias.llm import Prices
from rag_sourcebias.protocols import Completer
from rag_sourcebias.types.rewrites import RewriteReport

__all__ = ["rewrite"]

_INCOMPLETE = 1
_OPTIONS = {
    "say untagged='human'": "say --untagged-as-human",
    "use chat=False": "use --api completions",
    "give a name with model=": "give a name with --name",
}


def rewrite(
    folder: opt.Folder = None,
    *,
    sample: opt.Sample = False,
    limit: opt.Limit = None,
    untagged_as_human: opt.UntaggedAsHuman = False,
    output: opt.Output,
    model: opt.Model,
    base_url: judge_opt.BaseUrl = None,
    api: opt.Api = "chat",
    timeout: judge_opt.Timeout = 120.0,
    concurrency: judge_opt.Concurrency = 8,
    name: opt.Name = None,
    prompts: opt.Prompts = None,
    max_tokens: opt.MaxTokens = 1024,
    temperature: opt.Temperature = 0.0,
    seed: opt.Seed = 0,
    price_in: judge_opt.PriceIn = None,
    price_out: judge_opt.PriceOut = None,
    currency: opt.Currency = "USD",
    max_cost: judge_opt.MaxCost = None,
    dry_run: opt.DryRun = False,
    check: opt.Check = True,
    report: opt.ReportFolder = None,
) -> None:
    """Have a model rewrite your documents, and get a paired corpus to audit your own stack with.

    The model sees one document at a time, never a query. Refusals, cut-off answers and what a
    model says around the text are removed; everything it wrote is kept. After Ctrl-C, or a crash,
    the same command goes on: answers that came are not paid for again.

    Exit code 1 if documents failed (the same command asks for them again), else 0.

    [bold]Examples[/]

        rag-sourcebias rewrite --sample --limit 5 --model local:smollm2 -o paired

        rag-sourcebias rewrite my-data --model openai:gpt-4o-mini --price-in 0.15 \
--price-out 0.60 -o paired --dry-run

        rag-sourcebias rewrite my-data --model openai:llama --base-url http://localhost:8000/v1 \
--prompts styles -o paired

    Then: rag-sourcebias audit source paired
    """
    require_writable(report)
    priced = _prices(price_in, price_out, currency, max_cost)
    asked: dict[str, Any] = {
        "prompts": read_prompts(prompts or ["rewrite"]),
        "max_tokens": max_tokens,
        "temperature": temperature,
        "seed": seed,
        "limit": limit,
        "untagged": "human" if untagged_as_human else "error",
        "prices": priced,
    }
    completer = completer_of(
        model, base_url=base_url, api=api, timeout=timeout, concurrency=concurrency,
        chat=api == "chat", ask=not dry_run,
    )  # fmt: skip
    if priced is not None and max_cost is not None:
        completer = MeteredCompleter(completer, priced, max_cost)
    source = _source(folder, sample=sample)
    named = asked["model"] = name or model_name(completer)
    with as_options(_OPTIONS):
        if dry_run:
            estimate = estimate_paired_corpus(source, completer, output, **asked)
            priceless = {key: value for key, value in asked.items() if key != "prices"}
            refused = _refusal(source, completer, output, **priceless)
            print_rewrites_estimate(estimate, n_prompts=len(asked["prompts"]), refused=refused)
            return
        with stages() as progress:
            progress.begin(f"rewriting with {completer.name}")
            made = build_paired_corpus(
                source, completer, output, **asked, on_progress=progress.advance
            )
    tags = {source_tag(named, prompt.name) for prompt in asked["prompts"]}
    _tell(made, tags, check=check, report=report)


def _tell(made: RewriteReport, tags: Set[str], *, check: bool, report: Path | None) -> None:
    """Say how it went; end with code 1 where documents of this run are left to ask for."""
    own = [entry for entry in made.manifest.sources if entry.source in tags]
    print_rewrites(made, own)
    if report is not None:
        report_checks(made, report)
    elif check:
        print_checks(made, own)
    print_next(made)
    if any(entry.failed or not entry.done for entry in own):
        raise typer.Exit(_INCOMPLETE)


def _refusal(source: HumanInput, completer: Completer, output: Path, **asked: Any) -> str:  # noqa: ANN401
    """Why a run would not write to the folder; empty where it would."""
    try:
        check_paired_folder(source, completer, output, **asked)
    except (DataError, UnsupportedVersionError) as error:
        return str(error)
    return ""


def _source(folder: Path | None, *, sample: bool) -> HumanInput:
    if sample == (folder is not None):
        raise DataError("give one set of documents: a BEIR folder, or --sample")
    return load_sample() if folder is None else folder


def _prices(
    price_in: float | None, price_out: float | None, currency: str, most: float | None
) -> Prices | None:
    if price_in is None and price_out is None:
        if most is not None:
            raise DataError("--max-cost needs --price-in and --price-out")
        return None
    return Prices(prompt=price_in or 0.0, completion=price_out or 0.0, currency=currency)
