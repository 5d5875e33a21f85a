"""What was measured on the texts of one source, as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.explanation.names import base_of, names_of
from rag_sourcebias.report.explanation.rows import (
    as_percent,
    interval_row,
    interval_table,
    log_as_percent,
)
from rag_sourcebias.report.format import count, number
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.explain_report import ExplainReport, Histogram, SourceExplanation
from rag_sourcebias.types.intervals import Interval

__all__ = ["lexical_table", "terms_table", "texts_facts", "texts_table"]


def texts_table(report: ExplainReport, explained: SourceExplanation) -> Table:
    """Return the length of the versions; [K] Table 1."""
    return interval_table(
        report,
        [
            interval_row(
                report,
                "words of a version against the original",
                explained.texts.log_length_ratio,
                digits=1,
                signed=True,
                unit="%",
                change=log_as_percent,
            )
        ],
    )


def texts_facts(report: ExplainReport, explained: SourceExplanation) -> Table:
    """Return what is counted of the texts, without intervals."""
    t, base, other = explained.texts, base_of(report), names_of(report)[explained.source]
    rows = [
        (f"words per text, {base}", number(t.mean_words_human)),
        (f"words per text, {other}", number(t.mean_words_other)),
        ("Jaccard index, mean (median)", _middle(t.jaccard)),
        (f"share of {base} words kept, mean (median)", _middle(t.overlap)),
        (f"distinct words, {base}", count(t.vocabulary_human)),
        (f"distinct words, {other}", count(t.vocabulary_other)),
        ("distinct words of both", count(t.vocabulary_shared)),
    ]
    if explained.cosine is not None:
        rows.append(("cosine of versions, mean (median)", _middle(explained.cosine, digits=3)))
    return Table(columns=("", ""), rows=tuple(rows))


def _middle(found: Histogram, *, digits: int = 2) -> str:
    return f"{number(found.mean, digits=digits)} ({number(found.median, digits=digits)})"


def terms_table(report: ExplainReport, explained: SourceExplanation) -> Table:
    """Return the words that distinguish the sources, with the documents that hold them."""
    base, other = base_of(report), names_of(report)[explained.source]
    columns = ("where", "word", base, other, "log odds ratio")
    if explained.lexical is None:
        return Table(columns=columns, rows=(), n_heads=2)
    rows = [
        (
            f"more in {name} texts",
            found.term,
            count(found.n_human),
            count(found.n_other),
            number(found.log_odds, digits=2, signed=True),
        )
        for name, terms in (
            (base, explained.lexical.more_human),
            (other, explained.lexical.more_other),
        )
        for found in terms
    ]
    return Table(columns=columns, rows=tuple(rows), n_heads=2)


def lexical_table(report: ExplainReport, explained: SourceExplanation) -> Table:
    """Return what a lexical retriever sees: coverage of queries, and the artefact of idf."""
    found, base, other = explained.lexical, base_of(report), names_of(report)[explained.source]
    if found is None:
        return interval_table(report, ())

    def points(label: str, value: Interval | None, *, signed: bool = True) -> tuple[str, ...]:
        return interval_row(
            report,
            label,
            value,
            digits=1,
            signed=signed,
            unit=" pts" if signed else "%",
            change=as_percent,
        )

    def idf(label: str, value: Interval | None) -> tuple[str, ...]:
        return interval_row(report, label, value, signed=True)

    return interval_table(
        report,
        [
            points(f"query weight held, {base}", found.coverage_human, signed=False),
            points(f"query weight held, {other}", found.coverage_other, signed=False),
            points(f"difference, {other} minus {base}", found.coverage_gap),
            points("the same with idf of each source's own corpus", found.gap_own_idf),
            idf(f"change of idf by mixing, words only {base} has", found.idf_change_human_only),
            idf(f"change of idf by mixing, words only {other} has", found.idf_change_other_only),
        ],
    )
