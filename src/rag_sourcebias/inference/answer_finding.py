"""The verdict on a correctness score: does it tell right from wrong, does it reward style."""

from __future__ import annotations

from rag_sourcebias.types.answer_parts import (
    AdjustmentCode,
    AnswerFinding,
    AnswerStyle,
    AnswerUse,
)
from rag_sourcebias.types.answer_report import AnswerBias, AnswerScorer
from rag_sourcebias.types.intervals import Interval

__all__ = ["AUC_LOSS", "SMALL", "USELESS", "answer_finding", "answer_style"]

SMALL = 0.1
"""Spread of the system means, in standard deviations within systems, that is called small: below
the smallest of Cohen's conventions for f."""

AUC_LOSS = 0.005
"""Fall of the AUC from which an adjustment is not recommended, be it chance or not."""

USELESS = 0.55
"""AUC within systems below which a score is called useless."""

_CUT = 0.2  # share of the spread below which an adjustment does not help


def answer_finding(scorer: AnswerScorer, *, n_needed: int | None = None) -> AnswerFinding:
    """Decide what the intervals of a score say.

    Parameters
    ----------
    n_needed : int, optional
        Questions that would decide whether the score rewards style.
    """
    style = answer_style(scorer.raw)
    undecided = style in (AnswerStyle.TOO_FEW, AnswerStyle.CANNOT_TELL)
    return AnswerFinding(
        use=_use(scorer.raw.auc_within),
        style=style,
        left=None if scorer.adjusted is None else answer_style(scorer.adjusted),
        adjustment=_adjustment(scorer, style),
        n_questions=scorer.raw.spread.n_questions,
        n_needed=n_needed if undecided else None,
    )


def answer_style(bias: AnswerBias) -> AnswerStyle:
    """Decide whether a score, raw or adjusted, rewards a system's style."""
    found, sd = bias.unfairness, bias.spread.within_sd
    if found is None:
        return AnswerStyle.TOO_FEW
    if found.lower > 0:
        small = sd is not None and found.estimate < SMALL * sd
        return AnswerStyle.SLIGHT if small else AnswerStyle.REWARDS
    # Without spread within systems only an unfairness of exactly 0 is known to be small.
    alike = found.upper < SMALL * sd if sd is not None else found.upper == 0
    return AnswerStyle.ALIKE if alike else AnswerStyle.CANNOT_TELL


def _use(auc: Interval | None) -> AnswerUse:
    if auc is None:
        return AnswerUse.UNTESTED
    if auc.upper < USELESS:
        return AnswerUse.USELESS
    return AnswerUse.SEPARATES if auc.lower > USELESS else AnswerUse.CANNOT_TELL


def _adjustment(scorer: AnswerScorer, style: AnswerStyle) -> AdjustmentCode:
    if scorer.adjusted is None:
        return AdjustmentCode.ABSENT
    change = scorer.auc_change_within
    if change is not None and (change.estimate <= -AUC_LOSS or change.upper < 0):
        return AdjustmentCode.COSTS
    if style in (AnswerStyle.ALIKE, AnswerStyle.CANNOT_TELL, AnswerStyle.TOO_FEW):
        return AdjustmentCode.IDLE  # whatever the spread does then may be chance
    if scorer.spread_cut is not None and scorer.spread_cut >= _CUT:
        return AdjustmentCode.CUTS
    return AdjustmentCode.IDLE if style is AnswerStyle.SLIGHT else AdjustmentCode.FAILS
