"""What the pictures of an answer-style report share.

Orange triangles are the score as it is, blue circles the adjusted score, grey squares people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_sourcebias.report.svg import COLOURS, draw_interval
from rag_sourcebias.types.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LOOKS", "draw_point", "look", "pair_look"]

LOOKS: dict[str, tuple[str, str]] = {
    "raw": ("other", "^"),
    "adjusted": ("baseline", "o"),
    "people": ("even", "s"),
}


def look(which: str, *, solid: bool = True, line: bool = False) -> dict[str, Any]:
    """Return how one kind of mark is drawn, for a plot or its key."""
    side, marker = LOOKS[which]
    return {
        "color": COLOURS[side],
        "marker": marker,
        "markersize": 7.5,
        "markeredgewidth": 1.6,
        "markerfacecolor": COLOURS[side if solid else "paper"],
        "linestyle": "-" if line else "none",
        "linewidth": 2.2,
    }


def pair_look(*, adjusted: bool, line: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """Return the key of raw and adjusted scores."""
    entries = [("score as it is", look("raw", line=line))]
    return [*entries, ("adjusted", look("adjusted", line=line))] if adjusted else entries


def draw_point(
    axes: Axes, which: str, x: float, y: float, found: Interval | None, *, unit: float, zero: float
) -> None:
    """Draw one value with its interval, in units of ``unit`` from ``zero``."""
    side, marker = LOOKS[which]
    if found is None:
        axes.plot([(x - zero) / unit], [y], **{**look(which), "zorder": 3})
        return
    moved = Interval(
        estimate=(found.estimate - zero) / unit,
        lower=(found.lower - zero) / unit,
        upper=(found.upper - zero) / unit,
        confidence_level=found.confidence_level,
        method=found.method,
        n_labeled=found.n_labeled,
    )
    draw_interval(axes, moved, y, side=side, marker=marker)
