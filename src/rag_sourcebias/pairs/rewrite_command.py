"""``rewrite``: a paired corpus from documents by people and a language model."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Finding, Frame
from rag_sourcebias.intake.files import read_jsonl
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.llm.cost import MeteredCompleter
from rag_sourcebias.neural.named import completer_of
from rag_sourcebias.pairs.findings import PairsCode
from rag_sourcebias.pairs.rewrites import (
    MANIFEST,
    REPHRASE,
    REWRITE,
    STYLES,
    RewriteEstimate,
    RewritePrompt,
    RewriteReport,
    RewriteSource,
    checked_prompts,
    model_name,
    source_tag,
    stem_of,
)
from rag_sourcebias.pairs.rewriting import (
    build_paired_corpus,
    estimate_paired_corpus,
)
from rag_sourcebias.report.document import Table
from rag_sourcebias.report.render import print_block
from rag_sourcebias.terminal import options as opt
from rag_sourcebias.terminal.console import out, say, say_written, stages, tell
from rag_sourcebias.terminal.options import as_options

# Options of ``rewrite``, named once.


_DATA, _MODEL, _WRITING, _COST = "What is rewritten", "Model", "How it writes", "Cost"


# Prompts from the command line: known names, a template, or a YAML file of one's own.


_KNOWN: dict[str, tuple[RewritePrompt, ...]] = {
    "rephrase": REPHRASE,
    "styles": STYLES,
    **{prompt.name: (prompt,) for prompt in (REWRITE, *REPHRASE, *STYLES)},
}
_NAMED = re.compile(r"(?P<name>[A-Za-z][\w.-]*)=(?P<template>.+)", re.DOTALL)


def read_prompts(texts: list[str]) -> tuple[RewritePrompt, ...]:
    """Read the values of ``--prompts``.

    Each is a list of names (``rewrite``, ``rephrase``, ``styles``, ``rephrase-1`` … ``style-8``) or
    a template, which ``name=`` may precede.

    Raises
    ------
    DataError
        If a name is unknown, a template is not valid, or a name occurs twice.

    Examples
    --------
    >>> [p.name for p in read_prompts(["style-3,rewrite", "short=Shorten: {text}"])]
    ['style-3', 'rewrite', 'short']
    """
    found: list[RewritePrompt] = []
    for text in texts:
        if any(c in text for c in "{}\n") or re.search(r"[^,\s]\s+[^,\s]", text):
            named = _NAMED.fullmatch(text)
            name, template = named.groups() if named else (f"prompt-{len(found) + 1}", text)
            found.append(RewritePrompt(name=name, template=template))
        else:
            found += _named(text)
    return checked_prompts(found)


def _named(text: str) -> list[RewritePrompt]:
    found: list[RewritePrompt] = []
    for name in (part.strip() for part in text.split(",") if part.strip()):
        if name not in _KNOWN:
            raise DataError(
                f"--prompts: {name!r} is no prompt; there are {', '.join(_KNOWN)}, or a template "
                "of your own such as 'Shorten this: {text}'"
            )
        found += _KNOWN[name]
    return found


# What ``rewrite`` says before and after: requests, tokens, cost, and how documents ended.


_MEANING = {
    "no text": "the document is empty",
    "not unicode": "the answer holds half a character",
    "empty": "the model wrote nothing",
    "refusal": "the model declined",
    "truncated": "the answer reached --max-tokens and lacks its end",
    "filtered": "the server's content filter",
    "timeout": "no answer in time, after all retries",
    "unreachable": "no connection, after all retries",
    "rate_limited": "too many requests, after all retries",
    "server": "the server failed, after all retries",
    "malformed": "no readable answer",
    "rejected": "not accepted by the server (often too long)",
    "not_asked": "the run stopped before",
}


def estimated(found: RewriteEstimate, *, n_prompts: int) -> Iterator[Finding]:
    """Yield what a run would ask and cost, and why it would be refused."""
    yield PairsCode.TO_ASK(
        documents=found.n_documents,
        prompts=n_prompts,
        requests=found.requests,
        cached=found.cached,
    )
    yield PairsCode.TO_READ(
        read=found.prompt_tokens,
        written=found.completion_tokens,
        most=found.most_completion_tokens,
    )
    if found.cost is None:
        yield PairsCode.PRICES_NEEDED()
    else:
        yield PairsCode.TO_PAY(cost=found.cost, most=found.most_cost, currency=found.currency)
    if found.refused:
        yield PairsCode.WOULD_BE_REFUSED(why=found.refused)
    yield PairsCode.NOTHING_ASKED()


def rewritten(report: RewriteReport) -> Frame:
    """Return how the documents ended, by source."""
    sources = report.manifest.sources
    return Frame(
        columns={
            "source": [entry.source for entry in sources],
            "rewritten": [entry.done for entry in sources],
            "skipped": [sum(entry.skipped.values()) for entry in sources],
            "failed": [sum(entry.failed.values()) for entry in sources],
            "stripped": [sum(entry.cleaned.values()) for entry in sources],
        }
    )


def ended(report: RewriteReport, own: Sequence[RewriteSource]) -> Iterator[Finding]:
    """Yield why documents of a run have no rewrite, and what was asked and paid.

    Parameters
    ----------
    own : sequence of RewriteSource
        Those that this run was about; the folder may hold others.
    """
    for entry in own:
        yield from _unrewritten(report, entry)
    if any(entry.failed for entry in own):
        yield PairsCode.ASK_AGAIN()
    if any("truncated" in entry.skipped for entry in own):
        yield PairsCode.CUT_SHORT()
    sources = report.manifest.sources
    currencies = {entry.currency for entry in sources}
    yield PairsCode.THIS_RUN(
        requests=report.requests,
        from_cache=report.from_cache,
        retries=report.retries,
        read=report.prompt_tokens,
        written=report.completion_tokens,
    )
    if report.cost is not None:
        yield PairsCode.PAID(cost=report.cost, currency=sources[-1].currency)
    yield PairsCode.WHOLE_FOLDER(
        read=sum(entry.prompt_tokens for entry in sources),
        written=sum(entry.completion_tokens for entry in sources),
    )
    costs = [entry.cost for entry in sources if entry.cost is not None]
    if len(costs) == len(sources) and len(currencies) == 1:
        yield PairsCode.PAID(cost=sum(costs), currency=sources[0].currency)


def _unrewritten(report: RewriteReport, entry: RewriteSource) -> Iterator[Finding]:
    """Yield for each reason how many documents there are, and the first of them."""
    ends: dict[tuple[str, str], dict[str, Any]] = {}
    if entry.skipped or entry.failed:
        for _, row in read_jsonl(Path(report.folder) / "raw" / f"{stem_of(entry.source)}.jsonl"):
            ends.setdefault((row["status"], row["reason"]), row)
    for code, counts in ((PairsCode.SKIPPED, entry.skipped), (PairsCode.FAILED, entry.failed)):
        for reason, n in counts.items():
            first = ends[code.name.lower(), reason]
            yield code(
                source=entry.source,
                documents=n,
                reason=reason,
                meaning=_MEANING.get(reason, reason),
                first=first["_id"],
                error=first.get("error", ""),
            )


def following(report: RewriteReport) -> Iterator[Finding]:
    """Yield what can be done with the folder."""
    sources, folder = report.manifest.sources, Path(report.folder)
    if not any(entry.done for entry in sources):
        if not any(entry.failed for entry in sources):
            yield PairsCode.NONE_REWRITTEN()
        return
    named = shlex.quote(report.folder)
    yield PairsCode.NEXT(verb="check-pairs", folder=named)
    if (folder / "qrels").is_dir():
        yield PairsCode.NEXT(verb="audit source", folder=named)
    else:
        yield PairsCode.NOT_JUDGED()
    yield PairsCode.NEXT(verb="explain", folder=named)


# ``rewrite``: a paired corpus from documents by people and a language model.


_OPTIONS = {
    "say untagged='human'": "say --untagged-as-human",
    "use chat=False": "name another --model",
    "give a name with model=": "give a name with --name",
}


def rewrite(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="BEIR folder with your documents: corpus.jsonl or corpus/human.jsonl and, where "
            "you have them, queries.jsonl and qrels/<split>.tsv. Sources other than human are "
            "left out.",
            show_default=False,
        ),
    ] = None,
    *,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Rewrite the 160 human passages of the bundled sample.",
            rich_help_panel=_DATA,
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Only the first so many documents, with their judgments and queries.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    untagged_as_human: Annotated[
        bool,
        typer.Option(
            "--untagged-as-human",
            help="Documents without a source were written by people (you vouch for it).",
            rich_help_panel=_DATA,
        ),
    ] = False,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Folder to write. The same command goes on with what it holds; other models and "
            "prompts are added to it.",
            show_default=False,
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="openai:<name> (any OpenAI-compatible server), local:smollm2 or local:<path or "
            "hub name>.",
            rich_help_panel=_MODEL,
            show_default=False,
        ),
    ],
    base_url: opt.BaseUrl = None,
    timeout: opt.Timeout = 120.0,
    concurrency: opt.Concurrency = 8,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the model in source tags, llm:<name>.",
            rich_help_panel=_MODEL,
            show_default="the model's",
        ),
    ] = None,
    prompts: Annotated[
        list[str] | None,
        typer.Option(
            help="rewrite (Dai et al. 2024) · rephrase (their nine of Table 7) · styles (the nine "
            "of Cao 2025) · names such as style-3,rephrase-1 · "
            "'name=your template with {text}'; repeatable. One source each.",
            rich_help_panel=_WRITING,
            show_default="rewrite",
        ),
    ] = None,
    max_tokens: Annotated[
        int,
        typer.Option(
            min=1,
            help="Longest rewrite; one that reaches it lacks its end and is left out.",
            rich_help_panel=_WRITING,
        ),
    ] = 1024,
    temperature: Annotated[
        float,
        typer.Option(help="0 takes the likeliest words; Cao used 0.5.", rich_help_panel=_WRITING),
    ] = 0.0,
    seed: Annotated[int, typer.Option(rich_help_panel=_WRITING)] = 0,
    price_in: opt.PriceIn = None,
    price_out: opt.PriceOut = None,
    currency: Annotated[str, typer.Option(help="Of the prices.", rich_help_panel=_COST)] = "USD",
    max_cost: opt.MaxCost = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only count requests, tokens and cost; nothing is asked, no key is needed.",
            rich_help_panel=_COST,
        ),
    ] = False,
) -> None:
    """Have a model rewrite your documents, and get a paired corpus to audit your own stack with.

    The model sees one document at a time, never a query. Refusals, cut-off answers and what a
    model says around the text are removed; everything it wrote is kept. After Ctrl-C, or a crash,
    the same command goes on: answers that came are not paid for again.

    Exit code 1 if documents failed (the same command asks for them again), else 0.

    For example:

        rag-sourcebias rewrite --sample --limit 5 --model local:smollm2 -o paired

        rag-sourcebias rewrite my-data --model openai:gpt-4o-mini --price-in 0.15 \
--price-out 0.60 -o paired --dry-run

        rag-sourcebias rewrite my-data --model openai:llama --base-url http://localhost:8000/v1 \
--prompts styles -o paired

    Then: rag-sourcebias check-pairs paired
    """
    priced = opt.prices_of(price_in, price_out, max_cost, currency=currency)
    asked: dict[str, Any] = {
        "prompts": read_prompts(prompts or ["rewrite"]),
        "max_tokens": max_tokens,
        "temperature": temperature,
        "seed": seed,
        "limit": limit,
        "untagged": "human" if untagged_as_human else "error",
    }
    completer = completer_of(
        model, base_url=base_url, timeout=timeout, concurrency=concurrency, chat=True,
        ask=not dry_run,
    )  # fmt: skip
    if priced is not None and max_cost is not None:
        completer = MeteredCompleter(completer, priced, max_cost)
    if sample == (folder is not None):
        raise DataError("give one set of documents: a BEIR folder, or --sample")
    source = load_sample() if folder is None else folder
    named = asked["model"] = name or model_name(completer)
    with as_options(_OPTIONS):
        if dry_run:
            estimate = estimate_paired_corpus(source, completer, output, **asked, prices=priced)
            for finding in estimated(estimate, n_prompts=len(asked["prompts"])):
                say(str(finding))
            return
        with stages() as progress:
            progress.begin(f"rewriting with {completer.name}")
            made = build_paired_corpus(
                source, completer, output, **asked, prices=priced, on_progress=progress.advance
            )
    tags = {source_tag(named, prompt.name) for prompt in asked["prompts"]}
    own = [entry for entry in made.manifest.sources if entry.source in tags]
    print_block(Table(caption="Documents by source", frame=rewritten(made)), out)
    for finding in ended(made, own):
        say(str(finding))
    for entry in made.manifest.sources:
        stem = stem_of(entry.source)
        if entry.done:
            say_written("rewrites", output / "corpus" / f"{stem}.jsonl")
        say_written("answers as written", output / "raw" / f"{stem}.jsonl")
    say_written("how it was made", output / MANIFEST)
    for finding in following(made):
        tell(str(finding))
    if any(entry.failed or not entry.done for entry in own):
        raise typer.Exit(1)
