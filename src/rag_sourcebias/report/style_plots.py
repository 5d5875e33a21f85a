"""Pictures of the report on writing styles: ranks, unfairness, effects, and a table of colours."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from rag_sourcebias.report.format import distinct, number, shorten
from rag_sourcebias.report.rows_plot import Picture, PlotGroup, PlotRow
from rag_sourcebias.report.style_words import (
    Compared,
    alpha,
    average_ranks,
    capital,
    compared,
    leading_measure,
    original_of,
    original_row,
    original_text,
    score_with,
    sides,
    style_list,
    style_name,
)
from rag_sourcebias.report.svg import COLOURS, WIDTH, plain_axes, render, style
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.style_report import (
    StyleGain,
    StyleQuality,
    StyleReport,
    StyleRow,
    StyleSystem,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "differences_pictures",
    "heat_map",
    "index_picture",
    "length_picture",
    "map_width",
    "matching_picture",
    "quality_picture",
    "ranks_picture",
    "unfairness_picture",
]

_ROWS = 12  # in one picture of several systems
_CAPTION, _HEADING, _NAME = 60, 44, 16  # characters
_HORIZONTAL = 3  # characters that fit above a column
_STRONGEST = 0.55  # opacity that leaves the numbers readable on light and on dark paper
_CELL, _COLUMN, _LABELS = 0.4, 0.38, 1.0  # inches


Side: TypeAlias = Literal["baseline", "other", "even"]


def _side(difference: float) -> Side:
    """Return the colour of a difference of ranks; negative is higher up, so better."""
    if abs(difference) < 5e-7:
        return "even"
    return "baseline" if difference < 0 else "other"


def _row(
    name: str, value: float, bounds: Interval | None, side: Side, *, solid: bool, scale: float = 1
) -> PlotRow:
    ends = None if bounds is None else (scale * bounds.lower, scale * bounds.upper)
    return PlotRow(name=name, estimate=value, ends=ends, side=side, solid=solid)


def _picture(
    found: Iterable[tuple[PlotRow, str]],
    *,
    caption: str,
    title: str,
    xlabel: str,
    line: float | None = None,
    keys: tuple[tuple[str, str, bool], ...] = (),
    from_zero: bool = False,
) -> Picture:
    """Return rows as one picture; the sentence of each, if any, is for who does not see it."""
    pairs = tuple(found)
    return Picture(
        caption=caption,
        groups=(PlotGroup(name="", rows=tuple(row for row, _ in pairs)),),
        title=title,
        description=" ".join(f"{text}." for _, text in pairs if text),
        xlabel=xlabel,
        line=line,
        keys=keys,
        from_zero=from_zero,
    )


def ranks_picture(report: StyleReport, system: StyleSystem, row: StyleRow) -> Picture:
    """Average rank of each document style with its interval ([W] Fig. 2).

    The original is a dashed line; a style is hollow where it does not differ significantly.
    """
    means, against = average_ranks(system, row), compared(report, row)
    original, styles = original_of(report), report.data.doc_styles

    def drawn(style_: str, mean: float, bounds: Interval | None) -> tuple[PlotRow, str]:
        found, name = against.get(style_), style_name(style_)
        significant = found is not None and found.significant
        side = "even" if found is None else _side(found.difference)
        place = _row(name, mean, bounds, side, solid=style_ == original or significant)
        said = f"{name}: {score_with(mean, bounds, digits=1)}"
        return place, f"{said}{', significant' * significant}"

    return _picture(
        map(drawn, styles, means, row.average_ranks),
        caption=system.name,
        title=f"Average rank of each document style, {system.name}",
        xlabel="average rank (1 is first)",
        line=None if original is None else means[styles.index(original)],
    )


def differences_pictures(report: StyleReport) -> list[Picture]:
    """Distance of every document style from the original, all systems side by side."""
    found = [
        (s, compared(report, row))
        for s in report.systems
        if (row := original_row(report, s)) is not None and row.against_original
    ]
    styles = [s for s in report.data.doc_styles if any(s in against for _, against in found)]
    if len(found) < 2 or not styles:
        return []
    size = math.ceil(len(styles) / math.ceil(len(styles) * len(found) / _ROWS))
    parts = [styles[start : start + size] for start in range(0, len(styles), size)]
    captions = [capital(style_list(part)) for part in parts]
    if max(map(len, captions)) > _CAPTION:
        captions = [f"Part {n} of {len(parts)}" for n in range(1, len(parts) + 1)]
    every = report.data.doc_styles
    heads = dict(zip(every, distinct([style_name(s) for s in every], _HEADING), strict=True))
    pictures = []
    for part, caption in zip(parts, captions, strict=True):
        rows = {n: [(s.name, against[n]) for s, against in found if n in against] for n in part}
        said = (f"{style_name(n)}: {', '.join(_told(*c) for c in of)}." for n, of in rows.items())
        pictures.append(
            Picture(
                caption=caption,
                groups=tuple(
                    PlotGroup(name=heads[n], rows=tuple(_difference(*c) for c in of))
                    for n, of in rows.items()
                ),
                title=f"Average rank minus that of {original_text(report)}, by style and system",
                description=" ".join(said),
                xlabel=f"← above  |  below {shorten(original_text(report), 12)} →",
                line=0.0,
            )
        )
    return pictures


def _difference(system: str, c: Compared) -> PlotRow:
    return PlotRow(
        name=system,
        estimate=c.difference,
        ends=c.ends,
        side=_side(c.difference),
        solid=c.significant,
    )


def _told(system: str, c: Compared) -> str:
    ends = f" [{number(c.ends[0])}, {number(c.ends[1])}]" if c.ends else ""
    mark = ", significant" if c.significant else ""
    return f"{system} {number(c.difference, signed=True)}{ends}{mark}"


def unfairness_picture(report: StyleReport, system: StyleSystem) -> Picture:
    """Unfairness under each query style; a short line is what chance alone would give."""

    def drawn(row: StyleRow) -> tuple[PlotRow, str]:
        name, found = style_name(row.query_style), row.unfairness
        bounds, solid = row.unfairness_interval, row.friedman.p_value < alpha(report)
        place = _row(name, found.score, bounds, "baseline", solid=solid)
        said = f"{name}: {score_with(found.score, bounds)}"
        place = replace(place, ticks=(found.null_expectation,))
        return place, f"{said}, by chance {number(found.null_expectation, digits=2)}"

    return _picture(
        map(drawn, system.rows),
        caption=system.name,
        title=f"Unfairness by query style, {system.name}",
        xlabel="unfairness",
        from_zero=True,
    )


def matching_picture(system: StyleSystem) -> Picture:
    """Ranks that a style gains when the query is in the same style."""

    def drawn(found: StyleGain) -> tuple[PlotRow, str]:
        name = style_name(found.style) if found.style else "all styles"
        solid = found.gain is not None and found.gain.excludes(0)
        place = _row(name, found.mean, found.gain, _side(-found.mean), solid=solid)
        return place, f"{name}: {score_with(found.mean, found.gain, digits=1)}"

    return _picture(
        map(drawn, system.matching),
        caption=system.name,
        title=f"Ranks gained under queries of the same style, {system.name}",
        xlabel="places gained",
        line=0.0,
    )


def length_picture(report: StyleReport, system: StyleSystem, row: StyleRow) -> Picture:
    """Average ranks as measured beside those at equal length."""
    found: list[tuple[PlotRow, str]] = []
    for name, mean, raw, bounds in zip(
        map(style_name, report.data.doc_styles),
        average_ranks(system, row),
        row.average_ranks,
        row.adjusted_ranks,
        strict=True,
    ):
        said = f"{name}: {score_with(mean, raw, digits=1)}"
        if bounds is not None:
            said += f", at equal length {score_with(bounds.estimate, bounds, digits=1)}"
        found.append((_row(name, mean, raw, "even", solid=False), said))
        if bounds is not None:
            below = _row("", bounds.estimate, bounds, "baseline", solid=True)
            found.append((replace(below, lower=True), ""))
    return _picture(
        found,
        caption=system.name,
        title=f"Average ranks as they are and at equal length, {system.name}",
        xlabel="average rank (1 is first)",
        keys=(("as they are", "even", False), ("at equal length", "baseline", True)),
    )


def quality_picture(report: StyleReport, system: StyleSystem) -> Picture:
    """Change of quality when the same question is asked in another style."""
    measure = leading_measure([q.measure for q in system.quality])
    base = report.config.original_query

    def drawn(found: StyleQuality) -> tuple[PlotRow, str]:
        name, change = style_name(found.query_style), found.change
        significant = found.p_adjusted is not None and found.p_adjusted < alpha(report)
        value = 0.0 if change is None else 100 * change.estimate  # None: no query differs
        place = _row(name, value, change, _side(-value), solid=significant, scale=100)
        return place, f"{name}: {number(value, signed=True)}{', significant' * significant}"

    return _picture(
        (drawn(q) for q in system.quality if q.measure == measure and q.query_style != base),
        caption=f"{system.name}: {measure}",
        title=f"Change of {measure} by query style against {style_name(base)}, {system.name}",
        xlabel=f"change of {measure} ×100",
        line=0.0,
    )


def index_picture(report: StyleReport, system: StyleSystem) -> Picture:
    """Relative Δ of the original against each document style in an index of all of them."""
    measure = leading_measure([s.measure for s in system.index_scores])
    found: list[tuple[PlotRow, str]] = []
    for s in system.index_scores:
        if s.measure == measure and s.relative_delta is not None:
            name, side = style_name(s.doc_style), _side(s.relative_delta)  # above 0: it loses
            solid = s.interval is not None and s.interval.excludes(0)
            place = _row(name, s.relative_delta, s.interval, side, solid=solid)
            found.append((place, f"{name}: {number(s.relative_delta, signed=True)}"))
    return _picture(
        found,
        caption=f"{system.name}: {measure}",
        title=f"Relative Δ of {measure}, {original_text(report)} against each style, {system.name}",
        xlabel="← style ranked higher  |  original higher →",
        line=0.0,
    )


def map_width(n_styles: int) -> float:
    """Return the width in inches of a heat map with so many columns."""
    return max(WIDTH, _LABELS + _COLUMN * n_styles)


def heat_map(report: StyleReport, system: StyleSystem, uid: str) -> str:
    """Draw the average rank of every document style under every query style of one system.

    Blue is above the middle rank, orange below, stronger the further away; every cell carries its
    number, so nothing rests on colour alone. Bold cells differ significantly from the original of
    their row, framed ones have query and document in the same style.
    """
    from matplotlib.figure import Figure

    styles, n_rows = report.data.doc_styles, len(system.rows)
    columns = distinct(styles, _NAME)
    longest = max(map(len, columns))
    above = 0.1 * longest if longest > _HORIZONTAL else 0.2
    size = map_width(len(styles)), 0.6 + above + _CELL * n_rows
    with style():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        said = []
        for y, row in enumerate(system.rows):
            means = average_ranks(system, row)
            _draw_row(axes, report, row, means, y=y)
            cells = (f"{style_name(s)} {number(m)}" for s, m in zip(styles, means, strict=True))
            said.append(f"Query in {style_name(row.query_style)}: {', '.join(cells)}.")
        axes.set(xlim=(-0.5, len(styles) - 0.5), ylim=(n_rows - 0.5, -0.5))
        axes.xaxis.tick_top()  # before the labels are turned: it makes new ones
        axes.xaxis.set_label_position("top")
        axes.set_xticks(range(len(styles)), columns)
        for label, name in zip(axes.get_xticklabels(), styles, strict=True):
            label.set_rotation(90 if len(name) > _HORIZONTAL else 0)
        axes.set_yticks(range(n_rows), distinct([r.query_style for r in system.rows], _NAME))
        axes.set_xlabel("document style")
        axes.set_ylabel("query style")
        plain_axes(axes, grid="both")
        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
        title = f"Average rank by query style and document style, {system.name}"
        return render(figure, uid=uid, title=title, description=" ".join(said))


def _draw_row(
    axes: Axes, report: StyleReport, row: StyleRow, means: tuple[float, ...], *, y: int
) -> None:
    from matplotlib.patches import Rectangle

    middle, strong = (len(means) + 1) / 2, sides(report, row)
    for x, (name, mean) in enumerate(zip(report.data.doc_styles, means, strict=True)):
        strength = min(1.0, abs(mean - middle) / (middle - 1))
        axes.add_patch(
            Rectangle(
                (x - 0.47, y - 0.47),
                0.94,
                0.94,
                facecolor=COLOURS["baseline" if mean < middle else "other"],
                # In steps: equal cells share one style, and the file stays small.
                alpha=math.ceil(20 * strength * _STRONGEST) / 20,
                linewidth=0,
            )
        )
        if name == row.query_style:
            frame = Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fill=False)
            frame.set(edgecolor=COLOURS["ink"], linewidth=1.6)
            axes.add_patch(frame)
        weight = "bold" if strong[x] else "normal"
        axes.text(x, y, number(mean), ha="center", va="center", fontsize=10.5, fontweight=weight)
