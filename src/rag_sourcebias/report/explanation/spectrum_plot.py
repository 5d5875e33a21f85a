"""Relative singular values of two sources, with the band that holds all of them ([K] Fig. 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rag_sourcebias.report.explanation.names import base_of, names_of, percent_ends
from rag_sourcebias.report.explanation.vector_words import prepared
from rag_sourcebias.report.format import count, level, shorten
from rag_sourcebias.report.svg import COLOURS, canvas, draw_legend, plain_axes, render, style
from rag_sourcebias.types.explain import SpectrumComparison
from rag_sourcebias.types.explain_report import ExplainReport, SourceExplanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["spectrum_caption", "spectrum_plot"]

_NARROWEST = 2.0  # percent: less than this is nothing to see


def spectrum_caption(found: SpectrumComparison) -> str:
    """Return how the picture was made."""
    text = (
        f"Relative singular values: {prepared(found)}; {count(found.n)} pairs, "
        f"{level(found.confidence_level)} band from {count(found.resamples)} resamples"
    )
    held = found.n_supported
    return text if held == len(found.human) else f"{text}, which end at value {count(held)}"


def spectrum_plot(report: ExplainReport, explained: SourceExplanation, *, uid: str) -> str:
    """(other − human) / human of every singular value, in percent.

    The band holds all values at once; the two bars are the mean over the first tenth and over the
    last half, with their intervals. Ends of the band may leave the picture.
    """
    found = explained.spectrum
    if found is None:
        return ""
    m = len(found.human)
    index, held = np.arange(1, m + 1), found.n_supported
    base, other = (shorten(n, 20) for n in (base_of(report), names_of(report)[explained.source]))
    with style():
        figure, axes = canvas(3.7)
        axes.fill_between(
            index[:held],
            found.band_lower[:held],
            found.band_upper[:held],
            color=COLOURS["other"],
            alpha=0.18,
            linewidth=0,
            zorder=1,
        )
        axes.axhline(0, color=COLOURS["muted"], linewidth=1.1, zorder=1.5)
        axes.plot(index, found.difference, color=COLOURS["other"], linewidth=1.5, zorder=3)
        _means(axes, found, m)
        axes.set(xlim=(0, m + 1), ylim=_limits(found))
        axes.set_xlabel("index of the singular value, largest first")
        axes.set_ylabel(f"{other} against {base}, %")
        draw_legend(
            axes,
            [
                ("each value", {"color": COLOURS["other"], "linewidth": 1.5}),
                ("band of all", {"color": COLOURS["other"], "linewidth": 7, "alpha": 0.25}),
                ("mean, head and tail", {"color": COLOURS["ink"], "linewidth": 2.6}),
            ],
            columns=2,
        )
        plain_axes(axes, grid="y")
        return render(
            figure,
            uid=uid,
            title=f"Singular values of {other} vectors relative to {base} ones",
            description=f"{spectrum_caption(found)}. {_described(found)}.",
        )


def _described(found: SpectrumComparison) -> str:
    head = f"First tenth {percent_ends(found.head)}"
    return head if found.tail is None else f"{head}, last half {percent_ends(found.tail)}"


def _means(axes: Axes, found: SpectrumComparison, m: int) -> None:
    for part, start, end in (
        (found.head, 1, max(1, m // 10)),
        (found.tail, m // 2 + 1, m),
    ):
        if part is None:
            continue
        width = max(end - start, m / 60)
        axes.fill_between(
            [start, start + width], part.lower, part.upper, color=COLOURS["ink"], alpha=0.22,
            linewidth=0, zorder=3.5,
        )  # fmt: skip
        axes.plot(
            [start, start + width],
            [part.estimate] * 2,
            color=COLOURS["ink"],
            linewidth=2.6,
            solid_capstyle="butt",
            zorder=4,
        )


def _limits(found: SpectrumComparison) -> tuple[float, float]:
    """Hold every value and both means, and most of the band."""
    parts = [found.head, *(() if found.tail is None else (found.tail,))]
    ends = [end for part in parts for end in (part.lower, part.upper)]
    values = [*found.difference, *ends, -_NARROWEST, _NARROWEST]
    held = found.n_supported
    low = min(*values, float(np.quantile(found.band_lower[:held], 0.1)))
    high = max(*values, float(np.quantile(found.band_upper[:held], 0.9)))
    margin = 0.05 * (high - low)
    return low - margin, high + margin
