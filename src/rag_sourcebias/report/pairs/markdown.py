"""The report on a paired corpus as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.report.format import shorten, source_name
from rag_sourcebias.report.marks import bullets, document, escape, table
from rag_sourcebias.report.pairs import facts, tables
from rag_sourcebias.report.pairs.headline import headline
from rag_sourcebias.report.pairs.meaning import how_to_read, section_texts
from rag_sourcebias.report.pairs.names import names_of
from rag_sourcebias.report.pairs.wording import pairs_sentence, sole_groups, sole_sentence
from rag_sourcebias.types.pair_report import CheckedPair, PairReport

__all__ = ["to_markdown"]

_TEXT = 600


def to_markdown(report: PairReport) -> str:
    """Return the report as GitHub-flavoured Markdown, ending in a newline."""
    texts, names = section_texts(report), names_of(report)
    blocks = [
        f"# Paired corpus: {escape(report.data.name or 'unnamed data')}",
        f"**{escape(headline(report))}**",
    ]
    blocks += [f"> **Note:** {escape(w)}" for w in report.warnings]
    blocks += [
        bullets(f"{source_name(part.source)}: {pairs_sentence(part)}" for part in report.sources)
    ]
    for name, content in (
        ("criteria", tables.criteria_table(report)),
        ("flags", tables.flags_table(report)),
        ("values", tables.values_table(report)),
    ):
        title, text = texts[name]
        if name == "values":  # without the sentences about the pictures
            text = f"{text.partition('.) ')[0].partition(' Dotted')[0]}"
        blocks += [f"## {title}", escape(text), table(content)]
    blocks += ["### Thresholds", table(tables.thresholds_table(report))]
    if report.sole_corpus:
        title, text = texts["sole"]
        blocks += [f"## {title}", escape(text)]
        blocks += [
            bullets(
                f"{system} ({names[other]}): {sole_sentence(tests)}"
                for (system, other), tests in sole_groups(report).items()
            ),
            table(tables.sole_table(report)),
        ]
    blocks += list(_worst(report))
    blocks += ["## How to read this"]
    blocks += [f"**{escape(q)}** {escape(a)}" for q, a in how_to_read(report)]
    blocks += ["## Data, settings and versions"]
    blocks += [
        table(facts.summary_table(report.data)),
        table(facts.config_table(report)),
        table(facts.settings_table(report)),
        table(facts.environment_table(report)),
    ]
    return document(blocks)


def _worst(report: PairReport) -> Iterator[str]:
    if not any(part.worst for part in report.sources):
        return
    yield "## The worst pairs"
    for part in report.sources:
        for pair in part.worst:
            yield f"### {escape(pair.pair_id) or '–'} ({escape(source_name(part.source))})"
            yield bullets(_said(pair))
            yield f"> **Original:** {escape(shorten(pair.baseline_text, _TEXT))}"
            yield f"> **Rewrite:** {escape(shorten(pair.other_text, _TEXT))}"


def _said(pair: CheckedPair) -> Iterator[str]:
    for flag, reason in zip(pair.flags, pair.reasons, strict=True):
        yield f"{flag.replace('_', ' ')}: {reason}"
