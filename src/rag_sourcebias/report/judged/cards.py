"""One card per mean for the top of the page: three lines on a common scale and a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.report.bars import Bar, CardRow
from rag_sourcebias.report.judged.numbers import ends, value
from rag_sourcebias.report.judged.view import measures_of, other_scale
from rag_sourcebias.report.judged.wording import (
    Role,
    judge_sentence,
    role,
    saved_short,
    worth_sentence,
)
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_parts import JudgedMean

__all__ = ["Card", "cards"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a reader should know of one mean."""

    measure: str
    system: str
    role: Role
    short: str
    text: str
    rows: tuple[CardRow, ...]
    low: str
    high: str


def cards(report: JudgedReport) -> tuple[Card, ...]:
    """Return a card for every mean."""
    scales = {measure: _scale(report, measure) for measure in measures_of(report)}
    return tuple(_card(report, mean, scales[mean.measure]) for mean in report.means)


def _scale(report: JudgedReport, measure: str) -> tuple[float, float]:
    """Return the ends of the bars of one measure."""
    found: list[float] = []
    for mean in report.means:
        if mean.measure != measure:
            continue
        for i in (mean.interval, mean.labels_alone):
            found += [] if i is None else [i.lower, i.upper]
        if not other_scale(report, mean):
            found.append(mean.judge_alone)
    low, high = min(found), max(found)
    margin = 0.04 * (high - low) or 0.5
    return low - margin, high + margin


def _card(report: JudgedReport, mean: JudgedMean, scale: tuple[float, float]) -> Card:
    rows = [_row(report, mean, "with the judge", mean.interval, scale, side="baseline")]
    if role(report, mean) in ("absent", "unused"):
        rows = [_row(report, mean, "labels alone", mean.interval, scale, side="even")]
    elif mean.labels_alone is not None:
        rows.append(_row(report, mean, "labels alone", mean.labels_alone, scale, side="even"))
    point = _place(mean.judge_alone, scale)
    dot = Bar(left=point, width=0, dot=point, side="other", solid=True)
    rows.append(
        CardRow(
            name="judge alone",
            estimate=value(report, mean.measure, mean.judge_alone),
            ends="no interval",
            bar=None if other_scale(report, mean) else dot,
        )
    )
    return Card(
        measure=mean.measure,
        system=mean.system,
        role=role(report, mean),
        short=saved_short(report, mean),
        text=f"{judge_sentence(report, mean)} {worth_sentence(report, mean)}",
        rows=tuple(rows),
        low=value(report, mean.measure, scale[0]),
        high=value(report, mean.measure, scale[1]),
    )


def _place(number: float, scale: tuple[float, float]) -> float:
    share = (number - scale[0]) / (scale[1] - scale[0])
    return round(100 * min(1.0, max(0.0, share)), 2)


def _row(
    report: JudgedReport,
    mean: JudgedMean,
    name: str,
    found: Interval,
    scale: tuple[float, float],
    *,
    side: str,
) -> CardRow:
    left, right = _place(found.lower, scale), _place(found.upper, scale)
    return CardRow(
        name=name,
        estimate=value(report, mean.measure, found.estimate),
        ends=ends(report, mean.measure, found),
        bar=Bar(
            left=left,
            width=round(right - left, 2),
            dot=_place(found.estimate, scale),
            side=side,
            solid=side == "baseline",
        ),
    )
