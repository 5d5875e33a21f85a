"""The explanation as one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as counter
from typing import Any

from rag_sourcebias.report.explanation import facts, tables, word_tables
from rag_sourcebias.report.explanation.findings import findings, unmeasured
from rag_sourcebias.report.explanation.headline import ASSOCIATION, headline
from rag_sourcebias.report.explanation.meaning import how_to_read, section_texts
from rag_sourcebias.report.explanation.missing import PARTS, is_missing, reason
from rag_sourcebias.report.explanation.pictures import pictures
from rag_sourcebias.report.explanation.view import assumptions, caveats
from rag_sourcebias.report.format import count, level, source_name
from rag_sourcebias.report.page import render_page
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.explain_report import ExplainReport, SourceExplanation

__all__ = ["to_html"]


def to_html(report: ExplainReport) -> str:
    """Return the explanation as a self-contained HTML page.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed.
    """
    return render_page("explanation.html.jinja", _context(visible_report(report)))


def _context(report: ExplainReport) -> dict[str, Any]:
    uid: Iterator[str] = (f"plot{n}" for n in counter(1))
    name = report.data.name or "unnamed data"
    return {
        "report": report,
        "title": f"What distinguishes the sources: {name}",
        "name": name,
        "headline": headline(report),
        "association": ASSOCIATION,
        "level": level(report.config.confidence_level),
        "sources": [_source(report, s, uid) for s in report.sources],
        "sections": section_texts(report),
        "reading": how_to_read(report),
        "assumptions": assumptions(report),
        "caveats": caveats(report),
        "data": facts.data_table(report),
        "config": facts.config_table(report),
        "environment": facts.environment_table(report),
    }


def _source(
    report: ExplainReport, explained: SourceExplanation, uid: Iterator[str]
) -> dict[str, Any]:
    return {
        "name": source_name(explained.source),
        "pairs": f"{count(explained.n_pairs)} of {count(explained.n_available)} pairs",
        "findings": findings(report, explained),
        "unmeasured": unmeasured(report, explained),
        "missing": {
            part: (PARTS[part], reason(report, explained, part))
            for part in PARTS
            if is_missing(explained, part)
        },
        "plots": pictures(report, explained, uid),
        "texts": word_tables.texts_table(report, explained),
        "facts": word_tables.texts_facts(report, explained),
        "lexical": word_tables.lexical_table(report, explained),
        "terms": word_tables.terms_table(report, explained),
        "spectrum": tables.spectrum_table(report, explained),
        "geometry": tables.geometry_table(report, explained),
        "perplexity": tables.perplexity_table(report, explained),
        "decomposition": tables.decomposition_table(report, explained),
        "judged": None if explained.lexical is None else
        (count(explained.lexical.n_queries), count(explained.lexical.n_pairs)),
        "parted": None if explained.decomposition is None else
        (count(explained.decomposition.n_queries), count(explained.decomposition.n)),
    }  # fmt: skip
