"""Pictures of a judged evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.report.format import count, interval, level, number, shorten
from rag_sourcebias.report.plots import draw_heading
from rag_sourcebias.report.svg import (
    COLOURS,
    WIDTH,
    canvas,
    draw_interval,
    draw_legend,
    plain_axes,
    render,
    style,
)
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judge_calibration import LabelCalibration
from rag_sourcebias.types.judged import JudgedConfig
from rag_sourcebias.types.judged_parts import CoveragePoint, QueryIntervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "MeanRow",
    "bias_plot",
    "calibration_plot",
    "curves_plot",
    "holds",
    "labeled_queries_plot",
    "means_plot",
    "other_queries_plot",
    "shares_plot",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_TICKS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_LOOK = (("baseline", "o", "-"), ("even", "s", "--"), ("other", "^", "-."))
_LOWEST = 0.8  # coverage; worse is drawn on the lower edge


class MeanRow(NamedTuple):
    """One mean: its intervals and the mean of the judge, None for what is not drawn."""

    name: str
    judged: Interval | None
    alone: Interval | None
    judge: float | None
    told: str


def means_plot(measure: str, rows: Sequence[MeanRow], uid: str) -> str:
    """One row per system: the interval with the judge, that of labels alone, the judge alone."""
    judge: dict[str, Any] = {
        "color": COLOURS["other"],
        "markersize": 7.5,
        "markeredgecolor": COLOURS["paper"],
        "markeredgewidth": 0.8,
        "linestyle": "none",
        "zorder": 4,
    }
    named = any(row.name for row in rows)
    with style():
        figure, axes = canvas(1.15 + (0.85 if named else 0.5) * len(rows))
        y = 0.0
        for row in rows:
            if named:
                draw_heading(axes, y + 0.8, row.name or "all")
                y += 1.65
            if row.judged is not None:
                draw_interval(axes, row.judged, y, side="baseline", marker="o")
            if row.alone is not None:
                below = 0.6 * (row.judged is not None)
                draw_interval(axes, row.alone, y + below, side="even", marker="s", solid=False)
            if row.judge is not None:
                axes.plot([row.judge], [y], "^", **judge)
            y += 1.1
        axes.set(ylim=(y - 0.1, 0.2 if named else -0.5), yticks=[])
        axes.margins(x=0.06)
        axes.set_xlabel(f"mean {measure}")
        keys = (
            (any(r.judged for r in rows), "people and judge", _mark("baseline", "o", "baseline")),
            (any(r.alone for r in rows), "labels alone", _mark("even", "s", "paper")),
            (any(r.judge is not None for r in rows), "judge alone", {"marker": "^", **judge}),
        )
        draw_legend(axes, [(text, look) for shown, text, look in keys if shown], columns=2)
        plain_axes(axes, grid="x")
        return render(
            figure,
            uid=uid,
            title=f"Mean {measure}{' by system' if named else ''}, with and without the judge",
            description=" ".join(row.told for row in rows),
        )


def _mark(side: str, marker: str, face: str) -> dict[str, Any]:
    return {
        "color": COLOURS[side],
        "marker": marker,
        "markersize": 7,
        "markerfacecolor": COLOURS[face],
        "linewidth": 2.2,
    }


def curves_plot(
    name: str,
    points: Sequence[CoveragePoint],
    config: JudgedConfig,
    uid: str,
    *,
    labels: str,
    now: int,
) -> str:
    """Mean width and coverage of each method against the number of labels.

    Parameters
    ----------
    labels, now
        What is counted, and how many there are.
    """
    by_method: dict[str, list[CoveragePoint]] = {}
    for point in sorted(points, key=lambda p: p.n):
        by_method.setdefault(point.method, []).append(point)
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, 5.6), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.15, 1))
        aim = config.confidence_level
        error = 1.96 * math.sqrt(aim * (1 - aim) / max(config.coverage_runs, 1))
        ends = (100 * (aim - error), 100 * min(aim + error, 1))
        lower.axhspan(*ends, color=COLOURS["grid"], alpha=0.6, zorder=0)
        lower.axhline(100 * aim, color=COLOURS["muted"], linewidth=1.2, zorder=1)
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
            entries.append((shorten(method, 26), look))
        _sizes_axis(upper, lower, [p.n for p in points], now)
        lower.set_xlabel(f"{labels} (dotted: the {now:,} there are)")
        draw_legend(upper, entries, columns=1)
        return render(
            figure,
            uid=uid,
            title=f"Width and coverage against labels, {name}",
            description=" ".join(
                f"{method}: {', '.join(map(_told, found))}." for method, found in by_method.items()
            ),
        )


def _sizes_axis(upper: Axes, lower: Axes, sizes: Sequence[int], now: int) -> None:
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


def _told(point: CoveragePoint) -> str:
    width = number(point.mean_width, digits=3)
    return f"n = {point.n}: width {width}, coverage {level(point.coverage)}"


def holds(query: QueryIntervals) -> npt.NDArray[np.bool_]:
    """Return which intervals hold the human value; False where there is none."""
    inside: npt.NDArray[np.bool_] = (query.lower - 1e-9 <= query.human) & (
        query.human <= query.upper + 1e-9
    )
    return inside


def labeled_queries_plot(name: str, query: QueryIntervals, uid: str) -> str:
    """Queries with a human value, sorted by it, as in Fig. 4 of Oosterhuis et al. (KDD 2024).

    Blue bars hold the human value, hatched orange ones with a cross do not.
    """
    known = np.flatnonzero(~np.isnan(query.human))
    order = known[np.lexsort((query.estimate[known], query.human[known]))]
    n, inside = len(order), holds(query)[order]
    held = int(inside.sum())
    with style():
        figure, axes = canvas(3.9)
        x = np.arange(1, n + 1)
        for side, mask in (("baseline", inside), ("other", ~inside)):
            _bars(axes, query, order[mask], x[mask], side=side, width=_line_width(n))
        axes.plot(x, query.estimate[order], "o", **_dots(n))
        axes.plot(x, query.human[order], "_", **_dashes(n))
        missed = query.human[order[~inside]]
        axes.plot(x[~inside], missed, "x", color=COLOURS["ink"], markersize=6.5)
        _frame(axes, query, n, "human value")
        entries = [
            (f"holds the human value: {held}", _key("baseline")),
            (f"does not: {n - held}", _key("other")),
            ("human value (×: outside)", {"marker": "_", **_dashes(1)}),
            ("prediction", {"marker": "o", **_dots(1)}),
        ]
        draw_legend(axes, entries, columns=1)
        return render(
            figure,
            uid=uid,
            title=f"Intervals of {count(n)} labelled queries, {name}",
            description=f"{count(held)} of {count(n)} hold the human value. "
            f"{_spread(query, order)}",
        )


def other_queries_plot(name: str, query: QueryIntervals, uid: str) -> str:
    """Queries that only the judge saw, sorted by the prediction."""
    others = np.flatnonzero(np.isnan(query.human))
    order = others[np.argsort(query.estimate[others], kind="stable")]
    n = len(order)
    with style():
        figure, axes = canvas(3.9)
        x = np.arange(1, n + 1)
        _bars(axes, query, order, x, side="even", width=_line_width(n))
        axes.plot(x, query.estimate[order], "o", **_dots(n))
        _frame(axes, query, n, "prediction")
        entries = [("interval", _key("even")), ("prediction", {"marker": "o", **_dots(1)})]
        draw_legend(axes, entries, columns=2)
        return render(
            figure,
            uid=uid,
            title=f"Intervals of {count(n)} queries without labels, {name}",
            description=_spread(query, order),
        )


def _bars(
    axes: Axes, query: QueryIntervals, rows: IntArray, x: IntArray, *, side: str, width: float
) -> None:
    """Draw all bars as one path: a page with a thousand of them stays small."""
    gap = np.full(len(rows), np.nan)
    ends = np.column_stack((query.lower[rows], query.upper[rows], gap)).ravel()
    axes.plot(np.repeat(x, 3), ends, **{**_key(side), "linewidth": width}, zorder=2)


def _key(side: str) -> dict[str, Any]:
    return {
        "color": COLOURS[side],
        "linewidth": 6,
        "solid_capstyle": "butt",
        "alpha": 0.45 if side == "even" else 0.6,
    }


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
    return {**_dots(1), "markersize": float(np.clip(300 / n, 3, 10)), "markeredgewidth": 1.8}


def _frame(axes: Axes, query: QueryIntervals, n: int, by: str) -> None:
    top = max(query.highest, float(query.upper.max()))
    axes.set(xlim=(0, n + 1), ylim=(-0.02 * top, 1.02 * top))
    axes.set_xticks([])
    axes.set_xlabel(f"{count(n)} queries, sorted by {by}")
    axes.set_ylabel(shorten(query.measure, 24))
    plain_axes(axes, grid="y")


def _spread(query: QueryIntervals, rows: IntArray) -> str:
    width = float((query.upper[rows] - query.lower[rows]).mean())
    text = f"Mean width {number(width, digits=2)}"
    if query.highest > 0:
        share = number(100 * width / query.highest, digits=0)
        text += f", {share}% of the range up to {number(query.highest, digits=2)}"
    return f"{text}."


def bias_plot(name: str, audit: JudgeAudit, uid: str) -> str:
    """Mean judge − human of each group with its interval, the kindest first.

    Filled marks exclude 0. Orange triangles lie above it (too kind), blue circles below.
    """
    groups = sorted(
        ((f"{g.group} ({g.n:,})", g.group, g.bias) for g in audit.groups if g.bias is not None),
        key=lambda row: -row[2].estimate,
    )
    with style():
        figure, axes = canvas(0.85 + 0.56 * len(groups))
        y = 0.0
        for heading, _, bias in groups:
            draw_heading(axes, y, heading)
            side, marker = ("other", "^") if bias.estimate > 0 else ("baseline", "o")
            draw_interval(axes, bias, y + 0.85, side=side, marker=marker, solid=bias.excludes(0))
            y += 1.75
        axes.axvline(0, color=COLOURS["muted"], linewidth=1.2, zorder=1)
        axes.set(ylim=(y - 0.4, -0.5), yticks=[])
        axes.margins(x=0.06)
        axes.set_xlabel("← too hard  |  judge − people  |  too kind →")
        plain_axes(axes, grid="x")
        return render(
            figure,
            uid=uid,
            title=f"Bias of the judge by group, {name}",
            description=" ".join(
                f"{group}: {number(bias.estimate, digits=3, signed=True)} "
                f"{interval(bias, digits=3)}."
                for _, group, bias in groups
            ),
        )


def shares_plot(name: str, calibration: LabelCalibration, uid: str) -> str:
    """How often people and the judge give each grade."""
    grades = calibration.grades
    x = np.arange(len(grades))
    judge: dict[str, Any] = {
        "facecolor": COLOURS["paper"],
        "edgecolor": COLOURS["other"],
        "hatch": "////",
        "linewidth": 1.2,
    }
    with style():
        figure, axes = canvas(4.0)
        people = [100 * g.observed_share for g in grades]
        axes.bar(x - 0.2, people, 0.4, color=COLOURS["baseline"], label="people")
        axes.bar(x + 0.2, [100 * g.predicted_share for g in grades], 0.36, label="judge", **judge)
        axes.set_xticks(x, [str(g.grade) for g in grades])
        axes.set_xlabel("grade")
        axes.set_ylabel("share, %")
        draw_legend(axes, (), columns=2)
        plain_axes(axes, grid="y")
        return render(
            figure,
            uid=uid,
            title=f"Grades given by people and by the judge, {name}",
            description=" ".join(
                f"Grade {g.grade}: people {number(100 * g.observed_share)}%, judge "
                f"{number(100 * g.predicted_share)}%."
                for g in grades
            ),
        )


def calibration_plot(name: str, calibration: LabelCalibration, uid: str) -> str:
    """Observed against predicted gain, in bins of alike predictions; areas are pairs."""
    bins = calibration.gain_bins
    expected, given = [b.predicted for b in bins], [b.observed for b in bins]
    top, largest = max(*expected, *given, 1e-9), max(b.n for b in bins)
    with style():
        figure, axes = canvas(4.0)
        axes.plot([0, top], [0, top], color=COLOURS["muted"], linewidth=1, zorder=1)
        axes.plot(expected, given, color=COLOURS["baseline"], linewidth=1, zorder=2)
        axes.scatter(
            expected,
            given,
            s=[25 + 120 * b.n / largest for b in bins],
            color=COLOURS["baseline"],
            edgecolor=COLOURS["paper"],
            linewidth=0.8,
            zorder=3,
            clip_on=False,
        )
        axes.set(xlim=(0, 1.04 * top), ylim=(0, 1.04 * top), aspect="equal")
        axes.set_xlabel("gain the judge expects")
        axes.set_ylabel("mean gain people give")
        plain_axes(axes, grid="both")
        return render(
            figure,
            uid=uid,
            title=f"Calibration of the judge's gains, {name}",
            description=" ".join(
                f"Expected {number(b.predicted, digits=2)}, given {number(b.observed, digits=2)} "
                f"({b.n:,} pairs)."
                for b in bins
            ),
        )
