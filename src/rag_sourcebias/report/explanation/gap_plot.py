"""The score gap of twins, its components and what remains, each with its interval."""

from __future__ import annotations

from rag_sourcebias.report.explanation.names import (
    base_of,
    factor_name,
    names_of,
    score_digits,
    scored_ends,
)
from rag_sourcebias.report.format import shorten
from rag_sourcebias.report.plots import draw_heading
from rag_sourcebias.report.svg import COLOURS, canvas, draw_interval, plain_axes, render, style
from rag_sourcebias.types.explain_report import ExplainReport, SourceExplanation
from rag_sourcebias.types.intervals import Interval

__all__ = ["gap_plot"]

_NAME = 44


def gap_plot(report: ExplainReport, explained: SourceExplanation, *, uid: str) -> str:
    """One row each for the gap, for every component and for the remainder.

    Bars reach from 0 to the estimate; filled marks have intervals that leave out 0.
    """
    found = explained.decomposition
    if found is None:
        return ""
    base, other = (shorten(n, 16) for n in (base_of(report), names_of(report)[explained.source]))
    rows: list[tuple[str, Interval, str]] = [("score gap", found.gap, "even")]
    for factor in found.factors:
        mark = " (extrapolated)" if factor.extrapolated else ""
        rows.append(
            (f"{shorten(factor_name(factor.name), _NAME - len(mark))}{mark}", factor.component, "")
        )
    rows.append(("remainder: none of these", found.remainder, ""))
    with style():
        figure, axes = canvas(1.0 + 0.52 * len(rows))
        for place, (name, interval, kind) in enumerate(rows):
            y = 1.75 * place
            side = kind or ("other" if interval.estimate > 0 else "baseline")
            draw_heading(axes, y, name)
            axes.barh(
                y + 0.8, interval.estimate, 0.5, color=COLOURS[side], alpha=0.25, linewidth=0,
                zorder=1.5,
            )  # fmt: skip
            draw_interval(
                axes,
                interval,
                y + 0.8,
                side=side,
                marker={"even": "s", "other": "^", "baseline": "o"}[side],
                solid=interval.excludes(0),
            )
        axes.axvline(0, color=COLOURS["muted"], linewidth=1.2, zorder=1)
        axes.axhline(1.27, color=COLOURS["grid"], linewidth=1.0, zorder=0.5)
        ends = [e for _, i, _ in rows for e in (i.lower, i.upper)]
        low, high = min(0.0, *ends), max(0.0, *ends)
        margin = 0.06 * (high - low or 1.0)
        axes.set(xlim=(low - margin, high + margin), ylim=(1.75 * len(rows) - 0.4, -0.6))
        axes.set_yticks([])
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel(f"← {base} scores higher  |  {other} scores higher →")
        plain_axes(axes, grid="x")
        digits = score_digits(found.gap)
        return render(
            figure,
            uid=uid,
            title=f"Parts of the score gap, {other} minus {base}",
            description=" ".join(
                f"{name}: {scored_ends(i, digits=digits)}." for name, i, _ in rows
            ),
        )
