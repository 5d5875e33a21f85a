"""Length ratio, word overlap and cosine of all pairs of a source ([K] Fig. 3 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rag_sourcebias.report.format import number, source_name
from rag_sourcebias.report.pairs.names import VALUES
from rag_sourcebias.report.svg import COLOURS, canvas, plain_axes, render, style
from rag_sourcebias.types.explain_report import Histogram
from rag_sourcebias.types.pair_report import PairReport, SourcePairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["histogram_plot"]

_LABELS = {
    "length_ratio": "words of the rewrite per word of the original",
    "jaccard": "Jaccard: words in common of all words",
    "overlap": "overlap: share of the original's words kept",
    "cosine": "cosine of both vectors",
}


def histogram_plot(report: PairReport, part: SourcePairs, name: str, *, uid: str) -> str:
    """Return one value of all pairs of a source, with its thresholds, as SVG.

    Parameters
    ----------
    name : str
        Out of :attr:`SourcePairs.histograms`.
    """
    with style():
        figure, axes = canvas(2.6)
        _draw(axes, report, part, name)
        return render(
            figure,
            uid=uid,
            title=f"{VALUES[name]} of the pairs with {source_name(part.source)} documents",
            description=_describe(part, name),
        )


def _draw(axes: Axes, report: PairReport, part: SourcePairs, name: str) -> None:
    found = part.histograms[name]
    low, high = _span(found, name, part.by_chance if _is_chance(report, name) else None)
    widths = np.diff(found.edges)
    axes.bar(
        found.edges[:-1],
        found.counts,
        widths,
        align="edge",
        color=COLOURS["other"],
        alpha=0.75,
        linewidth=0,
    )
    axes.axvline(found.median, color=COLOURS["ink"], linewidth=1.6)
    for value in _thresholds(report, name):
        axes.axvline(value, color=COLOURS["muted"], linewidth=1.4, linestyle=":")
    if _is_chance(report, name) and part.by_chance is not None:
        axes.axvline(part.by_chance, color=COLOURS["muted"], linewidth=1.4, linestyle="--")
    axes.set_xlim(low, high)
    axes.set_ylim(bottom=0)
    # Without 0, which would stand beside that of the other axis.
    axes.locator_params(axis="y", nbins=4, integer=True, prune="lower")
    axes.set_xlabel(_LABELS[name])
    axes.set_ylabel("pairs")
    plain_axes(axes, grid="y")


def _span(found: Histogram, name: str, by_chance: float | None) -> tuple[float, float]:
    """Return the part of the axis that holds all pairs and marks."""
    if name == "length_ratio":
        last = int(np.flatnonzero(found.counts).max()) + 1
        return 0.0, max(2.1, float(found.edges[last]))
    if name == "cosine":
        first = float(found.edges[int(np.flatnonzero(found.counts).min())])
        ends = [first] if by_chance is None else [first, by_chance]
        return max(0.0, np.floor(10 * (min(ends) - 0.02)) / 10), 1.0
    return 0.0, 1.0


def _is_chance(report: PairReport, name: str) -> bool:
    return name == ("cosine" if report.encoder else "overlap")


def _thresholds(report: PairReport, name: str) -> tuple[float, ...]:
    t = report.thresholds
    if name == "length_ratio":
        return t.length_ratio or ()
    return () if name != "cosine" or t.cosine is None else (t.cosine,)


def _describe(part: SourcePairs, name: str) -> str:
    found = part.histograms[name]
    low, _, high = part.summary.quantiles[name]
    return (
        f"{VALUES[name]}: median {number(found.median, digits=2)}, from "
        f"{number(low, digits=2)} (5%) to {number(high, digits=2)} (95%)."
    )
