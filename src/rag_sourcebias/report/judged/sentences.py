"""The sentences about comparisons and about single queries."""

from __future__ import annotations

from rag_sourcebias.report.format import delta, interval, level, number
from rag_sourcebias.report.judged.view import digits_of, ends, label, queries_summary, value
from rag_sourcebias.types.judged import JudgedComparison, JudgedReport, QueryIntervals

__all__ = ["comparison_sentence", "query_sentence"]


def comparison_sentence(report: JudgedReport, c: JudgedComparison) -> str:
    """Return one comparison: who is higher, by how much, or that it cannot be told."""
    i = c.interval
    if c.kind == "relative_delta":
        where = f" in {c.system}" if c.system else ""
        numbers = f"Relative Δ of {c.measure}{where} {delta(i.estimate)} {interval(i)}"
    else:
        gap = value(report, c.measure, i.estimate, signed=True)
        numbers = f"{c.measure} {gap} {ends(report, c.measure, i)}"
    if not i.excludes(0):
        return f"{c.first} against {c.second}: cannot be told apart ({numbers}, includes 0)."
    higher, lower = (c.first, c.second) if i.estimate > 0 else (c.second, c.first)
    return f"{higher} is higher than {lower}: {numbers}."


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
