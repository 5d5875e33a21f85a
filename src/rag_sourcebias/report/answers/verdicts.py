"""What was found of each score: whether style counts, and what the adjustment does about it.

Differences between systems that all answered correctly are style. That they exist is said only
when the interval of the unfairness lies above 0; that they matter only when they are not small
beside the differences between answers of one system.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_sourcebias.report.answers.numbers import in_sds
from rag_sourcebias.types.answer_report import (
    AnswerBias,
    AnswerBiasReport,
    AnswerScorer,
    SystemDifference,
)
from rag_sourcebias.types.intervals import Interval

__all__ = [
    "AUC_LOSS",
    "SMALL",
    "AdjustmentKind",
    "AnswerVerdict",
    "Extremes",
    "StyleKind",
    "adjustment_kind",
    "auc_change",
    "extremes",
    "style_kind",
    "verdicts",
]

SMALL = 0.1
"""Spread of the system means, in standard deviations within systems, that is called small: below
the smallest of Cohen's conventions for f."""

AUC_LOSS = 0.005
"""Fall of the AUC from which an adjustment is not recommended, be it chance or not."""

_CUT = 0.2  # share of the spread below which an adjustment does not help

StyleKind = Literal["rewards", "slight", "none", "unknown", "few"]
AdjustmentKind = Literal["absent", "cuts", "costs", "fails", "idle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extremes:
    """The systems whose correct answers score highest and lowest.

    Parameters
    ----------
    best, worst : str
    difference : Interval or None
        Best minus worst, in the unit of the score.
    effect : float or None
        The same in standard deviations within systems.
    """

    best: str
    worst: str
    difference: Interval | None
    effect: float | None

    @property
    def clear(self) -> bool:
        """Whether the interval of the difference excludes 0."""
        return self.difference is not None and self.difference.excludes(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerVerdict:
    """What can be said about one score.

    Parameters
    ----------
    style : {"rewards", "slight", "none", "unknown", "few"}
        ``"slight"``: measurable, but small. ``"none"``: the interval holds 0 and nothing that is
        not small. ``"unknown"``: it holds 0 and more. ``"few"``: there is no interval.
    adjustment : {"absent", "cuts", "costs", "fails", "idle"}
        ``"costs"``: the AUC falls, beyond chance or by :data:`AUC_LOSS`. ``"fails"``: the spread
        stays. ``"idle"``: no clear effect was there to remove.
    extremes : Extremes
    """

    scorer: AnswerScorer
    style: StyleKind
    adjustment: AdjustmentKind
    extremes: Extremes


def verdicts(report: AnswerBiasReport) -> tuple[AnswerVerdict, ...]:
    """Return one verdict per score, in the order of the report."""
    return tuple(
        AnswerVerdict(
            scorer=scorer,
            style=style_kind(scorer.raw),
            adjustment=adjustment_kind(scorer),
            extremes=extremes(scorer.raw),
        )
        for scorer in report.scorers
    )


def style_kind(bias: AnswerBias) -> StyleKind:
    """Return whether a score, raw or adjusted, rewards style."""
    found = bias.unfairness
    if found is None:
        return "few"
    size, most = in_sds(bias, found.estimate), in_sds(bias, found.upper)
    if found.lower > 0:
        return "slight" if size is not None and size < SMALL else "rewards"
    return "none" if most is not None and most < SMALL else "unknown"


def adjustment_kind(scorer: AnswerScorer) -> AdjustmentKind:
    """Return what the adjustment does to a score."""
    if scorer.adjusted is None:
        return "absent"
    change = auc_change(scorer)
    if change is not None and change <= -AUC_LOSS:
        return "costs"
    if scorer.auc_change is not None and scorer.auc_change.upper < 0:
        return "costs"
    style = style_kind(scorer.raw)
    if style in ("none", "unknown"):
        return "idle"  # whatever the spread does then may be chance
    if scorer.spread_cut is not None and scorer.spread_cut >= _CUT:
        return "cuts"
    return "idle" if style == "slight" else "fails"


def auc_change(scorer: AnswerScorer) -> float | None:
    """Return adjusted minus raw AUC."""
    if scorer.auc_change is not None:
        return scorer.auc_change.estimate
    before, after = scorer.raw.auc, None if scorer.adjusted is None else scorer.adjusted.auc
    return None if before is None or after is None else after.estimate - before.estimate


def extremes(bias: AnswerBias) -> Extremes:
    """Return which systems gain and lose most."""
    spread = bias.spread
    order = sorted(range(len(spread.systems)), key=lambda i: spread.means[i])
    best, worst = spread.systems[order[-1]], spread.systems[order[0]]
    for d in bias.differences:
        if (d.first, d.second) == (best, worst):
            return Extremes(best=best, worst=worst, difference=d.difference, effect=d.effect)
        if (d.first, d.second) == (worst, best):
            return _turned(d, best=best, worst=worst)
    gap = spread.means[order[-1]] - spread.means[order[0]]
    return Extremes(best=best, worst=worst, difference=None, effect=in_sds(bias, gap))


def _turned(d: SystemDifference, *, best: str, worst: str) -> Extremes:
    i = d.difference
    turned = Interval(
        estimate=-i.estimate,
        lower=-i.upper,
        upper=-i.lower,
        confidence_level=i.confidence_level,
        method=i.method,
        n_labeled=i.n_labeled,
        assumptions=i.assumptions,
    )
    effect = None if d.effect is None else -d.effect
    return Extremes(best=best, worst=worst, difference=turned, effect=effect)
