"""The tables of ranks and unfairness as plain text cells, shared by Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import pstdev

from rag_sourcebias.report.format import MISSING, interval, level, number, p_value, share
from rag_sourcebias.report.style.names import style_name
from rag_sourcebias.report.style.view import (
    average_ranks,
    compared,
    original_of,
    original_row,
    significant_pairs,
)
from rag_sourcebias.report.style.wording import score_with
from rag_sourcebias.report.tables import Table
from rag_sourcebias.report.text_tables import text_table
from rag_sourcebias.types.style_report import StyleReport, StyleRow, StyleSystem
from rag_sourcebias.types.text_stats import TextStatistic

__all__ = [
    "comparison_table",
    "matrix_table",
    "pairs_table",
    "ranks_table",
    "row_ranks",
    "style_texts_table",
    "unfairness_table",
]


def row_ranks(report: StyleReport, system: StyleSystem, row: StyleRow) -> tuple[str, ...]:
    """Return the average rank of each document style with interval; * where it is significant."""
    against = compared(report, row)
    texts = []
    for style, mean, bounds in zip(
        report.data.doc_styles, average_ranks(system, row), row.average_ranks, strict=True
    ):
        found = against.get(style)
        mark = "*" if found is not None and found.significant else ""
        ends = "" if bounds is None else f" {interval(bounds)}"
        texts.append(f"{number(mean)}{mark}{ends}")
    return tuple(texts)


def ranks_table(report: StyleReport) -> Table:
    """Return average ranks under the original query style: document styles × systems."""
    columns, cells = ["document style"], []
    for system in report.systems:
        if (row := original_row(report, system)) is not None:
            columns.append(system.name)
            cells.append(row_ranks(report, system, row))
    original = original_of(report)
    names = [
        style_name(s) + (" (original)" if s == original else "") for s in report.data.doc_styles
    ]
    return Table(
        columns=tuple(columns),
        rows=tuple(zip(names, *cells, strict=True)) if cells else (),
    )


def matrix_table(report: StyleReport, system: StyleSystem) -> Table:
    """Return average ranks of one system: query styles × document styles."""
    return Table(
        columns=("query style", *(style_name(s) for s in report.data.doc_styles)),
        rows=tuple(
            (style_name(row.query_style), *row_ranks(report, system, row)) for row in system.rows
        ),
    )


def comparison_table(report: StyleReport) -> Table:
    """Return unfairness with its interval: query styles × systems ([W] Table 1)."""
    rows = []
    for style in report.data.query_styles:
        cells = [
            next((_unfairness(r) for r in s.rows if r.query_style == style), MISSING)
            for s in report.systems
        ]
        rows.append((style_name(style), *cells))
    if len(report.data.query_styles) > 1:
        means = [s.mean_unfairness for s in report.systems]
        cells = [MISSING if f is None else score_with(f.estimate, f) for f in means]
        rows.append(("mean", *cells))
        # Without an interval: none is known that holds often enough.
        spreads = [pstdev(r.unfairness.score for r in s.rows) for s in report.systems if s.rows]
        if len(spreads) == len(report.systems):
            rows.append(("sd over query styles", *(number(v, digits=2) for v in spreads)))
    return Table(columns=("query style", *(s.name for s in report.systems)), rows=tuple(rows))


def _unfairness(row: StyleRow) -> str:
    return score_with(row.unfairness.score, row.unfairness_interval)


def unfairness_table(report: StyleReport) -> Table:
    """Return everything about unfairness, one row per system and query style."""
    return Table(
        columns=(
            "system",
            "query style",
            "unfairness",
            f"{level(report.config.confidence_level)} interval",
            "by chance",
            "minus chance",
            "of the maximum",
            "rank range",
            "Kendall's W",
            "Friedman χ²",
            "p",
        ),
        rows=tuple(
            (system.name, style_name(row.query_style), *_numbers(row))
            for system in report.systems
            for row in system.rows
        ),
        n_heads=2,
    )


def _numbers(row: StyleRow) -> tuple[str, ...]:
    found, test = row.unfairness, row.friedman
    return (
        number(found.score, digits=2),
        interval(row.unfairness_interval, digits=2),
        number(found.null_expectation, digits=2),
        number(found.corrected, digits=2),
        share(found.normalised),
        share(found.rank_range),
        MISSING if test.w is None else number(test.w, digits=3),
        f"{number(test.statistic)} ({test.degrees} df)",
        p_value(test.p_value),
    )


def pairs_table(report: StyleReport) -> Table:
    """Return the pairs of document styles that differ significantly, by system."""
    rows = []
    for system in report.systems:
        for pair in significant_pairs(report, system):
            above, below, sign = pair.first, pair.second, -1.0
            if pair.difference > 0:
                above, below, sign = below, above, 1.0
            ends = MISSING
            if pair.interval is not None:
                low, high = sorted((sign * pair.interval.lower, sign * pair.interval.upper))
                ends = f"[{number(low)}, {number(high)}]"
            rows.append(
                (
                    system.name,
                    style_name(above),
                    style_name(below),
                    number(abs(pair.difference)),
                    ends,
                    p_value(pair.p_value),
                    p_value(pair.p_adjusted),
                )
            )
    return Table(
        columns=(
            "system",
            "ranks above",
            "this style",
            "by places",
            f"{level(report.config.confidence_level)} interval",
            "p",
            "adjusted p",
        ),
        rows=tuple(rows),
        n_heads=3,
    )


def style_texts_table(statistics: Sequence[TextStatistic], original: str) -> Table:
    """Return text statistics by style; styles carry the names that readers see."""
    table = text_table(statistics, original=original)
    return replace(table, columns=("style", *table.columns[1:]))
