"""The report of a judged evaluation as one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as counter
from typing import Any

import numpy as np

from rag_sourcebias.report.format import level
from rag_sourcebias.report.judged import (
    audit_plots,
    cards,
    explain,
    facts,
    plots,
    query_plots,
    tables,
)
from rag_sourcebias.report.judged.headline import headline
from rag_sourcebias.report.judged.sentences import comparison_sentence, query_sentence
from rag_sourcebias.report.judged.view import (
    assumptions,
    caveats,
    label,
    measures_of,
    top_warnings,
    unit_of,
)
from rag_sourcebias.report.page import render_page
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import QueryIntervals

__all__ = ["to_html"]

_SHOWN = 6  # pictures of one kind; more are folded away


def to_html(report: JudgedReport) -> str:
    """Return the report as a self-contained HTML page.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed.
    """
    return render_page("judged.html.jinja", _context(report))


def _context(report: JudgedReport) -> dict[str, Any]:
    uid = (f"plot{n}" for n in counter(1))
    curves = _curves(report, uid)
    return {
        "report": report,
        "title": f"Judged evaluation: {report.name}",
        "headline": headline(report),
        "units": unit_of(report),
        "level": level(report.config.confidence_level),
        "warnings": top_warnings(report),
        "cards": cards.cards(report),
        "means_plots": [
            (f"Mean {m}", plots.means_plot(report, m, uid=next(uid))) for m in measures_of(report)
        ],
        "means": tables.means_table(report),
        "comparisons": tables.comparisons_table(report),
        "clear": [
            comparison_sentence(report, c) for c in report.comparisons if c.interval.excludes(0)
        ],
        "unclear": sum(not c.interval.excludes(0) for c in report.comparisons),
        "comparisons_note": explain.comparisons_note(report),
        "curves": curves[:_SHOWN],
        "more_curves": curves[_SHOWN:],
        "curves_table": tables.curves_table(report),
        "curves_note": explain.curves_note(report),
        "queries": [_queries(report, q, uid) for q in report.per_query],
        "queries_table": tables.queries_table(report),
        "queries_note": explain.queries_note(report),
        "audits": [_audit(report, name, audit, uid) for name, audit in report.audits.items()],
        "reading": explain.how_to_read(report),
        "assumptions": assumptions(report),
        "caveats": caveats(report),
        "data": facts.data_table(report),
        "config": facts.config_table(report),
        "environment": facts.environment_table(report),
    }


def _curves(report: JudgedReport, uid: Iterator[str]) -> list[tuple[str, str]]:
    """Return (caption, SVG) of every mean that was simulated."""
    keys = dict.fromkeys(
        (p.measure, p.system) for p in report.curves if p.mean_width > 0 or p.coverage > 0
    )
    return [
        (label(measure, system), plots.curves_plot(report, measure, system, uid=next(uid)))
        for measure, system in keys
    ]


def _queries(report: JudgedReport, query: QueryIntervals, uid: Iterator[str]) -> dict[str, Any]:
    name = label(query.measure, query.system)
    known = ~np.isnan(query.human)
    figures = []
    if known.any():
        svg = query_plots.labeled_queries_plot(query, uid=next(uid))
        figures.append((f"{name}: labelled", svg))
    if not known.all():
        svg = query_plots.other_queries_plot(query, uid=next(uid))
        figures.append((f"{name}: others", svg))
    return {"text": query_sentence(report, query), "figures": figures}


def _audit(
    report: JudgedReport, name: str, audit: JudgeAudit, uid: Iterator[str]
) -> dict[str, Any]:
    figures = []
    if any(g.bias is not None for g in audit.groups):
        figures.append(("Bias by group", audit_plots.bias_plot(audit, name, uid=next(uid))))
    if audit.calibration is not None:
        caption = "How often each grade is given"
        figures.append((caption, audit_plots.shares_plot(audit, name, uid=next(uid))))
        if audit.calibration.gain_bins:
            svg = audit_plots.calibration_plot(audit, name, uid=next(uid))
            figures.append(("Expected and given gain", svg))
    return {
        "name": name,
        "figures": figures,
        "note": explain.bias_note(report, name, audit),
        "bias": tables.bias_table(audit),
        "differences": tables.differences_table(audit),
        "shares": tables.shares_table(audit),
        "facts": facts.audit_table(audit),
    }
