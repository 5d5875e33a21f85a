"""Intervals by system, with and without the judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.judged.numbers import ends, label, value
from rag_sourcebias.report.judged.view import other_scale
from rag_sourcebias.report.judged.wording import role
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
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import JudgedMean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["means_plot"]


def means_plot(report: JudgedReport, measure: str, *, uid: str) -> str:
    """One row per system: the interval with the judge, that of labels alone, the judge alone.

    Raises
    ------
    DataError
        If there is no mean of this measure.
    """
    means = [m for m in report.means if m.measure == measure]
    if not means:
        raise DataError(f"no mean of {measure!r} in this report")
    named = any(m.system for m in means)
    with style():
        figure, axes = canvas(1.15 + (0.85 if named else 0.5) * len(means))
        y = 0.0
        for mean in means:
            if named:
                y += 0.8
                draw_heading(axes, y, mean.system or "all")
                y += 0.85
            alone = role(report, mean) in ("absent", "unused")
            if alone:
                draw_interval(axes, mean.interval, y, side="even", marker="s", solid=False)
            else:
                draw_interval(axes, mean.interval, y, side="baseline", marker="o")
            if mean.labels_alone is not None and not alone:
                draw_interval(
                    axes, mean.labels_alone, y + 0.6, side="even", marker="s", solid=False
                )
            if not other_scale(report, mean):
                axes.plot([mean.judge_alone], [y], "^", **_judge_mark())
            y += 1.1
        axes.set(ylim=(y - 0.1, 0.2 if named else -0.5), yticks=[])
        axes.margins(x=0.06)
        axes.set_xlabel(f"mean {measure}")
        _legend_of(report, axes, means)
        plain_axes(axes, grid="x")
        return render(
            figure,
            uid=uid,
            title=f"Mean {measure}{' by system' if named else ''}, with and without the judge",
            description=" ".join(_describe(report, m) for m in means),
        )


def _judge_mark() -> dict[str, Any]:
    return {
        "color": COLOURS["other"],
        "markersize": 7.5,
        "markeredgecolor": COLOURS["paper"],
        "markeredgewidth": 0.8,
        "linestyle": "none",
        "zorder": 4,
    }


def _legend_of(report: JudgedReport, axes: Axes, means: Sequence[JudgedMean]) -> None:
    def look(side: str, marker: str, face: str) -> dict[str, Any]:
        return {
            "color": COLOURS[side],
            "marker": marker,
            "markersize": 7,
            "markerfacecolor": COLOURS[face],
            "linewidth": 2.2,
        }

    entries = []
    alone = [role(report, m) in ("absent", "unused") for m in means]
    if not all(alone):
        entries.append(("people and judge", look("baseline", "o", "baseline")))
    if any(alone) or any(m.labels_alone is not None for m in means):
        entries.append(("labels alone", look("even", "s", "paper")))
    if not all(other_scale(report, m) for m in means):
        entries.append(("judge alone", {"marker": "^", **_judge_mark()}))
    draw_legend(axes, entries, columns=2)


def _describe(report: JudgedReport, m: JudgedMean) -> str:
    text = (
        f"{label(m.measure, m.system)}: {value(report, m.measure, m.interval.estimate)} "
        f"{ends(report, m.measure, m.interval)}"
    )
    if m.labels_alone is not None:
        text += f", labels alone {ends(report, m.measure, m.labels_alone)}"
    return f"{text}, judge alone {value(report, m.measure, m.judge_alone)}."
