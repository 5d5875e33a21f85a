"""The finding of each system beside the row it rests on; nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.inference.friedman import friedman_test
from rag_sourcebias.inference.style_finding import style_finding
from rag_sourcebias.report.style.view import original_row
from rag_sourcebias.types.style_parts import StyleFinding
from rag_sourcebias.types.style_report import StyleReport, StyleRow, StyleSystem

__all__ = ["StyleVerdict", "style_verdicts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleVerdict:
    """What can be said about one system; ``row`` and ``finding`` are None where it has no row."""

    system: StyleSystem
    row: StyleRow | None
    finding: StyleFinding | None


def style_verdicts(report: StyleReport) -> tuple[StyleVerdict, ...]:
    """Return one verdict per system, in the order of the report."""
    found = []
    for system in report.systems:
        row = original_row(report, system)
        finding = None if row is None else system.finding or _decided(report, system, row)
        found.append(StyleVerdict(system=system, row=row, finding=finding))
    return tuple(found)


def _decided(report: StyleReport, system: StyleSystem, row: StyleRow) -> StyleFinding:
    """Decide for a report of version 0.1, which has ranks but no finding."""
    ranks, config = system.ranks[:, system.rows.index(row)], report.config
    return style_finding(
        ranks,
        report.data.doc_styles,
        test=friedman_test(ranks) if config.ties == "average" else row.friedman,
        against_original=row.against_original,
        margin=config.margin,
        confidence_level=config.confidence_level,
        rng=config.seed,
    )
