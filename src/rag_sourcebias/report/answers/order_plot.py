"""The order of systems by people, by the score, and by the adjusted score."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.answers.numbers import value
from rag_sourcebias.report.format import score, shorten
from rag_sourcebias.report.svg import COLOURS, canvas, render, style
from rag_sourcebias.types.answer_parts import RankInversions
from rag_sourcebias.types.answer_report import AnswerScorer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["order_plot", "ranks"]

_NAME = 13


def ranks(values: tuple[float, ...]) -> tuple[int, ...]:
    """Return the place of each value, 1 for the highest; equal values share the better place."""
    return tuple(1 + sum(other > v for other in values) for v in values)


def order_plot(scorer: AnswerScorer, *, uid: str) -> str:
    """One line per system, from its place by people to its places by score.

    Lines that cross are pairs in the wrong order.

    Raises
    ------
    DataError
        If there is no order to compare.
    """
    raw = scorer.raw.inversions
    if raw is None:
        raise DataError(f"{scorer.name!r} has no order of systems to compare with people's")
    columns = [("people", _places(raw.correctness)), ("score", _places(raw.mean_scores))]
    after = None if scorer.adjusted is None else scorer.adjusted.inversions
    if after is not None:
        moved = tuple(after.mean_scores[after.systems.index(s)] for s in raw.systems)
        columns.append(("adjusted", _places(moved)))
    with style():
        figure, axes = canvas(0.7 + 0.42 * len(raw.systems))
        for i, system in enumerate(raw.systems):
            _line(axes, [places[i] for _, places in columns], system)
        axes.set(xlim=(-0.75, len(columns) - 0.25), ylim=(len(raw.systems) + 0.5, 0.5))
        axes.set_xticks(range(len(columns)), [name for name, _ in columns])
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.set_yticks(range(1, len(raw.systems) + 1))
        for side in ("top", "right", "left", "bottom"):
            axes.spines[side].set_visible(False)
        return render(
            figure,
            uid=uid,
            title=f"Order of systems by people and by score, {scorer.name}",
            description=_describe(scorer, raw, after),
        )


def _places(values: tuple[float, ...]) -> tuple[int, ...]:
    """Return a place of its own for each value; ties in the order of the report."""
    order = sorted(range(len(values)), key=lambda i: -values[i])
    return tuple(order.index(i) + 1 for i in range(len(values)))


def _line(axes: Axes, places: list[int], system: str) -> None:
    for x, (first, second) in enumerate(pairwise(places)):
        side = "baseline" if second == places[0] else "other"
        axes.plot(
            [x, x + 1],
            [first, second],
            color=COLOURS[side],
            linewidth=1.8,
            linestyle="-" if side == "baseline" else "--",
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
    last = len(places) - 1
    axes.annotate(
        shorten(system, _NAME),
        (0, places[0]),
        xytext=(-9, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=11,
    )
    axes.annotate(
        shorten(system, _NAME),
        (last, places[-1]),
        xytext=(9, 0),
        textcoords="offset points",
        ha="left",
        va="center",
        fontsize=11,
    )


def _describe(scorer: AnswerScorer, raw: RankInversions, after: RankInversions | None) -> str:
    parts = []
    for i, system in enumerate(raw.systems):
        text = f"{system}: {score(raw.correctness[i])}% correct by people, score "
        text += value(scorer, raw.mean_scores[i])
        if after is not None:
            moved = after.mean_scores[after.systems.index(system)]
            text += f", adjusted {value(scorer, moved)}"
        parts.append(f"{text}.")
    return " ".join(parts)
