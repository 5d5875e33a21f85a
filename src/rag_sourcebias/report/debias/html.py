"""The report of a mitigation as one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count as counter
from typing import Any

from rag_sourcebias.report.debias import facts, run_tables, tables
from rag_sourcebias.report.debias.cards import debias_cards
from rag_sourcebias.report.debias.headline import headline
from rag_sourcebias.report.debias.meaning import how_to_read, section_texts
from rag_sourcebias.report.debias.names import (
    changed_systems,
    data_name,
    unchanged_systems,
    weight_text,
)
from rag_sourcebias.report.debias.quality_plot import quality_pictures
from rag_sourcebias.report.debias.search_plots import search_quality_plot, search_skew_plot
from rag_sourcebias.report.debias.skew_plot import skew_limits, skew_plot
from rag_sourcebias.report.debias.training_plot import has_curves, run_groups, training_plot
from rag_sourcebias.report.debias.verdicts import verdicts
from rag_sourcebias.report.debias.view import assumptions, caveats, warnings_of
from rag_sourcebias.report.debias.wording import criteria, short, verdict_text
from rag_sourcebias.report.format import level
from rag_sourcebias.report.page import Figures, render_page
from rag_sourcebias.report.rows_plot import draw_pictures
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.debias_report import DebiasReport

__all__ = ["to_html"]


def to_html(report: DebiasReport) -> str:
    """Return the report as a self-contained HTML page.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed.
    """
    return render_page("debias_report.html.jinja", _context(visible_report(report)))


def _context(report: DebiasReport) -> dict[str, Any]:
    search = report.search
    return {
        "report": report,
        "title": f"Before and after: {', '.join(changed_systems(report)) or 'no changed system'}",
        "before": unchanged_systems(report),
        "after": changed_systems(report),
        "headline": headline(report),
        "warnings": warnings_of(report),
        "criteria": criteria(report),
        "level": level(report.config.confidence_level),
        "cards": debias_cards(report),
        "found": _found(report),
        "sections": section_texts(report),
        "plots": _plots(report),
        "verdicts": tables.verdicts_table(report),
        "skew": tables.skew_table(report),
        "skew_caption": tables.skew_caption(report),
        "quality": tables.quality_table(report),
        "quality_caption": tables.quality_caption(report),
        "all_quality": tables.all_quality_table(report),
        "search": search and run_tables.search_table(report, search),
        "searched": search and run_tables.search_sentence(report, search),
        "refused": search and run_tables.refused_table(report, search),
        "training": run_tables.training_table(report),
        "steps": run_tables.steps_table(report),
        "methods": [(m.name, run_tables.method_table(report, m)) for m in report.methods],
        "reading": how_to_read(report),
        "assumptions": assumptions(report),
        "caveats": caveats(report),
        "data": facts.data_tables(report),
        "config": facts.config_table(report),
        "settings": facts.settings_table(report),
        "environment": facts.environment_table(report),
    }


def _found(report: DebiasReport) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return (data set, (system, verdict, sentences) of every changed system)."""
    every = verdicts(report)
    return [
        (
            data_name(report, d),
            [
                (v.system, short(report, v), verdict_text(report, v))
                for v in every
                if v.dataset is d
            ],
        )
        for d in report.datasets
    ]


def _plots(report: DebiasReport) -> dict[str, Figures]:
    """Return pictures by section."""
    uid: Iterator[str] = (f"plot{n}" for n in counter(1))
    limits = skew_limits(report)
    found: dict[str, Figures] = {
        "skew": [
            (data_name(report, d), partial(skew_plot, report, d, limits=limits, uid=next(uid)))
            for d in report.datasets
            if d.outcomes
        ],
        "quality": [
            (caption, partial(draw, next(uid)))
            for caption, draw in draw_pictures(quality_pictures(report))
        ],
        "search": [],
        "training": [],
    }
    if report.search is not None:
        found["search"] = [
            ("Relative Δ", partial(search_skew_plot, report, report.search, uid=next(uid))),
            ("Quality", partial(search_quality_plot, report, report.search, uid=next(uid))),
        ]
    for name, weight, runs in run_groups(report.training):
        if has_curves(runs):
            draw = partial(training_plot, report, runs, uid=next(uid))
            found["training"].append((f"{name}: debias weight {weight_text(weight)}", draw))
    return found
