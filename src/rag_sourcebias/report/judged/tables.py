"""The tables of a judged report as plain text cells, shared by Markdown and HTML."""

from __future__ import annotations

from rag_sourcebias.report.format import MISSING, count, delta, interval, level, number, p_value
from rag_sourcebias.report.judged.view import (
    digits_of,
    ends,
    ends_about_zero,
    label,
    method_name,
    queries_summary,
    value,
)
from rag_sourcebias.report.judged.wording import role
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import JudgedComparison, JudgedMean

__all__ = [
    "bias_table",
    "comparisons_table",
    "curves_table",
    "differences_table",
    "means_table",
    "queries_table",
    "shares_table",
]


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


def curves_table(report: JudgedReport) -> Table:
    """Return mean width and coverage of every simulated method and size."""
    methods = tuple(dict.fromkeys(p.method for p in report.curves))
    found = {(p.measure, p.system, p.n, p.method): p for p in report.curves}
    rows = []
    for measure, system, n in dict.fromkeys((p.measure, p.system, p.n) for p in report.curves):
        cells: list[str] = []
        for method in methods:
            point = found.get((measure, system, n, method))
            if point is None or (point.mean_width == 0 and point.coverage == 0):
                cells.append(MISSING)
                continue
            width = number(point.mean_width, digits=digits_of(report, measure))
            cells.append(f"{width}, {number(100 * point.coverage)}%")
        rows.append((label(measure, system), count(n), *cells))
    return Table(
        columns=("mean", "labels", *map(method_name, methods)), rows=tuple(rows), n_heads=2
    )


def queries_table(report: JudgedReport) -> Table:
    """Return what the intervals of single queries are worth."""
    rows = []
    for q in report.per_query:
        s = queries_summary(q)
        rows.append(
            (
                label(q.measure, q.system),
                q.rule,
                count(s.n),
                number(s.mean_width, digits=digits_of(report, q.measure)),
                f"{number(100 * s.share, digits=0)}%",
                f"{count(s.held)} of {count(s.n_labeled)}",
            )
        )
    return Table(
        columns=(
            "queries of",
            "rule",
            "queries",
            "mean width",
            "of the range",
            "human values held",
        ),
        rows=tuple(rows),
        n_heads=1,
    )


def _bias(value_: Interval | None, *, signed: bool = True) -> str:
    if value_ is None:
        return MISSING
    estimate = number(value_.estimate, digits=3, signed=signed)
    return f"{estimate} {interval(value_, digits=3)}"


def bias_table(audit: JudgeAudit) -> Table:
    """Return the bias of every group and, last, of all."""
    rows = [
        (
            g.group,
            count(g.n),
            number(g.human_mean, digits=3),
            number(g.judge_mean, digits=3),
            _bias(g.bias),
        )
        for g in audit.groups
    ]
    everything = (
        count(audit.n),
        number(audit.human_mean, digits=3),
        number(audit.judge_mean, digits=3),
        _bias(audit.bias),
    )
    return Table(
        columns=("group", "n", "people", "judge", "judge − people"),
        rows=(*rows, ("all", *everything)),
    )


def differences_table(audit: JudgeAudit) -> Table:
    """Return the differences of bias between groups."""
    return Table(
        columns=("groups", "difference of bias", "p", "adjusted p"),
        rows=tuple(
            (
                f"{d.group} − {d.other}",
                _bias(d.difference),
                p_value(d.p_value),
                p_value(d.p_adjusted),
            )
            for d in audit.differences
        ),
    )


def shares_table(audit: JudgeAudit) -> Table:
    """Return how often each grade is given, by people and by the judge."""
    grades = () if audit.calibration is None else audit.calibration.grades
    return Table(
        columns=(
            "grade",
            "people, %",
            "judge, %",
            "difference, points",
            "ECE",
            "ECE if calibrated",
        ),
        rows=tuple(
            (
                str(g.grade),
                number(100 * g.observed_share),
                number(100 * g.predicted_share),
                MISSING
                if g.difference is None
                else f"{number(100 * g.difference.estimate, signed=True)} "
                f"{interval(g.difference, scale=100)}",
                number(g.ece, digits=3),
                number(g.ece_if_calibrated, digits=3),
            )
            for g in grades
        ),
    )
