"""The report of a judged evaluation as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.report.judged.audit_tables import bias_table, differences_table, shares_table
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
)
from rag_sourcebias.report.judged.sentences import comparison_sentence, query_sentence
from rag_sourcebias.report.judged.study_tables import curves_table, queries_table
from rag_sourcebias.report.judged.tables import comparisons_table, means_table
from rag_sourcebias.report.judged.view import assumptions, caveats, top_warnings
from rag_sourcebias.report.judged.wording import sentence
from rag_sourcebias.report.marks import bullets, document, escape, how_to_take_it, table
from rag_sourcebias.types.judged import JudgedReport

__all__ = ["to_markdown"]


def to_markdown(report: JudgedReport) -> str:
    """Return the report as GitHub-flavoured Markdown, ending in a newline."""
    blocks = [
        f"# Judged evaluation: {escape(report.name)}",
        f"**{escape(headline(report))}**",
    ]
    blocks += [f"> **Note:** {escape(w)}" for w in top_warnings(report)]
    blocks += ["## Findings", bullets(sentence(report, m) for m in report.means)]
    blocks += ["## All means", table(means_table(report))]
    blocks += list(_comparisons(report))
    blocks += list(_curves(report))
    blocks += list(_queries(report))
    blocks += list(_audits(report))
    blocks += how_to_take_it(how_to_read(report), assumptions(report), caveats(report))
    blocks += ["## Data, settings and versions"]
    blocks += [table(make(report)) for make in (data_table, config_table, environment_table)]
    return document(blocks)


def _comparisons(report: JudgedReport) -> Iterator[str]:
    if report.comparisons:
        yield "## Comparisons"
        yield escape(comparisons_note(report))
        yield bullets(comparison_sentence(report, c) for c in report.comparisons)
        yield table(comparisons_table(report))


def _curves(report: JudgedReport) -> Iterator[str]:
    if report.curves:
        yield "## Width and coverage against labels"
        yield escape(curves_note(report))
        yield "Each cell: mean width, coverage."
        yield table(curves_table(report))


def _queries(report: JudgedReport) -> Iterator[str]:
    if report.per_query:
        yield "## Single queries"
        yield bullets(query_sentence(report, q) for q in report.per_query)
        yield table(queries_table(report))


def _audits(report: JudgedReport) -> Iterator[str]:
    for name, audit in report.audits.items():
        yield f"## The judge against people: {escape(name)}"
        yield escape(bias_note(report, name, audit))
        yield table(bias_table(audit))
        yield table(differences_table(audit))
        yield table(shares_table(audit))
        yield table(audit_table(audit))
