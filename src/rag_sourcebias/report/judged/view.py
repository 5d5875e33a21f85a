"""What all outputs show of a judged report, gathered once so that they cannot disagree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.report.format import interval as format_interval
from rag_sourcebias.report.format import number
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import JudgedComparison, JudgedMean, QueryIntervals

__all__ = [
    "METHODS",
    "QuerySummary",
    "assumptions",
    "caveats",
    "digits_of",
    "ends",
    "ends_about_zero",
    "holds",
    "label",
    "measures_of",
    "method_name",
    "other_scale",
    "queries_summary",
    "top_warnings",
    "unit_of",
    "value",
]

METHODS = {
    "regression": "regression on the judge",
    "labels": "labels alone",
    "ppi": "PPI with fixed power",
    "ppi++": "PPI with tuned power",
    "ppi-crossfit": "cross-fitted PPI",
    "ppi-paper": "PPI of Oosterhuis et al.",
    "bootstrap": "bootstrap of the labels",
}
_FAR = 5  # half widths between an estimate and a judge that answers on its own scale


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySummary:
    """What the intervals of single queries are worth.

    Parameters
    ----------
    n, n_labeled : int
        Queries, and those with a human value.
    held : int
        Human values inside their interval.
    mean_width, share : float
        In the unit of the measure, and of its range.
    """

    n: int
    n_labeled: int
    held: int
    mean_width: float
    share: float


def method_name(method: str) -> str:
    """Return a method as prose."""
    return METHODS.get(method, method)


def label(measure: str, system: str, *, link: str = ", ") -> str:
    """Return ``NDCG@10, BM25``, or the measure where there is one system."""
    return f"{measure}{link}{system}" if system else measure


def unit_of(report: JudgedReport) -> str:
    """Return what a judge sees one of."""
    return "items" if report.kind == "items" else "queries"


def measures_of(report: JudgedReport) -> tuple[str, ...]:
    """Return the measures in the order of their first appearance."""
    return tuple(dict.fromkeys(m.measure for m in report.means))


def digits_of(report: JudgedReport, measure: str) -> int:
    """Return the decimals of a measure: two significant digits of its narrowest half width."""
    found: list[Interval | None] = [m.interval for m in report.means if m.measure == measure]
    found += [m.labels_alone for m in report.means if m.measure == measure]
    half = [i.half_width for i in found if i is not None and i.half_width > 0]
    if not half or not math.isfinite(min(half)):
        return 3
    return min(4, max(1, 1 - math.floor(math.log10(min(half)))))


def value(report: JudgedReport, measure: str, number_: float, *, signed: bool = False) -> str:
    """Return a value of a measure as text."""
    return number(number_, digits=digits_of(report, measure), signed=signed)


def ends(report: JudgedReport, measure: str, interval: Interval | None) -> str:
    """Return the ends of an interval of a measure as text."""
    return format_interval(interval, digits=digits_of(report, measure))


def ends_about_zero(interval: Interval, *, digits: int) -> str:
    """Return the ends with as many decimals as it takes to see on which side of 0 they lie."""
    finest = digits + 3
    while digits < finest and any(
        end != 0 and round(abs(end), digits) == 0 for end in (interval.lower, interval.upper)
    ):
        digits += 1
    return format_interval(interval, digits=digits)


def other_scale(report: JudgedReport, mean: JudgedMean) -> bool:
    """Whether the judge seems to answer on another scale than people.

    Then its mean is far from theirs and its values are no grades of theirs, and neither the one nor
    the other is an error of the judge.
    """
    audit = report.audits.get(mean.measure)
    if report.kind == "ranking" or audit is None or audit.agreement is not None:
        return False
    gap = abs(mean.judge_alone - mean.interval.estimate)
    return gap > _FAR * max(mean.interval.half_width, 1e-12)


def holds(query: QueryIntervals) -> npt.NDArray[np.bool_]:
    """Return which intervals hold the human value; False where there is none."""
    inside: npt.NDArray[np.bool_] = (query.lower - 1e-9 <= query.human) & (
        query.human <= query.upper + 1e-9
    )
    return inside


def queries_summary(query: QueryIntervals) -> QuerySummary:
    """Summarise the intervals of single queries."""
    width = float((query.upper - query.lower).mean()) if len(query.query_ids) else 0.0
    return QuerySummary(
        n=len(query.query_ids),
        n_labeled=int(np.count_nonzero(~np.isnan(query.human))),
        held=int(np.count_nonzero(holds(query))),
        mean_width=width,
        share=width / query.highest if query.highest > 0 else 0.0,
    )


def _sources(report: JudgedReport) -> Iterator[tuple[str, tuple[str, ...]]]:
    for mean in report.means:
        for found in (mean.interval, mean.labels_alone):
            if found is not None:
                yield f"means, {found.method}", found.assumptions
    for comparison in report.comparisons:
        yield f"{_kind(comparison)}, {comparison.interval.method}", comparison.interval.assumptions
    for query in report.per_query:
        yield f"single queries, rule “{query.rule}”", query.assumptions


def _kind(comparison: JudgedComparison) -> str:
    return "Relative Δ" if comparison.kind == "relative_delta" else "differences"


def assumptions(report: JudgedReport) -> dict[str, tuple[str, ...]]:
    """Return what the intervals assume, and for which numbers."""
    found: dict[str, dict[str, None]] = {}
    for where, texts in _sources(report):
        for text in texts:
            found.setdefault(text, {})[where] = None
    return {text: tuple(where) for text, where in found.items()}


def top_warnings(report: JudgedReport) -> tuple[str, ...]:
    """Return what must be read before any number: warnings, and audits that found no use."""
    found = list(report.warnings)
    for name, audit in report.audits.items():
        if audit.useless:
            found += [f"{name}: {note}" for note in audit.notes[:1]]
    return tuple(dict.fromkeys(found))


def caveats(report: JudgedReport) -> tuple[tuple[str, str], ...]:
    """Return (what it is about, what to know), each once, without the warnings at the top."""
    found: list[tuple[str, str]] = []
    for mean in report.means:
        who = label(mean.measure, mean.system)
        found += [(who, note) for note in mean.interval.notes]
    for c in report.comparisons:
        who = label(c.measure, f"{c.first} against {c.second}")
        found += [(who, note) for note in c.interval.notes]
    said = top_warnings(report)
    for name, audit in report.audits.items():
        found += [
            (f"audit of {name}", note)
            for note in audit.notes
            if note not in said and f"{name}: {note}" not in said
        ]
    return tuple(dict.fromkeys(found))
