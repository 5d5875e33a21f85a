"""Pictures of Relative Δ and of every query, each a narrow SVG that reads at phone width.

Blue circles stand for the baseline source, orange triangles for the other (colours that
colour-blind readers tell apart, and shapes for everyone who prints in grey).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.format import delta, interval, shorten, split_measure
from rag_sourcebias.report.svg import COLOURS, canvas, plain_axes, render, style
from rag_sourcebias.report.view import baseline_of, label, names_of, shown, significant
from rag_sourcebias.types.reports import SkewCell, SkewReport, SystemSkew

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_heading", "paired_scores_plot", "relative_delta_plot"]

_NAME = 44
_MARKERS = {"baseline": "o", "other": "^", "even": "s"}


def relative_delta_plot(
    report: SkewReport, other: str, *, uid: str, measure: str = "NDCG", variant: str = "mixed"
) -> str:
    """Relative Δ with its interval, one row per cutoff, grouped by system.

    Filled marks are significant after correction. A row without interval shows a word instead.

    Raises
    ------
    DataError
        If no system has a cell of this measure against ``other``.
    """
    rows = [
        (system, cell)
        for system in report.systems
        if system.variant == variant
        for cell in system.cells
        if cell.other == other and split_measure(cell.measure)[0] == measure
    ]
    if not rows:
        raise DataError(f"no system has {measure} against {other!r}")
    names = names_of(report)
    base, rival = names[baseline_of(report)], names[other]
    with style():
        groups = len({id(system) for system, _ in rows})
        figure, axes = canvas(0.8 + 0.25 * len(rows) + 0.43 * groups)
        limit = _limit([cell for _, cell in rows])
        y, ticks, last = 0.0, [], None
        for system, cell in rows:
            if system is not last:
                y += 0.75
                draw_heading(axes, y, label(system))
                y, last = y + 0.95, system
            _delta_row(axes, cell, y, limit, solid=significant(report, cell))
            ticks.append((y, "@" + cell.measure.partition("@")[2]))
            y += 0.9
        axes.axvline(0, color=COLOURS["muted"], linewidth=1.2, zorder=1)
        axes.set(xlim=(-limit, limit), ylim=(y - 0.3, 0.5))
        axes.set_yticks([t for t, _ in ticks], [t for _, t in ticks])
        axes.set_xlabel(
            f"← {shorten(rival, 16)} ranked higher  |  {shorten(base, 16)} ranked higher →"
        )
        plain_axes(axes, grid="x")
        return render(
            figure,
            uid=uid,
            title=f"Relative Δ of {measure} by system and cutoff, {base} against {rival}",
            description=" ".join(
                f"{label(s)}, {c.measure}: {delta(shown(c)[0])} {interval(shown(c)[1])}"
                f"{', significant' if significant(report, c) else ''}."
                for s, c in rows
            ),
        )


def draw_heading(axes: Axes, y: float, text: str) -> None:
    """Write a name over its rows, from the left edge of the picture."""
    heading = axes.annotate(
        shorten(text, _NAME),
        (0, y),
        xycoords=("figure fraction", "data"),
        va="center",
        fontweight="bold",
        annotation_clip=False,
        bbox={"facecolor": COLOURS["paper"], "edgecolor": "none", "pad": 1.5},
    )
    heading.set_in_layout(False)


def _limit(cells: list[SkewCell]) -> float:
    figures = [shown(c) for c in cells]
    ends = [abs(value) for value, _ in figures if value is not None]
    ends += [abs(e) for _, found in figures if found for e in (found.lower, found.upper)]
    return float(min(210, 25 * math.ceil(max([*ends, 20]) * 1.04 / 25)))


def _delta_row(axes: Axes, cell: SkewCell, y: float, limit: float, *, solid: bool) -> None:
    value, found = shown(cell)
    muted: dict[str, Any] = {"color": COLOURS["muted"], "va": "center", "fontsize": 11.5}
    if value is None:
        axes.text(0.02 * limit, y, "undefined", **muted)
        return
    side = "even" if found is None else "baseline" if value >= 0 else "other"
    if found is None:
        left = value > 0
        axes.text(
            value + (-0.05 if left else 0.05) * limit,
            y,
            "no interval",
            ha="right" if left else "left",
            **muted,
        )
        axes.plot([value], [y], "x", color=COLOURS["muted"], markersize=6)
        return
    axes.plot(
        [found.lower, found.upper],
        [y, y],
        color=COLOURS[side],
        linewidth=2.2,
        solid_capstyle="butt",
        zorder=2,
    )
    axes.plot(
        [value],
        [y],
        _MARKERS[side],
        color=COLOURS[side],
        markersize=7.5,
        markeredgewidth=1.6,
        markerfacecolor=COLOURS[side if solid else "paper"],
        zorder=3,
    )


def paired_scores_plot(
    report: SkewReport, system: SystemSkew, other: str, *, measure: str, uid: str
) -> str:
    """Each query's score for the baseline's documents against the other source's.

    Queries with the same pair of scores (to 0.05) share one mark whose area is their number.
    """
    names = names_of(report)
    base, rival = names[baseline_of(report)], names[other]
    x, y = (system.scores.of(measure, s) for s in (baseline_of(report), other))
    points, counts = np.unique(
        np.round(np.column_stack((x, y)) * 20) / 20, axis=0, return_counts=True
    )
    sides = {
        "even": points[:, 0] == points[:, 1],
        "baseline": points[:, 0] > points[:, 1],
        "other": points[:, 0] < points[:, 1],
    }
    # Counted before rounding: marks on the diagonal may hide small differences, numbers may not.
    total = {"even": int(np.sum(x == y)), "baseline": int(np.sum(x > y))}
    total["other"] = len(x) - total["even"] - total["baseline"]
    labels = {
        "baseline": f"{shorten(base, 14)} higher: {total['baseline']}",
        "other": f"{shorten(rival, 14)} higher: {total['other']}",
        "even": f"equal: {total['even']}",
    }
    with style():
        figure, axes = canvas(5.4)
        axes.plot([0, 1], [0, 1], color=COLOURS["muted"], linewidth=1, zorder=1)
        scale = 500 / max(20, int(counts.max()))
        for side, mask in sides.items():
            axes.scatter(
                points[mask, 0],
                points[mask, 1],
                s=22 + scale * counts[mask],
                marker=_MARKERS[side],
                facecolor=COLOURS[side],
                edgecolor=COLOURS["paper"],
                linewidth=0.8,
                alpha=0.75,
                zorder=3,
                clip_on=False,
            )
        _legend(axes, labels)
        axes.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), aspect="equal")
        axes.set_xticks([0, 0.5, 1], ["0", "50", "100"])
        axes.set_yticks([0, 0.5, 1], ["0", "50", "100"])
        axes.set_xlabel(f"{measure} of {shorten(base, 22)} text")
        axes.set_ylabel(f"{measure} of {shorten(rival, 22)} text")
        plain_axes(axes, grid="both")
        return render(
            figure,
            uid=uid,
            title=f"{measure} per query, {label(system)}: {base} against {rival}",
            description=f"{', '.join(labels.values())}, of {len(x)} queries.",
        )


def _legend(axes: Axes, labels: dict[str, str]) -> None:
    """Put the keys above the axes, where they cover no data."""
    for side, text in labels.items():
        axes.plot(
            [],
            [],
            _MARKERS[side],
            color=COLOURS[side],
            markersize=7,
            linestyle="none",
            label=text,
        )
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=2,
        borderaxespad=0.2,
        handletextpad=0.2,
        columnspacing=1.2,
    )
