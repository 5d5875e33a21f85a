"""Human correctness of each system from few labels, with and without the score."""

from __future__ import annotations

from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.answers.draw import look
from rag_sourcebias.report.answers.numbers import correct_ends
from rag_sourcebias.report.format import score, shorten
from rag_sourcebias.report.svg import (
    COLOURS,
    canvas,
    draw_interval,
    draw_legend,
    plain_axes,
    render,
    style,
)
from rag_sourcebias.types.answer_report import AnswerScorer, SystemCorrectness

__all__ = ["correctness_plot"]

_NAME = 22


def correctness_plot(scorer: AnswerScorer, *, uid: str) -> str:
    """One row per system: labels alone, labels with the score, and the truth where it is known.

    Raises
    ------
    DataError
        If there is none.
    """
    found = scorer.correctness
    if not found:
        raise DataError(f"{scorer.name!r} has no human correctness from labels")
    with style():
        figure, axes = canvas(1.2 + 0.5 * len(found))
        for row, c in enumerate(found):
            if c.labels_alone is not None:
                draw_interval(
                    axes, c.labels_alone, row - 0.17, side="even", marker="s", solid=False
                )
            if c.with_scores is not None:
                draw_interval(axes, c.with_scores, row + 0.17, side="baseline", marker="o")
            if c.truth is not None:
                axes.plot([c.truth], [row], **_truth_look())
        axes.set(ylim=(len(found) - 0.4, -0.6))
        axes.margins(x=0.05)
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f}")
        axes.set_yticks(range(len(found)), [shorten(c.system, _NAME) for c in found])
        axes.set_xlabel("answers people call correct, %")
        draw_legend(axes, _key(found), columns=2)
        plain_axes(axes, grid="x")
        return render(
            figure,
            uid=uid,
            title=f"Human correctness by system from few labels, {scorer.name}",
            description=" ".join(_describe(c) for c in found),
        )


def _truth_look() -> dict[str, Any]:
    return {
        "color": COLOURS["ink"],
        "marker": "|",
        "markersize": 17,
        "markeredgewidth": 1.8,
        "linestyle": "none",
        "zorder": 4,
    }


def _key(found: tuple[SystemCorrectness, ...]) -> list[tuple[str, dict[str, Any]]]:
    entries = []
    if any(c.labels_alone is not None for c in found):
        entries.append(("labels alone", look("people", solid=False, line=True)))
    if any(c.with_scores is not None for c in found):
        entries.append(("with the score", look("adjusted", line=True)))
    if any(c.truth is not None for c in found):
        entries.append(("all labels", _truth_look()))
    return entries


def _describe(c: SystemCorrectness) -> str:
    truth = "" if c.truth is None else f", all labels {score(c.truth)}"
    return (
        f"{c.system}: labels alone {correct_ends(c.labels_alone)}, with the score "
        f"{correct_ends(c.with_scores)}{truth}."
    )
