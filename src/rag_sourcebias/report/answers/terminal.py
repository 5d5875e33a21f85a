"""The report of correctness scores in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_sourcebias.report.answers.headline import headline
from rag_sourcebias.report.answers.verdicts import verdicts
from rag_sourcebias.report.answers.wording import effect_of, sentence
from rag_sourcebias.report.format import MISSING, number, shorten
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.answer_report import AnswerBias, AnswerBiasReport

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["print_report"]

_RAW, _ADJUSTED = "color(172)", "color(33)"
_LABEL, _COLUMN = 24, 10


def print_report(report: AnswerBiasReport, console: Console) -> None:
    """Print headline, effects by system, findings and warnings.

    Parameters
    ----------
    report : AnswerBiasReport
    console : rich.console.Console
        Its width decides how many systems stand side by side.
    """
    from rich.text import Text

    report = visible_report(report, lines=False)
    console.print(Text(headline(report), style="bold"))
    console.print()
    systems = tuple(s.name for s in report.systems)
    label = min(_LABEL, max(10, console.width - _COLUMN - 3))
    fit = max(1, (console.width - label - 2) // _COLUMN)
    for start in range(0, len(systems), fit):
        console.print(_table(report, systems[start : start + fit], label))
    note = "Standard deviations from the mean of the systems, on equally correct answers."
    console.print(Text(note, style="dim"))
    if report.scorers:
        console.print()
    for verdict in verdicts(report):
        console.print(Text.assemble("• ", (verdict.scorer.name, "bold"), ": ", sentence(verdict)))
    for warning in report.warnings:
        console.print(Text.assemble(("Warning: ", "bold yellow"), warning))


def _table(report: AnswerBiasReport, systems: tuple[str, ...], width: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", width=width, overflow="fold")
    for system in systems:
        name = Text(shorten(system, _COLUMN - 1))
        table.add_column(name, justify="right", min_width=_COLUMN - 1, no_wrap=True)
    lengths = {s.name: s.mean_words_correct for s in report.systems}
    words = [lengths[s] for s in systems]
    table.add_row("words", *(MISSING if w is None else number(w) for w in words))
    table.add_section()
    for scorer in report.scorers:
        table.add_row(Text(shorten(scorer.name, 2 * width), style="bold"))
        table.add_row("  as it is", *_effects(scorer.raw, systems, _RAW))
        if scorer.adjusted is not None:
            table.add_row("  adjusted", *_effects(scorer.adjusted, systems, _ADJUSTED))
        table.add_section()
    return table


def _effects(bias: AnswerBias, systems: tuple[str, ...], colour: str) -> list[Text]:
    from rich.text import Text

    known = set(bias.spread.systems)
    return [Text(effect_of(bias, s) if s in known else MISSING, style=colour) for s in systems]
