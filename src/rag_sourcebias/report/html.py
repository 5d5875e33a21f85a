"""The whole report as one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count as counter
from typing import Any

from rag_sourcebias.report import facts, plots, tables, text_plots, text_tables, twin_plots
from rag_sourcebias.report.bars import Bar
from rag_sourcebias.report.format import VARIANTS, delta, interval, level, number, split_measure
from rag_sourcebias.report.headline import headline
from rag_sourcebias.report.meaning import how_to_read
from rag_sourcebias.report.page import Figures, render_page
from rag_sourcebias.report.texts import SECTIONS, star_note
from rag_sourcebias.report.verdicts import Verdict, leading_cells, verdicts
from rag_sourcebias.report.view import (
    assumptions,
    baseline_of,
    caveats,
    label,
    names_of,
    others_of,
    refusals,
    shown,
    significant,
)
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.reports import SkewCell, SkewReport, SystemSkew

__all__ = ["to_html"]


def to_html(report: SkewReport) -> str:
    """Return the report as a self-contained HTML page.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed.
    """
    return render_page("report.html.jinja", _context(visible_report(report)))


def _context(report: SkewReport) -> dict[str, Any]:
    names = names_of(report)
    scale = _scale(report)
    others = others_of(report)
    return {
        "report": report,
        "title": f"Source bias: {report.data.name}",
        "headline": headline(report),
        "design": report.data.design,
        "level": level(report.config.confidence_level),
        "scale": number(scale, digits=0),
        "base": names[baseline_of(report)],
        "rival": names[others[0]] if len(others) == 1 else "other",
        "cards": [_card(report, verdict, scale) for verdict in verdicts(report)],
        "groups": list(_groups(report, scale)),
        "star_note": star_note(report),
        "refusals": refusals(report),
        "sections": SECTIONS,
        "plots": _plots(report),
        "sign": tables.sign_table(report),
        "twins": tables.twins_table(report),
        "matched": tables.variant_table(report, "length-matched"),
        "exact": tables.variant_table(report, "exact"),
        "sole": tables.sole_table(report),
        "exposure": tables.exposure_table(report),
        "awrf": [
            (label(s), number(s.awrf, digits=3)) for s in report.systems if s.awrf is not None
        ],
        "texts": _texts(report),
        "reading": how_to_read(report),
        "assumptions": assumptions(report),
        "caveats": caveats(report),
        "data": facts.data_table(report),
        "config": facts.config_table(report),
        "settings": facts.settings_table(report),
        "environment": facts.environment_table(report),
    }


def _scale(report: SkewReport) -> float:
    ends = [20.0]
    for cell in (c for s in report.systems for c in s.cells):
        value, found = shown(cell)
        if value is not None:
            ends.append(abs(value))
        if found is not None:
            ends += [abs(found.lower), abs(found.upper)]
    return min(200.0, 10 * (max(ends) // 10 + 1))


def _bar(report: SkewReport, cell: SkewCell, scale: float) -> Bar | None:
    middle, found = shown(cell)
    if found is None or middle is None:
        return None
    low, high, dot = (
        round(50 + 50 * max(-1.0, min(1.0, value / scale)), 2)
        for value in (found.lower, found.upper, middle)
    )
    return Bar(
        left=low,
        width=round(high - low, 2),
        dot=dot,
        side="even" if dot == 50 else "baseline" if dot > 50 else "other",
        solid=significant(report, cell),
    )


def _card(report: SkewReport, verdict: Verdict, scale: float) -> dict[str, Any]:
    text = verdict.text[:1].upper() + verdict.text[1:] + "."
    return {
        "name": verdict.system.name,
        "variant": VARIANTS.get(verdict.system.variant, verdict.system.variant),
        "against": names_of(report)[verdict.other] if len(others_of(report)) > 1 else "",
        "kind": "prefers" if verdict.direction else "none",
        "direction": verdict.direction or "none",
        "short": verdict.short,
        "text": text,
        "rows": [
            {
                "measure": cell.measure,
                "delta": delta(shown(cell)[0]),
                "interval": interval(shown(cell)[1]),
                "bar": _bar(report, cell, scale),
                "star": significant(report, cell),
            }
            for cell in leading_cells(report, verdict.system, verdict.other)
        ],
    }


def _groups(report: SkewReport, scale: float) -> Iterator[dict[str, Any]]:
    several = len(others_of(report)) > 1
    for system in report.systems:
        for other in others_of(report):
            cells = [c for c in system.cells if c.other == other]
            if cells:
                yield {
                    "name": system.name,
                    "variant": VARIANTS.get(system.variant, system.variant),
                    "against": names_of(report)[other] if several else "",
                    "rows": [
                        {
                            "measure": cell.measure,
                            "text": tables.cell_row(report, cell),
                            "bar": _bar(report, cell, scale),
                            "star": significant(report, cell),
                        }
                        for cell in cells
                    ],
                }


def _texts(report: SkewReport) -> dict[str, Any] | None:
    if not report.text_statistics:
        return None
    names = names_of(report)
    found = text_tables.renamed(report.text_statistics, names)
    original = names[baseline_of(report)]
    title, text = text_tables.SOURCE_SECTION
    picture = partial(text_plots.text_plot, found, original=original, uid="texts", title=title)
    return {
        "title": title,
        "text": text,
        "key": text_tables.text_key(found),
        "notes": text_tables.text_notes(found),
        "table": text_tables.text_table(found, original=original),
        "figures": [("Texts by source", picture)],
    }


def _plots(report: SkewReport) -> dict[str, Figures]:
    """Return pictures by section."""
    uid = (f"plot{n}" for n in counter(1))
    found: dict[str, Figures] = {"delta": [], "paired": [], "ranks": [], "length": []}
    several = len(others_of(report)) > 1
    for other in others_of(report):
        tail = f" against {names_of(report)[other]}" if several else ""
        for measure in dict.fromkeys(
            split_measure(c.measure)[0]
            for s in report.systems
            if s.variant == "mixed"
            for c in s.cells
            if c.other == other
        ):
            draw = partial(plots.relative_delta_plot, report, other, measure=measure, uid=next(uid))
            found["delta"].append((f"Relative Δ of {measure}{tail}", draw))
        for system in report.systems:
            _system_plots(report, system, other, label(system) + tail, uid, found)
    return found


def _system_plots(  # noqa: PLR0917 - one picture book, one caller
    report: SkewReport,
    system: SystemSkew,
    other: str,
    caption: str,
    uid: Iterator[str],
    found: dict[str, Figures],
) -> None:
    cells = leading_cells(report, system, other)
    if cells and system.variant == "mixed":
        measure = cells[-1].measure
        if measure in system.scores.measures and other in system.scores.sources:
            draw = partial(
                plots.paired_scores_plot, report, system, other, measure=measure, uid=next(uid)
            )
            found["paired"].append((caption, draw))
    for twin in system.twins:
        if twin.other == other and twin.n_pairs:
            if system.variant == "mixed":
                draw = partial(twin_plots.twin_ranks_plot, report, system, twin, uid=next(uid))
                found["ranks"].append((caption, draw))
            if len(twin.log_length_ratio) and system.variant == "mixed":
                draw = partial(twin_plots.length_plot, report, system, twin, uid=next(uid))
                found["length"].append((caption, draw))
