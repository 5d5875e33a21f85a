"""The six pictures of all reports, as data: what they show, not how it is drawn.

A colour is a role: "baseline" (blue, round), "other" (orange, triangle, dashed), "even" (grey,
square, dash-dotted), "ink" and "muted"; each has its own shape of mark and of line, so that nothing
rests on colour alone. :mod:`rag_sourcebias.report.svg` draws them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from rag_sourcebias.core.interval import Interval

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
    signed : bool
        Values above 0 carry a plus in words.
    """

    label: str = ""
    span: tuple[float | None, float | None] = (None, None)
    ticks: tuple[tuple[float, str], ...] = ()
    log: bool = False
    digits: int = 1
    signed: bool = False


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
    ticked : str
        What the ticks stand for, in words.
    joined : {"", "line", "arrow"}
        How the marks of a row are joined.
    bars : bool
        Draw a bar from 0 to each mark.
    """

    rows: tuple[Row, ...]
    keys: tuple[Key, ...] = ()
    filled: str = ""
    ticked: str = ""
    joined: Literal["", "line", "arrow"] = ""
    bars: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Values of y over x.

    Parameters
    ----------
    name : str
        In the key.
    ends : tuple of tuple of float
        Interval of each, drawn upright, or as a ``band``.
    mark : str
        "" for the shape of its colour.
    line : str
        What joins the values; "colour" for the dashes of its colour.
    hollow : tuple of int
        Places of the marks that are not filled.
    sizes : tuple of float
        Areas of the marks, relative to the largest of all curves.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    colour: Colour = "baseline"
    name: str = ""
    ends: tuple[Ends, ...] = ()
    band: bool = False
    mark: Literal["", "none", "dot", "dash", "cross", "tick", "ring"] = ""
    line: Literal["", "colour", "solid", "dashed", "dotted"] = ""
    hollow: tuple[int, ...] = ()
    sizes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Points(_Picture):
    """Marks over one axis or two.

    Parameters
    ----------
    names : tuple of str
        Written beside the marks of the first curve.
    joined : bool
        A thin line leads from each mark of the first curve to that of the second.
    square : bool
        Both axes have one scale.
    """

    curves: tuple[Curve, ...]
    names: tuple[str, ...] = ()
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
    """How often values fall between edges, or into categories side by side.

    Parameters
    ----------
    edges : tuple of float
        One more than the bins; none where there are ``categories``.
    """

    bars: tuple[Bars, ...]
    edges: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap(_Picture):
    """A table of numbers, coloured by their distance from the middle.

    Parameters
    ----------
    middle, reach : float
        Below the middle is the baseline's colour; full strength is reached at this distance.
    strong, framed : tuple of (int, int)
        Row and column of the cells in bold, and of those with a frame.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    middle: float
    reach: float
    strong: tuple[tuple[int, int], ...] = ()
    framed: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Slopes(_Picture):
    """Places of names in several orders; a line that leaves the first order is dashed.

    Parameters
    ----------
    lines : tuple of (str, tuple of int)
        A name with its place in each order, from 1.
    """

    orders: tuple[str, ...]
    lines: tuple[tuple[str, tuple[int, ...]], ...]


def mark(
    found: Interval | None,
    colour: Colour,
    *,
    at: float | None = None,
    scale: float = 1,
    solid: bool = True,
) -> Mark:
    """Return an interval as a mark; ``at`` (not scaled) where there may be an estimate alone."""
    if found is None:
        return Mark(at=0.0 if at is None else at, colour=colour, solid=solid)
    return Mark(
        at=scale * found.estimate if at is None else at,
        ends=(scale * found.lower, scale * found.upper),
        colour=colour,
        solid=solid,
    )


def aligned(pictures: Sequence[Intervals]) -> tuple[Intervals, ...]:
    """Put pictures on one scale, so that they can be compared; a span that is given stays."""
    rows = [row for picture in pictures for row in picture.rows]
    guides = [guide for picture in pictures for guide in picture.guides]
    values = [v for g in guides for v in (g.at, g.to) if v is not None]
    values += [v for row in rows for v in (*row.ticks, *row.box)]
    values += [v for row in rows for m in row.marks for v in (m.at, *(m.ends or ()))] or [0.0]
    margin = 0.04 * (max(values) - min(values)) or 0.5
    ends = (min(values) - margin, max(values) + margin)

    def spanned(axis: Axis) -> Axis:
        first, last = (e if e is not None else a for e, a in zip(axis.span, ends, strict=True))
        return replace(axis, span=(first, last))

    return tuple(replace(picture, x=spanned(picture.x)) for picture in pictures)


Picture: TypeAlias = Intervals | Points | Lines | Histogram | HeatMap | Slopes
