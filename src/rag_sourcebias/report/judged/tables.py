"""Means and comparisons as tables of text, shared by Markdown and HTML."""

from __future__ import annotations

from rag_sourcebias.report.format import MISSING, count, delta, ends_about_zero, level, number
from rag_sourcebias.report.judged.numbers import digits_of, ends, value
from rag_sourcebias.report.judged.wording import role
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import JudgedComparison, JudgedMean

__all__ = ["comparisons_table", "means_table"]


def means_table(report: JudgedReport) -> Table:
    """Return every mean: by the method, by labels alone, by the judge alone."""
    at = f"{level(report.config.confidence_level)} interval"
    columns = (
        "measure",
        "system",
        "estimate",
        at,
        "labels alone",
        "judge alone",
        "judge r",
        "labels saved" if report.kind == "items" else "queries saved",
        "labelled",
        "judged only",
    )
    rows = tuple(_mean_row(report, m) for m in report.means)
    if any(m.system for m in report.means):
        return Table(columns=columns, rows=rows, n_heads=2)
    return Table(columns=columns[:1] + columns[2:], rows=tuple(r[:1] + r[2:] for r in rows))


def _mean_row(report: JudgedReport, m: JudgedMean) -> tuple[str, ...]:
    alone = m.labels_alone
    return (
        m.measure,
        m.system or MISSING,
        value(report, m.measure, m.interval.estimate),
        ends(report, m.measure, m.interval),
        MISSING
        if alone is None
        else f"{value(report, m.measure, alone.estimate)} {ends(report, m.measure, alone)}",
        value(report, m.measure, m.judge_alone),
        MISSING if m.interval.correlation is None else number(m.interval.correlation, digits=2),
        MISSING
        if m.labels_saved is None or role(report, m) in ("absent", "unused")
        else _signed(m.labels_saved),
        count(m.interval.n_labeled),
        count(m.interval.n_unlabeled),
    )


def _signed(value_: int) -> str:
    return f"−{count(-value_)}" if value_ < 0 else f"+{count(value_)}" if value_ else "0"


def comparisons_table(report: JudgedReport) -> Table:
    """Return every difference and every Relative Δ."""
    return Table(
        columns=(
            "measure",
            "first",
            "second",
            "what",
            "estimate",
            f"{level(report.config.confidence_level)} interval",
            "excludes 0",
            "judge r",
            "labelled",
        ),
        rows=tuple(
            _comparison_row(report, c)
            for measure in dict.fromkeys(c.measure for c in report.comparisons)
            for c in report.comparisons
            if c.measure == measure
        ),
        n_heads=4,
    )


def _comparison_row(report: JudgedReport, c: JudgedComparison) -> tuple[str, ...]:
    i = c.interval
    if c.kind == "relative_delta":
        what = f"Relative Δ in {c.system}, %" if c.system else "Relative Δ, %"
        numbers = (delta(i.estimate), ends_about_zero(i, digits=1))
    else:
        what = "difference"
        digits = digits_of(report, c.measure)
        estimate = number(i.estimate, digits=digits, signed=True)
        numbers = (estimate, ends_about_zero(i, digits=digits))
    return (
        c.measure,
        c.first,
        c.second,
        what,
        *numbers,
        "yes" if i.excludes(0) else "no",
        MISSING if i.correlation is None else number(i.correlation, digits=2),
        count(i.n_labeled),
    )
