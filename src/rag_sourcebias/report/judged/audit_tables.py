"""The audit of the judge as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.format import MISSING, count, interval, number, p_value
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_audit import JudgeAudit

__all__ = ["bias_table", "differences_table", "shares_table"]


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


def _bias(value_: Interval | None, *, signed: bool = True) -> str:
    if value_ is None:
        return MISSING
    estimate = number(value_.estimate, digits=3, signed=signed)
    return f"{estimate} {interval(value_, digits=3)}"
