"""The report of a style audit as one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count as counter
from typing import Any

from rag_sourcebias.report.format import level, number
from rag_sourcebias.report.page import Figures, render_page
from rag_sourcebias.report.rows_plot import Picture, draw_pictures
from rag_sourcebias.report.style import effect_tables, facts, tables
from rag_sourcebias.report.style.cards import style_cards
from rag_sourcebias.report.style.effect_plots import (
    index_picture,
    length_picture,
    matching_picture,
    quality_picture,
)
from rag_sourcebias.report.style.headline import headline
from rag_sourcebias.report.style.heat_map import heat_map, map_width
from rag_sourcebias.report.style.meaning import how_to_read, section_texts, star_note
from rag_sourcebias.report.style.names import style_name
from rag_sourcebias.report.style.rank_plots import (
    differences_pictures,
    ranks_picture,
    unfairness_picture,
)
from rag_sourcebias.report.style.sentences import pairs_sentence, sentences_of
from rag_sourcebias.report.style.view import assumptions, caveats, original_row
from rag_sourcebias.report.text_plots import text_plot
from rag_sourcebias.report.text_tables import renamed, text_key, text_notes
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.style_report import StyleReport

__all__ = ["to_html"]

_REM = 6  # of the page per inch of a picture
_WIDE = 12  # document styles from which a heat map needs the whole page


def to_html(report: StyleReport) -> str:
    """Return the report as a self-contained HTML page.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed.
    """
    return render_page("style_report.html.jinja", _context(visible_report(report)))


def _context(report: StyleReport) -> dict[str, Any]:
    uid = (f"plot{n}" for n in counter(1))
    n_styles = len(report.data.doc_styles)
    return {
        "report": report,
        "title": f"Style bias: {report.data.name}",
        "headline": headline(report),
        "level": level(report.config.confidence_level),
        "query_style": style_name(report.config.original_query),
        "cards": style_cards(report),
        "texts": section_texts(report),
        "star_note": star_note(report),
        "plots": _plots(report, uid),
        "wide": number(_REM * map_width(n_styles), digits=0) if n_styles > _WIDE else "",
        "ranks": tables.ranks_table(report),
        "matrices": [(s.name, tables.matrix_table(report, s)) for s in report.systems if s.rows],
        "comparison": tables.comparison_table(report),
        "unfairness": tables.unfairness_table(report),
        "matching": effect_tables.matching_table(report),
        "length": effect_tables.length_table(report),
        "said": sentences_of(report),
        "quality": effect_tables.quality_table(report),
        "index": effect_tables.index_table(report),
        "statistics": _statistics(report, uid),
        "pairs_table": tables.pairs_table(report),
        "pairs_said": pairs_sentence(report),
        "reading": how_to_read(report),
        "assumptions": assumptions(report),
        "caveats": caveats(report),
        "data": facts.data_table(report),
        "config": facts.config_table(report),
        "settings": facts.settings_table(report),
        "environment": facts.environment_table(report),
    }


def _statistics(report: StyleReport, uid: Iterator[str]) -> list[dict[str, Any]]:
    """Return what distinguishes the texts, documents before queries."""
    found = []
    for kind, statistics, original in (
        ("documents", report.document_statistics, report.config.original),
        ("queries", report.query_statistics, report.config.original_query),
    ):
        if statistics:
            named = renamed(statistics, {s.group: style_name(s.group) for s in statistics})
            title = f"Text statistics of {kind} by style"
            found.append(
                {
                    "caption": f"{kind.capitalize()} by style",
                    "svg": partial(
                        text_plot, named, original=style_name(original), uid=next(uid), title=title
                    ),
                    "key": text_key(statistics),
                    "table": tables.style_texts_table(named, style_name(original)),
                    "notes": text_notes(named),
                }
            )
    return found


def _plots(report: StyleReport, uid: Iterator[str]) -> dict[str, Figures]:
    """Return pictures by section."""
    known = [(s, row) for s in report.systems if (row := original_row(report, s)) is not None]
    several = [s for s, row in known if len(s.rows) > 1]
    pictures: dict[str, list[Picture]] = {
        "ranks": [ranks_picture(report, s, row) for s, row in known],
        "side": differences_pictures(report),
        "unfairness": [unfairness_picture(report, s) for s in several],
        "matching": [matching_picture(s) for s in report.systems if s.matching],
        "length": [length_picture(report, s, row) for s, row in known if row.adjusted_ranks],
        "quality": [
            quality_picture(report, s)
            for s in report.systems
            if any(q.change is not None for q in s.quality)
        ],
        "index": [
            index_picture(report, s)
            for s in report.systems
            if any(i.relative_delta is not None for i in s.index_scores)
        ],
    }
    found: dict[str, Figures] = {
        name: [(caption, partial(draw, next(uid))) for caption, draw in draw_pictures(some)]
        for name, some in pictures.items()
    }
    found["matrix"] = [(s.name, partial(heat_map, report, s, uid=next(uid))) for s in several]
    return found
