"""What all outputs show of a report, gathered once so that they cannot disagree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rag_sourcebias.report.format import VARIANTS, short_names, split_measure
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.reports import SkewCell, SkewReport, SystemSkew, TwinSkew

__all__ = [
    "Comparison",
    "assumptions",
    "baseline_of",
    "caveats",
    "comparisons",
    "label",
    "names_of",
    "others_of",
    "refusals",
    "shown",
    "significant",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One measure of one system as deployed beside another variant of the same system."""

    system: str
    other: str
    measure: str
    raw: SkewCell | None
    variant: SkewCell


def baseline_of(report: SkewReport) -> str:
    """Return the source that the others are compared with."""
    return report.config.baseline_source


def others_of(report: SkewReport) -> tuple[str, ...]:
    """Return the other sources compared, in the order of their first appearance."""
    return tuple(dict.fromkeys(c.other for s in report.systems for c in s.cells))


def names_of(report: SkewReport) -> dict[str, str]:
    """Return the short name of every source that the report mentions."""
    seen = [baseline_of(report), *others_of(report), *report.data.documents]
    seen += [e.source for s in report.systems for e in s.exposure]
    return short_names(seen)


def label(system: SystemSkew) -> str:
    """Return the name of a system with its variant, such as ``BM25 (length-matched)``."""
    variant = VARIANTS.get(system.variant, system.variant)
    return f"{system.name} ({variant})" if variant else system.name


def significant(report: SkewReport, cell: SkewCell) -> bool:
    """Whether the adjusted p-value is below 1 − the confidence level of the audit.

    Unlike :attr:`SkewCell.significant` this knows the level even where an interval was refused.
    Never in reports of version 0.1, whose test measured unequal numbers of documents as well.
    """
    level = 1 - report.config.confidence_level
    return cell.centred is not None and cell.p_adjusted is not None and cell.p_adjusted < level


def shown(cell: SkewCell) -> tuple[float | None, Interval | None]:
    """Return the figure that bars and plots show: centred Relative Δ, in old reports the plain."""
    if cell.centred is None:
        return cell.relative_delta, cell.interval
    return cell.centred.value, cell.centred.interval


def comparisons(report: SkewReport, variant: str) -> tuple[Comparison, ...]:
    """Return every cell of one variant with the same cell as deployed."""
    found = []
    for system in report.systems:
        if system.variant != variant:
            continue
        raw = {
            (c.measure, c.other): c
            for s in report.systems
            if s.name == system.name and s.variant == "mixed"
            for c in s.cells
        }
        found += [
            Comparison(
                system=system.name,
                other=cell.other,
                measure=cell.measure,
                raw=raw.get((cell.measure, cell.other)),
                variant=cell,
            )
            for cell in system.cells
        ]
    return tuple(found)


def _twin_intervals(twin: TwinSkew) -> Iterator[tuple[str, Interval | None]]:
    yield "twin win rate", twin.win_rate
    yield "twin score margin", twin.margin
    yield "equal-length win rate", twin.win_rate_equal_length


def _intervals(system: SystemSkew) -> Iterator[tuple[str, Interval | None]]:
    for cell in system.cells:
        kind = split_measure(cell.measure)[0]
        yield f"Relative Δ ({kind})", cell.interval
        if cell.centred is not None:
            yield f"centred Relative Δ ({kind})", cell.centred.interval
    for twin in system.twins:
        yield from _twin_intervals(twin)
    for entry in system.exposure:
        yield "exposure", entry.difference
    for check in system.sole_corpus:
        yield "sole-corpus difference", check.difference


def assumptions(report: SkewReport) -> dict[str, tuple[str, ...]]:
    """Return what the intervals assume, and for which numbers, over the whole report."""
    found: dict[str, dict[str, None]] = {}
    for system in report.systems:
        for what, value in _intervals(system):
            for assumption in () if value is None else value.assumptions:
                where = what if value is None else f"{what}, {value.method} method"
                found.setdefault(assumption, {})[where] = None
    return {text: tuple(where) for text, where in found.items()}


def refusals(report: SkewReport) -> tuple[tuple[str, str], ...]:
    """Return (system and measure, why there is no interval)."""
    names = names_of(report)
    return tuple(
        (f"{label(s)}, {c.measure} against {names[c.other]}", why)
        for s in report.systems
        for c in s.cells
        for why in dict.fromkeys((c.refusal, c.centred.refusal if c.centred else None))
        if why
    )


def caveats(report: SkewReport) -> tuple[tuple[str, str], ...]:
    """Return (system or "", what a reader must know), the warnings of the report first."""
    found = [("", text) for text in report.warnings]
    for system in report.systems:
        who = label(system)
        found += [(who, note) for note in system.notes]
        found += [(who, note) for twin in system.twins for note in twin.notes]
        for number, text in (
            (system.n_untagged, "retrieved entries belong to documents without a source tag"),
            (system.n_duplicates, "retrieved entries repeated a document and were dropped"),
            (system.n_empty, "judged queries returned nothing; they score 0 and count"),
        ):
            if number:
                found.append((who, f"{number:,} {text}"))
    return tuple(dict.fromkeys(found))
