"""Pictures of what distinguishes sources: parts of the score gap, distributions, map, spectra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rag_sourcebias.report.format import number, shorten
from rag_sourcebias.report.plots import draw_heading
from rag_sourcebias.report.svg import (
    COLOURS,
    canvas,
    draw_interval,
    draw_legend,
    plain_axes,
    render,
    style,
)
from rag_sourcebias.types.explain import SpectrumComparison, VectorMap
from rag_sourcebias.types.explain_report import Histogram
from rag_sourcebias.types.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MOST", "Drawn", "gap_plot", "histogram_plot", "map_plot", "spectrum_plot"]

MOST = 500
_JOINED = 200  # more lines between versions than this are a blur
_NARROWEST = 2.0  # percent: less than this is nothing to see
_LINES: dict[str, Any] = {"baseline": "solid", "other": (0, (5, 2)), "even": "solid"}
_MARKERS = {"baseline": "o", "other": "^", "even": "s"}


def gap_plot(
    uid: str, rows: Sequence[tuple[str, Interval]], *, base: str, other: str, description: str
) -> str:
    """One row each for the gap, which is the first, for every component and for the remainder.

    Bars reach from 0 to the estimate; filled marks have intervals that leave out 0.
    """
    base, other = shorten(base, 16), shorten(other, 16)
    with style():
        figure, axes = canvas(1.0 + 0.52 * len(rows))
        for place, (name, interval) in enumerate(rows):
            y = 1.75 * place
            side = "other" if interval.estimate > 0 else "baseline"
            side = side if place else "even"
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
                marker=_MARKERS[side],
                solid=interval.excludes(0),
            )
        axes.axvline(0, color=COLOURS["muted"], linewidth=1.2, zorder=1)
        axes.axhline(1.27, color=COLOURS["grid"], linewidth=1.0, zorder=0.5)
        ends = [e for _, i in rows for e in (i.lower, i.upper)]
        low, high = min(0.0, *ends), max(0.0, *ends)
        margin = 0.06 * (high - low or 1.0)
        axes.set(xlim=(low - margin, high + margin), ylim=(1.75 * len(rows) - 0.4, -0.6))
        axes.set_yticks([])
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel(f"← {base} scores higher  |  {other} scores higher →")
        plain_axes(axes, grid="x")
        return render(
            figure,
            uid=uid,
            title=f"Parts of the score gap, {other} minus {base}",
            description=description,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One distribution of a picture.

    Parameters
    ----------
    name : str
        For the key; empty for none.
    found : Histogram
    side : {"baseline", "other", "even"}
    """

    name: str
    found: Histogram
    side: Literal["baseline", "other", "even"]


def histogram_plot(
    uid: str, shown: Sequence[Drawn], *, label: str, title: str, digits: int = 2
) -> str:
    """Share of texts or pairs per bin, with the mean as a dashed line.

    Parameters
    ----------
    shown : sequence of Drawn
        One, or two with the same edges.
    label : str
        Of the horizontal axis.
    """
    with style():
        figure, axes = canvas(2.7 if len(shown) == 1 else 3.1)
        highest = 0.0
        for drawn in shown:
            total = max(1, int(drawn.found.counts.sum()))
            heights = 100 * drawn.found.counts / total
            highest = max(highest, float(heights.max(initial=0)))
            colour = COLOURS[drawn.side]
            axes.stairs(heights, drawn.found.edges, fill=True, color=colour, alpha=0.22, zorder=2)
            axes.stairs(
                heights,
                drawn.found.edges,
                color=colour,
                linewidth=1.5,
                linestyle=_LINES[drawn.side],
                zorder=3,
            )
            if np.isfinite(drawn.found.mean):
                axes.axvline(drawn.found.mean, color=colour, linewidth=1.4, dashes=(2, 2), zorder=4)
        axes.set_ylim(0, 1.08 * max(highest, 1.0))
        axes.set_xlabel(label)
        axes.set_ylabel("% of pairs")
        named = [d for d in shown if d.name]
        if named:
            draw_legend(axes, [(_key(d, digits), _look(d)) for d in named], columns=2)
        plain_axes(axes, grid="y")
        return render(
            figure,
            uid=uid,
            title=title,
            description=" ".join(_describe(d, digits) for d in shown),
        )


def _key(drawn: Drawn, digits: int) -> str:
    return f"{shorten(drawn.name, 16)}, mean {number(drawn.found.mean, digits=digits)}"


def _look(drawn: Drawn) -> dict[str, Any]:
    return {
        "color": COLOURS[drawn.side],
        "linewidth": 2.2,
        "linestyle": _LINES[drawn.side],
    }


def _describe(drawn: Drawn, digits: int) -> str:
    name = f"{drawn.name}: " if drawn.name else ""
    edges = drawn.found.edges
    return (
        f"{name}mean {number(drawn.found.mean, digits=digits)}, median "
        f"{number(drawn.found.median, digits=digits)}, {int(drawn.found.counts.sum()):,} texts or "
        f"pairs in bins from {number(float(edges[0]), digits=digits)} to "
        f"{number(float(edges[-1]), digits=digits)}."
    )


def map_plot(uid: str, found: VectorMap, *, base: str, other: str, description: str) -> str:
    """Each version as a mark: blue circles the baseline, orange triangles the other.

    At most 500 pairs are drawn, evenly spread over the rows; few pairs are joined by lines.
    """
    rows = np.unique(np.linspace(0, len(found.human) - 1, min(MOST, len(found.human))).astype(int))
    ours, theirs = found.human[rows], found.other[rows]
    size = 20 if len(rows) <= _JOINED else 11
    with style():
        figure, axes = canvas(4.9)
        if len(rows) <= _JOINED:
            axes.plot(
                [ours[:, 0], theirs[:, 0]],
                [ours[:, 1], theirs[:, 1]],
                color=COLOURS["muted"],
                linewidth=0.6,
                alpha=0.5,
                zorder=1,
            )
        looks = []
        for name, places, side in ((base, ours, "baseline"), (other, theirs, "other")):
            marker = _MARKERS[side]
            axes.scatter(
                places[:, 0],
                places[:, 1],
                s=size,
                marker=marker,
                facecolor=COLOURS[side],
                edgecolor=COLOURS["paper"],
                linewidth=0.4,
                alpha=0.7,
                zorder=3,
            )
            look = {"color": COLOURS[side], "marker": marker, "linestyle": "none", "markersize": 7}
            looks.append((shorten(name, 20), look))
        draw_legend(axes, looks, columns=2)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xticklabels([])
        axes.set_yticklabels([])
        axes.set_xlabel(_axis(found, 0))
        axes.set_ylabel(_axis(found, 1))
        plain_axes(axes, grid="both")
        return render(
            figure,
            uid=uid,
            title=f"Vectors of {base} and {other} versions in a plane",
            description=description,
        )


def _axis(found: VectorMap, place: int) -> str:
    name = f"axis {place + 1}"
    if len(found.variance_shares) <= place:
        return name
    return f"{name}, {number(100 * found.variance_shares[place])}% of variance"


def spectrum_plot(
    uid: str, found: SpectrumComparison, *, base: str, other: str, description: str
) -> str:
    """(other − human) / human of every singular value, in percent.

    The band holds all values at once; the two bars are the mean over the first tenth and over the
    last half, with their intervals. Ends of the band may leave the picture.
    """
    m = len(found.human)
    index, held = np.arange(1, m + 1), found.n_supported
    base, other = shorten(base, 20), shorten(other, 20)
    with style():
        figure, axes = canvas(3.7)
        axes.fill_between(
            index[:held],
            found.band_lower[:held],
            found.band_upper[:held],
            color=COLOURS["other"],
            alpha=0.18,
            linewidth=0,
            zorder=1,
        )
        axes.axhline(0, color=COLOURS["muted"], linewidth=1.1, zorder=1.5)
        axes.plot(index, found.difference, color=COLOURS["other"], linewidth=1.5, zorder=3)
        _means(axes, found, m)
        axes.set(xlim=(0, m + 1), ylim=_limits(found))
        axes.set_xlabel("index of the singular value, largest first")
        axes.set_ylabel(f"{other} against {base}, %")
        draw_legend(
            axes,
            [
                ("each value", {"color": COLOURS["other"], "linewidth": 1.5}),
                ("band of all", {"color": COLOURS["other"], "linewidth": 7, "alpha": 0.25}),
                ("mean, head and tail", {"color": COLOURS["ink"], "linewidth": 2.6}),
            ],
            columns=2,
        )
        plain_axes(axes, grid="y")
        return render(
            figure,
            uid=uid,
            title=f"Singular values of {other} vectors relative to {base} ones",
            description=description,
        )


def _means(axes: Axes, found: SpectrumComparison, m: int) -> None:
    for part, start, end in (
        (found.head, 1, max(1, m // 10)),
        (found.tail, m // 2 + 1, m),
    ):
        if part is None:
            continue
        width = max(end - start, m / 60)
        axes.fill_between(
            [start, start + width], part.lower, part.upper, color=COLOURS["ink"], alpha=0.22,
            linewidth=0, zorder=3.5,
        )  # fmt: skip
        axes.plot(
            [start, start + width],
            [part.estimate] * 2,
            color=COLOURS["ink"],
            linewidth=2.6,
            solid_capstyle="butt",
            zorder=4,
        )


def _limits(found: SpectrumComparison) -> tuple[float, float]:
    """Hold every value and both means, and most of the band."""
    parts = [found.head, *(() if found.tail is None else (found.tail,))]
    ends = [end for part in parts for end in (part.lower, part.upper)]
    values = [*found.difference, *ends, -_NARROWEST, _NARROWEST]
    held = found.n_supported
    low = min(*values, float(np.quantile(found.band_lower[:held], 0.1)))
    high = max(*values, float(np.quantile(found.band_upper[:held], 0.9)))
    margin = 0.05 * (high - low)
    return low - margin, high + margin
