"""The grades a judge gives, and the calibration of its gains."""

from __future__ import annotations

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.format import number
from rag_sourcebias.report.svg import COLOURS, canvas, plain_axes, render, style
from rag_sourcebias.types.judge_audit import JudgeAudit

__all__ = ["calibration_plot", "shares_plot"]


def shares_plot(audit: JudgeAudit, name: str, *, uid: str) -> str:
    """How often people and the judge give each grade.

    Raises
    ------
    DataError
        If the judge gave no distributions.
    """
    if audit.calibration is None:
        raise DataError(f"the audit of {name!r} has no label distributions")
    grades = audit.calibration.grades
    x = range(len(grades))
    with style():
        figure, axes = canvas(4.0)
        axes.bar(
            [i - 0.2 for i in x],
            [100 * g.observed_share for g in grades],
            0.4,
            color=COLOURS["baseline"],
            label="people",
        )
        axes.bar(
            [i + 0.2 for i in x],
            [100 * g.predicted_share for g in grades],
            0.36,
            facecolor=COLOURS["paper"],
            edgecolor=COLOURS["other"],
            hatch="////",
            linewidth=1.2,
            label="judge",
        )
        axes.set_xticks(list(x), [str(g.grade) for g in grades])
        axes.set_xlabel("grade")
        axes.set_ylabel("share, %")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
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


def calibration_plot(audit: JudgeAudit, name: str, *, uid: str) -> str:
    """Observed against predicted gain, in bins of alike predictions; areas are pairs.

    Raises
    ------
    DataError
        If the judge gave no distributions.
    """
    bins = () if audit.calibration is None else audit.calibration.gain_bins
    if not bins:
        raise DataError(f"the audit of {name!r} has no label distributions")
    top = max(*(b.predicted for b in bins), *(b.observed for b in bins), 1e-9)
    largest = max(b.n for b in bins)
    with style():
        figure, axes = canvas(4.0)
        axes.plot([0, top], [0, top], color=COLOURS["muted"], linewidth=1, zorder=1)
        axes.plot(
            [b.predicted for b in bins],
            [b.observed for b in bins],
            color=COLOURS["baseline"],
            linewidth=1,
            zorder=2,
        )
        axes.scatter(
            [b.predicted for b in bins],
            [b.observed for b in bins],
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
