"""What all outputs show of a style report, gathered once so that they cannot disagree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.style_parts import RankPair
from rag_sourcebias.types.style_report import StyleReport, StyleRow, StyleSystem

__all__ = [
    "Compared",
    "alpha",
    "assumptions",
    "average_ranks",
    "caveats",
    "compared",
    "original_of",
    "original_row",
    "significant_pairs",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One document style against the original under one query style.

    Parameters
    ----------
    difference, lower, upper : float
        Average rank minus that of the original: negative when the style ranks above it. The ends
        are equal to the difference where there is no interval.
    known : bool
        Whether there is an interval.
    """

    style: str
    difference: float
    lower: float
    upper: float
    known: bool
    p_adjusted: float
    significant: bool


def alpha(report: StyleReport) -> float:
    """Return the level below which an adjusted p-value is called significant."""
    # Rounded, so that 0.05 is not below 1 − 0.95.
    return round(1 - report.config.confidence_level, 12)


def original_of(report: StyleReport) -> str | None:
    """Return the document style that others are compared with, None where it is not in the data."""
    original = report.config.original
    return original if original in report.data.doc_styles else None


def original_row(report: StyleReport, system: StyleSystem) -> StyleRow | None:
    """Return the row of the original query style; the first where there is none of that name."""
    for row in system.rows:
        if row.query_style == report.config.original_query:
            return row
    return system.rows[0] if system.rows else None


def average_ranks(system: StyleSystem, row: StyleRow) -> tuple[float, ...]:
    """Return the average rank of each document style under one query style."""
    at = system.rows.index(row)
    return tuple(float(mean) for mean in system.average_ranks[at])


def compared(report: StyleReport, row: StyleRow) -> dict[str, Compared]:
    """Return each document style against the original, whichever of the two is named first."""
    found = {}
    for pair in row.against_original:
        flip = pair.first == report.config.original
        sign = -1.0 if flip else 1.0
        value, ends = sign * pair.difference, _ends(pair, sign)
        style = pair.second if flip else pair.first
        found[style] = Compared(
            style=style,
            difference=value,
            lower=ends[0],
            upper=ends[1],
            known=pair.interval is not None,
            p_adjusted=pair.p_adjusted,
            significant=pair.p_adjusted < alpha(report),
        )
    return found


def _ends(pair: RankPair, sign: float) -> tuple[float, float]:
    if pair.interval is None:
        return sign * pair.difference, sign * pair.difference
    ends = sorted((sign * pair.interval.lower, sign * pair.interval.upper))
    return ends[0], ends[1]


def significant_pairs(report: StyleReport, system: StyleSystem) -> tuple[RankPair, ...]:
    """Return the pairs of document styles that differ, the largest difference first."""
    found = [p for p in system.pairs if p.p_adjusted < alpha(report)]
    return tuple(sorted(found, key=lambda p: -abs(p.difference)))


def _intervals(system: StyleSystem) -> Iterator[tuple[str, Interval | None]]:
    for row in system.rows:
        for value in row.average_ranks:
            yield "average ranks", value
        yield "unfairness", row.unfairness_interval
        for pair in row.against_original:
            yield "differences of ranks", pair.interval
        for value in row.adjusted_ranks:
            yield "ranks at equal length", value
    for pair in system.pairs:
        yield "differences of ranks", pair.interval
    yield "unfairness", system.mean_unfairness
    for gain in system.matching:
        yield "gains of matching styles", gain.gain
    for quality in system.quality:
        yield "quality by query style", quality.score
        yield "change of quality", quality.change
    for entry in system.index_scores:
        yield "quality by document style", entry.score
        yield "Relative Δ", entry.interval


def assumptions(report: StyleReport) -> dict[str, tuple[str, ...]]:
    """Return what the intervals assume, and for which numbers, over the whole report."""
    found: dict[str, dict[str, None]] = {}
    for system in report.systems:
        for what, value in _intervals(system):
            for text in () if value is None else value.assumptions:
                where = what if value is None else f"{what}, {value.method}"
                found.setdefault(text, {})[where] = None
    for statistic in (*report.document_statistics, *report.query_statistics):
        for text in () if statistic.mean is None else statistic.mean.assumptions:
            found.setdefault(text, {})["text statistics"] = None
    return {text: tuple(where) for text, where in found.items()}


def caveats(report: StyleReport) -> tuple[tuple[str, str], ...]:
    """Return (system or "", what a reader must know), each once."""
    found = [("", text) for text in report.warnings]
    for system in report.systems:
        found += [(system.name, note) for note in system.notes]
        for what, value in _intervals(system):
            for note in () if value is None else value.notes:
                found.append((system.name, f"{what}: {note}"))
    return tuple(dict.fromkeys(found))
