"""Distributions: overlap, cosine, and the perplexities of both sources ([K] Fig. 3, 5 and 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rag_sourcebias.report.format import number, shorten
from rag_sourcebias.report.svg import COLOURS, canvas, draw_legend, plain_axes, render, style
from rag_sourcebias.types.explain_report import Histogram

__all__ = ["Drawn", "histogram_plot"]

_LINES: dict[str, Any] = {"baseline": "solid", "other": (0, (5, 2)), "even": "solid"}


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
    shown: Sequence[Drawn], *, label: str, uid: str, title: str, digits: int = 2
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
