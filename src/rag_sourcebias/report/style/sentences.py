"""One sentence per system for each section, so that no number must be found in a picture."""

from __future__ import annotations

import math
from collections.abc import Callable

from rag_sourcebias.report.format import delta, interval, join, number, score
from rag_sourcebias.report.style.effect_plots import leading_measure
from rag_sourcebias.report.style.names import original_text, style_name
from rag_sourcebias.report.style.view import alpha, original_row, significant_pairs
from rag_sourcebias.types.style_report import StyleReport, StyleSystem

__all__ = ["pairs_sentence", "sentences_of"]

_NAMED = 5


def sentences_of(report: StyleReport) -> dict[str, list[tuple[str, str]]]:
    """Return (system, sentence) pairs by section; none where a system has no such part."""
    makers: dict[str, Callable[[StyleReport, StyleSystem], str]] = {
        "matching": lambda _, system: _matching(system),
        "length": _length,
        "quality": _quality,
        "index": _index,
    }
    return {
        name: [(s.name, text) for s in report.systems if (text := make(report, s))]
        for name, make in makers.items()
    }


def _matching(system: StyleSystem) -> str:
    overall = next((g for g in system.matching if not g.style), None)
    if overall is None:
        return ""
    way = "raises" if overall.mean >= 0 else "lowers"
    sign = 1 if overall.mean >= 0 else -1
    ends = ""
    if overall.gain is not None:
        low, high = sorted((sign * overall.gain.lower, sign * overall.gain.upper))
        ends = f" [{number(low)}, {number(high)}]"
    text = (
        f"a query in the style of a document {way} it by {number(abs(overall.mean))} places"
        f"{ends} on average"
    )
    if overall.gain is not None and not overall.gain.excludes(0):
        text += ", which may be chance"
    each = [g for g in system.matching if g.style]
    if len(each) > 1:
        most = max(each, key=lambda g: g.mean)
        ends = "" if most.gain is None else f" {interval(most.gain)}"
        text += f"; most in {style_name(most.style)}: {number(most.mean, signed=True)}{ends}"
    return f"{text}."


def _length(report: StyleReport, system: StyleSystem) -> str:
    row = original_row(report, system)
    if row is None or row.length_slope is None:
        return ""
    shift = math.log(2) * row.length_slope
    slope = f"(slope {number(row.length_slope, digits=2, signed=True)} per unit of ln words)"
    if number(shift, digits=2) == number(0, digits=2):
        return f"in these data length makes no difference to the rank {slope}."
    way = "higher" if shift < 0 else "lower"
    return (
        f"in these data a version twice as long ranks {number(abs(shift), digits=2)} places {way} "
        f"on average {slope}."
    )


def _quality(report: StyleReport, system: StyleSystem) -> str:
    changed = [q for q in system.quality if q.change is not None]
    if not changed:
        return ""
    measure = leading_measure([q.measure for q in changed])
    base = report.config.original_query
    first = next(
        (q for q in system.quality if q.query_style == base and q.measure == measure), None
    )
    start = f"{measure} is {score(first.mean)} for {base} queries; " if first else ""
    found = [
        (q.query_style, q.change)
        for q in changed
        if q.measure == measure and q.p_adjusted is not None and q.p_adjusted < alpha(report)
    ]
    if not found:
        return f"{start}asking in another style changes {measure} nowhere significantly."
    found.sort(key=lambda pair: pair[1].estimate if pair[1] else 0.0)
    named = [
        f"{number(100 * c.estimate, signed=True)} {interval(c, scale=100)} in {style_name(s)}"
        for s, c in found[:_NAMED]
        if c is not None
    ]
    more = len(found) - len(named)
    if more > 0:
        named.append(f"in {more} more")
    return f"{start}asking in another style changes {measure} significantly by {join(named)}."


def _index(report: StyleReport, system: StyleSystem) -> str:
    known = [s for s in system.index_scores if s.relative_delta is not None]
    if not known:
        return ""
    measure = leading_measure([s.measure for s in known])
    base = original_text(report)
    found = [
        s
        for s in known
        if s.measure == measure and s.interval is not None and s.interval.excludes(0)
    ]
    if not found:
        return f"by {measure} no style can be told apart from {base}."
    found.sort(key=lambda s: -abs(s.relative_delta or 0.0))
    named = [
        f"{style_name(s.doc_style)} {delta(s.relative_delta)} {interval(s.interval)}"
        for s in found[:_NAMED]
    ]
    more = len(found) - len(named)
    if more > 0:
        named.append(f"{more} more")
    return (
        f"Relative Δ of {measure} against {base}, positive where {base} ranks higher: "
        f"{join(named)}."
    )


def pairs_sentence(report: StyleReport) -> str:
    """Return how many pairs of document styles differ; nothing where none were compared."""
    total = sum(len(s.pairs) for s in report.systems)
    if not total:
        return ""
    found = sum(len(significant_pairs(report, s)) for s in report.systems)
    return f"{found} of {total} differ significantly."
