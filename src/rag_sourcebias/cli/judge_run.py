"""Asking, and what is said about it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack

import numpy as np
import typer
from rich.table import Table as ScreenTable

from rag_sourcebias.cli.console import out, stages
from rag_sourcebias.cli.judge_budget import estimate
from rag_sourcebias.cli.judge_models import Asking
from rag_sourcebias.judges import LLMJudge, judge_with
from rag_sourcebias.protocols import Engine
from rag_sourcebias.types.judgments import JudgeItem, Judgments

__all__ = ["ask", "require_complete", "show_estimate", "summarise"]

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
_SAME = 1e-6
_INCOMPLETE = 1


def ask(
    judge: LLMJudge,
    items: Sequence[JudgeItem],
    engine: Engine | None,
    make_judge: Callable[[], LLMJudge],
) -> Judgments:
    """Judge items under a progress bar: in this process, or by the workers of an engine."""
    with stages() as progress, ExitStack() as running:
        progress.begin(f"judging {len(items):,} items with {judge.name}")

        def tell(done: int) -> None:
            progress.advance(done, len(items))

        if engine is None:
            return judge.judge(items, on_progress=tell)
        if isinstance(engine, AbstractContextManager):
            running.enter_context(engine)
        return judge_with(engine, make_judge, items, on_progress=tell)


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
    table = ScreenTable(title=f"{len(judgments):,} items", title_justify="left")
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
    for status, n in judgments.counts().items():
        if status != "ok":
            _warn(f"{n} {status}, first {_first(judgments, status)}")
    ok = judgments.ok
    if not ok.all():
        _warn(
            "items without a judgment are rarely missing at random: interval counts them, and "
            "--worst-case (items) or --failures lowest and highest (pairs) bound what they hide"
        )
    mass = judgments.mass[ok]
    mass = mass[~np.isnan(mass)]
    if len(mass) and float(np.median(mass)) < _LITTLE_MASS:
        _warn(
            f"the grades had a median probability of {float(np.median(mass)):.2g} together: the "
            "model would have said something else; another prompt or mode may fit it better"
        )
    if ok.sum() > 1 and float(np.ptp(judgments.probs[ok], axis=0).max()) < _SAME:
        _warn("every item got the same distribution: this judge tells nothing")


def require_complete(judgments: Judgments) -> None:
    """End with exit code 1 if the run stopped before all was asked."""
    if "not_asked" in judgments.status:
        raise typer.Exit(_INCOMPLETE)


def _first(judgments: Judgments, status: str) -> str:
    row = judgments.status.index(status)
    name = f"{judgments.query_ids[row]} {judgments.doc_ids[row]}"
    return f"{name}: {judgments.reasons[row]}"


def _warn(text: str) -> None:
    out.print(f"Warning: {text}", markup=False, highlight=False, soft_wrap=True)
