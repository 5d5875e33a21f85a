"""Pictures of intervals by system, and of width and coverage against the number of labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.format import level, number, shorten
from rag_sourcebias.report.judged.view import ends, label, method_name, other_scale, value
from rag_sourcebias.report.judged.wording import role
from rag_sourcebias.report.plots import draw_heading
from rag_sourcebias.report.svg import COLOURS, WIDTH, canvas, plain_axes, render, style
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import CoveragePoint, JudgedMean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["curves_plot", "draw_interval", "draw_legend", "means_plot"]

_TICKS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_LOOK = (("baseline", "o", "-"), ("even", "s", "--"), ("other", "^", "-."))
_LOWEST = 0.8  # coverage; worse is drawn on the lower edge


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


def curves_plot(report: JudgedReport, measure: str, system: str, *, uid: str) -> str:
    """Mean width and coverage of each method against the number of labels.

    Raises
    ------
    DataError
        If nothing was simulated for this mean.
    """
    points = [
        p
        for p in report.curves
        if p.measure == measure and p.system == system and (p.mean_width > 0 or p.coverage > 0)
    ]
    if not points:
        raise DataError(f"nothing was simulated for {label(measure, system)!r}")
    by_method: dict[str, list[CoveragePoint]] = {}
    for point in sorted(points, key=lambda p: p.n):
        by_method.setdefault(point.method, []).append(point)
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, 5.6), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.15, 1))
        _nominal(report, lower)
        entries = []
        for place, (method, found) in enumerate(by_method.items()):
            side, marker, line = _LOOK[place % len(_LOOK)]
            look: dict[str, Any] = {
                "color": COLOURS[side],
                "marker": marker,
                "markersize": 5.5,
                "linestyle": line,
                "linewidth": 1.6,
            }
            sizes = [p.n for p in found]
            upper.plot(sizes, [p.mean_width for p in found], **look)
            lower.plot(sizes, [100 * max(p.coverage, _LOWEST) for p in found], **look)
            entries.append((shorten(method_name(method), 26), look))
        _finish(report, upper, lower, [p.n for p in points], measure, system)
        draw_legend(upper, entries, columns=1)
        return render(
            figure,
            uid=uid,
            title=f"Width and coverage against labels, {label(measure, system)}",
            description=" ".join(_describe_method(m, f) for m, f in by_method.items()),
        )


def _nominal(report: JudgedReport, axes: Axes) -> None:
    aim, runs = report.config.confidence_level, max(report.config.coverage_runs, 1)
    error = 1.96 * math.sqrt(aim * (1 - aim) / runs)
    axes.axhspan(
        100 * (aim - error), 100 * min(aim + error, 1), color=COLOURS["grid"], alpha=0.6, zorder=0
    )
    axes.axhline(100 * aim, color=COLOURS["muted"], linewidth=1.2, zorder=1)


def _finish(  # noqa: PLR0917 - one picture, one caller
    report: JudgedReport,
    upper: Axes,
    lower: Axes,
    sizes: Sequence[int],
    measure: str,
    system: str,
) -> None:
    now = report.mean(measure, system).interval.n_labeled
    low, high = min(sizes), max(*sizes, now)
    lower.set_xscale("log")
    ticks = [t for t in _TICKS if low <= t <= high * 1.02] or [low]
    lower.set_xticks(ticks, [f"{t:,}" for t in ticks])
    lower.set_xticks([], minor=True)
    lower.set_xlim(low / 1.12, high * 1.12)
    for axes in (upper, lower):
        axes.axvline(now, color=COLOURS["ink"], linewidth=1.2, linestyle=":", zorder=1)
        plain_axes(axes, grid="both")
    upper.set_ylim(bottom=0)
    lower.set_ylim(100 * _LOWEST - 1, 101)
    percents = range(round(100 * _LOWEST), 101, 5)
    lower.set_yticks(percents, [f"≤{percents[0]}", *map(str, percents[1:])])
    upper.set_ylabel("mean width")
    lower.set_ylabel("coverage, %")
    unit = "labels" if report.kind == "items" else "labelled queries"
    lower.set_xlabel(f"{unit} (dotted: the {now:,} there are)")


def _describe_method(method: str, found: Sequence[CoveragePoint]) -> str:
    cells = ", ".join(
        f"n = {p.n}: width {number(p.mean_width, digits=3)}, coverage {level(p.coverage)}"
        for p in found
    )
    return f"{method_name(method)}: {cells}."
