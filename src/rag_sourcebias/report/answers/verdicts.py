"""The finding of each score beside the systems that gain and lose most; nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.inference.answer_finding import answer_finding
from rag_sourcebias.report.answers.numbers import in_sds
from rag_sourcebias.types.answer_parts import AdjustmentCode, AnswerFinding, AnswerStyle
from rag_sourcebias.types.answer_report import (
    AnswerBias,
    AnswerBiasReport,
    AnswerScorer,
    SystemDifference,
)
from rag_sourcebias.types.intervals import Interval

__all__ = ["AnswerVerdict", "Extremes", "extremes", "verdicts"]


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
    """What can be said about one score."""

    scorer: AnswerScorer
    finding: AnswerFinding
    extremes: Extremes

    @property
    def style(self) -> AnswerStyle:
        """Whether the raw score rewards style."""
        return self.finding.style

    @property
    def adjustment(self) -> AdjustmentCode:
        """What the adjustment does."""
        return self.finding.adjustment


def verdicts(report: AnswerBiasReport) -> tuple[AnswerVerdict, ...]:
    """Return one verdict per score, in the order of the report."""
    return tuple(
        AnswerVerdict(
            scorer=scorer,
            # A report of version 0.1 has intervals but no finding.
            finding=scorer.finding or answer_finding(scorer),
            extremes=extremes(scorer.raw),
        )
        for scorer in report.scorers
    )


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
