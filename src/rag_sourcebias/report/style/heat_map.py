"""Average rank of every document style under every query style as a table of colours.

Blue is above the middle rank, orange below, stronger the further away; every cell carries its
number, so nothing rests on colour alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rag_sourcebias.report.format import distinct, number
from rag_sourcebias.report.style.names import style_name
from rag_sourcebias.report.style.view import average_ranks, compared
from rag_sourcebias.report.svg import COLOURS, WIDTH, plain_axes, render, style
from rag_sourcebias.types.style_report import StyleReport, StyleRow, StyleSystem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["heat_map", "map_width"]

_STRONGEST = 0.55  # opacity that leaves the numbers readable on light and on dark paper
_HORIZONTAL = 3  # characters that fit above a column
_NAME = 16
_CELL = 0.4  # inches
_LABELS = 1.0


def map_width(n_styles: int) -> float:
    """Return the width in inches of a heat map with so many columns."""
    return max(WIDTH, _LABELS + 0.38 * n_styles)


def heat_map(report: StyleReport, system: StyleSystem, *, uid: str) -> str:
    """Draw one system; bold cells differ significantly from the original of their row.

    Framed cells are those whose query and document are in the same style.
    """
    from matplotlib.figure import Figure

    styles, n_rows = report.data.doc_styles, len(system.rows)
    middle = (len(styles) + 1) / 2
    columns = distinct(styles, _NAME)
    longest = max(map(len, columns))
    above = 0.1 * longest if longest > _HORIZONTAL else 0.2
    with style():
        figure = Figure(
            figsize=(map_width(len(styles)), 0.6 + above + _CELL * n_rows), layout="constrained"
        )
        axes = figure.subplots()
        said = []
        for y, row in enumerate(system.rows):
            means = average_ranks(system, row)
            _draw_row(axes, report, row, means, y=y, middle=middle)
            cells = ", ".join(
                f"{style_name(s)} {number(mean)}" for s, mean in zip(styles, means, strict=True)
            )
            said.append(f"Query in {style_name(row.query_style)}: {cells}.")
        axes.set(xlim=(-0.5, len(styles) - 0.5), ylim=(n_rows - 0.5, -0.5))
        axes.xaxis.tick_top()  # before the labels are turned: it makes new ones
        axes.xaxis.set_label_position("top")
        axes.set_xticks(range(len(styles)), columns)
        for label, name in zip(axes.get_xticklabels(), styles, strict=True):
            label.set_rotation(90 if len(name) > _HORIZONTAL else 0)
        axes.set_yticks(range(n_rows), distinct([r.query_style for r in system.rows], _NAME))
        axes.set_xlabel("document style")
        axes.set_ylabel("query style")
        plain_axes(axes, grid="both")
        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
        return render(
            figure,
            uid=uid,
            title=f"Average rank by query style and document style, {system.name}",
            description=" ".join(said),
        )


def _draw_row(
    axes: Axes,
    report: StyleReport,
    row: StyleRow,
    means: tuple[float, ...],
    *,
    y: int,
    middle: float,
) -> None:
    from matplotlib.patches import Rectangle

    against = compared(report, row)
    for x, (name, mean) in enumerate(zip(report.data.doc_styles, means, strict=True)):
        strength = min(1.0, abs(mean - middle) / (middle - 1))
        colour = COLOURS["baseline" if mean < middle else "other"]
        same = name == row.query_style
        axes.add_patch(
            Rectangle(
                (x - 0.47, y - 0.47),
                0.94,
                0.94,
                facecolor=colour,
                # In steps: equal cells share one style, and the file stays small.
                alpha=math.ceil(20 * strength * _STRONGEST) / 20,
                linewidth=0,
            )
        )
        if same:
            axes.add_patch(
                Rectangle(
                    (x - 0.46, y - 0.46),
                    0.92,
                    0.92,
                    facecolor="none",
                    edgecolor=COLOURS["ink"],
                    linewidth=1.6,
                )
            )
        found = against.get(name)
        axes.text(
            x,
            y,
            number(mean),
            ha="center",
            va="center",
            fontsize=10.5,
            fontweight="bold" if found is not None and found.significant else "normal",
        )
