"""The report of a mitigation as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.report.debias import facts, run_tables, tables
from rag_sourcebias.report.debias.choice import standings, transfer_sentence
from rag_sourcebias.report.debias.headline import headline
from rag_sourcebias.report.debias.meaning import how_to_read, section_texts
from rag_sourcebias.report.debias.names import changed_systems
from rag_sourcebias.report.debias.verdicts import verdicts
from rag_sourcebias.report.debias.view import assumptions, caveats, warnings_of
from rag_sourcebias.report.debias.wording import criteria, verdict_sentence
from rag_sourcebias.report.marks import bullets, document, escape, how_to_take_it, table
from rag_sourcebias.types.debias_report import DebiasReport

__all__ = ["to_markdown"]


def to_markdown(report: DebiasReport) -> str:
    """Return the report as GitHub-flavoured Markdown, ending in a newline."""
    systems = ", ".join(changed_systems(report)) or "no changed system"
    blocks = [f"# Before and after: {escape(systems)}", f"**{escape(headline(report))}**"]
    blocks += [f"> **Note:** {escape(w)}" for w in warnings_of(report)]
    blocks += [
        "## Findings",
        escape(f"All criteria: {criteria(report)}."),
        bullets(verdict_sentence(report, v) for v in verdicts(report)),
        bullets(transfer_sentence(report, s) for s in standings(report)),
        table(tables.verdicts_table(report)),
    ]
    blocks += list(_sections(report))
    blocks += how_to_take_it(how_to_read(report), assumptions(report), caveats(report))
    blocks += ["## Data, settings and versions"]
    for name, content in facts.data_tables(report):
        blocks += [f"### {escape(name)}", table(content)]
    blocks += [
        table(make(report))
        for make in (facts.config_table, facts.settings_table, facts.environment_table)
    ]
    return document(blocks)


def _sections(report: DebiasReport) -> Iterator[str]:
    texts = section_texts(report)
    skew, quality = tables.skew_table(report), tables.quality_table(report)
    if skew.rows:
        yield from _head(texts["skew"])
        yield table(skew)
        yield escape(f"{tables.skew_caption(report)}.")
    if quality.rows:
        yield from _head(texts["quality"])
        yield table(quality)
        yield escape(f"{tables.quality_caption(report)}.")
        yield table(tables.all_quality_table(report))
    if report.search is not None:
        title, text = texts["search"]
        yield f"## {title}"
        yield escape(run_tables.search_sentence(report, report.search))
        yield escape(text.partition(". ")[2])  # without the sentence about the pictures
        yield table(run_tables.search_table(report, report.search))
        yield table(run_tables.refused_table(report, report.search))
    if report.training:
        yield from _head(texts["training"])
        yield table(run_tables.training_table(report))
        yield table(run_tables.steps_table(report))
    if report.methods:
        yield from _head(texts["methods"])
        for method in report.methods:
            yield table(run_tables.method_table(report, method))


def _head(texts: tuple[str, str]) -> Iterator[str]:
    yield f"## {texts[0]}"
    yield escape(texts[1])
