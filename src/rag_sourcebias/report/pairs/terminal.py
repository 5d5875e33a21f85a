"""The report on a paired corpus in the terminal: flags, corpora alone, the worst pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_sourcebias.report.format import shorten, source_name
from rag_sourcebias.report.pairs.headline import headline
from rag_sourcebias.report.pairs.names import names_of
from rag_sourcebias.report.pairs.tables import flags_table
from rag_sourcebias.report.pairs.wording import criteria_of, sole_groups, sole_sentence
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.pair_report import PairReport

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_report"]

_LABEL, _COLUMN, _WORST = 22, 18, 3
_LINE = 300


def print_report(report: PairReport, console: Console) -> None:
    """Print headline, criteria, flags, corpora searched alone, worst pairs and warnings.

    Parameters
    ----------
    report : PairReport
    console : rich.console.Console
        Its width decides how many sources stand side by side.
    """
    from rich.text import Text

    report = visible_report(report, lines=False)
    console.print(Text(headline(report), style="bold"))
    console.print()
    several = len(report.sources) > 1
    for part in report.sources:
        for c in criteria_of(part.criteria):
            mark, colour = {True: ("✓", "green"), False: ("✗", "red"), None: ("?", "yellow")}[c.met]
            where = f" ({source_name(part.source)})" if several else ""
            console.print(Text.assemble((mark, f"bold {colour}"), f" {c.name}{where}: {c.text}"))
    _print_flags(report, console)
    names = names_of(report)
    for (system, other), tests in sole_groups(report).items():
        against = f" ({names[other]})" if several else ""
        console.print(
            Text.assemble("• ", (system, "bold"), f"{against}, each corpus alone: ",
                          sole_sentence(tests))
        )  # fmt: skip
    for part in report.sources:
        for pair in part.worst[:_WORST]:
            where = f" ({names[part.source]})" if several else ""
            console.print(
                Text.assemble("• ", (shorten(pair.pair_id, 48), "bold"),
                              f"{where}: {shorten('; '.join(pair.reasons), _LINE)}")
            )  # fmt: skip
    for warning in report.warnings:
        console.print(Text.assemble(("Warning: ", "bold yellow"), warning))


def _print_flags(report: PairReport, console: Console) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    content = flags_table(report)
    # Flags that no source has say nothing in a narrow window.
    rows = [row for row in content.rows if any(cell not in ("0", "–") for cell in row[1:])]
    fit = max(1, (console.width - _LABEL - 2) // _COLUMN)
    for start in range(1, len(content.columns), fit):
        columns = range(start, min(start + fit, len(content.columns)))
        grid = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        grid.add_column(content.columns[0], min_width=_LABEL, overflow="fold")
        for i in columns:
            grid.add_column(Text(content.columns[i]), justify="right", overflow="fold")
        for row in rows:
            grid.add_row(Text(row[0]), *(Text(row[i]) for i in columns))
        console.print(grid)
