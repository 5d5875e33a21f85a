"""The sentences about comparisons and about single queries."""

from __future__ import annotations

from dataclasses import replace

from rag_sourcebias.report.format import delta, ends_about_zero, level, number
from rag_sourcebias.report.judged.numbers import digits_of, label
from rag_sourcebias.report.judged.queries import queries_summary
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import JudgedComparison, QueryIntervals

__all__ = ["comparison_sentence", "query_sentence"]


def comparison_sentence(report: JudgedReport, c: JudgedComparison) -> str:
    """Return one comparison: who is higher and by how much, or that it cannot be told."""
    i = c.interval
    clear = i.excludes(0)
    # A sentence that names the higher side first states the difference in that direction.
    first, second = (c.second, c.first) if clear and i.estimate < 0 else (c.first, c.second)
    if c.kind == "relative_delta":
        where = f" in {c.system}" if c.system else ""
        numbers = (
            f"Relative Δ of {c.measure}{where} {delta(i.estimate)} {ends_about_zero(i, digits=1)}"
        )
        if clear:
            return f"{first} is higher than {second}: {numbers}."
    else:
        digits = digits_of(report, c.measure)
        if clear:
            higher = i if i.estimate > 0 else _reversed(i)
            size = number(higher.estimate, digits=digits)
            bounds = ends_about_zero(higher, digits=digits)
            return f"{first} is higher than {second} in {c.measure} by {size} {bounds}."
        size = number(i.estimate, digits=digits, signed=True)
        numbers = f"{c.measure} {size} {ends_about_zero(i, digits=digits)}"
    return f"{first} against {second}: cannot be told apart ({numbers}, includes 0)."


def _reversed(i: Interval) -> Interval:
    return replace(i, estimate=-i.estimate, lower=-i.upper, upper=-i.lower)


def query_sentence(report: JudgedReport, q: QueryIntervals) -> str:
    """Say how much an interval of one query leaves open."""
    s, digits = queries_summary(q), digits_of(report, q.measure)
    text = (
        f"{label(q.measure, q.system, link=' of ')}: the {level(q.confidence_level)} interval of a "
        f"single query is {number(s.mean_width, digits=digits)} wide on average, "
        f"{number(100 * s.share, digits=0)}% of the range from 0 to "
        f"{number(q.highest, digits=digits)}."
    )
    if s.share > 0.5:
        text += " It says little about any one query."
    return text
