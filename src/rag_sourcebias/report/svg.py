"""Matplotlib figures as SVG that belongs in a web page.

Text stays text, colours become CSS variables so that a page decides on light or dark, every id
carries a prefix so that several pictures fit on one page, and a screen reader finds a title and
a description.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree as ET

from rag_sourcebias.errors import MissingExtraError
from rag_sourcebias.types.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "WIDTH",
    "canvas",
    "draw_interval",
    "draw_legend",
    "plain_axes",
    "render",
    "style",
]

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_SHORT = re.compile(r"(-?\d+\.\d\d)\d+")
_FONT = "var(--plot-font, system-ui, sans-serif)"

WIDTH = 5.0
"""Inches. 360 units of the view box, so that 12 units are 12 CSS pixels in a phone's column."""

# Matplotlib knows no CSS variables: it draws in these colours, which nothing else uses, and
# `render` puts the variable in their place. The fallback serves readers without our style sheet.
COLOURS = {
    "ink": "#010101",
    "muted": "#020202",
    "grid": "#030303",
    "paper": "#040404",
    "baseline": "#050505",
    "other": "#060606",
    "even": "#070707",
}
_CSS = {
    "ink": "var(--plot-ink, #1c1e21)",
    "muted": "var(--plot-muted, #5b6068)",
    "grid": "var(--plot-grid, #dcdfe4)",
    "paper": "var(--plot-paper, #ffffff)",
    "baseline": "var(--plot-baseline, #0b62a8)",
    "other": "var(--plot-other, #b34700)",
    "even": "var(--plot-even, #6b7078)",
}
_STYLE = {
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 11.5,
    "ytick.labelsize": 11.5,
    "text.color": COLOURS["ink"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.edgecolor": COLOURS["grid"],
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["muted"],
    "xtick.labelcolor": COLOURS["ink"],
    "ytick.labelcolor": COLOURS["ink"],
    "grid.color": COLOURS["grid"],
    "grid.linewidth": 0.8,
    "hatch.color": COLOURS["other"],
    "hatch.linewidth": 1.2,
    "axes.unicode_minus": True,
    "legend.fontsize": 11.5,
    "legend.frameon": False,
    # Names and labels are data: "$" in them must not start a formula.
    "text.parse_math": False,
    "text.usetex": False,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw with the report's settings, whatever the user's own matplotlib settings are.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise MissingExtraError(
            package="matplotlib", extra="report", feature="plots in a report"
        ) from error
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def canvas(height: float) -> tuple[Figure, Axes]:
    """Return an empty figure of the common width and its only axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def plain_axes(axes: Axes, *, grid: Literal["x", "y", "both"]) -> None:
    """Leave only what helps reading: no box, a light grid along ``grid`` ("x", "y" or "both")."""
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(side == "bottom" and grid == "y")
    axes.grid(axis=grid)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)


def draw_interval(
    axes: Axes, found: Interval, y: float, *, side: str, marker: str, solid: bool = True
) -> None:
    """Draw one interval as a line with a mark on it."""
    axes.plot(
        [found.lower, found.upper],
        [y, y],
        color=COLOURS[side],
        linewidth=2.2,
        solid_capstyle="butt",
        zorder=2,
    )
    axes.plot(
        [found.estimate],
        [y],
        marker,
        color=COLOURS[side],
        markersize=7,
        markeredgewidth=1.6,
        markerfacecolor=COLOURS[side if solid else "paper"],
        zorder=3,
    )


def draw_legend(axes: Axes, entries: Sequence[tuple[str, dict[str, Any]]], *, columns: int) -> None:
    """Put keys above the axes, where they cover no data."""
    for text, look in entries:
        axes.plot([], [], label=text, **look)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        borderaxespad=0.2,
        handletextpad=0.4,
        columnspacing=1.2,
    )


def render(figure: Figure, *, uid: str, title: str, description: str) -> str:
    """Return a figure as one ``<svg>`` element without size, ready to stand in HTML.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    uid : str
        Prefix of every id inside; unique on the page.
    title, description : str
        For readers who do not see the picture.
    """
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": uid}), warnings.catch_warnings():
        # Only the layout is drawn in matplotlib's font; the reader's browser has its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(
            buffer,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
        )
    ET.register_namespace("", _SVG)
    root = ET.fromstring(buffer.getvalue())
    _drop(root, "metadata", "style")
    _rewrite(root, uid)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib.update(
        {
            "role": "img",
            "width": "100%",
            "class": "plot",
            "stroke-linejoin": "round",
            "aria-labelledby": f"{uid}-title {uid}-desc",
        }
    )
    for place, (name, text) in enumerate((("title", title), ("desc", description))):
        child = ET.Element(f"{{{_SVG}}}{name}", {"id": f"{uid}-{name}"})
        child.text = text
        root.insert(place, child)
    return ET.tostring(root, encoding="unicode")


def _drop(root: ET.Element, *names: str) -> None:
    """Remove elements that would act on the whole page or say nothing to a reader."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in names:
                parent.remove(child)


def _rewrite(root: ET.Element, uid: str) -> None:
    for element in root.iter():
        if "id" in element.attrib:
            element.set("id", f"{uid}-{element.attrib['id']}")
        if _XLINK in element.attrib:
            element.set("href", f"#{uid}-{element.attrib.pop(_XLINK).lstrip('#')}")
        if "d" in element.attrib:
            element.set("d", " ".join(_SHORT.sub(r"\1", element.attrib["d"]).split()))
        if element.tag != f"{{{_SVG}}}text":
            element.text = (element.text or "").strip()
        element.tail = (element.tail or "").strip()
        for name, value in element.attrib.items():
            if name in ("style", "clip-path", "fill", "stroke"):
                element.set(name, _value(value, uid))


def _value(value: str, uid: str) -> str:
    value = re.sub(r"url\(#([^)]+)\)", rf"url(#{uid}-\1)", value)
    # The first size in points or pixels, then everything up to the next declaration: the family.
    value = re.sub(r"(font:[^;]*?[\d.]+px) [^;]+", rf"\1 {_FONT}", value)
    value = re.sub(r"font-family:[^;]+", f"font-family: {_FONT}", value)
    for role, colour in COLOURS.items():
        value = value.replace(colour, _CSS[role])
    return value
