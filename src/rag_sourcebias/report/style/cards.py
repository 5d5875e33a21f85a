"""One card per system for the top of the page."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.report.format import MISSING, interval, number, p_value
from rag_sourcebias.report.style.names import style_name
from rag_sourcebias.report.style.verdicts import StyleVerdict, style_verdicts
from rag_sourcebias.report.style.view import alpha
from rag_sourcebias.report.style.wording import chance_sentence, predicate, short
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.style_parts import StyleCode
from rag_sourcebias.types.style_report import StyleReport

__all__ = ["StyleBar", "StyleCard", "StyleCardRow", "style_cards"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleBar:
    """An interval from 0 to the largest of the report; positions in percent of the width.

    Parameters
    ----------
    chance : float or None
        Where a retriever without preferences would be.
    """

    left: float
    width: float
    dot: float
    chance: float | None
    solid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleCardRow:
    """One number of a card."""

    name: str
    value: str
    ends: str = ""
    bar: StyleBar | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleCard:
    """What a reader should know of one system.

    Parameters
    ----------
    kind : str
        A :class:`StyleCode`, or ``"empty"``.
    better : bool
        Whether styles are favoured and none is silenced.
    """

    name: str
    kind: str
    better: bool
    short: str
    text: str
    chance: str
    rows: tuple[StyleCardRow, ...]


def style_cards(report: StyleReport) -> tuple[StyleCard, ...]:
    """Return a card for every system."""
    found = style_verdicts(report)
    top = _top(found)
    return tuple(_card(report, verdict, top) for verdict in found)


def _top(found: tuple[StyleVerdict, ...]) -> float:
    """Return the right end of the bars of all cards."""
    ends = [1e-9]
    for verdict in found:
        if verdict.row is not None:
            ends += [verdict.row.unfairness.score, verdict.row.unfairness.null_expectation]
        bounds = [verdict.system.mean_unfairness]
        bounds.append(None if verdict.row is None else verdict.row.unfairness_interval)
        ends += [b.upper for b in bounds if b is not None]
    return 1.04 * max(ends)


def _card(report: StyleReport, verdict: StyleVerdict, top: float) -> StyleCard:
    row, found = verdict.row, verdict.finding
    text = predicate(report, found)
    tied = found is not None and found.code is StyleCode.TIED
    return StyleCard(
        name=verdict.system.name,
        kind="empty" if found is None else found.code,
        better=found is not None and bool(found.favoured) and not found.silenced,
        short=short(report, verdict),
        text=f"{text[:1].upper()}{text[1:]}.",
        chance="" if row is None or tied else chance_sentence(report, row),
        rows=_rows(report, verdict, top),
    )


def _rows(report: StyleReport, verdict: StyleVerdict, top: float) -> tuple[StyleCardRow, ...]:
    row = verdict.row
    if row is None:
        return ()
    found, test = row.unfairness, row.friedman
    rows = [
        StyleCardRow(
            name=f"unfairness, {style_name(row.query_style)} queries",
            value=number(found.score, digits=2),
            ends=interval(row.unfairness_interval, digits=2),
            bar=_bar(
                found.score,
                row.unfairness_interval,
                top,
                chance=found.null_expectation,
                solid=test.p_value < alpha(report),
            ),
        )
    ]
    mean = verdict.system.mean_unfairness
    if mean is not None and len(verdict.system.rows) > 1:
        nulls = [r.unfairness.null_expectation for r in verdict.system.rows]
        rows.append(
            StyleCardRow(
                name=f"mean over {len(verdict.system.rows)} query styles",
                value=number(mean.estimate, digits=2),
                ends=interval(mean, digits=2),
                bar=_bar(mean.estimate, mean, top, chance=sum(nulls) / len(nulls), solid=True),
            )
        )
    rows += [
        StyleCardRow(name="by chance alone", value=number(found.null_expectation, digits=2)),
        StyleCardRow(
            name="Kendall's W", value=MISSING if test.w is None else number(test.w, digits=2)
        ),
        StyleCardRow(name="Friedman p", value=p_value(test.p_value)),
    ]
    return tuple(rows)


def _bar(
    score: float, bounds: Interval | None, top: float, *, chance: float, solid: bool
) -> StyleBar:
    low, high = (score, score) if bounds is None else (bounds.lower, bounds.upper)
    left, right, dot, tick = (round(100 * v / top, 2) for v in (low, high, score, chance))
    return StyleBar(left=left, width=round(right - left, 2), dot=dot, chance=tick, solid=solid)
