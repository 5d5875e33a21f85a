"""The report of a mitigation in the terminal: Relative Δ before and after, quality, findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_sourcebias.report.debias.choice import standings, transfer_sentence
from rag_sourcebias.report.debias.headline import headline
from rag_sourcebias.report.debias.names import data_name, loss, percent, quality_names
from rag_sourcebias.report.debias.run_tables import search_sentence
from rag_sourcebias.report.debias.verdicts import alpha, significant, verdicts
from rag_sourcebias.report.debias.view import warnings_of
from rag_sourcebias.report.debias.wording import verdict_sentence
from rag_sourcebias.report.format import MISSING, delta, shorten
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.debias_report import (
    DebiasDataset,
    DebiasOutcome,
    DebiasReport,
    SkewChange,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["print_report"]

# As in the report of source bias: told apart by colour-blind readers, on dark and on light.
_BASELINE, _OTHER = "color(33)", "color(172)"
_LABEL, _COLUMN = 28, 9


def print_report(report: DebiasReport, console: Console) -> None:
    """Print headline, Relative Δ and quality of every system, findings and warnings.

    Parameters
    ----------
    report : DebiasReport
    console : rich.console.Console
        Its width decides how many columns stand side by side.
    """
    from rich.text import Text

    report = visible_report(report, lines=False)
    console.print(Text(headline(report), style="bold"))
    console.print()
    columns = [f"Δ@{k}" for k in report.config.cutoffs]
    columns += _heads(report).values()
    label = min(_LABEL, max(8, console.width - _COLUMN - 3))
    fit = max(1, (console.width - label - 2) // _COLUMN)
    if fit < len(columns):
        # Break between skew and quality rather than within either.
        fit = min(fit, max(len(report.config.cutoffs), len(columns) - len(report.config.cutoffs)))
    for dataset in report.datasets:
        console.print(Text(data_name(report, dataset), style="bold underline"))
        for start in range(0, len(columns), fit):
            console.print(_table(report, dataset, columns[start : start + fit], label))
    if report.datasets:
        key = (
            f"Δ@k: Relative Δ of NDCG@k. * adjusted p of the change below {alpha(report):.3g}. "
            f"{', '.join(_heads(report).values())}: change of NDCG@"
            f"{report.config.quality_cutoff} on these texts; ✓ a loss of "
            f"{loss(report.config.relative_margin)} is excluded."
        )
        console.print(Text(key, style="dim"))
        console.print()
    for verdict in verdicts(report):
        text = Text("• ")
        text.append(verdict.system, style="bold")
        text.append(verdict_sentence(report, verdict)[len(verdict.system) :])
        console.print(text)
    for standing in standings(report):
        console.print(Text(f"• {transfer_sentence(report, standing)}"))
    if report.search is not None:
        console.print(Text(f"• {search_sentence(report, report.search)}"))
    for warning in warnings_of(report):
        console.print(Text.assemble(("Warning: ", "bold yellow"), warning))


def _heads(report: DebiasReport) -> dict[str, str]:
    """Return the qualities as heads of narrow columns."""
    return {q: name.removesuffix("-only") for q, name in quality_names(report).items()}


def _table(report: DebiasReport, dataset: DebiasDataset, columns: list[str], label: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", width=label, overflow="fold")
    for name in columns:
        table.add_column(Text(f"{shorten(name, _COLUMN - 2)} "), justify="right", no_wrap=True)
    for outcome in dataset.outcomes:
        cells = _cells(report, outcome)
        table.add_row(
            Text(shorten(outcome.name, 2 * label)), *(cells.get(c, Text("")) for c in columns)
        )
    return table


def _cells(report: DebiasReport, outcome: DebiasOutcome) -> dict[str, Text]:
    from rich.text import Text

    names = _heads(report)
    found = {f"Δ@{s.cutoff}": _delta(report, s) for s in outcome.skew}
    for q in outcome.quality:
        if q.cutoff == report.config.quality_cutoff:
            # The blank keeps the decimals in line with a change that carries a mark.
            mark = "✓" if q.test is not None and q.test.passed else " "
            found[names.get(q.quality, q.quality)] = Text(percent(q.relative) + mark)
    return found


def _delta(report: DebiasReport, change: SkewChange) -> Text:
    from rich.text import Text

    if change.after is None:
        return Text(f"{MISSING} ", style="dim")
    strong = significant(report, change)
    colour = _BASELINE if change.after.estimate >= 0 else _OTHER
    text = delta(change.after.estimate) + ("*" if strong else " ")
    return Text(text, style=f"bold {colour}" if strong else colour)
