"""The report of a judged evaluation as one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count as counter
from typing import Any

import numpy as np

from rag_sourcebias.report.format import level
from rag_sourcebias.report.judged.audit_tables import bias_table, differences_table, shares_table
from rag_sourcebias.report.judged.bias_plot import bias_plot
from rag_sourcebias.report.judged.calibration_plots import calibration_plot, shares_plot
from rag_sourcebias.report.judged.cards import cards
from rag_sourcebias.report.judged.curves_plot import curves_plot
from rag_sourcebias.report.judged.facts import (
    audit_table,
    config_table,
    data_table,
    environment_table,
)
from rag_sourcebias.report.judged.headline import headline
from rag_sourcebias.report.judged.meaning import (
    bias_note,
    comparisons_note,
    curves_note,
    how_to_read,
    queries_note,
)
from rag_sourcebias.report.judged.means_plot import means_plot
from rag_sourcebias.report.judged.numbers import label, unit_of
from rag_sourcebias.report.judged.query_plots import labeled_queries_plot, other_queries_plot
from rag_sourcebias.report.judged.sentences import comparison_sentence, query_sentence
from rag_sourcebias.report.judged.study_tables import curves_table, queries_table
from rag_sourcebias.report.judged.tables import comparisons_table, means_table
from rag_sourcebias.report.judged.view import assumptions, caveats, measures_of, top_warnings
from rag_sourcebias.report.page import Figures, render_page
from rag_sourcebias.report.visible import visible_report
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
    return render_page("judged.html.jinja", _context(visible_report(report)))


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
        "cards": cards(report),
        "means_plots": [
            (f"Mean {m}", partial(means_plot, report, m, uid=next(uid)))
            for m in measures_of(report)
        ],
        "means": means_table(report),
        "comparisons": comparisons_table(report),
        "clear": [
            comparison_sentence(report, c) for c in report.comparisons if c.interval.excludes(0)
        ],
        "unclear": sum(not c.interval.excludes(0) for c in report.comparisons),
        "comparisons_note": comparisons_note(report),
        "curves": curves[:_SHOWN],
        "more_curves": curves[_SHOWN:],
        "curves_table": curves_table(report),
        "curves_note": curves_note(report),
        "queries": [_queries(report, q, uid) for q in report.per_query],
        "queries_table": queries_table(report),
        "queries_note": queries_note(report),
        "audits": [_audit(report, name, audit, uid) for name, audit in report.audits.items()],
        "reading": how_to_read(report),
        "assumptions": assumptions(report),
        "caveats": caveats(report),
        "data": data_table(report),
        "config": config_table(report),
        "environment": environment_table(report),
    }


def _curves(report: JudgedReport, uid: Iterator[str]) -> Figures:
    """Return a picture of every mean that was simulated."""
    keys = dict.fromkeys(
        (p.measure, p.system) for p in report.curves if p.mean_width > 0 or p.coverage > 0
    )
    return [
        (label(measure, system), partial(curves_plot, report, measure, system, uid=next(uid)))
        for measure, system in keys
    ]


def _queries(report: JudgedReport, query: QueryIntervals, uid: Iterator[str]) -> dict[str, Any]:
    name = label(query.measure, query.system)
    known = ~np.isnan(query.human)
    figures: Figures = []
    if known.any():
        draw = partial(labeled_queries_plot, query, uid=next(uid))
        figures.append((f"{name}: labelled", draw))
    if not known.all():
        draw = partial(other_queries_plot, query, uid=next(uid))
        figures.append((f"{name}: others", draw))
    return {"text": query_sentence(report, query), "figures": figures}


def _audit(
    report: JudgedReport, name: str, audit: JudgeAudit, uid: Iterator[str]
) -> dict[str, Any]:
    figures: Figures = []
    if any(g.bias is not None for g in audit.groups):
        figures.append(("Bias by group", partial(bias_plot, audit, name, uid=next(uid))))
    if audit.calibration is not None:
        caption = "How often each grade is given"
        figures.append((caption, partial(shares_plot, audit, name, uid=next(uid))))
        if audit.calibration.gain_bins:
            draw = partial(calibration_plot, audit, name, uid=next(uid))
            figures.append(("Expected and given gain", draw))
    return {
        "name": name,
        "figures": figures,
        "note": bias_note(report, name, audit),
        "bias": bias_table(audit),
        "differences": differences_table(audit),
        "shares": shares_table(audit),
        "facts": audit_table(audit),
    }
