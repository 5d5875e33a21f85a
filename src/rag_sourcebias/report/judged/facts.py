"""The audit of the judge, settings and versions of a judged report as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.facts import environment_table
from rag_sourcebias.report.format import count, interval, level, number
from rag_sourcebias.report.judged.numbers import method_name
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judged import JudgedReport

__all__ = ["audit_table", "config_table", "data_table", "environment_table"]


def audit_table(audit: JudgeAudit) -> Table:
    """Return how the judge and people agree."""
    rows = [
        ("items with both values", count(audit.n)),
        ("independent units among them", count(audit.n_clusters)),
    ]
    if audit.n_judge_missing:
        rows.append(("labelled, but not judged", count(audit.n_judge_missing)))
    rows += _estimates(("Pearson's r", audit.pearson), ("Spearman's ρ", audit.spearman), digits=2)
    if audit.kendall is not None:
        rows.append(("Kendall's τ-b", number(audit.kendall, digits=2)))
    if audit.n_clusters == audit.n:  # the threshold counts items as independent
        threshold = number(audit.useful_from, digits=2)
        rows.append(("r from which a judge is of use", f"above {threshold}"))
    rows += _estimates(("mean of judge − people", audit.bias), digits=3)
    rows += _estimates(("AUC", audit.auc), digits=2)
    if (a := audit.agreement) is not None:
        rounded = " (judge rounded)" if a.rounded else ""
        rows += _estimates(
            (f"share with the same of {a.n_grades} grades{rounded}", a.exact), digits=2
        )
        rows += _estimates(("Cohen's κ", a.kappa), digits=2)
        if a.n_grades > 2:
            rows += _estimates(
                ("κ, quadratic weights", a.kappa_quadratic),
                ("Krippendorff's α, ordinal", a.alpha_ordinal),
                digits=2,
            )
    if (c := audit.calibration) is not None:
        rows += _estimates(("gain, judge − people", c.gain_error), digits=2)
        if c.gain_slope is not None:
            slope = number(c.gain_slope, digits=2)
            rows.append(("slope of people's gain on the judge's (1 is calibrated)", slope))
        rows += [
            (
                "skill of the probabilities (1 is perfect, 0 no better than the shares)",
                number(c.rps_skill, digits=2),
            ),
            ("expected calibration error, mean of the grades", number(c.ece, digits=3)),
        ]
    return Table(columns=("audit", ""), rows=tuple(rows))


def _estimates(*found: tuple[str, Interval | None], digits: int) -> list[tuple[str, str]]:
    return [
        (name, f"{number(i.estimate, digits=digits)} {interval(i, digits=digits)}")
        for name, i in found
        if i is not None
    ]


def data_table(report: JudgedReport) -> Table:
    """Return what was labelled and judged."""
    what = "items" if report.kind == "items" else "queries"
    missing = "items" if report.kind == "items" else "pairs"
    rows = (
        ("name", report.name),
        ("kind", "items, one value each" if report.kind == "items" else "rankings"),
        (f"{what} with human labels", count(report.n_labeled)),
        (f"{what} that only the judge saw", count(report.n_unlabeled)),
        (f"{missing} the judge gave no value", count(report.n_judge_missing)),
    )
    return Table(columns=("data", ""), rows=rows)


def config_table(report: JudgedReport) -> Table:
    """Return the settings of the evaluation."""
    c = report.config
    rows = [
        ("method", f"{method_name(c.method)} ({c.method})"),
        ("target", c.target),
        ("confidence level", level(c.confidence_level)),
    ]
    if report.kind == "ranking":
        rows += [
            ("gain of a grade", "2^r − 1" if c.gain == "exponential" else "r"),
            ("lowest relevant grade", str(c.min_grade)),
            ("intervals of single queries", "yes" if c.per_query else "no"),
        ]
    rows += [("simulated evaluations per size", count(c.coverage_runs)), ("seed", str(c.seed))]
    return Table(columns=("setting", ""), rows=tuple(rows))
