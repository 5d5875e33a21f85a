"""The report of a judged evaluation in the terminal: one honest line per mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_sourcebias.report.format import count, level, number
from rag_sourcebias.report.judged.numbers import ends, label, value
from rag_sourcebias.report.judged.sentences import comparison_sentence, query_sentence
from rag_sourcebias.report.judged.view import other_scale, top_warnings
from rag_sourcebias.report.judged.wording import role, saved_short
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import JudgedMean

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["mean_line", "print_report"]

_STYLES = {"helps": "green", "useless": "bold yellow", "costs": "yellow", "unused": "yellow"}


def print_report(report: JudgedReport, console: Console) -> None:
    """Print means, comparisons and warnings.

    Parameters
    ----------
    report : JudgedReport
    console : rich.console.Console
    """
    from rich.text import Text

    report = visible_report(report, lines=False)
    for mean in report.means:
        subject, numbers, worth = mean_line(report, mean)
        console.print(
            Text.assemble(
                (subject, "bold"), f" {numbers}. ", (worth, _STYLES.get(role(report, mean), ""))
            )
        )
    if report.comparisons:
        console.print()
    for comparison in report.comparisons:
        console.print(Text(f"• {comparison_sentence(report, comparison)}"))
    if report.per_query:
        console.print()
    for query in report.per_query:
        console.print(Text(f"• {query_sentence(report, query)}"))
    for warning in top_warnings(report):
        console.print(Text.assemble(("Warning: ", "bold yellow"), warning))


def mean_line(report: JudgedReport, mean: JudgedMean) -> tuple[str, str, str]:
    """Return one mean as a line: what it is, its numbers, and the worth of the judge."""
    i = mean.interval
    labelled = f"{count(i.n_labeled)} labelled"
    if i.n_unlabeled:
        labelled += f" + {count(i.n_unlabeled)} judged"
    facts = [level(i.confidence_level), labelled]
    if i.target != "population":
        facts.append(f"of the {i.target}")
    judge = f"judge alone {value(report, mean.measure, mean.judge_alone)}"
    if other_scale(report, mean):
        judge += " on its own scale"
    if i.correlation is not None:
        judge += f", r = {number(i.correlation, digits=2)}"
    estimate = value(report, mean.measure, i.estimate)
    numbers = f"{estimate} {ends(report, mean.measure, i)} ({', '.join([*facts, judge])})"
    return label(mean.measure, mean.system), numbers, f"{saved_short(report, mean)}."
