"""Does a system's length explain its score? One mark per system."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.answers.draw import look, pair_look
from rag_sourcebias.report.answers.numbers import effect
from rag_sourcebias.report.format import number, shorten
from rag_sourcebias.report.svg import COLOURS, canvas, draw_legend, plain_axes, render, style
from rag_sourcebias.types.answer_report import AnswerBiasReport, AnswerScorer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["length_plot", "length_points", "length_range"]

_NAME = 18
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_LINE, _CHAR = 0.07, 0.025  # height of a name and width of a letter as shares of the axes

Spot = tuple[float, float]
Box = tuple[float, float, float, float]
Points = list[tuple[str, float, float, float | None]]


def length_points(report: AnswerBiasReport, scorer: AnswerScorer) -> Points:
    """Return (system, mean words of correct answers, effect, adjusted effect) where all exist."""
    spread = scorer.raw.spread
    after = None if scorer.adjusted is None else scorer.adjusted.spread
    words = {s.name: s.mean_words_correct for s in report.systems}
    found = []
    for place, system in enumerate(spread.systems):
        mean = words.get(system)
        if mean is not None and mean > 0 and spread.effects is not None:
            now = None
            if after is not None and after.effects is not None:
                now = after.effects[after.systems.index(system)]
            found.append((system, mean, spread.effects[place], now))
    return found


def length_range(report: AnswerBiasReport) -> tuple[float, float]:
    """Return the ends of the axis of effects that all scores of a report share."""
    points = [p for scorer in report.scorers for p in length_points(report, scorer)]
    ends = [v for p in points for v in p[2:] if v is not None] + [-0.25, 0.25]
    margin = 0.16 * (max(ends) - min(ends))
    return min(ends) - margin, max(ends) + margin


def length_plot(
    report: AnswerBiasReport, scorer: AnswerScorer, *, ends: tuple[float, float], uid: str
) -> str:
    """Mean score of equally correct answers against the mean length of correct answers.

    Raises
    ------
    DataError
        If fewer than two systems have both.
    """
    points = length_points(report, scorer)
    if len(points) < 2:
        raise DataError(f"{scorer.name!r} has fewer than two systems with a length and an effect")
    with style():
        figure, axes = canvas(4.2)
        for _, words, before, after in points:
            if after is not None:
                axes.plot([words, words], [before, after], color=COLOURS["grid"], linewidth=2)
                axes.plot([words], [after], **{**look("adjusted"), "zorder": 3})
            axes.plot([words], [before], **{**look("raw"), "zorder": 4})
        axes.axhline(0, color=COLOURS["muted"], linewidth=1.2, zorder=1)
        _scale(axes, points)
        axes.set_ylim(*ends)
        _names(axes, points)
        axes.set_xlabel("mean words of correct answers")
        axes.set_ylabel("sd from the mean")
        draw_legend(axes, pair_look(adjusted=any(p[3] is not None for p in points)), columns=2)
        plain_axes(axes, grid="both")
        return render(
            figure,
            uid=uid,
            title=f"Score against length by system, {scorer.name}",
            description=" ".join(_describe(*p) for p in points),
        )


def _scale(axes: Axes, points: Points) -> None:
    lengths = [p[1] for p in points]
    low, high = min(lengths) / 1.35, max(lengths) * 1.35
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    ticks = [t for t in _TICKS if low <= t <= high] or [round(lengths[0])]
    axes.set_xticks(ticks, [f"{t:,}" for t in ticks])
    axes.set_xticks([], minor=True)


def _names(axes: Axes, points: Points) -> None:
    """Write a name beside each mark, where it covers no mark and no other name."""
    low, high = axes.get_ylim()
    left, right = (math.log(v) for v in axes.get_xlim())

    def place(words: float, value: float) -> Spot:
        return (math.log(words) - left) / (right - left), (value - low) / (high - low)

    marks = [place(p[1], value) for p in points for value in p[2:] if value is not None]
    taken = [_box(mark, 0.04) for mark in marks]
    for system, words, before, _ in points:
        name = shorten(system, _NAME)
        mark, size = place(words, before), _CHAR * len(name)
        others = [m for m in marks if m != mark]
        free = [s for s in _spots(mark, size) if _free(_box(s, size), taken)]
        clear = [s for s in free if all(_distance(m, mark, s) > 0.03 for m in others)]
        at = next(iter([*clear, *free]), (mark[0], mark[1] + _LINE))
        taken.append(_box(at, size))
        if not _beside(mark, at, size):
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


def _beside(mark: Spot, at: Spot, size: float) -> bool:
    """Whether a name stands so close to its mark that no line need lead there."""
    return abs(at[0] - mark[0]) <= size / 2 + 0.04 and abs(at[1] - mark[1]) <= 1.05 * _LINE


def _spots(mark: Spot, size: float) -> list[Spot]:
    """Return centres of a name around a mark, the nearest first; all inside the axes."""
    beside, signs = size / 2 + 0.035, (-1, 1)
    near = [(beside, 0.0), (-beside, 0.0), (0.0, -_LINE), (0.0, _LINE)]
    far = [(sx * beside, sy * _LINE * n) for n in (1, 2, 3, 4, 5) for sy in signs for sx in signs]
    far += [(0.0, sy * _LINE * n) for n in (2, 3, 4, 5, 6) for sy in signs]
    far += [(2 * sx * beside, sy * _LINE * n) for n in (1, 2, 3) for sy in signs for sx in signs]
    moves = near + sorted(far, key=lambda move: math.hypot(*move))
    spots = [(mark[0] + dx, mark[1] + dy) for dx, dy in moves]
    half = size / 2
    return [(x, y) for x, y in spots if half <= x <= 1 - half and 0.03 <= y <= 0.97]


def _distance(mark: Spot, start: Spot, end: Spot) -> float:
    """Return how close a line passes by a mark."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    square = dx * dx + dy * dy
    along = ((mark[0] - start[0]) * dx + (mark[1] - start[1]) * dy) / square if square else 0.0
    share = min(1.0, max(0.0, along))
    return math.dist(mark, (start[0] + share * dx, start[1] + share * dy))


def _box(centre: Spot, width: float) -> Box:
    x, y = centre
    return x - width / 2, x + width / 2, y - _LINE / 2, y + _LINE / 2


def _free(box: Box, taken: list[Box]) -> bool:
    return all(
        box[1] <= other[0] or other[1] <= box[0] or box[3] <= other[2] or other[3] <= box[2]
        for other in taken
    )


def _describe(system: str, words: float, before: float, after: float | None) -> str:
    tail = "" if after is None else f", adjusted {effect(after)}"
    return f"{system}: {number(words)} words, {effect(before)} sd{tail}."
