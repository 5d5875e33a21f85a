"""Pictures of matching styles, length, quality by query style, and an index of all styles."""

from __future__ import annotations

from rag_sourcebias.report.format import number, split_measure
from rag_sourcebias.report.rows_plot import Picture, PlotGroup, PlotRow
from rag_sourcebias.report.style.names import original_text, style_name
from rag_sourcebias.report.style.rank_plots import side_of
from rag_sourcebias.report.style.view import alpha, average_ranks
from rag_sourcebias.report.style.wording import score_with
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.style_report import StyleReport, StyleRow, StyleSystem

__all__ = [
    "index_picture",
    "leading_measure",
    "length_picture",
    "matching_picture",
    "quality_picture",
]


def leading_measure(measures: list[str]) -> str:
    """Return NDCG at its largest cutoff, or the first measure at its largest."""
    names = [split_measure(m)[0] for m in measures]
    name = "NDCG" if "NDCG" in names else names[0]
    chosen = [m for m in measures if split_measure(m)[0] == name]
    return max(chosen, key=lambda m: split_measure(m)[1] or 0)


def _ends(bounds: Interval | None, scale: float = 1.0) -> tuple[float, float] | None:
    return None if bounds is None else (scale * bounds.lower, scale * bounds.upper)


def matching_picture(system: StyleSystem) -> Picture:
    """Ranks that a style gains when the query is in the same style."""
    rows, said = [], []
    for gain in system.matching:
        name = style_name(gain.style) if gain.style else "all styles"
        rows.append(
            PlotRow(
                name=name,
                estimate=gain.mean,
                ends=_ends(gain.gain),
                side=side_of(-gain.mean),
                solid=gain.gain is not None and gain.gain.excludes(0),
            )
        )
        said.append(f"{name}: {score_with(gain.mean, gain.gain, digits=1)}.")
    return Picture(
        caption=system.name,
        groups=(PlotGroup(name="", rows=tuple(rows)),),
        title=f"Ranks gained under queries of the same style, {system.name}",
        description=" ".join(said),
        xlabel="places gained",
        line=0.0,
    )


def length_picture(report: StyleReport, system: StyleSystem, row: StyleRow) -> Picture:
    """Average ranks as measured beside those at equal length."""
    rows, said = [], []
    styles = report.data.doc_styles
    means = average_ranks(system, row)
    for style, mean, raw, bounds in zip(
        styles, means, row.average_ranks, row.adjusted_ranks, strict=True
    ):
        rows.append(PlotRow(name=style_name(style), estimate=mean, ends=_ends(raw), solid=False))
        text = f"{style_name(style)}: {score_with(mean, raw, digits=1)}"
        if bounds is not None:
            rows.append(
                PlotRow(
                    name="",
                    estimate=bounds.estimate,
                    ends=_ends(bounds),
                    side="baseline",
                    lower=True,
                )
            )
            text += f", at equal length {score_with(bounds.estimate, bounds, digits=1)}"
        said.append(f"{text}.")
    return Picture(
        caption=system.name,
        groups=(PlotGroup(name="", rows=tuple(rows)),),
        title=f"Average ranks as they are and at equal length, {system.name}",
        description=" ".join(said),
        xlabel="average rank (1 is first)",
        keys=(("as they are", "even", False), ("at equal length", "baseline", True)),
    )


def quality_picture(report: StyleReport, system: StyleSystem) -> Picture:
    """Change of quality when the same question is asked in another style."""
    measure = leading_measure([q.measure for q in system.quality])
    rows, said = [], []
    for found in system.quality:
        if found.measure != measure or found.query_style == report.config.original_query:
            continue
        change = found.change
        significant = found.p_adjusted is not None and found.p_adjusted < alpha(report)
        value = 0.0 if change is None else 100 * change.estimate  # None: no query differs
        rows.append(
            PlotRow(
                name=style_name(found.query_style),
                estimate=value,
                ends=_ends(change, 100),
                side=side_of(-value),
                solid=significant,
            )
        )
        said.append(
            f"{style_name(found.query_style)}: {number(value, signed=True)}"
            f"{', significant' if significant else ''}."
        )
    base = style_name(report.config.original_query)
    return Picture(
        caption=f"{system.name}: {measure}",
        groups=(PlotGroup(name="", rows=tuple(rows)),),
        title=f"Change of {measure} by query style against {base}, {system.name}",
        description=" ".join(said),
        xlabel=f"change of {measure} ×100",
        line=0.0,
    )


def index_picture(report: StyleReport, system: StyleSystem) -> Picture:
    """Relative Δ of the original against each document style in an index of all of them."""
    measure = leading_measure([s.measure for s in system.index_scores])
    rows, said = [], []
    for found in system.index_scores:
        if found.measure != measure or found.relative_delta is None:
            continue
        rows.append(
            PlotRow(
                name=style_name(found.doc_style),
                estimate=found.relative_delta,
                ends=_ends(found.interval),
                # Positive: the original ranks higher, so the style loses.
                side=side_of(found.relative_delta),
                solid=found.interval is not None and found.interval.excludes(0),
            )
        )
        said.append(f"{style_name(found.doc_style)}: {number(found.relative_delta, signed=True)}.")
    return Picture(
        caption=f"{system.name}: {measure}",
        groups=(PlotGroup(name="", rows=tuple(rows)),),
        title=f"Relative Δ of {measure}, {original_text(report)} against each style, {system.name}",
        description=" ".join(said),
        xlabel="← style ranked higher  |  original higher →",
        line=0.0,
    )
