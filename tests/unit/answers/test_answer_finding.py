"""The verdict on a correctness score: each code by its interval."""

from __future__ import annotations

import dataclasses

import pytest
from answer_reports import single
from intervals import between

from rag_sourcebias.answers.data import AdjustmentCode, AnswerStyle, AnswerUse
from rag_sourcebias.answers.measure import answer_finding, answer_style


def biased(lower, estimate, upper, *, within=1.0):
    """Return a score with this unfairness."""
    bias = single().scorers[0].raw
    spread = dataclasses.replace(bias.spread, within_sd=within, unfairness=estimate)
    return dataclasses.replace(
        bias, spread=spread, unfairness=between(lower, upper, estimate=estimate)
    )


def changed(*, cut=0.9, change=None):
    scorer = single().scorers[0]
    return answer_finding(
        dataclasses.replace(scorer, spread_cut=cut, auc_change_within=change)
    ).adjustment


@pytest.mark.parametrize(
    ("bounds", "code"),
    [
        ((0.2, 0.3, 0.4), AnswerStyle.REWARDS),
        ((0.01, 0.05, 0.3), AnswerStyle.SLIGHT),
        ((0.0, 0.05, 0.09), AnswerStyle.ALIKE),
        ((0.0, 0.05, 0.12), AnswerStyle.CANNOT_TELL),
        ((0.0, 0.3, 0.5), AnswerStyle.CANNOT_TELL),
    ],
)
def test_the_interval_decides_and_the_size_qualifies(bounds, code):
    assert answer_style(biased(*bounds)) is code


def test_size_is_measured_within_systems():
    assert answer_style(biased(0.01, 0.05, 0.06, within=0.1)) is AnswerStyle.REWARDS
    assert answer_style(biased(1.0, 5.0, 6.0, within=100.0)) is AnswerStyle.SLIGHT
    assert answer_style(biased(0.1, 0.2, 0.3, within=None)) is AnswerStyle.REWARDS
    assert answer_style(biased(0.0, 0.2, 0.3, within=None)) is AnswerStyle.CANNOT_TELL
    # A score of 0 or 1 that is right about every answer.
    assert answer_style(biased(0.0, 0.0, 0.0, within=None)) is AnswerStyle.ALIKE
    none = dataclasses.replace(single().scorers[0].raw, unfairness=None)
    assert answer_style(none) is AnswerStyle.TOO_FEW


@pytest.mark.parametrize(
    ("auc", "code"),
    [
        ((0.5, 0.47, 0.549), AnswerUse.USELESS),
        ((0.5, 0.44, 0.56), AnswerUse.CANNOT_TELL),
        ((0.56, 0.54, 0.58), AnswerUse.CANNOT_TELL),
        ((0.6, 0.551, 0.65), AnswerUse.SEPARATES),
        (None, AnswerUse.UNTESTED),
    ],
)
def test_the_auc_within_systems_decides_what_a_score_is_good_for(auc, code):
    scorer = single().scorers[0]
    pooled = between(0.85, 0.95)  # says nothing: systems are put side by side
    within = None if auc is None else between(*auc[1:], estimate=auc[0])
    raw = dataclasses.replace(scorer.raw, auc=pooled, auc_within=within)
    assert answer_finding(dataclasses.replace(scorer, raw=raw)).use is code


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (None, AdjustmentCode.CUTS),
        ((0.05, 0.04, 0.06), AdjustmentCode.CUTS),
        ((-0.002, -0.01, 0.006), AdjustmentCode.CUTS),
        ((-0.02, -0.05, 0.01), AdjustmentCode.COSTS),  # it may be chance: nobody should rely on it
        ((-0.002, -0.003, -0.001), AdjustmentCode.COSTS),  # small, but no chance
    ],
)
def test_an_adjustment_must_not_cost_auc_within_systems(change, code):
    assert (
        changed(change=None if change is None else between(*change[1:], estimate=change[0])) is code
    )


def test_an_adjustment_must_cut_the_spread():
    same = between(-0.01, 0.01)
    for cut in (0.05, -0.5, None):
        assert changed(cut=cut, change=same) is AdjustmentCode.FAILS
    scorer = dataclasses.replace(single().scorers[0], adjusted=None)
    assert answer_finding(scorer).adjustment is AdjustmentCode.ABSENT
    assert answer_finding(scorer).left is None
