"""Simulated sizes and single queries as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.format import MISSING, count, number
from rag_sourcebias.report.judged.numbers import digits_of, label, method_name
from rag_sourcebias.report.judged.queries import queries_summary
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.judged import JudgedReport

__all__ = ["curves_table", "queries_table"]


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
