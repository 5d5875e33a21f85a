"""Width and coverage against the number of labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.format import level, number, shorten
from rag_sourcebias.report.judged.numbers import label, method_name
from rag_sourcebias.report.svg import COLOURS, WIDTH, draw_legend, plain_axes, render, style
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import CoveragePoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["curves_plot"]

_TICKS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_LOOK = (("baseline", "o", "-"), ("even", "s", "--"), ("other", "^", "-."))
_LOWEST = 0.8  # coverage; worse is drawn on the lower edge


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
