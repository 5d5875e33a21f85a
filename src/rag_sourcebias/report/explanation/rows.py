"""Intervals as rows of a table: value, ends, n and method, so that none stands without them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from rag_sourcebias.report.explanation.names import telling_digits
from rag_sourcebias.report.format import MISSING, count, level, number
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.explain_report import ExplainReport
from rag_sourcebias.types.intervals import Interval

__all__ = ["as_percent", "interval_row", "interval_table", "log_as_percent"]

Row = tuple[str, ...]


def as_percent(value: float) -> float:
    """Turn a share into percent."""
    return 100 * value


def log_as_percent(value: float) -> float:
    """Turn a mean log ratio into percent."""
    return 100 * math.expm1(value)


def interval_row(
    report: ExplainReport,
    label: str,
    found: Interval | None,
    *,
    digits: int = 2,
    signed: bool = False,
    unit: str = "",
    change: Callable[[float], float] = float,
) -> Row:
    """Return name, value, ends, n and method; the level too where it is not the report's."""
    if found is None:
        return (label, MISSING, "no interval", MISSING, "")
    value, low, high = (change(v) for v in (found.estimate, found.lower, found.upper))
    telling = telling_digits(low, high, digits=digits)
    ends = f"[{number(low, digits=telling)}, {number(high, digits=telling)}]"
    if found.confidence_level != report.config.confidence_level:
        ends = f"{ends} ({level(found.confidence_level)})"
    return (
        label,
        f"{number(value, digits=digits, signed=signed)}{unit}",
        ends,
        count(found.n_labeled),
        found.method,
    )


def interval_table(report: ExplainReport, rows: Iterable[Row], *, name: str = "") -> Table:
    """Return rows of :func:`interval_row` under their heads."""
    ends = f"{level(report.config.confidence_level)} interval"
    return Table(columns=(name, "value", ends, "n", "method"), rows=tuple(rows))
