"""One picture of what distinguishes groups of texts ([W] Fig. 1, 4, 6; [K] Fig. 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.format import number, shorten
from rag_sourcebias.report.svg import COLOURS, WIDTH, plain_axes, render, style
from rag_sourcebias.types.text_stats import TextStatistic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["text_plot"]

_SHORT, _LONG = 15, 30  # characters of a name beside two panels, and beside one
_ROW, _AROUND = 0.235, 0.66  # inches: one group, and a panel's title and axis
_MARKERS = {"baseline": "o", "other": "^", "even": "D"}


def text_plot(
    statistics: Sequence[TextStatistic], *, original: str | None, uid: str, title: str
) -> str:
    """Return a panel per statistic with a row per group, as SVG.

    A line reaches from the 5th to the 95th percentile of the texts, the box over the middle half,
    its bar at the median; the mark is the mean, with its interval in ink.

    Parameters
    ----------
    statistics : sequence of TextStatistic
        Groups are drawn in the order of their first appearance, ``original`` on top.
    original : str or None
        The group that the others are versions of; it is drawn in the baseline's colour.
    uid : str
        Prefix of every id inside; unique on the page.
    title : str
        For readers who do not see the picture.

    Raises
    ------
    DataError
        If there is no statistic.
    MissingExtraError
        If matplotlib is not installed.
    """
    if not statistics:
        raise DataError("there is no text statistic to draw")
    groups = groups_of(statistics, original)
    names = names_of_statistics(statistics)
    labels = _labels(groups)
    columns = 2 if len(names) > 1 and max(map(len, labels.values())) <= _SHORT else 1
    lines = math.ceil(len(names) / columns)
    of = {(s.group, s.name): s for s in statistics}
    with style():
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        # Only words are measured of the original itself: below the first line it has no row.
        first = groups if "words" in names else _others(groups, original)
        shown = [first] + [_others(groups, original)] * (lines - 1)
        heights = [_AROUND + _ROW * len(rows) for rows in shown]
        spacing = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.05)
        figure = Figure(figsize=(WIDTH, sum(heights)), layout=spacing)
        grid = figure.subplots(lines, columns, sharey="row", squeeze=False, height_ratios=heights)
        for place, axes in enumerate(grid.ravel()):
            if place >= len(names):
                axes.set_visible(False)
                continue
            rows = shown[place // columns]
            _panel(axes, names[place], rows, of, original)
            axes.set_yticks(range(len(rows)), [labels[group] for group in rows])
        return render(
            figure, uid=uid, title=title, description=_description(groups, names, of, original)
        )


def _others(groups: Sequence[str], original: str | None) -> list[str]:
    return [group for group in groups if group != original] or list(groups)


def _labels(groups: Sequence[str]) -> dict[str, str]:
    """Shorten names, but never so far that two groups look the same."""
    width = _SHORT if max(map(len, groups)) <= _SHORT else _LONG
    labels = {group: shorten(group, width) for group in groups}
    if len(set(labels.values())) == len(labels):
        return labels
    return {g: f"{place}. {shorten(g, _LONG - 4)}" for place, g in enumerate(groups, 1)}


def _panel(
    axes: Axes,
    name: str,
    groups: Sequence[str],
    of: Mapping[tuple[str, str], TextStatistic],
    original: str | None,
) -> None:
    for y, group in enumerate(groups):
        found = of.get((group, name))
        if found is not None:
            _box(axes, found, y, _side(group, original))
        else:
            axes.text(
                0.02,
                y,
                "original" if group == original else "none",
                transform=axes.get_yaxis_transform(),
                va="center",
                color=COLOURS["muted"],
                fontsize=11.5,
            )
    drawn = [s for (_, n), s in of.items() if n == name]
    if name == "words":
        ends = [max(s.quantiles[-1], s.mean.upper if s.mean else s.average) for s in drawn]
        axes.set_xlim(0, 1.06 * max(1.0, *ends))
        axes.locator_params(axis="x", nbins=4, integer=True)
        if original is not None and (original, name) in of:
            axes.axvline(
                of[original, name].average,
                color=COLOURS["muted"],
                linewidth=1,
                zorder=1,
                dashes=(4, 3),
            )
    else:
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.set_title("words per text" if name == "words" else name, loc="left", fontweight="bold")
    plain_axes(axes, grid="x")


def _side(group: str, original: str | None) -> str:
    return "even" if original is None else "baseline" if group == original else "other"


def _box(axes: Axes, found: TextStatistic, y: float, side: str) -> None:
    colour = COLOURS[side]
    low, first, median, third, high = found.quantiles
    axes.plot([low, high], [y, y], color=colour, linewidth=1.1, solid_capstyle="butt", zorder=2)
    axes.barh(y, third - first, 0.56, left=first, color=COLOURS["paper"], zorder=2.5)
    axes.barh(y, third - first, 0.56, left=first, color=colour, alpha=0.3, zorder=2.6)
    axes.plot([median] * 2, [y - 0.28, y + 0.28], color=colour, linewidth=1.6, zorder=2.7)
    if found.mean is not None:
        ends = [found.mean.lower, found.mean.upper]
        axes.plot(ends, [y, y], color=COLOURS["ink"], linewidth=1.8, zorder=3)
    axes.plot(
        [found.average],
        [y],
        _MARKERS[side],
        color=COLOURS["ink"],
        markerfacecolor=colour,
        markersize=5,
        markeredgewidth=0.8,
        zorder=4,
    )


def _description(
    groups: Sequence[str],
    names: Sequence[str],
    of: Mapping[tuple[str, str], TextStatistic],
    original: str | None,
) -> str:
    sentences = []
    for group in groups:
        means = [
            f"{name} {number(of[group, name].average, digits=1 if name == 'words' else 2)}"
            for name in names
            if (group, name) in of
        ]
        role = " (original)" if group == original else ""
        sentences.append(f"{group}{role}: {', '.join(means)}.")
    return "Means. " + " ".join(sentences)


def groups_of(statistics: Sequence[TextStatistic], original: str | None = None) -> list[str]:
    """Return the groups in the order of their first appearance, ``original`` first."""
    groups = list(dict.fromkeys(s.group for s in statistics))
    return sorted(groups, key=lambda group: group != original)


def names_of_statistics(statistics: Sequence[TextStatistic]) -> list[str]:
    """Return the statistics in the order of their first appearance, words first."""
    return sorted(dict.fromkeys(s.name for s in statistics), key=lambda name: name != "words")
