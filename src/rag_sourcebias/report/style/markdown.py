"""The report of a style audit as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.report.marks import bullets, document, escape, how_to_take_it, table
from rag_sourcebias.report.style import effect_tables, facts, tables
from rag_sourcebias.report.style.headline import headline
from rag_sourcebias.report.style.meaning import how_to_read, section_texts, star_note
from rag_sourcebias.report.style.names import style_name
from rag_sourcebias.report.style.sentences import pairs_sentence, sentences_of
from rag_sourcebias.report.style.verdicts import style_verdicts
from rag_sourcebias.report.style.view import assumptions, caveats
from rag_sourcebias.report.style.wording import verdict_sentence
from rag_sourcebias.report.text_tables import renamed, text_notes
from rag_sourcebias.types.style_report import StyleReport

__all__ = ["to_markdown"]


def to_markdown(report: StyleReport) -> str:
    """Return the report as GitHub-flavoured Markdown, ending in a newline."""
    blocks = [
        f"# Writing style report: {escape(report.data.name)}",
        f"**{escape(headline(report))}**",
    ]
    blocks += [f"> **Note:** {escape(w)}" for w in report.warnings]
    blocks += ["## Findings", bullets(verdict_sentence(report, v) for v in style_verdicts(report))]
    blocks += list(_ranks(report))
    blocks += list(_effects(report))
    blocks += list(_texts(report))
    blocks += list(_pairs(report))
    blocks += how_to_take_it(how_to_read(report), assumptions(report), caveats(report))
    blocks += ["## Data", table(facts.data_table(report))]
    blocks += ["## Settings and versions"]
    blocks += [
        table(make(report))
        for make in (facts.config_table, facts.settings_table, facts.environment_table)
    ]
    return document(blocks)


def _ranks(report: StyleReport) -> Iterator[str]:
    ranks, texts = tables.ranks_table(report), section_texts(report)
    if not ranks.rows:
        return
    yield "## Which document styles rank higher"
    yield table(ranks)
    yield escape(star_note(report))
    several = len(report.data.query_styles) > 1
    if several:
        yield "## Query style × document style"
        for system in report.systems:
            yield f"### {escape(system.name)}"
            yield table(tables.matrix_table(report, system))
    yield "## Unfairness"
    yield escape(texts["unfairness"])
    if several or len(report.systems) > 1:
        yield table(tables.comparison_table(report))
    yield table(tables.unfairness_table(report))


def _effects(report: StyleReport) -> Iterator[str]:
    texts, said = section_texts(report), sentences_of(report)
    for name, title, content in (
        ("matching", "Matching styles", effect_tables.matching_table(report)),
        ("length", "Length", effect_tables.length_table(report)),
        (
            "quality",
            "What it costs to ask in another style",
            effect_tables.quality_table(report),
        ),
        ("index", "Document styles in one index", effect_tables.index_table(report)),
    ):
        if content.rows:
            yield f"## {title}"
            yield escape(texts[name])
            yield bullets(f"{who}: {what}" for who, what in said[name])
            yield table(content)


def _texts(report: StyleReport) -> Iterator[str]:
    parts = (
        ("Documents", report.document_statistics, report.config.original),
        ("Queries", report.query_statistics, report.config.original_query),
    )
    if any(statistics for _, statistics, _ in parts):
        yield "## What distinguishes the texts"
    for name, statistics, original in parts:
        if statistics:
            named = renamed(statistics, {s.group: style_name(s.group) for s in statistics})
            yield f"{name} by style: means with intervals."
            yield table(tables.style_texts_table(named, style_name(original)))
            yield bullets(text_notes(named))


def _pairs(report: StyleReport) -> Iterator[str]:
    said = pairs_sentence(report)
    if said:
        yield "## Pairs of document styles"
        yield escape(f"{section_texts(report)['pairs']} {said}")
        yield table(tables.pairs_table(report))
