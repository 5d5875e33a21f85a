"""The explanation in the terminal: headline, then every finding with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_sourcebias.report.explanation.findings import findings, unmeasured
from rag_sourcebias.report.explanation.headline import headline
from rag_sourcebias.report.format import count, level, source_name
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.explain_report import ExplainReport, SourceExplanation

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_report"]

_TERMS = 8


def print_report(report: ExplainReport, console: Console) -> None:
    """Print headline, findings by source, words that mark each source, and warnings.

    Parameters
    ----------
    report : ExplainReport
    console : rich.console.Console
    """
    from rich.text import Text

    report = visible_report(report, lines=False)
    console.print(Text(headline(report), style="bold"))
    for explained in report.sources:
        console.print()
        _source(report, explained, console)
    if report.sources:
        key = f"In brackets: {level(report.config.confidence_level)} intervals, each by itself."
        console.print(Text(key, style="dim"))
    for warning in report.warnings:
        console.print(Text.assemble(("Warning: ", "bold yellow"), warning))


def _source(report: ExplainReport, explained: SourceExplanation, console: Console) -> None:
    from rich.text import Text

    pairs = f"{count(explained.n_pairs)} of {count(explained.n_available)} pairs"
    name = f"{source_name(explained.source)}: {pairs}"
    console.print(Text(name, style="bold underline"))
    for found in findings(report, explained):
        shown = found.standing == "established"
        mark = ("• ", "bold") if shown else ("? ", "dim")
        console.print(
            Text.assemble(mark, (f"{found.topic}: ", "bold" if shown else ""), found.text)
        )
    for part, why in unmeasured(report, explained):
        console.print(Text(f"– {part}: not computed, {why}.", style="dim"))
    if explained.lexical is not None:
        base = report.config.baseline_source
        for source, terms in (
            (base, explained.lexical.more_human),
            (explained.source, explained.lexical.more_other),
        ):
            if terms:
                words = ", ".join(t.term for t in terms[:_TERMS])
                console.print(Text(f"• more in {source_name(source)} texts: {words}"))
