"""Pictures as data, and how each kind is drawn; none knows what its numbers are of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Literal, TypeAlias

from rag_sourcebias.report.svg import COLOURS, canvas, plain_axes, render, style

__all__ = ["HistogramPicture", "Line", "Picture", "draw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An upright line at a value."""

    at: float
    look: Literal["solid", "dotted", "dashed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramPicture:
    """How often values fall between edges.

    Parameters
    ----------
    edges : tuple of float
        One more than ``counts``.
    span : tuple of float
        Part of the axis that is shown.
    title, description : str
        For readers who do not see the picture.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    lines: tuple[Line, ...]
    span: tuple[float, float]
    x_label: str
    y_label: str
    title: str
    description: str


Picture: TypeAlias = HistogramPicture


@singledispatch
def draw(picture: Picture, *, uid: str) -> str:
    """Return a picture as SVG for a page.

    Parameters
    ----------
    uid : str
        Prefix of all ids in it.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    raise TypeError(f"no picture to draw as {uid!r}: {picture!r}")


@draw.register
def _histogram(picture: HistogramPicture, *, uid: str) -> str:
    looks = {
        "solid": (COLOURS["ink"], 1.6, "-"),
        "dotted": (COLOURS["muted"], 1.4, ":"),
        "dashed": (COLOURS["muted"], 1.4, "--"),
    }
    left, right = picture.edges[:-1], picture.edges[1:]
    with style():
        figure, axes = canvas(2.6)
        axes.bar(
            left,
            picture.counts,
            [b - a for a, b in zip(left, right, strict=True)],
            align="edge",
            color=COLOURS["other"],
            alpha=0.75,
            linewidth=0,
        )
        for line in picture.lines:
            colour, width, dashes = looks[line.look]
            axes.axvline(line.at, color=colour, linewidth=width, linestyle=dashes)
        axes.set_xlim(*picture.span)
        axes.set_ylim(bottom=0)
        # Without 0, which would stand beside that of the other axis.
        axes.locator_params(axis="y", nbins=4, integer=True, prune="lower")
        axes.set_xlabel(picture.x_label)
        axes.set_ylabel(picture.y_label)
        plain_axes(axes, grid="y")
        return render(figure, uid=uid, title=picture.title, description=picture.description)
