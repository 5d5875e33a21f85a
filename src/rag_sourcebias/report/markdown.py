"""The whole report as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from rag_sourcebias.report import facts, tables, text_tables
from rag_sourcebias.report.format import number
from rag_sourcebias.report.headline import headline
from rag_sourcebias.report.marks import bullets, document, escape, how_to_take_it, table
from rag_sourcebias.report.meaning import how_to_read
from rag_sourcebias.report.texts import SECTIONS, star_note
from rag_sourcebias.report.verdicts import verdicts
from rag_sourcebias.report.view import (
    assumptions,
    baseline_of,
    caveats,
    label,
    names_of,
    refusals,
)
from rag_sourcebias.types.reports import SkewReport

__all__ = ["to_markdown"]


def to_markdown(report: SkewReport) -> str:
    """Return the report as GitHub-flavoured Markdown, ending in a newline."""
    blocks = [
        f"# Source bias report: {escape(report.data.name)}",
        f"**{escape(headline(report))}**",
    ]
    blocks += [f"> **Note:** {escape(w)}" for w in report.warnings]
    blocks += ["## Verdicts", bullets(v.sentence for v in verdicts(report))]
    blocks += ["## All numbers", table(tables.cells_table(report)), escape(star_note(report))]
    blocks += [bullets(f"{who}: {why}" for who, why in refusals(report))]
    for name, content in (
        ("sign", tables.sign_table(report)),
        ("twins", tables.twins_table(report)),
        ("length-matched", tables.variant_table(report, "length-matched")),
        ("exact", tables.variant_table(report, "exact")),
        ("sole-corpus", tables.sole_table(report)),
        ("exposure", tables.exposure_table(report)),
    ):
        if content.rows:
            title, text = SECTIONS[name]
            blocks += [f"## {title}", escape(text), table(content)]
            if name == "exposure":
                blocks.append(bullets(_awrf(report)))
    blocks += _texts(report)
    blocks += how_to_take_it(how_to_read(report), assumptions(report), caveats(report))
    blocks += ["## Data", table(facts.data_table(report))]
    blocks += ["## Settings and versions"]
    blocks += [
        table(make(report))
        for make in (facts.config_table, facts.settings_table, facts.environment_table)
    ]
    return document(blocks)


def _texts(report: SkewReport) -> list[str]:
    if not report.text_statistics:
        return []
    names = names_of(report)
    found = text_tables.renamed(report.text_statistics, names)
    title, text = text_tables.SOURCE_SECTION
    content = text_tables.text_table(found, original=names[baseline_of(report)])
    notes = bullets(f"{note}." for note in text_tables.text_notes(found))
    return [f"## {title}", escape(text), table(content), notes]


def _awrf(report: SkewReport) -> Iterable[str]:
    for system in report.systems:
        if system.awrf is not None:
            yield f"{label(system)}: AWRF {number(system.awrf, digits=3)}"
