"""What ``rewrite`` says before and after: requests, tokens, cost, and how documents ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table

from rag_sourcebias.cli.console import err, out
from rag_sourcebias.corpora.manifest import MANIFEST, stem_of
from rag_sourcebias.io.files import read_jsonl
from rag_sourcebias.types.rewrites import RewriteEstimate, RewriteReport, RewriteSource

__all__ = ["print_next", "print_rewrites", "print_rewrites_estimate"]

_SHOWN = 3
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


def print_rewrites_estimate(found: RewriteEstimate, *, n_prompts: int, refused: str = "") -> None:
    """Say what a run would ask and cost, and why it would be refused."""
    _say(
        f"{found.n_documents:,} documents × {n_prompts} prompt(s): {found.requests:,} requests, "
        f"{found.cached:,} answered already"
    )
    _say(
        f"about {found.prompt_tokens:,} tokens to read and {found.completion_tokens:,} to write if "
        f"rewrites are as long as their documents, {found.most_completion_tokens:,} to write at "
        "most (4 characters a token)"
    )
    if found.cost is None or found.most_cost is None:
        _say("give --price-in and --price-out for the cost")
    else:
        _say(f"about {found.cost:,.4f} {found.currency}, at most {found.most_cost:,.4f}")
    if refused:
        _say(f"but this command would be refused: {refused}")
    _say("nothing was asked")


def print_rewrites(report: RewriteReport, own: Sequence[RewriteSource]) -> None:
    """Print how every document ended, what was stripped and what was paid.

    Parameters
    ----------
    own : sequence of RewriteSource
        Those that this run was about; the folder may hold others.
    """
    n, sources = report.manifest.human.n_documents, report.manifest.sources
    table = Table(title=f"{n:,} documents by people", title_justify="left")
    table.add_column("source", overflow="fold")
    for column in ("rewritten", "skipped", "failed"):
        table.add_column(column, justify="right")
    table.add_column("stripped from answers", overflow="fold")
    for entry in sources:
        table.add_row(
            entry.source,
            f"{entry.done:,}",
            f"{sum(entry.skipped.values()):,}",
            f"{sum(entry.failed.values()):,}",
            _counts(entry.cleaned),
        )
    out.print(table)
    for entry in own:
        _print_ends(report, entry)
    if any(entry.failed for entry in own):
        _say("run the same command again: it asks only for the documents that failed")
    if any("truncated" in entry.skipped for entry in own):
        _say("a higher --max-tokens, in another folder, would let cut-off rewrites end")
    _print_usage(report)


def _print_ends(report: RewriteReport, entry: RewriteSource) -> None:
    """Say for each reason how many documents there are, and the first of them."""
    if not entry.skipped and not entry.failed:
        return
    ends: dict[tuple[str, str], list[str]] = {}
    errors: dict[tuple[str, str], str] = {}
    for _, row in read_jsonl(Path(report.folder) / "raw" / f"{stem_of(entry.source)}.jsonl"):
        if row["status"] != "done":
            end = (row["status"], row["reason"])
            ids = ends.setdefault(end, [])
            if len(ids) < _SHOWN:
                ids.append(row["_id"])
                errors.setdefault(end, row.get("error", ""))
    for (status, reason), ids in sorted(ends.items()):
        n = (entry.skipped if status == "skipped" else entry.failed)[reason]
        told = f": {errors[status, reason]}" if errors[status, reason] else ""
        more = ", …" if n > len(ids) else ""
        _say(
            f"{entry.source}: {n:,} {status}, {reason} ({_MEANING.get(reason, reason)}), first "
            f"{', '.join(map(repr, ids))}{more}{told}"
        )


def _print_usage(report: RewriteReport) -> None:
    sources = report.manifest.sources
    cost = "" if report.cost is None else f", {report.cost:,.4f} {sources[-1].currency}"
    _say(
        f"this run: {report.requests:,} requests ({report.from_cache:,} answered before or equal "
        f"to another, {report.retries:,} retries), {report.prompt_tokens:,} tokens read, "
        f"{report.completion_tokens:,} written{cost}"
    )
    read, written = (
        sum(getattr(s, name) for s in sources) for name in ("prompt_tokens", "completion_tokens")
    )
    known = [s for s in sources if s.cost is not None]
    same = len(known) == len(sources) and len({s.currency for s in sources}) == 1
    total = f", {sum(s.cost or 0.0 for s in sources):,.4f} {sources[0].currency}" if same else ""
    _say(f"whole folder: {read:,} tokens read, {written:,} written{total}")


def print_next(report: RewriteReport) -> None:
    """Say where everything lies and what can be done with it."""
    folder = Path(report.folder)
    for entry in report.manifest.sources:
        stem = stem_of(entry.source)
        if entry.done:
            _tell(f"rewrites: {folder / 'corpus' / f'{stem}.jsonl'}")
        _tell(f"answers as written: {folder / 'raw' / f'{stem}.jsonl'}")
    _tell(f"how it was made: {folder / MANIFEST}")
    if not any(entry.done for entry in report.manifest.sources):
        if not any(entry.failed for entry in report.manifest.sources):
            _tell("there is no rewrite: try another --model or --prompts")
        return
    judged = (folder / "qrels").is_dir()
    steps = ["check-pairs", *(["audit source"] if judged else []), "explain"]
    _tell("next:")
    for step in steps:
        _tell(f"  rag-sourcebias {step} {folder}")
    if not judged:
        _tell("without queries and judgments there is no audit of rankings: add queries.jsonl and "
              "qrels/test.tsv to the folder for one")  # fmt: skip


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in counts.items()) or "nothing"


def _say(line: str) -> None:
    out.print(line, markup=False, highlight=False, soft_wrap=True)


def _tell(line: str) -> None:
    err.print(line, markup=False, highlight=False, soft_wrap=True)
