"""A report in the terminal, laid out like Table 4 of Dai et al. (KDD 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_sourcebias.io.reports import Report
from rag_sourcebias.report.format import delta, score, shorten, source_name
from rag_sourcebias.report.headline import headline
from rag_sourcebias.report.kinds import renderer
from rag_sourcebias.report.texts import star_note
from rag_sourcebias.report.verdicts import verdicts
from rag_sourcebias.report.view import baseline_of, label, others_of, significant
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.reports import SkewCell, SkewReport, SystemSkew

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["print_report"]

# Told apart by colour-blind readers, on dark and on light backgrounds; the sign says it as well.
_BASELINE = "color(33)"
_OTHER = "color(172)"
_COLUMN = 8
_LABEL = 24


def print_report(report: Report, console: Console) -> None:
    """Print headline, scores, verdicts and warnings; other kinds of reports as their packages do.

    Parameters
    ----------
    report : SkewReport, StyleReport, AnswerBiasReport or JudgedReport
    console : rich.console.Console
        Its width decides how many measures stand side by side.
    """
    from rich.text import Text

    if not isinstance(report, SkewReport):
        renderer(report, "terminal").print_report(report, console)
        return
    report = visible_report(report, lines=False)
    console.print(Text(headline(report), style="bold"))
    console.print()
    measures = tuple(dict.fromkeys(c.measure for s in report.systems for c in s.cells))
    label_width = min(_LABEL, max(8, console.width - _COLUMN - 3))
    fit = max(1, (console.width - label_width - 2) // _COLUMN)
    if fit < len(measures) and len(report.config.cutoffs) <= fit:
        # Break between measures, not between the cutoffs of one.
        fit -= fit % len(report.config.cutoffs)
    for start in range(0, len(measures), fit):
        console.print(_table(report, measures[start : start + fit], label_width))
    console.print(Text(f"Bold = *. {star_note(report)}", style="dim"))
    if report.systems:
        console.print()
    for verdict in verdicts(report):
        text = Text("• ")
        text.append(verdict.subject, style="bold")
        text.append(verdict.sentence[len(verdict.subject) :])
        console.print(text)
    for warning in report.warnings:
        console.print(Text.assemble(("Warning: ", "bold yellow"), warning))


def _table(report: SkewReport, measures: Sequence[str], label_width: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", width=label_width, overflow="fold")
    for measure in measures:
        table.add_column(Text(f"{measure} "), justify="right", min_width=_COLUMN - 1, no_wrap=True)
    for system in report.systems:
        table.add_row(Text(shorten(label(system), 2 * label_width), style="bold"))
        for number, other in enumerate(o for o in others_of(report) if _row(system, o)):
            cells = _row(system, other)
            chosen = [cells.get(m) for m in measures]
            if number == 0:
                base = source_name(baseline_of(report))
                table.add_row(Text(f"  {base}"), *_scores(chosen, baseline=True))
            table.add_row(Text(f"  {source_name(other)}"), *_scores(chosen, baseline=False))
            table.add_row(Text("  Relative Δ"), *(_delta(report, c) for c in chosen))
        table.add_section()
    return table


def _row(system: SystemSkew, other: str) -> dict[str, SkewCell]:
    return {c.measure: c for c in system.cells if c.other == other}


def _scores(cells: Sequence[SkewCell | None], *, baseline: bool) -> list[str]:
    # The blank keeps the decimals in line with a Δ that carries a star.
    return [
        "" if c is None else score(c.mean_baseline if baseline else c.mean_other) + " "
        for c in cells
    ]


def _delta(report: SkewReport, cell: SkewCell | None) -> Text:
    from rich.text import Text

    if cell is None:
        return Text("")
    if cell.relative_delta is None:
        return Text("undef. ", style="dim")
    strong = significant(report, cell)
    text = delta(cell.relative_delta) + ("*" if strong else " ")
    colour = _BASELINE if cell.relative_delta >= 0 else _OTHER
    return Text(text, style=f"bold {colour}" if strong else colour)
