"""The wording of a finding: the only sentences about whether a system favours styles."""

from __future__ import annotations

from collections.abc import Sequence

from rag_sourcebias.report.format import count, interval, join, number, p_clause
from rag_sourcebias.report.meaning import CORRECTIONS
from rag_sourcebias.report.style.names import original_text, style_list, style_name
from rag_sourcebias.report.style.verdicts import StyleVerdict
from rag_sourcebias.report.style.view import alpha, compared
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.style_parts import StyleCode, StyleFinding
from rag_sourcebias.types.style_report import StyleReport, StyleRow

__all__ = ["chance_sentence", "listed", "predicate", "score_with", "short", "verdict_sentence"]

_LISTED = 6  # styles that are named
_EXCEPTED = 2  # styles that are named as the only exceptions
_NAMED = 5  # styles of which the difference is written out


def score_with(value: float, bounds: Interval | None, *, digits: int = 2) -> str:
    """Return a number with its interval, or alone where there is none."""
    text = number(value, digits=digits)
    return text if bounds is None else f"{text} {interval(bounds, digits=digits)}"


def short(report: StyleReport, verdict: StyleVerdict) -> str:
    """Return the verdict in a few words."""
    found = verdict.finding
    if found is None:
        return "nothing was measured"
    if found.code is StyleCode.FAVOURS:
        parts = [
            f"ranks {listed(report, styles)} {where}"
            for styles, where in ((found.favoured, "higher"), (found.silenced, "lower"))
            if styles
        ]
        return ", ".join(parts) or "ranks styles apart"
    return {
        StyleCode.ALIKE: f"alike within ±{number(found.margin)} places",
        StyleCode.CANNOT_TELL: "cannot tell",
        StyleCode.TOO_FEW: "too few queries to tell",
        StyleCode.TIED: "ties all styles",
    }[found.code]


def listed(report: StyleReport, found: Sequence[str]) -> str:
    """Return the styles in the order of the data, so that equal findings read alike."""
    styles = [s for s in report.data.doc_styles if s in found]
    others = [s for s in report.data.doc_styles if s not in found and s != report.config.original]
    if len(styles) <= _LISTED:
        return style_list(styles)
    if not others:
        return "every other style"
    if len(others) <= _EXCEPTED:
        return f"all styles but {style_list(others)}"
    return f"{len(styles)} styles"


def predicate(report: StyleReport, found: StyleFinding | None) -> str:
    """Return the finding as the predicate of a sentence about one system."""
    if found is None:
        return "has no measured query style"
    queries = _queries(found.n_queries)
    apart = f"{number(found.apart)} places"
    if found.code is StyleCode.TIED:
        return "gives all styles the same similarity for every query"
    if found.code is StyleCode.TOO_FEW:
        are = "is" if found.n_queries == 1 else "are"
        return (
            f"may rank styles apart or alike: {queries} {are} too few to tell, at least "
            f"{found.n_needed} are needed"
        )
    if found.code is StyleCode.ALIKE:
        return (
            f"ranks all styles alike within ±{number(found.margin)} places (average ranks lie "
            f"{apart} apart, at most {number(found.apart_at_most)})"
        )
    if found.code is StyleCode.CANNOT_TELL:
        return (
            f"may rank styles apart or alike within ±{number(found.margin)} places: average ranks "
            f"lie {apart} apart ({p_clause(found.p_value)}), and about "
            f"{count(found.n_needed or 0)} queries are needed to tell"
        )
    base = original_text(report)
    parts: list[str] = []
    for styles, where in ((found.favoured, "above"), (found.silenced, "below")):
        if styles:
            parts.append(f"{listed(report, styles)} {where} {'it' if parts else base}")
    if parts:
        return f"ranks {' and '.join(parts)}"
    return (
        f"ranks styles apart ({p_clause(found.p_value)}): {style_name(found.best)} is highest, "
        f"{style_name(found.worst)} lowest, {apart} below"
    )


def verdict_sentence(report: StyleReport, verdict: StyleVerdict) -> str:
    """Return the whole finding of a system, with its name and what chance alone would give."""
    found, row = verdict.finding, verdict.row
    text = f"{verdict.system.name} {predicate(report, found)}"
    if found is None or row is None or found.code is StyleCode.TIED:
        return f"{text}."
    return f"{text}{_distances(report, row, found)}. {chance_sentence(report, row)}"


def _distances(report: StyleReport, row: StyleRow, found: StyleFinding) -> str:
    """Return by how many places the named styles differ, the largest difference first."""
    against = compared(report, row)
    named = [against[s] for s in (*found.favoured, *found.silenced) if s in against]
    if not named:
        return ""
    named.sort(key=lambda c: -abs(c.difference))
    parts = []
    for c in named[:_NAMED]:
        sign = 1 if c.difference > 0 else -1
        low, high = sorted((sign * c.lower, sign * c.upper))
        ends = f" [{number(low)}, {number(high)}]" if c.known else ""
        parts.append(f"{style_name(c.style)} by {number(abs(c.difference))}{ends}")
    correction = report.config.correction
    tests = f"{len(row.against_original)} comparisons"
    how = (
        f"not corrected for {tests}"
        if correction == "none"
        else f"{CORRECTIONS[correction]} correction over {tests}"
    )
    return f", in places: {join(parts)} ({how})"


def _queries(n: int) -> str:
    return "1 query" if n == 1 else f"{count(n)} queries"


def chance_sentence(report: StyleReport, row: StyleRow) -> str:
    """Return the unfairness of a row beside what chance alone would give."""
    found = row.unfairness
    null = number(found.null_expectation, digits=2)
    queries = _queries(found.n_queries)
    start = f"Unfairness {score_with(found.score, row.unfairness_interval)}"
    if found.score <= found.null_expectation:
        return f"{start}: no more than the {null} that chance alone gives over {queries}."
    share = number(100 * found.null_expectation / found.score, digits=0)
    text = f"{start}; chance alone would give {null} over {queries} ({share}% of that)"
    if row.friedman.p_value >= alpha(report):
        text += f", and the rest may be chance too (Friedman {p_clause(row.friedman.p_value)})"
    return f"{text}."
