"""The report on a paired corpus as one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count as counter
from typing import Any

from rag_sourcebias.report.format import number, source_name
from rag_sourcebias.report.page import Figures, render_page
from rag_sourcebias.report.pairs import facts, tables
from rag_sourcebias.report.pairs.cards import pair_cards
from rag_sourcebias.report.pairs.headline import headline
from rag_sourcebias.report.pairs.histogram_plot import histogram_plot
from rag_sourcebias.report.pairs.meaning import how_to_read, section_texts
from rag_sourcebias.report.pairs.names import VALUES, names_of
from rag_sourcebias.report.pairs.texts import ShownPair, shown_pair
from rag_sourcebias.report.pairs.wording import Criterion, criteria_of, sole_groups, sole_sentence
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.pair_report import PairReport

__all__ = ["to_html"]

_OPEN = 5


def to_html(report: PairReport) -> str:
    """Return the report as a self-contained HTML page.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed.
    """
    return render_page("pair_report.html.jinja", _context(visible_report(report)))


def _context(report: PairReport) -> dict[str, Any]:
    return {
        "report": report,
        "title": f"Paired corpus: {report.data.name or 'unnamed data'}",
        "headline": headline(report),
        "baseline": source_name(report.baseline_source),
        "cards": pair_cards(report),
        "sections": section_texts(report),
        "criteria": _criteria(report),
        "flags": tables.flags_table(report),
        "meanings": tables.flag_meanings(),
        "thresholds": tables.thresholds_table(report),
        "values": tables.values_table(report),
        "plots": _plots(report),
        "worst": _worst(report),
        "sole": tables.sole_table(report),
        "sole_found": _sole(report),
        "reading": how_to_read(report),
        "notes": _notes(report),
        "data": facts.summary_table(report.data),
        "config": facts.config_table(report),
        "settings": facts.settings_table(report),
        "environment": facts.environment_table(report),
    }


def _plots(report: PairReport) -> list[tuple[str, Figures]]:
    """Return (source, pictures) of every source that has pairs."""
    uid: Iterator[str] = (f"plot{n}" for n in counter(1))
    return [
        (
            source_name(part.source),
            [
                (
                    f"{VALUES[name][:1].upper()}{VALUES[name][1:]}, median "
                    f"{number(found.median, digits=2)}",
                    partial(histogram_plot, report, part, name, uid=next(uid)),
                )
                for name, found in part.histograms.items()
            ],
        )
        for part in report.sources
        if part.histograms
    ]


def _criteria(report: PairReport) -> list[tuple[str, tuple[Criterion, ...]]]:
    return [(source_name(part.source), criteria_of(part.criteria)) for part in report.sources]


def _worst(report: PairReport) -> list[tuple[str, list[ShownPair], list[ShownPair]]]:
    """Return (source, pairs to show, further pairs) of every source with flagged pairs."""
    found = []
    for part in report.sources:
        pairs = [shown_pair(pair) for pair in part.worst]
        if pairs:
            found.append((source_name(part.source), pairs[:_OPEN], pairs[_OPEN:]))
    return found


def _sole(report: PairReport) -> list[tuple[str, str, str]]:
    """Return (retriever, other source where there are several, sentence)."""
    names, groups = names_of(report), sole_groups(report)
    several = len({other for _, other in groups}) > 1
    return [
        (system, names[other] if several else "", sole_sentence(tests))
        for (system, other), tests in groups.items()
    ]


def _notes(report: PairReport) -> list[tuple[str, str]]:
    """Return (where, what to know) of the tests, each once."""
    found: dict[tuple[str, str], None] = {}
    for test in report.sole_corpus:
        for note in (test.note, test.refusal):
            if note:
                found[f"{test.system}, {test.measure}", note] = None
    return list(found)
