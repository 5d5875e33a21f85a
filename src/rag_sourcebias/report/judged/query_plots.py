"""Intervals of single queries, as in Fig. 4 of Oosterhuis et al. (KDD 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.format import count, number, shorten
from rag_sourcebias.report.judged.numbers import label
from rag_sourcebias.report.judged.queries import holds
from rag_sourcebias.report.svg import COLOURS, canvas, draw_legend, plain_axes, render, style
from rag_sourcebias.types.judged_parts import QueryIntervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["labeled_queries_plot", "other_queries_plot"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def labeled_queries_plot(query: QueryIntervals, *, uid: str) -> str:
    """Queries with a human value, sorted by it: interval, prediction and what people say.

    Blue bars hold the human value, hatched orange ones with a cross do not.

    Raises
    ------
    DataError
        If no query has a human value.
    """
    known = np.flatnonzero(~np.isnan(query.human))
    if not len(known):
        raise DataError(f"no query of {label(query.measure, query.system)!r} has a human value")
    order = known[np.lexsort((query.estimate[known], query.human[known]))]
    inside = holds(query)[order]
    with style():
        figure, axes = canvas(3.9)
        x = np.arange(1, len(order) + 1)
        wide = _line_width(len(order))
        for side, mask in (("baseline", inside), ("other", ~inside)):
            _bars(axes, query, order[mask], x[mask], side=side, width=wide)
        axes.plot(x, query.estimate[order], "o", **_dots(len(order)))
        axes.plot(x, query.human[order], "_", **_dashes(len(order)))
        missed = order[~inside]
        axes.plot(x[~inside], query.human[missed], "x", color=COLOURS["ink"], markersize=6.5)
        _frame(axes, query, len(order), "human value")
        n, held = len(order), int(inside.sum())
        draw_legend(
            axes,
            [
                (f"holds the human value: {held}", _key("baseline")),
                (f"does not: {n - held}", _key("other")),
                ("human value (×: outside)", {"marker": "_", **_dashes(1)}),
                ("prediction", {"marker": "o", **_dots(1)}),
            ],
            columns=1,
        )
        return render(
            figure,
            uid=uid,
            title=f"Intervals of {count(n)} labelled queries, {label(query.measure, query.system)}",
            description=f"{count(held)} of {count(n)} hold the human value. "
            f"{_spread(query, order)}",
        )


def other_queries_plot(query: QueryIntervals, *, uid: str) -> str:
    """Queries that only the judge saw, sorted by the prediction.

    Raises
    ------
    DataError
        If every query has a human value.
    """
    others = np.flatnonzero(np.isnan(query.human))
    if not len(others):
        raise DataError(f"every query of {label(query.measure, query.system)!r} has a human value")
    order = others[np.argsort(query.estimate[others], kind="stable")]
    with style():
        figure, axes = canvas(3.9)
        x = np.arange(1, len(order) + 1)
        _bars(axes, query, order, x, side="even", width=_line_width(len(order)))
        axes.plot(x, query.estimate[order], "o", **_dots(len(order)))
        _frame(axes, query, len(order), "prediction")
        draw_legend(
            axes,
            [("interval", _key("even")), ("prediction", {"marker": "o", **_dots(1)})],
            columns=2,
        )
        return render(
            figure,
            uid=uid,
            title=f"Intervals of {count(len(order))} queries without labels, "
            f"{label(query.measure, query.system)}",
            description=_spread(query, order),
        )


def _bars(
    axes: Axes, query: QueryIntervals, rows: IntArray, x: IntArray, *, side: str, width: float
) -> None:
    """Draw all bars as one path: a page with a thousand of them stays small."""
    gap = np.full(len(rows), np.nan)
    axes.plot(
        np.repeat(x, 3),
        np.column_stack((query.lower[rows], query.upper[rows], gap)).ravel(),
        color=COLOURS[side],
        linewidth=width,
        solid_capstyle="butt",
        alpha=0.45 if side == "even" else 0.6,
        zorder=2,
    )


def _line_width(n: int) -> float:
    return float(np.clip(170 / n, 0.5, 7))


def _dots(n: int) -> dict[str, Any]:
    return {
        "color": COLOURS["ink"],
        "markersize": float(np.clip(170 / n, 1.6, 4.5)),
        "markeredgewidth": 0,
        "linestyle": "none",
        "zorder": 4,
    }


def _dashes(n: int) -> dict[str, Any]:
    return {
        "color": COLOURS["ink"],
        "markersize": float(np.clip(300 / n, 3, 10)),
        "markeredgewidth": 1.8,
        "linestyle": "none",
        "zorder": 4,
    }


def _key(side: str) -> dict[str, Any]:
    return {
        "color": COLOURS[side],
        "linewidth": 6,
        "solid_capstyle": "butt",
        "alpha": 0.45 if side == "even" else 0.6,
    }


def _frame(axes: Axes, query: QueryIntervals, n: int, by: str) -> None:
    top = max(query.highest, float(query.upper.max()))
    axes.set(xlim=(0, n + 1), ylim=(-0.02 * top, 1.02 * top))
    axes.set_xticks([])
    axes.set_xlabel(f"{count(n)} queries, sorted by {by}")
    axes.set_ylabel(shorten(query.measure, 24))
    plain_axes(axes, grid="y")


def _spread(query: QueryIntervals, rows: IntArray) -> str:
    width = query.upper[rows] - query.lower[rows]
    text = f"Mean width {number(float(width.mean()), digits=2)}"
    if query.highest > 0:
        share = number(100 * float(width.mean()) / query.highest, digits=0)
        text += f", {share}% of the range up to {number(query.highest, digits=2)}"
    return f"{text}."
