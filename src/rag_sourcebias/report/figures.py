"""Figures of reports: what they show, as data, and their SVG, which belongs in a web page."""

from __future__ import annotations

import io
import json
import math
import re
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from xml.etree import ElementTree as ET

from rag_sourcebias.core.errors import import_extra
from rag_sourcebias.core.finding import Interval, number, shorten

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


# As data: what they show, not how it is drawn.
# A colour is a role: "baseline" (blue, round), "other" (orange, triangle, dashed), "even" (grey,
# square, dash-dotted), "ink" and "muted"; each has its own shape of mark and of line, so that
# nothing rests on colour alone.


Colour: TypeAlias = Literal["baseline", "other", "even", "ink", "muted", "grid"]
Ends: TypeAlias = tuple[float, float]
Key: TypeAlias = tuple[str, Colour, bool]  # what a mark stands for, its colour, is it filled?


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One direction of a picture.

    Parameters
    ----------
    span : tuple of float or None
        Ends of what is shown; None for an end that the data choose.
    ticks : tuple of (float, str)
        Places that carry a text; round numbers where there is none.
    digits : int
        Decimals of its values in words.
    """

    label: str = ""
    span: tuple[float | None, float | None] = (None, None)
    ticks: tuple[tuple[float, str], ...] = ()
    digits: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """A line across a picture, or a band of it where there is ``to``.

    Parameters
    ----------
    level : bool
        At a value of the upright axis.
    name : str
        In the key.
    """

    at: float
    to: float | None = None
    level: bool = False
    look: Literal["solid", "dashed", "dotted"] = "solid"
    colour: Colour = "muted"
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    """What every picture has.

    Parameters
    ----------
    title, description : str
        For readers who do not see it; the description is made from the data where it is empty.
    guides : tuple of Guide
        Values to mark, such as a mean.
    """

    title: str
    description: str = ""
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    guides: tuple[Guide, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One estimate of a row, with an interval or without."""

    at: float
    ends: Ends | None = None
    colour: Colour = "even"
    solid: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a picture of intervals.

    Parameters
    ----------
    group : str
        Heading over the rows that share it.
    marks : tuple of Mark
        One below the other.
    ticks : tuple of float
        Short upright lines, such as what chance alone would give.
    box : tuple of float
        Five quantiles, drawn behind the marks.
    note : str
        Words beside the marks, such as "no interval".
    """

    label: str = ""
    group: str = ""
    marks: tuple[Mark, ...] = ()
    ticks: tuple[float, ...] = ()
    box: tuple[float, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals(_Picture):
    """Estimates with intervals, one row each.

    Parameters
    ----------
    keys : tuple of (text, colour, solid)
        Explained above the rows, and said of each mark in words.
    filled : str
        What a filled mark stands for, in words, where the keys do not say.
    joined : bool
        An arrow leads from each mark of a row to the next.
    """

    rows: tuple[Row, ...]
    keys: tuple[Key, ...] = ()
    filled: str = ""
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Values of y over x.

    Parameters
    ----------
    name : str
        In the key.
    ends : tuple of tuple of float
        Interval of each, drawn upright, or as a ``band``.
    marked : bool
        Draw a mark for each value, in the shape of its colour.
    line : bool
        Join the values.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    colour: Colour = "baseline"
    name: str = ""
    ends: tuple[Ends, ...] = ()
    band: bool = False
    marked: bool = True
    line: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Points(_Picture):
    """Marks over one axis or two.

    Parameters
    ----------
    joined : bool
        A thin line leads from each mark of the first curve to that of the second.
    square : bool
        Both axes have one scale.
    """

    curves: tuple[Curve, ...]
    joined: bool = False
    square: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(_Picture):
    """Curves with bands or with intervals; a curve without ``line`` is marks only."""

    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """One distribution of a histogram: a height for every bin."""

    heights: tuple[float, ...]
    colour: Colour = "other"
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(_Picture):
    """How often values fall between edges.

    Parameters
    ----------
    edges : tuple of float
        One more than the bins.
    """

    bars: tuple[Bars, ...]
    edges: tuple[float, ...]


def mark(
    found: Interval | None,
    colour: Colour,
    *,
    at: float | None = None,
    solid: bool = True,
) -> Mark:
    """Return an interval as a mark; ``at`` where there may be an estimate alone."""
    if found is None:
        return Mark(at=0.0 if at is None else at, colour=colour, solid=solid)
    value = found.estimate if at is None else at
    return Mark(at=value, ends=(found.lower, found.upper), colour=colour, solid=solid)


def aligned(pictures: Sequence[Intervals]) -> tuple[Intervals, ...]:
    """Put pictures on one scale, so that they can be compared; a span that is given stays."""
    rows = [row for picture in pictures for row in picture.rows]
    values = [
        *(v for p in pictures for g in p.guides for v in (g.at, g.to) if v is not None),
        *(v for row in rows for v in (*row.ticks, *row.box)),
        *([v for row in rows for m in row.marks for v in (m.at, *(m.ends or ()))] or [0.0]),
    ]
    margin = 0.04 * (max(values) - min(values)) or 0.5
    ends = (min(values) - margin, max(values) + margin)

    def spanned(axis: Axis) -> Axis:
        first, last = (e if e is not None else a for e, a in zip(axis.span, ends, strict=True))
        return replace(axis, span=(first, last))

    return tuple(replace(picture, x=spanned(picture.x)) for picture in pictures)


def distinct(names: Sequence[str], width: int) -> list[str]:
    """Shorten names to a width, but never so that two of them look the same."""
    short = [shorten(name, width) for name in names]
    numbered = [f"{place}. {shorten(name, width - 4)}" for place, name in enumerate(names, 1)]
    return short if len(set(short)) == len(set(names)) else numbered


Picture: TypeAlias = Intervals | Points | Lines | Histogram


# Drawn by matplotlib.
# Text stays text, colours become CSS variables so that a page decides on light or dark, every id
# carries a prefix so that several pictures fit on one page, and a screen reader finds a title and
# a description.


_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_SHORT = re.compile(r"(-?\d+\.\d\d)\d+")
_FONT = "var(--plot-font, system-ui, sans-serif)"
_TIPS = "tips"  # how the id of a group of marks starts that carries their words

# Matplotlib knows no CSS variables: it draws in these colours, which nothing else uses, and
# `_value` puts the variable in their place. The fallback serves readers without our style sheet.
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

#: Inches. 360 units of the view box, so that 12 units are 12 CSS pixels in a phone's column.
_WIDTH = 5.0

_PAD = 0.04  # inches around a picture
_STYLE = {
    "svg.fonttype": "none",
    "figure.dpi": 72,  # of a saved SVG
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
    "axes.unicode_minus": True,
    "legend.fontsize": 11.5,
    "legend.frameon": False,
    # Names and labels are data: "$" in them must not start a formula.
    "text.parse_math": False,
    "text.usetex": False,
}


def _canvas(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height))
    return figure, figure.subplots()


def _plain_axes(axes: Axes, *, grid: Literal["x", "y", "both"]) -> None:
    """Leave only what helps reading: no box, a light grid along ``grid``."""
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(side == "bottom" and grid == "y")
    axes.grid(axis=grid)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)


# A colour has its mark and its dashes.

_MARKS = {"baseline": "o", "other": "^", "even": "s", "ink": "D", "muted": "x"}
_DASHES: dict[str, Any] = {
    "solid": "-", "dashed": (0, (4, 3)), "dotted": ":",
    "baseline": "-", "other": (0, (5, 2)), "even": "-.", "ink": "-", "muted": "-",
}  # fmt: skip
_OVER_ROWS: dict[str, Any] = {
    "xycoords": ("figure fraction", "data"),
    "va": "center",
    "fontweight": "bold",
    "annotation_clip": False,
    "bbox": {"facecolor": COLOURS["paper"], "edgecolor": "none", "pad": 1.5},
}
_HEADING, _LABEL, _KEYS = 44, 22, 46  # characters
_BELOW, _UNDER_HEADING, _UNIT = 0.6, 0.95, 0.25  # between marks of a row; a row in inches
_SAID, _TOLD = 40, 400  # values of a curve in words; on hover


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
    mpl = import_extra("matplotlib", "matplotlib", "report", "plots in a report")
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    said, buffer = picture.description or describe(picture), io.StringIO()
    # Whatever the user's own settings are; the same ids every time.
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update({**_STYLE, "svg.hashsalt": uid})
        # Only the layout is drawn in matplotlib's font; the reader's browser has its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = _DRAWN[type(picture)](picture)
        FigureCanvasSVG(figure)
        _fit(figure)
        figure.savefig(
            buffer,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
        )
    # Elements that would act on the whole page, or say nothing to a reader.
    return for_a_page(
        re.sub(r"<(metadata|style)\b.*?</\1>", "", buffer.getvalue(), flags=re.DOTALL),
        uid,
        {"title": picture.title, "desc": said},
    )


def _fit(figure: Figure) -> None:
    """Give the axes all that its labels and keys leave of the figure.

    Measured once: matplotlib's own layouts do it twice and draw the figure once more, for labels
    whose number depends on the size of the axes, which ours does not.
    """
    (axes,) = figure.axes
    outer = axes.get_tightbbox(for_layout_only=True) or figure.bbox
    low, high = outer.transformed(figure.transFigure.inverted()).get_points()
    (first, last), pad = axes.get_position().get_points(), _PAD / figure.get_size_inches()
    (left, bottom), (right, top) = first - low + pad, 1 + last - high - pad
    figure.subplots_adjust(left=left, bottom=bottom, right=right, top=top)


def describe(picture: Picture) -> str:
    """Say in words what a picture shows, for readers who do not see it."""
    said: Iterable[str] = ()
    match picture:
        case Intervals():
            said = _said_rows(picture)
        case Points() | Lines():
            said = (_said_curve(picture, curve) for curve in picture.curves)
    return " ".join(said)


def _said_rows(picture: Intervals) -> Iterator[str]:
    say, group = partial(_said_mark, picture), ""
    for row in picture.rows:
        if row.group != group:
            group = row.group
            yield f"{group}:"
        said = ", ".join(filter(None, (*map(say, row.marks), row.note)))
        yield f"{row.label}{': ' if row.label else ''}{said}."


def _said_mark(picture: Intervals, mark: Mark) -> str:
    told = {key[1:]: key[0] for key in picture.keys}
    word = told.get((mark.colour, mark.solid), picture.filled if mark.solid and mark.ends else "")
    return _valued(mark.at, mark.ends, picture.x) + (f" ({word})" if word else "")


def _valued(at: float, ends: Ends | None, axis: Axis) -> str:
    text = number(at, digits=axis.digits)
    if ends is None:
        return text
    low, high = (number(end, digits=axis.digits) for end in ends)
    return f"{text} [{low}, {high}]"


def _said_curve(picture: Points | Lines, curve: Curve) -> str:
    name = f"{curve.name}: " if curve.name else ""
    if not 0 < len(curve.x) <= _SAID:
        return f"{name}{len(curve.x):,} values."
    return f"{name}{'; '.join(_said_values(picture, curve))}."


def _said_values(picture: Points | Lines, curve: Curve) -> list[str]:
    ticks, say = dict(picture.x.ticks), partial(number, digits=picture.x.digits)
    places = [ticks.get(x) or say(x) for x in curve.x]
    return [
        f"{at}: {_valued(y, ends, picture.y)}"
        for at, y, ends in zip_longest(places, curve.y, curve.ends)
    ]


def _look(colour: str, *, solid: bool = True, size: float = 7) -> dict[str, Any]:
    """Return how a mark is drawn, on a picture and in its key."""
    return {
        "color": COLOURS[colour],
        "marker": _MARKS[colour],
        "markersize": size,
        "markeredgewidth": 1.6,
        "markerfacecolor": COLOURS[colour if solid else "paper"],
        "linestyle": "none",
    }


def _axis(axes: Axes, which: Literal["x", "y"], axis: Axis) -> None:
    """Set the ends, the ticks and the label of one direction, for what is drawn."""
    drawn = getattr(axes.dataLim, f"interval{which}")
    low, high = sorted(drawn) if math.isfinite(sum(drawn)) else (0.0, 1.0)
    margin = 0.04 * (high - low) or 0.5
    around = (low - margin, high + margin)
    low, high = (e if given is None else given for e, given in zip(around, axis.span, strict=True))
    axes.set(**{f"{which}label": axis.label, f"{which}lim": (low, high)})
    if axis.ticks:
        places, texts = zip(*axis.ticks, strict=True)
        turned = {"rotation": 55, "ha": "right", "rotation_mode": "anchor"}
        crowded = which == "x" and sum(len(text) + 1 for text in texts) > 2 * _LABEL
        getattr(axes, f"set_{which}ticks")(places, texts, **(turned if crowded else {}))
    else:
        axes.locator_params(axis=which, nbins=8 if which == "x" else 6)


def _guides(axes: Axes, guides: Iterable[Guide]) -> None:
    for g in guides:
        if g.to is None:
            line = axes.axhline if g.level else axes.axvline
            line(
                g.at, color=COLOURS[g.colour], linestyle=_DASHES[g.look],
                linewidth=1.4 if g.look == "dotted" else 1.2, zorder=1,
            )  # fmt: skip
        else:
            band = axes.axhspan if g.level else axes.axvspan
            band(
                g.at, g.to, color=COLOURS[g.colour],
                alpha=0.55 if g.colour == "grid" else 0.13, linewidth=0, zorder=0,
            )  # fmt: skip


def _keys(axes: Axes, entries: Iterable[tuple[str, dict[str, Any]]], *, beside: int = 4) -> None:
    """Put keys above the axes, in two columns where the names ``beside`` leave room."""
    known = {text: look for text, look in entries if text}
    for text, look in known.items():
        axes.plot([0], [math.nan], label=text, **look)
    if known:
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1),
            ncols=2 if 2 * max(map(len, known)) + beside <= _KEYS else 1,
            borderaxespad=0.2, handletextpad=0.4, columnspacing=1.2,
        )  # fmt: skip


def _guide_keys(guides: Iterable[Guide]) -> Iterator[tuple[str, dict[str, Any]]]:
    for g in guides:
        look = {"color": COLOURS[g.colour], "linestyle": _DASHES[g.look], "linewidth": 1.4}
        yield g.name, look if g.to is None else {**look, "linewidth": 7, "alpha": 0.4}


# Intervals


def _intervals(picture: Intervals) -> Figure:
    places, headings, y, group = [], [], 0.0, ""
    for row in picture.rows:
        if row.group != group:
            group = row.group
            headings.append((y + 0.75, group))
            y += 0.75 + _UNDER_HEADING
        places.append([y + _BELOW * i for i in range(len(row.marks))] or [y])
        y = places[-1][-1] + 1.0
    names = distinct([row.label for row in picture.rows], _LABEL)
    figure, axes = _canvas(0.75 + _UNIT * y + 0.3 * bool(picture.keys))
    axes.set_ylim(y - 0.4, 0.3 if headings else -0.6)
    axes.set_yticks([(ys[0] + ys[-1]) / 2 for ys in places], names)
    for at, text in headings:
        # From the left edge of the picture.
        axes.annotate(shorten(text, _HEADING), (0, at), **_OVER_ROWS).set_in_layout(False)
    for row, ys in zip(picture.rows, places, strict=True):
        _row(axes, picture, row, ys)
    _guides(axes, picture.guides)
    _axis(axes, "x", picture.x)
    line = {"linestyle": "-", "linewidth": 2.2}
    spanned = {mark.colour for row in picture.rows for mark in row.marks if mark.ends}
    entries = (
        (text, {**_look(colour, solid=s), **(line if colour in spanned else {})})
        for text, colour, s in picture.keys
    )
    _keys(axes, (*entries, *_guide_keys(picture.guides)), beside=max(map(len, names), default=0))
    _plain_axes(axes, grid="x")
    return figure


def _row(axes: Axes, picture: Intervals, row: Row, ys: Sequence[float]) -> None:
    middle, uprights = (ys[0] + ys[-1]) / 2, [(at, "ink") for at in row.ticks]
    if row.box:
        low, first, median, third, high = row.box
        colour = row.marks[0].colour
        _level(axes, (low, high), middle, colour, 1.1)
        axes.barh(
            middle, third - first, 0.7, left=first, color=COLOURS[colour], alpha=0.3, zorder=1.6
        )
        uprights.append((median, colour))
    for at, side in uprights:
        axes.plot(
            [at, at], [middle - 0.36, middle + 0.36], color=COLOURS[side], linewidth=1.6, zorder=4
        )
    for i, (one, other) in enumerate(pairwise(row.marks)):
        if picture.joined and not math.isclose(one.at, other.at):
            arrow = {"arrowstyle": "->", "color": COLOURS["muted"], "shrinkA": 4, "shrinkB": 5}
            axes.annotate("", (other.at, ys[i + 1]), (one.at, ys[i]), arrowprops=arrow, zorder=1.5)
    for mark, y in zip(row.marks, ys, strict=False):
        drawn = _level(axes, mark.ends or (), y, "ink" if row.box else mark.colour, 2.2)
        drawn += axes.plot([mark.at], [y], **_look(mark.colour, solid=mark.solid), zorder=3)
        words = ": ".join(filter(None, (row.group, row.label, _said_mark(picture, mark))))
        tipped(drawn, [words])
    axes.text(
        0.99, ys[-1], row.note, color=COLOURS["muted"], fontsize=11.5, ha="right", va="center",
        transform=axes.get_yaxis_transform(),
    )  # fmt: skip


def _level(axes: Axes, ends: Sequence[float], y: float, colour: str, wide: float) -> list[Line2D]:
    return axes.plot(
        ends,
        [y] * len(ends),
        color=COLOURS[colour],
        linewidth=wide,
        solid_capstyle="butt",
        zorder=2,
    )


# Points and lines


def _curves(picture: Points | Lines) -> Figure:
    square = isinstance(picture, Points) and picture.square
    figure, axes = _canvas(5.2 if square else 3.9)
    curves = picture.curves
    _guides(axes, picture.guides)
    if isinstance(picture, Points) and picture.joined:
        first, second = curves[:2]
        axes.plot(
            [first.x, second.x], [first.y, second.y],
            color=COLOURS["muted"], linewidth=0.7, alpha=0.6,
        )  # fmt: skip
    for curve in curves:
        _curve(axes, picture, curve)
    _axis(axes, "x", picture.x)
    _axis(axes, "y", picture.y)
    if square:
        axes.set_autoscale_on(picture.x.span[0] is None)  # else matplotlib warns of what it widens
        axes.set_aspect("equal", adjustable="datalim" if picture.x.span[0] is None else "box")
    _keys(axes, [*((c.name, _curve_look(c)) for c in curves), *_guide_keys(picture.guides)])
    _plain_axes(axes, grid="both" if isinstance(picture, Points) else "y")
    return figure


def _curve_look(curve: Curve) -> dict[str, Any]:
    size = 5.5 if curve.line else min(7.0, max(1.8, 7 * math.sqrt(30 / max(len(curve.x), 1))))
    look = _look(curve.colour, size=size)
    if not curve.marked:
        look["marker"] = "none"
    if curve.line or not curve.marked:  # of intervals alone, in the key
        look |= {"linestyle": "-", "linewidth": 1.6}
    return look


def _curve(axes: Axes, picture: Points | Lines, curve: Curve) -> None:
    look, colour = _curve_look(curve), COLOURS[curve.colour]
    # Marks outside the picture are not drawn, or at its edge: none says whose words are whose.
    told = len(curve.x) <= _TOLD and all(
        (axis.span[0] is None or axis.span[0] <= min(values))
        and (axis.span[1] is None or max(values) <= axis.span[1])
        for axis, values in ((picture.x, curve.x), (picture.y, curve.y))
        if values
    )
    name = f"{curve.name}: " if curve.name else ""
    words = [name + text for text in _said_values(picture, curve)] if told else []
    if curve.ends and curve.band:
        low, high = zip(*curve.ends, strict=True)
        axes.fill_between(curve.x, low, high, color=colour, alpha=0.18, linewidth=0, zorder=1)
    elif curve.ends:
        # All as one path: a page with a thousand of them stays small.
        axes.plot(
            [v for at in curve.x for v in (at, at, math.nan)],
            [v for ends in curve.ends for v in (*ends, math.nan)],
            color=colour,
            linewidth=min(2.2, max(0.5, 170 / len(curve.x))),
            solid_capstyle="butt",
            zorder=2,
        )
    if curve.line:
        axes.plot(curve.x, curve.y, **{**look, "marker": "none"}, zorder=2.5)
    if curve.marked:
        tipped(axes.plot(curve.x, curve.y, **{**look, "linestyle": "none"}, zorder=3.5), words)


# Histogram


def _histogram(picture: Histogram) -> Figure:
    n, keys = len(picture.bars), []
    figure, axes = _canvas(2.6 if n == 1 else 3.2)
    for bars in picture.bars:
        colour, dashes = COLOURS[bars.colour], _DASHES[bars.colour]
        keys.append((bars.name, {"linewidth": 5, "color": colour}))
        alpha = 0.75 if n == 1 else 0.22
        axes.stairs(bars.heights, picture.edges, fill=True, alpha=alpha, color=colour)
        if n > 1:
            axes.stairs(bars.heights, picture.edges, linewidth=1.5, ls=dashes, color=colour)
    _guides(axes, picture.guides)
    _axis(axes, "x", picture.x)
    _axis(axes, "y", replace(picture.y, span=(0, None)))
    # Without 0, which would stand beside that of the other axis.
    axes.locator_params(axis="y", nbins=4, prune="lower")
    _keys(axes, [*keys, *_guide_keys(picture.guides)])
    _plain_axes(axes, grid="y")
    return figure


_DRAWN: dict[type[Any], Callable[[Any], Figure]] = {
    Intervals: _intervals,
    Points: _curves,
    Lines: _curves,
    Histogram: _histogram,
}


# What matplotlib draws, made to stand in a web page: colours, ids, and values on hover.


def tipped(artists: Iterable[Artist], words: Sequence[str]) -> None:
    """Have each artist say words on hover: one text of it as a whole, or one for each mark."""
    for artist in artists:
        artist.set_gid(_TIPS + json.dumps(words))


def for_a_page(text: str, uid: str, words: Mapping[str, str]) -> str:
    """Return an ``<svg>`` element without size, ready to stand in HTML beside others."""
    ET.register_namespace("", _SVG)
    root = ET.fromstring(text)
    _say(root)
    _drop(root, set(re.findall(r"#([\w.-]+)", text)))
    for element in root.iter():
        if element.tag != f"{{{_SVG}}}text":
            element.text = (element.text or "").strip()
        element.tail = (element.tail or "").strip()
        if _XLINK in element.attrib:
            element.set("href", f"#{uid}-{element.attrib.pop(_XLINK).lstrip('#')}")
        for name, value in element.attrib.items():
            element.set(name, _value(name, value, uid))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {
        "role": "img", "width": "100%", "class": "plot", "stroke-linejoin": "round",
        "aria-labelledby": f"{uid}-title {uid}-desc",
    }  # fmt: skip
    for place, (name, words_) in enumerate(words.items()):
        child = ET.Element(f"{{{_SVG}}}{name}", {"id": f"{uid}-{name}"})
        child.text = words_
        root.insert(place, child)
    return ET.tostring(root, encoding="unicode")


def _drop(root: ET.Element, referred: Container[str]) -> None:
    """Leave out what shows nothing: unused ids, turns by 0, paths without ink, empty groups."""
    # From the inside out: a group of empty groups is empty in the end.
    for element in reversed(list(root.iter())):
        if element.get("id") not in referred:
            element.attrib.pop("id", None)
        if element.get("transform", "").startswith("rotate(-0 "):
            element.attrib.pop("transform")
        for child in list(element):
            empty = child.tag in (f"{{{_SVG}}}g", f"{{{_SVG}}}defs") and not len(child)
            if empty or child.get("style") == "fill: none":
                element.remove(child)


def _value(name: str, value: str, uid: str) -> str:
    """Return an attribute with ids of this picture, short numbers, and what the page decides."""
    if name == "id":
        return f"{uid}-{value}"
    if name in ("d", "x", "y", "transform"):
        return " ".join(_SHORT.sub(r"\1", value).split())
    value = re.sub(r"url\(#([^)]+)\)", rf"url(#{uid}-\1)", value)
    # The first size in points or pixels, then everything up to the next declaration: the family.
    value = re.sub(r"(font:[^;]*?[\d.]+px) [^;]+", rf"\1 {_FONT}", value)
    value = re.sub(r"font-family:[^;]+", f"font-family: {_FONT}", value)
    for role, colour in COLOURS.items():
        value = value.replace(colour, _CSS[role])
    return value


def _say(root: ET.Element) -> None:
    """Give marks the words that the ids of their groups hold, as titles that a browser shows."""
    for group in list(root.iter(f"{{{_SVG}}}g")):
        if not group.get("id", "").startswith(_TIPS) or not len(group):
            continue
        words = json.loads(group.attrib.pop("id")[len(_TIPS) :])
        found = ([*group.iter(f"{{{_SVG}}}{name}")] for name in ("use", "path"))
        marks = [group] if len(words) == 1 else next(filter(None, found), [])
        # Of values that are not drawn nobody knows which of the words are theirs.
        for mark, text in zip(marks, words, strict=True) if len(marks) == len(words) else ():
            ET.SubElement(mark, f"{{{_SVG}}}title").text = text
