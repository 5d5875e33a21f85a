"""Both versions of documents in a plane ([K] Fig. 4)."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.report.explanation.names import base_of, names_of
from rag_sourcebias.report.format import count, number, shorten
from rag_sourcebias.report.svg import COLOURS, canvas, draw_legend, plain_axes, render, style
from rag_sourcebias.types.explain import VectorMap
from rag_sourcebias.types.explain_report import ExplainReport, SourceExplanation

__all__ = ["MAPS", "MOST", "map_caption", "map_plot"]

MAPS = {"pca": "PCA", "tsne": "t-SNE", "umap": "UMAP"}
MOST = 500
_JOINED = 200  # more lines between versions than this are a blur


def map_caption(found: VectorMap) -> str:
    """Return the method and how many of the pairs are drawn."""
    n = len(found.human)
    text = MAPS.get(found.method, found.method)
    if found.variance_shares:
        shares = sum(found.variance_shares)
        text += f", {number(100 * shares)}% of the variance"
    drawn = f"{count(n)} pairs" if n <= MOST else f"{count(MOST)} of {count(n)} pairs drawn"
    return f"{text}, {drawn}"


def map_plot(report: ExplainReport, explained: SourceExplanation, *, uid: str) -> str:
    """Each version as a mark: blue circles the baseline, orange triangles the other.

    At most 500 pairs are drawn, evenly spread over the rows; few pairs are joined by lines.
    """
    found = explained.map
    if found is None:
        return ""
    rows = np.unique(np.linspace(0, len(found.human) - 1, min(MOST, len(found.human))).astype(int))
    human, other = found.human[rows], found.other[rows]
    names = (base_of(report), names_of(report)[explained.source])
    size = 20 if len(rows) <= _JOINED else 11
    with style():
        figure, axes = canvas(4.9)
        if len(rows) <= _JOINED:
            axes.plot(
                [human[:, 0], other[:, 0]],
                [human[:, 1], other[:, 1]],
                color=COLOURS["muted"],
                linewidth=0.6,
                alpha=0.5,
                zorder=1,
            )
        looks = []
        for name, places, side, marker in (
            (names[0], human, "baseline", "o"),
            (names[1], other, "other", "^"),
        ):
            axes.scatter(
                places[:, 0],
                places[:, 1],
                s=size,
                marker=marker,
                facecolor=COLOURS[side],
                edgecolor=COLOURS["paper"],
                linewidth=0.4,
                alpha=0.7,
                zorder=3,
            )
            look = {"color": COLOURS[side], "marker": marker, "linestyle": "none", "markersize": 7}
            looks.append((shorten(name, 20), look))
        draw_legend(axes, looks, columns=2)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xticklabels([])
        axes.set_yticklabels([])
        axes.set_xlabel(_axis(found, 0))
        axes.set_ylabel(_axis(found, 1))
        plain_axes(axes, grid="both")
        return render(
            figure,
            uid=uid,
            title=f"Vectors of {names[0]} and {names[1]} versions in a plane",
            description=f"{map_caption(found)}.",
        )


def _axis(found: VectorMap, place: int) -> str:
    name = f"axis {place + 1}"
    if len(found.variance_shares) <= place:
        return name
    return f"{name}, {number(100 * found.variance_shares[place])}% of variance"
