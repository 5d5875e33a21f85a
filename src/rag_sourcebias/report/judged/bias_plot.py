"""Bias of the judge by group."""

from __future__ import annotations

from rag_sourcebias.errors import DataError
from rag_sourcebias.report.format import interval, number
from rag_sourcebias.report.plots import draw_heading
from rag_sourcebias.report.svg import COLOURS, canvas, draw_interval, plain_axes, render, style
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judge_bias import GroupBias

__all__ = ["bias_plot"]


def bias_plot(audit: JudgeAudit, name: str, *, uid: str) -> str:
    """Mean judge − human of each group with its interval, the kindest first.

    Filled marks exclude 0. Orange triangles lie above it (too kind), blue circles below.

    Raises
    ------
    DataError
        If no group has an interval.
    """
    groups = [g for g in audit.groups if g.bias is not None]
    if not groups:
        raise DataError(f"the audit of {name!r} has no group with an interval")
    groups.sort(key=lambda g: -_estimate(g))
    with style():
        figure, axes = canvas(0.85 + 0.56 * len(groups))
        y = 0.0
        for group in groups:
            draw_heading(axes, y, f"{group.group} ({group.n:,})")
            y += 0.85
            if group.bias is not None:
                kind = group.bias.estimate > 0
                draw_interval(
                    axes,
                    group.bias,
                    y,
                    side="other" if kind else "baseline",
                    marker="^" if kind else "o",
                    solid=group.bias.excludes(0),
                )
            y += 0.9
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
                f"{g.group}: {number(_estimate(g), digits=3, signed=True)} "
                f"{interval(g.bias, digits=3)}."
                for g in groups
            ),
        )


def _estimate(group: GroupBias) -> float:
    return 0.0 if group.bias is None else group.bias.estimate
