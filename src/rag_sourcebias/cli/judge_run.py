"""Asking, and what is said about it afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from rag_sourcebias.cli.console import err, out, stages
from rag_sourcebias.cli.judge_budget import estimate
from rag_sourcebias.cli.judge_models import Asking
from rag_sourcebias.judges import LLMJudge
from rag_sourcebias.types.judgments import JudgeItem, Judgments

__all__ = ["ask", "show_estimate", "summarise"]

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
_LITTLE_MASS = 0.5


def ask(judge: LLMJudge, items: Sequence[JudgeItem]) -> Judgments:
    """Judge items under a progress bar."""
    with stages() as progress:
        progress.begin(f"judging {len(items):,} items with {judge.name}")
        return judge.judge(items, on_progress=lambda done: progress.advance(done, len(items)))


def show_estimate(judge: LLMJudge, items: Sequence[JudgeItem], asking: Asking) -> None:
    """Say what a run would ask and cost."""
    found = estimate(
        judge,
        items,
        cache=asking.answers(),
        prices=asking.prices(),
        prompts_per_request=asking.prompts_per_request(judge.n_grades),
    )
    out.print(
        f"{len(items):,} items, {found.requests:,} requests, {found.cached:,} answered already",
        highlight=False,
    )
    out.print(
        f"about {found.prompt_tokens:,} tokens to read, at most {found.completion_tokens:,} to "
        "write (4 characters a token)",
        highlight=False,
    )
    cost = "give --price-in and --price-out for the cost"
    if found.cost is not None:
        cost = f"about {found.cost:,.4f} USD"
    out.print(cost, highlight=False)


def summarise(judgments: Judgments) -> None:
    """Print how many items ended how, and what to know before using the rest."""
    table = Table(title=f"{len(judgments):,} items", title_justify="left")
    table.add_column("status")
    table.add_column("items", justify="right")
    table.add_column("")
    for status, n in judgments.counts().items():
        table.add_row(status, f"{n:,}", _MEANING[status])
    out.print(table)
    usage = judgments.usage
    spent = "" if judgments.cost is None else f", {judgments.cost:.4f} {judgments.currency}"
    out.print(
        f"{usage.requests:,} requests ({usage.from_cache:,} from the cache, {usage.retries:,} "
        f"retries), {usage.prompt_tokens:,} tokens read, {usage.completion_tokens:,} written"
        f"{spent}",
        highlight=False,
    )
    ok = judgments.ok
    failed = np.flatnonzero(~ok)
    if len(failed):
        first = int(failed[0])
        out.print(
            f"Warning: {len(failed)} item(s) have no judgment, first {judgments.query_ids[first]} "
            f"{judgments.doc_ids[first]}: {judgments.reasons[first]}. They are rarely missing at "
            "random.",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    mass = judgments.mass[ok]
    mass = mass[~np.isnan(mass)]
    if len(mass) and float(np.median(mass)) < _LITTLE_MASS:
        out.print(
            f"Warning: the grades had a median probability of {float(np.median(mass)):.2g} "
            "together: the model would have said something else; another prompt or mode may fit "
            "it better.",
            highlight=False,
            soft_wrap=True,
        )
    if ok.any() and float(np.ptp(judgments.probs[ok], axis=0).max()) < 1e-6:
        err.print("Warning: every item got the same distribution: this judge tells nothing")
