"""The pictures of correctness scores: marks and axes; what they say is said in the report.

Orange triangles are the score as it is, blue circles the adjusted score, grey squares people.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_sourcebias.report.format import shorten
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
from rag_sourcebias.types.answer_parts import RankInversions
from rag_sourcebias.types.answer_report import AnswerBias, AnswerScorer, SystemCorrectness

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "VERDICTS",
    "Described",
    "Spot",
    "correctness_plot",
    "length_plot",
    "means_limit",
    "means_plot",
    "order_plot",
    "verdicts_plot",
]

#: What a verdict can get wrong.
VERDICTS = ("correct, fail", "wrong, pass")
_LOOKS = {"raw": ("other", "^"), "adjusted": ("baseline", "o"), "people": ("even", "s")}
_TRUTH: dict[str, Any] = {
    "color": COLOURS["ink"],
    "marker": "|",
    "markersize": 17,
    "markeredgewidth": 1.8,
    "linestyle": "none",
    "zorder": 4,
}
_NAME, _SHORT, _END = 22, 18, 13  # characters of a system beside a row, a mark and a line
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_LINE, _CHAR = 0.07, 0.025  # height of a name and width of a letter as shares of the axes

Place = tuple[float, float]
Box = tuple[float, float, float, float]
Shares = tuple[float | None, float | None]


class Described(NamedTuple):
    """A picture for readers who do not see it."""

    title: str
    description: str


class Spot(NamedTuple):
    """A system by the length of its correct answers and by their effect, raw and adjusted."""

    system: str
    words: float
    effect: float
    adjusted: float | None


def _look(which: str, *, solid: bool = True, line: bool = False) -> dict[str, Any]:
    """Return how one kind of mark is drawn, for a plot or its key."""
    side, marker = _LOOKS[which]
    return {
        "color": COLOURS[side],
        "marker": marker,
        "markersize": 7.5,
        "markeredgewidth": 1.6,
        "markerfacecolor": COLOURS[side if solid else "paper"],
        "linestyle": "-" if line else "none",
        "linewidth": 2.2,
    }


def _key(axes: Axes, *, adjusted: bool, line: bool = False) -> None:
    entries = [("score as it is", _look("raw", line=line))]
    entries += [("adjusted", _look("adjusted", line=line))] * adjusted
    draw_legend(axes, entries, columns=2)


def _rows(axes: Axes, systems: Sequence[str]) -> None:
    axes.set_ylim(len(systems) - 0.4, -0.6)
    axes.set_yticks(range(len(systems)), [shorten(s, _NAME) for s in systems])


# Means of equally correct answers ([W] Fig. 7), in standard deviations within systems


def _biases(scorer: AnswerScorer) -> list[tuple[AnswerBias, str, float]]:
    """Return what can be drawn in standard deviations, as what, and how long one is."""
    pairs = ((scorer.raw, "raw"), (scorer.adjusted, "adjusted"))
    return [
        (bias, which, bias.spread.within_sd)
        for bias, which in pairs
        if bias is not None and bias.spread.within_sd is not None
    ]


def _centre(bias: AnswerBias) -> float:
    return math.fsum(bias.spread.means) / len(bias.spread.means)


def means_limit(scorers: Sequence[AnswerScorer]) -> float:
    """Return the end of the axis that all scores of a report share."""
    ends = [0.3]
    for bias, _, sd in (found for scorer in scorers for found in _biases(scorer)):
        for mean, found in zip(bias.spread.means, bias.means, strict=True):
            reach = [mean] if found is None else [found.lower, found.upper]
            ends += [abs(v - _centre(bias)) / sd for v in reach]
    return 1.06 * max(ends)


def means_plot(uid: str, scorer: AnswerScorer, said: Described, *, limit: float) -> str:
    """One row per system: its mean, raw and adjusted, from the mean of the systems."""
    found, systems = _biases(scorer), scorer.raw.spread.systems
    shifts = (-0.16, 0.16) if len(found) > 1 else (0.0,)
    with style():
        figure, axes = canvas(1.15 + 0.5 * len(systems))
        for (bias, which, sd), shift in zip(found, shifts, strict=True):
            centre, (side, marker) = _centre(bias), _LOOKS[which]
            for row, system in enumerate(systems):
                place, y = bias.spread.systems.index(system), row + shift
                mean = bias.means[place]
                if mean is None:
                    x = (bias.spread.means[place] - centre) / sd
                    axes.plot([x], [y], **_look(which), zorder=3)
                    continue
                moved = replace(
                    mean,
                    estimate=(mean.estimate - centre) / sd,
                    lower=(mean.lower - centre) / sd,
                    upper=(mean.upper - centre) / sd,
                )
                draw_interval(axes, moved, y, side=side, marker=marker)
        axes.axvline(0, color=COLOURS["muted"], linewidth=1.2, zorder=1)
        axes.set_xlim(-limit, limit)
        _rows(axes, systems)
        axes.set_xlabel("standard deviations from the mean of the systems")
        _key(axes, adjusted=len(found) > 1, line=True)
        plain_axes(axes, grid="x")
        return render(figure, uid=uid, title=said.title, description=said.description)


# Length and score


def length_plot(
    uid: str, spots: Sequence[Spot], said: Described, *, ends: tuple[float, float]
) -> str:
    """Mean score of equally correct answers against the mean length of correct answers."""
    with style():
        figure, axes = canvas(4.2)
        for spot in spots:
            if spot.adjusted is not None:
                moved = [spot.effect, spot.adjusted]
                axes.plot([spot.words] * 2, moved, color=COLOURS["grid"], linewidth=2)
                axes.plot([spot.words], [spot.adjusted], **_look("adjusted"), zorder=3)
            axes.plot([spot.words], [spot.effect], **_look("raw"), zorder=4)
        axes.axhline(0, color=COLOURS["muted"], linewidth=1.2, zorder=1)
        lengths = [spot.words for spot in spots]
        low, high = min(lengths) / 1.35, max(lengths) * 1.35
        ticks = [t for t in _TICKS if low <= t <= high] or [round(lengths[0])]
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        axes.set_xticks(ticks, [f"{t:,}" for t in ticks])
        axes.set_xticks([], minor=True)
        axes.set_ylim(*ends)
        _names(axes, spots)
        axes.set_xlabel("mean words of correct answers")
        axes.set_ylabel("sd from the mean")
        _key(axes, adjusted=any(spot.adjusted is not None for spot in spots))
        plain_axes(axes, grid="both")
        return render(figure, uid=uid, title=said.title, description=said.description)


def _names(axes: Axes, spots: Sequence[Spot]) -> None:
    """Write a name beside each mark, where it covers no mark and no other name."""
    low, high = axes.get_ylim()
    left, right = (math.log(v) for v in axes.get_xlim())

    def place(words: float, value: float) -> Place:
        return (math.log(words) - left) / (right - left), (value - low) / (high - low)

    marks = [place(s.words, v) for s in spots for v in (s.effect, s.adjusted) if v is not None]
    taken = [_box(mark, 0.04) for mark in marks]
    for spot in spots:
        name = shorten(spot.system, _SHORT)
        mark, size = place(spot.words, spot.effect), _CHAR * len(name)
        others = [m for m in marks if m != mark]
        free = [s for s in _free_places(mark, size) if _free(_box(s, size), taken)]
        clear = [s for s in free if all(_distance(m, mark, s) > 0.03 for m in others)]
        at = next(iter([*clear, *free]), (mark[0], mark[1] + _LINE))
        taken.append(_box(at, size))
        if abs(at[0] - mark[0]) > size / 2 + 0.04 or abs(at[1] - mark[1]) > 1.05 * _LINE:
            # So far away that a line has to lead there.
            axes.plot(
                [mark[0], at[0]],
                [mark[1], at[1]],
                transform=axes.transAxes,
                color=COLOURS["muted"],
                linewidth=0.7,
            )
        axes.text(
            *at,
            name,
            transform=axes.transAxes,
            ha="center",
            va="center",
            fontsize=11,
            bbox={"facecolor": COLOURS["paper"], "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
            zorder=5,
        )


def _free_places(mark: Place, size: float) -> list[Place]:
    """Return centres of a name around a mark, the nearest first; all inside the axes."""
    beside, signs = size / 2 + 0.035, (-1, 1)
    near = [(beside, 0.0), (-beside, 0.0), (0.0, -_LINE), (0.0, _LINE)]
    far = [(sx * beside, sy * _LINE * n) for n in (1, 2, 3, 4, 5) for sy in signs for sx in signs]
    far += [(0.0, sy * _LINE * n) for n in (2, 3, 4, 5, 6) for sy in signs]
    far += [(2 * sx * beside, sy * _LINE * n) for n in (1, 2, 3) for sy in signs for sx in signs]
    moves = near + sorted(far, key=lambda move: math.hypot(*move))
    found = [(mark[0] + dx, mark[1] + dy) for dx, dy in moves]
    half = size / 2
    return [(x, y) for x, y in found if half <= x <= 1 - half and 0.03 <= y <= 0.97]


def _distance(mark: Place, start: Place, end: Place) -> float:
    """Return how close a line passes by a mark."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    square = dx * dx + dy * dy
    along = ((mark[0] - start[0]) * dx + (mark[1] - start[1]) * dy) / square if square else 0.0
    share = min(1.0, max(0.0, along))
    return math.dist(mark, (start[0] + share * dx, start[1] + share * dy))


def _box(centre: Place, width: float) -> Box:
    x, y = centre
    return x - width / 2, x + width / 2, y - _LINE / 2, y + _LINE / 2


def _free(box: Box, taken: list[Box]) -> bool:
    return all(
        box[1] <= other[0] or other[1] <= box[0] or box[3] <= other[2] or other[3] <= box[2]
        for other in taken
    )


# Verdicts, order, human correctness


def verdicts_plot(
    uid: str, rows: Sequence[tuple[str, Shares, Shares]], said: Described, *, adjusted: bool
) -> str:
    """Two rows per system: the share of wrong verdicts on its correct and on its wrong answers."""
    with style():
        figure, axes = canvas(1.0 + 0.86 * len(rows))
        y, ticks = 0.0, []
        for system, before, after in rows:
            y += 0.8
            draw_heading(axes, y, system)
            y += 0.25
            for name, first, second in zip(VERDICTS, before, after, strict=True):
                y += 0.75
                ticks.append((y, name))
                if first is None:
                    axes.text(1, y, "none", color=COLOURS["muted"], va="center", fontsize=11)
                    continue
                if second is not None:
                    axes.plot([100 * first, 100 * second], [y, y], color=COLOURS["grid"], lw=3)
                    axes.plot([100 * second], [y], **_look("adjusted"), zorder=3)
                axes.plot([100 * first], [y], **_look("raw"), zorder=4)
            y += 0.25
        axes.set(xlim=(-3, 103), ylim=(y + 0.3, 0.3))
        axes.set_yticks([t for t, _ in ticks], [n for _, n in ticks])
        axes.set_xticks([0, 25, 50, 75, 100])
        axes.set_xlabel("share of these answers, %")
        _key(axes, adjusted=adjusted)
        plain_axes(axes, grid="x")
        return render(figure, uid=uid, title=said.title, description=said.description)


def order_plot(uid: str, raw: RankInversions, moved: tuple[float, ...], said: Described) -> str:
    """One line per system, from its place by people to its places by score, raw and ``moved``.

    Lines that cross are pairs in the wrong order.
    """
    columns = [("people", raw.correctness), ("score", raw.mean_scores)]
    columns += [("adjusted", moved)] * bool(moved)
    places = [_places(values) for _, values in columns]
    with style():
        figure, axes = canvas(0.7 + 0.42 * len(raw.systems))
        for i, system in enumerate(raw.systems):
            _line(axes, [column[i] for column in places], shorten(system, _END))
        axes.set(xlim=(-0.75, len(columns) - 0.25), ylim=(len(raw.systems) + 0.5, 0.5))
        axes.set_xticks(range(len(columns)), [name for name, _ in columns])
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.set_yticks(range(1, len(raw.systems) + 1))
        for side in ("top", "right", "left", "bottom"):
            axes.spines[side].set_visible(False)
        return render(figure, uid=uid, title=said.title, description=said.description)


def _places(values: tuple[float, ...]) -> tuple[int, ...]:
    """Return a place of its own for each value; ties in the order of the report."""
    order = sorted(range(len(values)), key=lambda i: -values[i])
    return tuple(order.index(i) + 1 for i in range(len(values)))


def _line(axes: Axes, places: list[int], name: str) -> None:
    for x, (first, second) in enumerate(pairwise(places)):
        same = second == places[0]
        axes.plot(
            [x, x + 1],
            [first, second],
            color=COLOURS["baseline" if same else "other"],
            linewidth=1.8,
            linestyle="-" if same else "--",
            zorder=2,
        )
    for x, place in enumerate(places):
        wrong = place != places[0]
        axes.plot(
            [x],
            [place],
            "^" if wrong else "o",
            color=COLOURS["even" if x == 0 else "other" if wrong else "baseline"],
            markersize=8,
            zorder=3,
        )
    for x, shift, side in ((0, -9, "right"), (len(places) - 1, 9, "left")):
        axes.annotate(
            name,
            (x, places[x]),
            xytext=(shift, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=11,
        )


def correctness_plot(uid: str, found: Sequence[SystemCorrectness], said: Described) -> str:
    """One row per system: labels alone, labels with the score, and the truth where it is known."""
    with style():
        figure, axes = canvas(1.2 + 0.5 * len(found))
        for row, c in enumerate(found):
            if (alone := c.labels_alone) is not None:
                draw_interval(axes, alone, row - 0.17, side="even", marker="s", solid=False)
            if c.with_scores is not None:
                draw_interval(axes, c.with_scores, row + 0.17, side="baseline", marker="o")
            if c.truth is not None:
                axes.plot([c.truth], [row], **_TRUTH)
        _rows(axes, [c.system for c in found])
        axes.margins(x=0.05)
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f}")
        axes.set_xlabel("answers people call correct, %")
        entries = (
            ("labels alone", _look("people", solid=False, line=True), "labels_alone"),
            ("with the score", _look("adjusted", line=True), "with_scores"),
            ("all labels", _TRUTH, "truth"),
        )
        drawn = [
            (t, look) for t, look, of in entries if any(getattr(c, of) is not None for c in found)
        ]
        draw_legend(axes, drawn, columns=2)
        plain_axes(axes, grid="x")
        return render(figure, uid=uid, title=said.title, description=said.description)
