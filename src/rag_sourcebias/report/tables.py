"""The tables of a report as plain text cells, shared by Markdown and HTML."""

from __future__ import annotations

from rag_sourcebias.report.blocks import Table
from rag_sourcebias.report.format import (
    MISSING,
    VARIANTS,
    count,
    delta,
    interval,
    level,
    number,
    p_value,
    score,
    share,
    source_name,
)
from rag_sourcebias.report.view import (
    baseline_of,
    comparisons,
    label,
    names_of,
    others_of,
    shown,
    significant,
)
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.reports import SkewCell, SkewReport

__all__ = [
    "Table",
    "cell_row",
    "cells_table",
    "exposure_table",
    "sign_table",
    "sole_table",
    "twins_table",
    "variant_table",
]


def _compact(report: SkewReport, table: Table) -> Table:
    """Leave out the second column, the other source, where there is only one."""
    others = others_of(report)
    if len(others) != 1:
        return table
    columns = tuple(names_of(report)[others[0]] if c == "other" else c for c in table.columns)
    return Table(
        columns=columns[:1] + columns[2:],
        rows=tuple(row[:1] + row[2:] for row in table.rows),
        n_heads=table.n_heads - 1,
    )


def _against(report: SkewReport, other: str) -> str:
    return names_of(report)[other]


def cell_row(report: SkewReport, cell: SkewCell) -> tuple[str, ...]:
    """Return one cell as text.

    Two scores, Δ, its interval, centred Δ, p, adjusted p, queries, needed.
    """
    mark = "*" if significant(report, cell) else ""
    return (
        score(cell.mean_baseline),
        score(cell.mean_other),
        delta(cell.relative_delta),
        interval(cell.interval),
        _centred(cell),
        p_value(cell.p_value),
        p_value(cell.p_adjusted) + mark,
        count(cell.n_queries),
        count(cell.n_needed),
    )


def cells_table(report: SkewReport) -> Table:
    """Return every Relative Δ of the report."""
    base = names_of(report)[baseline_of(report)]
    table = Table(
        columns=(
            "system",
            "against",
            "measure",
            base,
            "other",
            "Relative Δ",
            f"{level(report.config.confidence_level)} interval",
            "centred Δ",
            "p",
            "adjusted p",
            "queries",
            "needed",
        ),
        rows=tuple(
            (label(s), _against(report, c.other), c.measure, *cell_row(report, c))
            for s in report.systems
            for c in s.cells
        ),
        n_heads=3,
    )
    return _compact(report, table)


def _centred(cell: SkewCell) -> str:
    """Return centred Δ, or that it is the figure beside it: so it is with one copy per document."""
    if cell.centred is None:
        return MISSING
    text = _valued(*shown(cell))
    return "same" if text == _valued(cell.relative_delta, cell.interval) else text


def _valued(value: float | None, found: Interval | None) -> str:
    return delta(value) if found is None else f"{delta(value)} {interval(found)}"


def _with_estimate(value: Interval | None, *, digits: int = 2) -> str:
    if value is None:
        return MISSING
    return f"{number(value.estimate, digits=digits)} {interval(value, digits=digits)}"


def twins_table(report: SkewReport) -> Table:
    """Return the twin results of every system."""
    others = others_of(report)
    rival = names_of(report)[others[0]] if len(others) == 1 else "the other"
    table = Table(
        columns=(
            "system",
            "against",
            "pairs",
            "neither found",
            f"win rate of {rival}",
            "score margin (sd)",
            "win rate at equal length",
        ),
        rows=tuple(
            (
                label(s),
                _against(report, t.other),
                count(t.n_pairs),
                count(t.n_unseen),
                _with_estimate(t.win_rate),
                _with_estimate(t.margin),
                _with_estimate(t.win_rate_equal_length),
            )
            for s in report.systems
            for t in s.twins
        ),
        n_heads=2,
    )
    return _compact(report, table)


def exposure_table(report: SkewReport) -> Table:
    """Return the share of attention by source, system and browsing model."""
    return Table(
        columns=(
            "system",
            "attention",
            "source",
            "share",
            "of the corpus",
            "difference (points)",
        ),
        rows=tuple(
            (
                label(s),
                e.browsing,
                source_name(e.source),
                share(e.share),
                share(e.corpus_share),
                MISSING
                if e.difference is None
                else f"{number(100 * e.difference.estimate, signed=True)} "
                f"{interval(e.difference, scale=100)}",
            )
            for s in report.systems
            for e in s.exposure
        ),
        n_heads=3,
    )


def sign_table(report: SkewReport) -> Table:
    """Return what could turn the sign of the primary measure: settings, length, exposure."""
    primary, rows = report.config.primary_measure, []
    for system in report.systems:
        if system.variant != "mixed":
            continue
        for cell in (c for c in system.cells if c.measure == primary):
            start = (system.name, _against(report, cell.other))
            rows.append((*start, "as deployed", _valued(*shown(cell))))
            rows += [
                (*start, one.setting, _valued(one.value, one.interval))
                for one in system.strip
                if one.other == cell.other
            ]
            rows += [
                (*start, VARIANTS[variant], _valued(*shown(again.cell(primary, cell.other))))
                for again in report.systems
                if (variant := again.variant) != "mixed" and again.name == system.name
            ]
            rows += [
                (
                    *start,
                    f"exposure of {source_name(e.source)} ({e.browsing})",
                    f"{number(100 * e.difference.estimate, signed=True)} "
                    f"{interval(e.difference, scale=100)}",
                )
                for e in system.exposure
                if e.source == cell.baseline and e.difference is not None
            ]
        if system.across is not None:
            across = system.across
            shown_as = f"{across.n_sources} other sources as a sample of rewriters"
            text = _valued(across.value, across.interval)
            rows.append((system.name, "all", shown_as, text))
    columns = ("system", "against", "setting", f"centred Δ of {primary} (exposure: points)")
    return _compact(report, Table(columns=columns, rows=tuple(rows), n_heads=3))


def sole_table(report: SkewReport) -> Table:
    """Return the check of each source's corpus alone."""
    base = names_of(report)[baseline_of(report)]
    table = Table(
        columns=("system", "against", "measure", base, "other", "difference ×100", "p"),
        rows=tuple(
            (
                label(s),
                _against(report, c.other),
                c.measure,
                score(c.mean_baseline),
                score(c.mean_other),
                MISSING
                if c.difference is None
                else f"{number(100 * c.difference.estimate, signed=True)} "
                f"{interval(c.difference, scale=100)}",
                p_value(c.p_value),
            )
            for s in report.systems
            for c in s.sole_corpus
        ),
        n_heads=3,
    )
    return _compact(report, table)


def variant_table(report: SkewReport, variant: str) -> Table:
    """Return a variant beside the values as deployed."""
    table = Table(
        columns=("system", "against", "measure", "as deployed", VARIANTS[variant]),
        rows=tuple(
            (
                c.system,
                _against(report, c.other),
                c.measure,
                MISSING if c.raw is None else _delta_and_interval(report, c.raw),
                _delta_and_interval(report, c.variant),
            )
            for c in comparisons(report, variant)
        ),
        n_heads=3,
    )
    return _compact(report, table)


def _delta_and_interval(report: SkewReport, cell: SkewCell) -> str:
    mark = "*" if significant(report, cell) else ""
    value, found = shown(cell)
    return f"{delta(value)}{mark}" + ("" if found is None else f" {interval(found)}")
