"""Correct answers that fail and wrong ones that pass, before and after."""

from __future__ import annotations

from rag_sourcebias.report.answers.draw import look, pair_look
from rag_sourcebias.report.answers.numbers import percent
from rag_sourcebias.report.format import MISSING
from rag_sourcebias.report.plots import draw_heading
from rag_sourcebias.report.svg import COLOURS, canvas, draw_legend, plain_axes, render, style
from rag_sourcebias.types.answer_report import AnswerBias, AnswerScorer

__all__ = ["error_shares", "verdicts_plot"]

_ROWS = ("correct, fail", "wrong, pass")


def error_shares(bias: AnswerBias | None, system: str) -> tuple[float | None, float | None]:
    """Return the share of a system's correct answers that fail and of its wrong ones that pass."""
    if bias is None:
        return None, None
    place = bias.verdicts.systems.index(system)
    right = bias.verdicts.pass_correct[place]
    return None if right is None else 1 - right, bias.verdicts.pass_wrong[place]


def verdicts_plot(scorer: AnswerScorer, *, uid: str) -> str:
    """Two rows per system: the share of wrong verdicts on its correct and on its wrong answers."""
    systems = scorer.raw.verdicts.systems
    with style():
        figure, axes = canvas(1.0 + 0.86 * len(systems))
        y, ticks = 0.0, []
        for system in systems:
            y += 0.8
            draw_heading(axes, y, system)
            before = error_shares(scorer.raw, system)
            after = error_shares(scorer.adjusted, system)
            y += 0.25
            for name, first, second in zip(_ROWS, before, after, strict=True):
                y += 0.75
                ticks.append((y, name))
                if first is None:
                    axes.text(1, y, "none", color=COLOURS["muted"], va="center", fontsize=11)
                    continue
                if second is not None:
                    axes.plot([100 * first, 100 * second], [y, y], color=COLOURS["grid"], lw=3)
                    axes.plot([100 * second], [y], **{**look("adjusted"), "zorder": 3})
                axes.plot([100 * first], [y], **{**look("raw"), "zorder": 4})
            y += 0.25
        axes.set(xlim=(-3, 103), ylim=(y + 0.3, 0.3))
        axes.set_yticks([t for t, _ in ticks], [n for _, n in ticks])
        axes.set_xticks([0, 25, 50, 75, 100])
        axes.set_xlabel("share of these answers, %")
        draw_legend(axes, pair_look(adjusted=scorer.adjusted is not None), columns=2)
        plain_axes(axes, grid="x")
        return render(
            figure,
            uid=uid,
            title=f"Verdicts that contradict people, by system, {scorer.name}",
            description=" ".join(_describe(scorer, s) for s in systems),
        )


def _describe(scorer: AnswerScorer, system: str) -> str:
    before = error_shares(scorer.raw, system)
    after = error_shares(scorer.adjusted, system)
    cells = [
        f"{name} {percent(first)}" + ("" if second is None else f", adjusted {percent(second)}")
        for name, first, second in zip(_ROWS, before, after, strict=True)
    ]
    return f"{system}: {'; '.join(cells)}.".replace(MISSING, "none")
