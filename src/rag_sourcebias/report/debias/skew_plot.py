"""Relative Δ before and after, one row per system and cutoff.

Hollow grey squares stand for the unchanged system, blue circles for the changed one, filled where
the change is significant.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.debias.names import data_name, delta_ends
from rag_sourcebias.report.debias.verdicts import significant
from rag_sourcebias.report.format import short_names, shorten
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
from rag_sourcebias.types.debias_report import (
    DebiasConfig,
    DebiasDataset,
    DebiasOutcome,
    DebiasReport,
    SkewChange,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_target", "skew_limits", "skew_plot"]

_NARROWEST = 10.0
_OFFSET = 0.19


def skew_limits(report: DebiasReport) -> tuple[float, float]:
    """Return the ends of a scale that holds every estimate, and every interval that is not wild.

    Intervals at cutoffs below the one that decides may be so wide that nothing else could be seen:
    they may leave the picture.
    """
    config = report.config
    values = [0.0, config.target - _NARROWEST, config.target + _NARROWEST]
    for change in (s for d in report.datasets for o in d.outcomes for s in o.skew):
        for found in (change.before, change.after):
            if found is not None:
                steady = change.cutoff >= config.skew_cutoff
                values += [found.lower, found.upper] if steady else [found.estimate]
    margin = 0.04 * (max(values) - min(values))
    return max(-210.0, min(values) - margin), min(210.0, max(values) + margin)


def skew_plot(
    report: DebiasReport, dataset: DebiasDataset, *, limits: tuple[float, float], uid: str
) -> str:
    """Relative Δ before and after with intervals, the target's tolerance as a band.

    Raises
    ------
    DataError
        If the data set has no system.
    """
    if not dataset.outcomes:
        raise DataError(f"no system was measured on {dataset.data.name!r}")
    shown = dataset.outcomes[1:] or dataset.outcomes
    with style():
        n_rows = sum(len(o.skew) for o in shown)
        figure, axes = canvas(1.15 + 0.36 * n_rows + 0.43 * len(shown))
        y, ticks = 0.0, []
        for outcome in shown:
            y += 0.55
            draw_heading(axes, y, outcome.name)
            y += 0.85
            for change in outcome.skew:
                _row(axes, change, y, solid=significant(report, change))
                ticks.append((y, f"@{change.cutoff}"))
                y += 1.0
        draw_target(axes, report.config, upright=True)
        axes.set(xlim=limits, ylim=(y - 0.4, 0.1))
        axes.set_yticks([t for t, _ in ticks], [t for _, t in ticks])
        _emphasise(axes, report.config.skew_cutoff)
        axes.locator_params(axis="x", nbins=8)
        names = short_names((report.config.baseline_source, dataset.other)).values()
        base, other = (shorten(name, 20) for name in names)
        axes.set_xlabel(f"← {other} higher  |  {base} higher →")
        draw_legend(axes, _key(dataset), columns=2)
        plain_axes(axes, grid="x")
        return render(
            figure,
            uid=uid,
            title=f"Relative Δ before and after on {data_name(report, dataset)}",
            description=" ".join(_describe(report, o) for o in shown),
        )


def draw_target(axes: Axes, config: DebiasConfig, *, upright: bool) -> None:
    """Draw the target as a dashed line and its tolerance as a band."""
    low, high = config.target - config.tolerance, config.target + config.tolerance
    band, line = (axes.axvspan, axes.axvline) if upright else (axes.axhspan, axes.axhline)
    band(low, high, color=COLOURS["grid"], alpha=0.55, linewidth=0, zorder=0)
    line(config.target, color=COLOURS["ink"], linewidth=1.1, dashes=(4, 3), zorder=1)


def _emphasise(axes: Axes, cutoff: int) -> None:
    for label in axes.get_yticklabels():
        if label.get_text() == f"@{cutoff}":
            label.set_fontweight("bold")


def _row(axes: Axes, change: SkewChange, y: float, *, solid: bool) -> None:
    before, after = change.before, change.after
    if before is not None and after is not None and not math.isclose(*_ends(change)):
        axes.annotate(
            "",
            (after.estimate, y + _OFFSET),
            (before.estimate, y - _OFFSET),
            arrowprops={
                "arrowstyle": "->",
                "color": COLOURS["muted"],
                "linewidth": 1.0,
                "shrinkA": 4,
                "shrinkB": 5,
            },
            zorder=1.5,
        )
    if before is not None:
        draw_interval(axes, before, y - _OFFSET, side="even", marker="s", solid=False)
    if after is not None:
        place = y if before is None else y + _OFFSET
        draw_interval(axes, after, place, side="baseline", marker="o", solid=solid)
    else:
        axes.text(
            0.99,
            y + _OFFSET,
            "no interval",
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            color=COLOURS["muted"],
            fontsize=11.5,
        )


def _ends(change: SkewChange) -> tuple[float, float]:
    before, after = change.before, change.after
    return (0.0 if before is None else before.estimate, 0.0 if after is None else after.estimate)


def _key(dataset: DebiasDataset) -> list[tuple[str, dict[str, Any]]]:
    if len(dataset.outcomes) < 2:
        return [("as it is", _look("baseline", "o", solid=False))]
    return [
        ("before", _look("even", "s", solid=False)),
        ("after (filled: significant)", _look("baseline", "o", solid=True)),
    ]


def _look(side: str, marker: str, *, solid: bool) -> dict[str, Any]:
    return {
        "color": COLOURS[side],
        "marker": marker,
        "markersize": 7,
        "markeredgewidth": 1.6,
        "markerfacecolor": COLOURS[side if solid else "paper"],
        "linewidth": 2.2,
    }


def _describe(report: DebiasReport, outcome: DebiasOutcome) -> str:
    cells = [
        f"@{s.cutoff} {'' if s.before is None else delta_ends(s.before) + ' to '}"
        f"{delta_ends(s.after)}{', significant' if significant(report, s) else ''}"
        for s in outcome.skew
    ]
    return f"{outcome.name}: {'; '.join(cells)}."
