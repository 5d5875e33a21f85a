"""The report of a style audit in the terminal: average ranks, unfairness, findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_sourcebias.report.format import number, shorten
from rag_sourcebias.report.style.headline import headline
from rag_sourcebias.report.style.meaning import star_note
from rag_sourcebias.report.style.names import style_name
from rag_sourcebias.report.style.sentences import sentences_of
from rag_sourcebias.report.style.verdicts import style_verdicts
from rag_sourcebias.report.style.view import (
    average_ranks,
    compared,
    original_of,
    original_row,
)
from rag_sourcebias.report.style.wording import verdict_sentence
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.style_report import StyleReport, StyleRow, StyleSystem

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["print_report"]

# As in the report of source bias: told apart by colour-blind readers, on dark and on light.
_ABOVE = "color(33)"
_BELOW = "color(172)"
_COLUMN = 18
_LABEL = 20


def print_report(report: StyleReport, console: Console) -> None:
    """Print headline, average ranks, unfairness, findings and warnings.

    Parameters
    ----------
    report : StyleReport
    console : rich.console.Console
        Its width decides how many systems stand side by side.
    """
    from rich.text import Text

    report = visible_report(report, lines=False)
    console.print(Text(headline(report), style="bold"))
    console.print()
    measured = [(s, row) for s in report.systems if (row := original_row(report, s)) is not None]
    label_width = min(_LABEL, max(8, console.width - _COLUMN - 3))
    fit = max(1, (console.width - label_width - 2) // _COLUMN)
    for start in range(0, len(measured), fit):
        console.print(_table(report, measured[start : start + fit], label_width))
    if measured:
        note = f"{star_note(report, intervals=False)} Unfairness: score / by chance."
        console.print(Text(note, style="dim"))
        console.print()
    for verdict in style_verdicts(report):
        _bullet(console, verdict.system.name, verdict_sentence(report, verdict))
    said = sentences_of(report)
    for name in ("matching", "quality"):
        for who, text in said[name]:
            _bullet(console, who, f"{who}: {text}")
    for warning in report.warnings:
        console.print(Text.assemble(("Warning: ", "bold yellow"), warning))


def _bullet(console: Console, subject: str, sentence: str) -> None:
    from rich.text import Text

    text = Text("• ")
    text.append(subject, style="bold")
    text.append(sentence[len(subject) :])
    console.print(text)


def _table(
    report: StyleReport, measured: Sequence[tuple[StyleSystem, StyleRow]], label_width: int
) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(Text("average rank"), width=label_width, overflow="fold")
    for system, _ in measured:
        name = Text(shorten(system.name, 2 * (_COLUMN - 1)))
        table.add_column(name, justify="right", width=_COLUMN - 1, overflow="fold")
    columns = [_ranks(report, system, row) for system, row in measured]
    original = original_of(report)
    for at, style in enumerate(report.data.doc_styles):
        label = shorten(style_name(style), label_width)
        table.add_row(
            Text(label, style="bold" if style == original else ""), *(c[at] for c in columns)
        )
    table.add_section()
    for query_style in report.data.query_styles:
        rows = [
            next((r for r in system.rows if r.query_style == query_style), None)
            for system, _ in measured
        ]
        label = "unfairness"
        if len(report.data.query_styles) > 1:
            label = f"unfairness, {style_name(query_style)}"
        table.add_row(Text(shorten(label, 2 * label_width)), *(_unfairness(r) for r in rows))
    if len(report.data.query_styles) > 1:
        means = [system.mean_unfairness for system, _ in measured]
        texts = ["" if m is None else f"{number(m.estimate, digits=2)}       " for m in means]
        table.add_row(Text("unfairness, mean"), *texts)
    return table


def _ranks(report: StyleReport, system: StyleSystem, row: StyleRow) -> list[Text]:
    from rich.text import Text

    against, texts = compared(report, row), []
    for style, mean in zip(report.data.doc_styles, average_ranks(system, row), strict=True):
        found = against.get(style)
        strong = found is not None and found.significant
        colour = "" if found is None else _ABOVE if found.difference < 0 else _BELOW
        look = f"bold {colour}" if strong else colour
        # The blank keeps the decimals in line with a rank that carries a star.
        texts.append(Text(number(mean) + ("*" if strong else " "), style=look))
    return texts


def _unfairness(row: StyleRow | None) -> str:
    if row is None:
        return ""
    found = row.unfairness
    return f"{number(found.score, digits=2)} / {number(found.null_expectation, digits=2)}"
