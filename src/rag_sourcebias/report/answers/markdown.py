"""The report of correctness scores as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.report.answers import detail_tables, facts, tables
from rag_sourcebias.report.answers.adjusting import auc_sentence
from rag_sourcebias.report.answers.headline import headline
from rag_sourcebias.report.answers.meaning import (
    SECTIONS,
    correctness_section,
    differences_note,
    how_to_read,
)
from rag_sourcebias.report.answers.verdicts import verdicts
from rag_sourcebias.report.answers.view import assumptions, caveats, order_notes
from rag_sourcebias.report.answers.wording import sentence
from rag_sourcebias.report.marks import bullets, document, escape, how_to_take_it, table
from rag_sourcebias.report.tables import Table
from rag_sourcebias.report.text_tables import text_table
from rag_sourcebias.types.answer_report import AnswerBiasReport

__all__ = ["to_markdown"]


def to_markdown(report: AnswerBiasReport) -> str:
    """Return the report as GitHub-flavoured Markdown, ending in a newline."""
    found = verdicts(report)
    blocks = [
        f"# Answer style report: {escape(report.name)}",
        f"**{escape(headline(report))}**",
    ]
    blocks += [f"> **Note:** {escape(w)}" for w in report.warnings]
    blocks += ["## Findings", bullets(f"{v.scorer.name}: {sentence(v)}" for v in found)]
    blocks.append(table(tables.scorers_table(report)))
    blocks += list(_sections(report))
    blocks += how_to_take_it(how_to_read(report), assumptions(report), caveats(report))
    blocks += ["## Data, settings and versions"]
    blocks += [
        table(make(report))
        for make in (
            detail_tables.systems_table,
            facts.data_table,
            facts.config_table,
            facts.settings_table,
            facts.environment_table,
        )
    ]
    return document(blocks)


def _sections(report: AnswerBiasReport) -> Iterator[str]:
    yield from _section(SECTIONS["means"], tables.means_table(report))
    differences = detail_tables.differences_table(report)
    yield from _section(("Every pair of systems", differences_note(report) + "."), differences)
    yield from _section(SECTIONS["thresholds"], tables.threshold_table(report))
    notes = bullets(f"{s.name}: {note}" for s in report.scorers for note in order_notes(s))
    yield from _section(SECTIONS["order"], tables.order_table(report), notes)
    notes = bullets(f"{s.name}: {text}" for s in report.scorers if (text := auc_sentence(s)))
    yield from _section(SECTIONS["auc"], tables.aucs_table(report), notes)
    correctness = detail_tables.correctness_table(report)
    yield from _section(correctness_section(report), correctness)
    if report.text_statistics:
        yield from _section(SECTIONS["text"], text_table(report.text_statistics))


def _section(texts: tuple[str, str], content: Table, notes: str = "") -> Iterator[str]:
    if content.rows:
        yield f"## {texts[0]}"
        yield escape(texts[1])
        yield notes
        yield table(content)
