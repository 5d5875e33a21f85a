"""The explanation as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.report.explanation import facts, tables, word_tables
from rag_sourcebias.report.explanation.findings import findings, unmeasured
from rag_sourcebias.report.explanation.headline import headline
from rag_sourcebias.report.explanation.meaning import how_to_read, section_texts
from rag_sourcebias.report.explanation.missing import PARTS, is_missing, reason
from rag_sourcebias.report.explanation.vector_words import prepared
from rag_sourcebias.report.explanation.view import assumptions, caveats
from rag_sourcebias.report.format import count, source_name
from rag_sourcebias.report.marks import bullets, document, escape, how_to_take_it, table
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.explain_report import ExplainReport, SourceExplanation

__all__ = ["to_markdown"]


def to_markdown(report: ExplainReport) -> str:
    """Return the explanation as GitHub-flavoured Markdown, ending in a newline."""
    blocks = [f"# What distinguishes the sources: {escape(report.data.name)}"]
    blocks += [f"**{escape(headline(report))}**"]
    blocks += [f"> **Note:** {escape(w)}" for w in report.warnings]
    blocks += ["## Findings"]
    for explained in report.sources:
        blocks += list(_findings(report, explained))
    blocks += list(_sections(report))
    blocks += how_to_take_it(how_to_read(report), assumptions(report), caveats(report))
    blocks += ["## Data, settings and versions"]
    blocks += [
        table(make(report))
        for make in (facts.data_table, facts.config_table, facts.environment_table)
    ]
    return document(blocks)


def _findings(report: ExplainReport, explained: SourceExplanation) -> Iterator[str]:
    pairs = f"{count(explained.n_pairs)} of {count(explained.n_available)} pairs"
    yield f"### {escape(source_name(explained.source))}, {pairs}"
    found = findings(report, explained)
    yield bullets(
        f"{f.topic} ({'established' if f.standing == 'established' else 'not established'}): "
        f"{f.text}"
        for f in found
    )
    yield bullets(f"{name} (not computed): {why}." for name, why in unmeasured(report, explained))


def _sections(report: ExplainReport) -> Iterator[str]:
    for key, (title, text) in section_texts(report).items():
        yield f"## {title}"
        yield escape(text)
        for explained in report.sources:
            if len(report.sources) > 1:
                yield f"### {escape(source_name(explained.source))}"
            yield from _SECTIONS[key](report, explained)


def _texts(report: ExplainReport, explained: SourceExplanation) -> Iterator[str]:
    yield table(word_tables.texts_table(report, explained))
    yield table(word_tables.texts_facts(report, explained))


def _words(report: ExplainReport, explained: SourceExplanation) -> Iterator[str]:
    yield from _part(report, explained, "lexical", word_tables.lexical_table(report, explained))
    yield table(word_tables.terms_table(report, explained))


def _vectors(report: ExplainReport, explained: SourceExplanation) -> Iterator[str]:
    yield from _part(report, explained, "spectrum", tables.spectrum_table(report, explained))
    if explained.spectrum is not None:
        yield escape(f"Spectra: {prepared(explained.spectrum)}.")
    yield from _part(report, explained, "geometry", tables.geometry_table(report, explained))


def _perplexity(report: ExplainReport, explained: SourceExplanation) -> Iterator[str]:
    yield from _part(report, explained, "perplexity", tables.perplexity_table(report, explained))


def _gap(report: ExplainReport, explained: SourceExplanation) -> Iterator[str]:
    content = tables.decomposition_table(report, explained)
    yield from _part(report, explained, "decomposition", content)


def _part(
    report: ExplainReport, explained: SourceExplanation, part: str, content: Table
) -> Iterator[str]:
    if is_missing(explained, part):
        yield escape(f"Not computed, {PARTS[part]}: {reason(report, explained, part)}.")
    else:
        yield table(content)


_SECTIONS = {
    "texts": _texts,
    "words": _words,
    "vectors": _vectors,
    "perplexity": _perplexity,
    "gap": _gap,
}
