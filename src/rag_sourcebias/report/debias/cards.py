"""One card per changed system for the top of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_sourcebias.report.debias.choice import Standing, standings, transfer_sentence
from rag_sourcebias.report.debias.names import KINDS, data_name, method_of, percent, quality_names
from rag_sourcebias.report.debias.verdicts import DebiasVerdict
from rag_sourcebias.report.debias.wording import short
from rag_sourcebias.report.format import MISSING, delta, interval
from rag_sourcebias.types.debias_report import DebiasReport

__all__ = ["DebiasBar", "DebiasCard", "DebiasCardRow", "debias_cards"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DebiasBar:
    """Relative Δ on a scale with the target in the middle; positions in percent of the width.

    Parameters
    ----------
    before : float or None
        Where the unchanged system is.
    solid : bool
        Whether all criteria are met.
    """

    left: float
    width: float
    dot: float
    before: float | None
    solid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DebiasCardRow:
    """One data set of a card.

    Parameters
    ----------
    worst : str
        The quality that changed for the worst, empty where none was measured.
    """

    name: str
    new: bool
    value: str
    ends: str
    bar: DebiasBar | None
    worst: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DebiasCard:
    """What a reader should know of one changed system.

    Parameters
    ----------
    standing : {"all", "some", "none"}
        On how many data sets it meets all criteria; ``"all"`` only where that is beyond doubt.
    """

    name: str
    kind: str
    standing: Literal["all", "some", "none"]
    short: str
    text: str
    rows: tuple[DebiasCardRow, ...]


def debias_cards(report: DebiasReport) -> tuple[DebiasCard, ...]:
    """Return a card for every changed system, the best first."""
    reach = _reach(report)
    return tuple(_card(report, s, reach) for s in standings(report))


def _reach(report: DebiasReport) -> float:
    """Return half the length of the scale of all bars."""
    config = report.config
    values = [config.target + config.tolerance]
    for outcome in (o for d in report.datasets for o in d.outcomes):
        now = outcome.skew_at(config.skew_cutoff).after
        values += [] if now is None else [now.lower, now.upper]
    return 1.04 * max(abs(value - config.target) for value in values)


def _card(report: DebiasReport, standing: Standing, reach: float) -> DebiasCard:
    method = method_of(report, standing.system)
    n, met = len(standing.verdicts), len(standing.met)
    proven = sum(v.proven for v in standing.met)
    return DebiasCard(
        name=standing.system,
        kind="" if method is None else KINDS.get(method.kind, method.kind),
        standing="all" if proven == n else "some" if met else "none",
        short=_short(report, standing),
        text=transfer_sentence(report, standing),
        rows=tuple(_row(report, v, reach) for v in standing.verdicts),
    )


def _short(report: DebiasReport, standing: Standing) -> str:
    n, met = len(standing.verdicts), standing.met
    if n == 1:
        text = short(report, standing.verdicts[0])
        return text[:1].upper() + text[1:]
    if not met:
        return f"Meets all criteria on none of {n} data sets"
    text = f"Meets all criteria on {len(met)} of {n} data sets"
    sure = sum(v.proven for v in met)
    if sure == len(met):
        return text
    return f"{text}, {f'on {sure} beyond doubt' if sure else 'by its estimates only'}"


def _row(report: DebiasReport, verdict: DebiasVerdict, reach: float) -> DebiasCardRow:
    now = verdict.skew.after
    return DebiasCardRow(
        name=data_name(report, verdict.dataset),
        new=verdict.role == "transfer",
        value=MISSING if now is None else delta(now.estimate),
        ends="no interval" if now is None else interval(now),
        bar=_bar(report, verdict, reach),
        worst=_worst(report, verdict),
    )


def _worst(report: DebiasReport, verdict: DebiasVerdict) -> str:
    known = [q.change for q in verdict.quality if q.change.relative is not None]
    if not known:
        return ""
    worst = min(known, key=lambda q: q.relative or 0.0)
    return f"{quality_names(report)[worst.quality]} {percent(worst.relative)}"


def _bar(report: DebiasReport, verdict: DebiasVerdict, reach: float) -> DebiasBar | None:
    now, before = verdict.skew.after, verdict.skew.before
    if now is None:
        return None

    def place(value: float) -> float:
        share = (value - report.config.target + reach) / (2 * reach)
        return round(100 * min(1.0, max(0.0, share)), 2)

    left, right = place(now.lower), place(now.upper)
    return DebiasBar(
        left=left,
        width=round(right - left, 2),
        dot=place(now.estimate),
        before=None if before is None else place(before.estimate),
        solid=verdict.met,
    )
