"""How the numbers and names of a judged report are written."""

from __future__ import annotations

import math

from rag_sourcebias.report.format import interval as format_interval
from rag_sourcebias.report.format import number
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judged import JudgedReport

__all__ = [
    "METHODS",
    "digits_of",
    "ends",
    "label",
    "method_name",
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


def method_name(method: str) -> str:
    """Return a method as prose."""
    return METHODS.get(method, method)


def label(measure: str, system: str, *, link: str = ", ") -> str:
    """Return ``NDCG@10, BM25``, or the measure where there is one system."""
    return f"{measure}{link}{system}" if system else measure


def unit_of(report: JudgedReport) -> str:
    """Return what a judge sees one of."""
    return "items" if report.kind == "items" else "queries"


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
