"""Mean scores of equally correct answers by system, raw and adjusted ([W] Fig. 7)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.answers.draw import draw_point, pair_look
from rag_sourcebias.report.answers.numbers import effect, value
from rag_sourcebias.report.format import shorten
from rag_sourcebias.report.svg import COLOURS, canvas, draw_legend, plain_axes, render, style
from rag_sourcebias.types.answer_report import AnswerBias, AnswerBiasReport, AnswerScorer

__all__ = ["means_limit", "means_plot"]

_NAME = 22


def means_limit(report: AnswerBiasReport) -> float:
    """Return the end of the axis that all scores of a report share, in standard deviations."""
    ends = [0.3]
    for scorer in report.scorers:
        for bias in _biases(scorer):
            sd, centre = bias.spread.within_sd, _centre(bias)
            if sd is None:
                continue
            for mean, found in zip(bias.spread.means, bias.means, strict=True):
                reach = [mean] if found is None else [found.lower, found.upper]
                ends += [abs(v - centre) / sd for v in reach]
    return 1.06 * max(ends)


def means_plot(scorer: AnswerScorer, *, limit: float, uid: str) -> str:
    """One row per system: its mean, raw and adjusted, from the mean of the systems.

    In standard deviations within systems, so that scores with different ranges compare.

    Raises
    ------
    DataError
        If scores do not differ within systems.
    """
    found = [b for b in _biases(scorer) if b.spread.within_sd is not None]
    if scorer.raw.spread.within_sd is None:
        raise DataError(f"{scorer.name!r} has no spread within systems to measure differences in")
    systems = scorer.raw.spread.systems
    with style():
        figure, axes = canvas(1.15 + 0.5 * len(systems))
        for row, system in enumerate(systems):
            for bias, which, shift in zip(found, ("raw", "adjusted"), _shifts(found), strict=False):
                sd = bias.spread.within_sd
                if sd is None:
                    continue
                place = bias.spread.systems.index(system)
                draw_point(
                    axes,
                    which,
                    bias.spread.means[place],
                    row + shift,
                    bias.means[place],
                    unit=sd,
                    zero=_centre(bias),
                )
        axes.axvline(0, color=COLOURS["muted"], linewidth=1.2, zorder=1)
        axes.set(xlim=(-limit, limit), ylim=(len(systems) - 0.4, -0.6))
        axes.set_yticks(range(len(systems)), [shorten(s, _NAME) for s in systems])
        axes.set_xlabel("standard deviations from the mean of the systems")
        draw_legend(axes, pair_look(adjusted=len(found) > 1, line=True), columns=2)
        plain_axes(axes, grid="x")
        return render(
            figure,
            uid=uid,
            title=f"Mean score of equally correct answers by system, {scorer.name}",
            description=" ".join(_describe(scorer, s) for s in systems),
        )


def _biases(scorer: AnswerScorer) -> list[AnswerBias]:
    return [b for b in (scorer.raw, scorer.adjusted) if b is not None]


def _centre(bias: AnswerBias) -> float:
    return math.fsum(bias.spread.means) / len(bias.spread.means)


def _shifts(found: Sequence[AnswerBias]) -> tuple[float, ...]:
    return (-0.16, 0.16) if len(found) > 1 else (0.0,)


def _describe(scorer: AnswerScorer, system: str) -> str:
    parts = []
    for bias, what in zip(_biases(scorer), ("", "adjusted "), strict=False):
        place = bias.spread.systems.index(system)
        effects = bias.spread.effects
        tail = "" if effects is None else f" ({effect(effects[place])} sd)"
        parts.append(f"{what}{value(scorer, bias.spread.means[place])}{tail}")
    return f"{system}: {', '.join(parts)}."
