"""The tables of matching styles, length and quality as plain text cells."""

from __future__ import annotations

from rag_sourcebias.report.format import MISSING, delta, interval, level, number, p_value, score
from rag_sourcebias.report.style.names import style_name
from rag_sourcebias.report.style.view import alpha, average_ranks, original_row
from rag_sourcebias.report.style.wording import score_with
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.style_report import StyleReport

__all__ = ["index_table", "length_table", "matching_table", "quality_table"]


def matching_table(report: StyleReport) -> Table:
    """Return what each style gains under queries of its own style: styles × systems."""
    systems = [s for s in report.systems if s.matching]
    styles = dict.fromkeys(g.style for s in systems for g in s.matching)
    rows = []
    for style in sorted(styles, key=lambda name: name == ""):  # all styles together come last
        cells = []
        for system in systems:
            gain = next((g for g in system.matching if g.style == style), None)
            if gain is None:
                cells.append(MISSING)
                continue
            ends = "" if gain.gain is None else f" {interval(gain.gain)}"
            cells.append(number(gain.mean, signed=True) + ends)
        rows.append((style_name(style) if style else "all styles", *cells))
    return Table(columns=("style", *(s.name for s in systems)), rows=tuple(rows))


def length_table(report: StyleReport) -> Table:
    """Return average ranks as they are and at equal length, under the original query style."""
    rows = []
    for system in report.systems:
        row = original_row(report, system)
        if row is None or not row.adjusted_ranks:
            continue
        for style, mean, raw, bounds in zip(
            report.data.doc_styles,
            average_ranks(system, row),
            row.average_ranks,
            row.adjusted_ranks,
            strict=True,
        ):
            adjusted = MISSING if bounds is None else score_with(bounds.estimate, bounds, digits=1)
            rows.append((system.name, style_name(style), score_with(mean, raw, digits=1), adjusted))
    return Table(
        columns=("system", "document style", "as it is", "at equal length"),
        rows=tuple(rows),
        n_heads=2,
    )


def quality_table(report: StyleReport) -> Table:
    """Return quality by query style, with the change against the original query style."""
    name = level(report.config.confidence_level)
    rows = []
    for system in report.systems:
        for q in system.quality:
            change = "0.0, all queries alike"
            if q.change is not None:
                change = (
                    f"{number(100 * q.change.estimate, signed=True)} "
                    f"{interval(q.change, scale=100)}"
                )
            elif q.query_style == report.config.original_query:
                change = MISSING
            star = "*" if q.p_adjusted is not None and q.p_adjusted < alpha(report) else ""
            rows.append(
                (
                    system.name,
                    style_name(q.query_style),
                    q.measure,
                    score(q.mean),
                    interval(q.score, scale=100),
                    change,
                    p_value(q.p_value),
                    p_value(q.p_adjusted) + star,
                )
            )
    return Table(
        columns=(
            "system",
            "query style",
            "measure",
            "score",
            f"{name} interval",
            "change",
            "p",
            "adjusted p",
        ),
        rows=tuple(rows),
        n_heads=3,
    )


def index_table(report: StyleReport) -> Table:
    """Return quality of each document style in an index that holds all of them."""
    name = level(report.config.confidence_level)
    rows = [
        (
            system.name,
            style_name(s.doc_style),
            s.measure,
            score(s.mean),
            interval(s.score, scale=100),
            MISSING if s.doc_style == report.config.original else delta(s.relative_delta),
            interval(s.interval),
        )
        for system in report.systems
        for s in system.index_scores
    ]
    return Table(
        columns=(
            "system",
            "document style",
            "measure",
            "score",
            f"{name} interval",
            "Relative Δ",
            f"{name} interval of Δ",
        ),
        rows=tuple(rows),
        n_heads=3,
    )
