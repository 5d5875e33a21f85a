"""What all outputs show of a judged report, gathered once so that they cannot disagree."""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.report.judged.numbers import label
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import JudgedComparison, JudgedMean

__all__ = ["assumptions", "caveats", "measures_of", "other_scale", "top_warnings"]

_FAR = 5  # half widths between an estimate and a judge that answers on its own scale


def measures_of(report: JudgedReport) -> tuple[str, ...]:
    """Return the measures in the order of their first appearance."""
    return tuple(dict.fromkeys(m.measure for m in report.means))


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
