"""Pictures of ranks: one system, several systems side by side, and unfairness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from rag_sourcebias.report.format import distinct, number, shorten
from rag_sourcebias.report.rows_plot import Picture, PlotGroup, PlotRow
from rag_sourcebias.report.style.names import original_text, style_list, style_name
from rag_sourcebias.report.style.view import (
    Compared,
    alpha,
    average_ranks,
    compared,
    original_of,
    original_row,
)
from rag_sourcebias.report.style.wording import score_with
from rag_sourcebias.types.style_report import StyleReport, StyleRow, StyleSystem

__all__ = ["differences_pictures", "ranks_picture", "side_of", "unfairness_picture"]

_ROWS = 12  # in one picture of several systems
_CAPTION = 60
_HEADING = 44

Side = Literal["baseline", "other", "even"]


def side_of(difference: float) -> Side:
    """Return the colour of a difference of ranks; negative is higher up, so better."""
    if number(difference, digits=6) == number(0, digits=6):
        return "even"
    return "baseline" if difference < 0 else "other"


def ranks_picture(report: StyleReport, system: StyleSystem, row: StyleRow) -> Picture:
    """Average rank of each document style with its interval ([W] Fig. 2).

    The original is a dashed line; a style is hollow where it does not differ significantly.
    """
    means, against = average_ranks(system, row), compared(report, row)
    original = original_of(report)
    rows, said = [], []
    for style, mean, bounds in zip(report.data.doc_styles, means, row.average_ranks, strict=True):
        found = against.get(style)
        rows.append(
            PlotRow(
                name=style_name(style),
                estimate=mean,
                ends=None if bounds is None else (bounds.lower, bounds.upper),
                side="even" if found is None else side_of(found.difference),
                solid=style == original or (found is not None and found.significant),
            )
        )
        text = f"{style_name(style)}: {score_with(mean, bounds, digits=1)}"
        said.append(f"{text}, significant." if found and found.significant else f"{text}.")
    return Picture(
        caption=system.name,
        groups=(PlotGroup(name="", rows=tuple(rows)),),
        title=f"Average rank of each document style, {system.name}",
        description=" ".join(said),
        xlabel="average rank (1 is first)",
        line=None if original is None else means[report.data.doc_styles.index(original)],
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
    captions = [style_list(part) for part in parts]
    if max(map(len, captions)) > _CAPTION:
        captions = [f"part {n} of {len(parts)}" for n in range(1, len(parts) + 1)]
    return [
        _differences(report, found, part, caption)
        for part, caption in zip(parts, captions, strict=True)
    ]


def _differences(
    report: StyleReport,
    found: Sequence[tuple[StyleSystem, dict[str, Compared]]],
    styles: Sequence[str],
    caption: str,
) -> Picture:
    groups, said = [], []
    every = report.data.doc_styles
    heads = dict(zip(every, distinct([style_name(s) for s in every], _HEADING), strict=True))
    for name in styles:
        rows = [(system.name, against[name]) for system, against in found if name in against]
        groups.append(PlotGroup(name=heads[name], rows=tuple(_difference(s, c) for s, c in rows)))
        said.append(f"{style_name(name)}: {', '.join(f'{s} {_text(c)}' for s, c in rows)}.")
    base = shorten(original_text(report), 12)
    return Picture(
        caption=caption[:1].upper() + caption[1:],
        groups=tuple(groups),
        title=f"Average rank minus that of {original_text(report)}, by style and system",
        description=" ".join(said),
        xlabel=f"← above  |  below {base} →",
        line=0.0,
    )


def _difference(name: str, c: Compared) -> PlotRow:
    return PlotRow(
        name=name,
        estimate=c.difference,
        ends=(c.lower, c.upper) if c.known else None,
        side=side_of(c.difference),
        solid=c.significant,
    )


def _text(c: Compared) -> str:
    mark = ", significant" if c.significant else ""
    return f"{number(c.difference, signed=True)} [{number(c.lower)}, {number(c.upper)}]{mark}"


def unfairness_picture(report: StyleReport, system: StyleSystem) -> Picture:
    """Unfairness under each query style; a short line is what chance alone would give."""
    rows, said = [], []
    for row in system.rows:
        found, bounds = row.unfairness, row.unfairness_interval
        rows.append(
            PlotRow(
                name=style_name(row.query_style),
                estimate=found.score,
                ends=None if bounds is None else (bounds.lower, bounds.upper),
                side="baseline",
                solid=row.friedman.p_value < alpha(report),
                ticks=(found.null_expectation,),
            )
        )
        said.append(
            f"{style_name(row.query_style)}: {score_with(found.score, bounds)}, "
            f"by chance {number(found.null_expectation, digits=2)}."
        )
    return Picture(
        caption=system.name,
        groups=(PlotGroup(name="", rows=tuple(rows)),),
        title=f"Unfairness by query style, {system.name}",
        description=" ".join(said),
        xlabel="unfairness",
        from_zero=True,
    )
