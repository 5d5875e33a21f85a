"""Rows of intervals on one scale.

Blue circles rank higher or gain, orange triangles rank lower or lose, grey squares are the
original; hollow marks are not significant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from rag_sourcebias.report.format import distinct
from rag_sourcebias.report.plots import draw_heading
from rag_sourcebias.report.svg import COLOURS, canvas, plain_axes, render, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Picture", "PlotGroup", "PlotRow", "draw_pictures"]

_MARKERS = {"baseline": "o", "other": "^", "even": "s"}
_NAME = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotRow:
    """One estimate.

    Parameters
    ----------
    ends : tuple of float or None
        None where there is no interval.
    side : {"baseline", "other", "even"}
        Colour and shape.
    lower : bool
        Draw half a row below its predecessor and without a name of its own, as its alternative.
    ticks : tuple of float
        Short lines, such as what chance alone would give.
    """

    name: str
    estimate: float
    ends: tuple[float, float] | None = None
    side: Literal["baseline", "other", "even"] = "even"
    solid: bool = True
    lower: bool = False
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotGroup:
    """Rows under one heading; no heading where the name is empty."""

    name: str
    rows: tuple[PlotRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What one figure shows.

    Parameters
    ----------
    caption : str
        Above the figure.
    title, description : str
        For readers who do not see it.
    xlabel : str
    line : float or None
        Where to draw the dashed line of reference.
    limit : float or None
        Where to draw a dotted line, such as the largest loss that is accepted.
    keys : tuple of (text, side, solid)
        Explained above the rows.
    from_zero : bool
        Start the scale at 0.
    """

    caption: str
    groups: tuple[PlotGroup, ...]
    title: str
    description: str
    xlabel: str
    line: float | None = None
    limit: float | None = None
    keys: tuple[tuple[str, str, bool], ...] = ()
    from_zero: bool = False


def draw_pictures(pictures: Sequence[Picture]) -> tuple[tuple[str, Callable[[str], str]], ...]:
    """Return the caption of each and how to draw it, given the prefix of its ids.

    All stand on one scale so that they can be compared.
    """
    values = [v for p in pictures for v in _values(p)]
    if not values:
        return ()
    low, high = min(values), max(values)
    margin = 0.04 * (high - low) or 0.5
    limits = (0.0 if pictures[0].from_zero else low - margin, high + margin)
    return tuple((p.caption, partial(_rows_plot, p, limits)) for p in pictures)


def _values(picture: Picture) -> Iterator[float]:
    yield from (v for v in (picture.line, picture.limit) if v is not None)
    for row in (r for g in picture.groups for r in g.rows):
        yield from (row.estimate, *(row.ends or ()), *row.ticks)


def _rows_plot(picture: Picture, limits: tuple[float, float], uid: str) -> str:
    n_rows = sum(0.55 if r.lower else 1.0 for g in picture.groups for r in g.rows)
    headings = sum(bool(g.name) for g in picture.groups)
    above = 0.3 if picture.keys else 0.0
    with style():
        figure, axes = canvas(0.75 + 0.25 * n_rows + 0.43 * headings + above)
        y, ticks = 0.0, []
        for group in picture.groups:
            if group.name:
                y += 0.75
                draw_heading(axes, y, group.name)
                y += 0.95
            names = iter(distinct([r.name for r in group.rows if not r.lower], _NAME))
            for row in group.rows:
                if row.lower:
                    y -= 0.5
                else:
                    ticks.append((y, next(names)))
                _draw(axes, row, y)
                y += 1.0
        if picture.line is not None:
            axes.axvline(picture.line, color=COLOURS["ink"], linewidth=1.1, dashes=(4, 3), zorder=1)
        if picture.limit is not None:
            axes.axvline(picture.limit, color=COLOURS["other"], linewidth=1.4, ls=":", zorder=1)
        axes.set_yticks([t for t, _ in ticks], [t for _, t in ticks])
        axes.set_ylim(y - 0.4, 0.3 if headings else -0.6)
        axes.set_xlim(*limits)
        axes.locator_params(axis="x", nbins=8)
        axes.set_xlabel(picture.xlabel)
        _legend(axes, picture.keys)
        plain_axes(axes, grid="x")
        return render(figure, uid=uid, title=picture.title, description=picture.description)


def _draw(axes: Axes, row: PlotRow, y: float) -> None:
    colour = COLOURS[row.side]
    if row.ends is not None:
        axes.plot(row.ends, [y, y], color=colour, linewidth=2.2, solid_capstyle="butt", zorder=2)
    axes.plot([row.estimate], [y], **_mark(row.side, solid=row.solid), zorder=3)
    for tick in row.ticks:
        axes.plot(
            [tick, tick],
            [y - 0.36, y + 0.36],
            color=COLOURS["ink"],
            linewidth=1.6,
            solid_capstyle="butt",
            zorder=4,
        )


def _mark(side: str, *, solid: bool) -> dict[str, Any]:
    return {
        "marker": _MARKERS[side],
        "color": COLOURS[side],
        "linestyle": "none",
        "markersize": 7,
        "markeredgewidth": 1.6,
        "markerfacecolor": COLOURS[side if solid else "paper"],
    }


def _legend(axes: Axes, keys: Sequence[tuple[str, str, bool]]) -> None:
    if not keys:
        return
    for text, side, solid in keys:
        axes.plot([], [], label=text, **_mark(side, solid=solid))
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=2,
        borderaxespad=0.2,
        handletextpad=0.2,
        columnspacing=1.2,
    )
