"""Marks and keys that several pictures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_sourcebias.report.svg import COLOURS
from rag_sourcebias.types.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_interval", "draw_legend"]


def draw_interval(
    axes: Axes, found: Interval, y: float, *, side: str, marker: str, solid: bool = True
) -> None:
    """Draw one interval as a line with a mark on it."""
    axes.plot(
        [found.lower, found.upper],
        [y, y],
        color=COLOURS[side],
        linewidth=2.2,
        solid_capstyle="butt",
        zorder=2,
    )
    axes.plot(
        [found.estimate],
        [y],
        marker,
        color=COLOURS[side],
        markersize=7,
        markeredgewidth=1.6,
        markerfacecolor=COLOURS[side if solid else "paper"],
        zorder=3,
    )


def draw_legend(axes: Axes, entries: Sequence[tuple[str, dict[str, Any]]], *, columns: int) -> None:
    """Put keys above the axes, where they cover no data."""
    for text, look in entries:
        axes.plot([], [], label=text, **look)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        borderaxespad=0.2,
        handletextpad=0.4,
        columnspacing=1.2,
    )
