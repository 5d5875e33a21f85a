from __future__ import annotations

import dataclasses

import pytest
from answer_reports import everyone_right, several, single

from rag_sourcebias.inference.answer_finding import SMALL, answer_finding
from rag_sourcebias.report.answers import headline, verdicts
from rag_sourcebias.report.answers.adjusting import (
    adjustment_sentence,
    auc_clause,
    auc_sentence,
)
from rag_sourcebias.report.answers.numbers import digits_of, of_questions, ordinal, percent
from rag_sourcebias.report.answers.order_plot import ranks
from rag_sourcebias.report.answers.verdicts import extremes
from rag_sourcebias.report.answers.wording import (
    length_sentence,
    order_sentence,
    sentence,
    short,
    style_sentence,
    threshold_sentence,
)
from rag_sourcebias.types import AnswerBiasReport
from rag_sourcebias.types.answer_parts import AdjustmentCode, AnswerStyle, AnswerUse
from rag_sourcebias.types.intervals import Interval

ALIKE = (20, 20, 20, 20)


def one(report):
    (verdict,) = verdicts(report)
    return verdict


def interval(estimate, lower, upper):
    return Interval(
        estimate=estimate,
        lower=lower,
        upper=upper,
        confidence_level=0.95,
        method="test",
        n_labeled=100,
    )


def changed(scorer, *, cut=0.9, change=None):
    """Return a scorer whose adjustment does something else, decided anew."""
    scorer = dataclasses.replace(scorer, spread_cut=cut, auc_change_within=change)
    return dataclasses.replace(scorer, finding=answer_finding(scorer))


@pytest.mark.parametrize("code", list(AnswerStyle))
def test_every_style_code_has_its_words(code):
    report = single()
    finding = dataclasses.replace(report.scorers[0].finding, style=code, n_needed=70)
    scorer = dataclasses.replace(report.scorers[0], finding=finding)
    report = dataclasses.replace(report, scorers=(scorer,))
    assert short(one(report))
    assert headline(report)
    claimed = code in (AnswerStyle.REWARDS, AnswerStyle.SLIGHT)
    assert ("above those of" in headline(report)) == claimed
    needed = code in (AnswerStyle.CANNOT_TELL, AnswerStyle.TOO_FEW)
    assert ("70 questions are needed" in style_sentence(one(report))) == needed


def test_a_useless_score_is_called_useless():
    report = single(-0.08, gap=0.0, n=600)
    found = one(report)
    assert found.finding.use is AnswerUse.USELESS
    assert headline(report).startswith("cosine is useless: it does not tell right from wrong")
    assert short(found).startswith("useless: rewards style")
    assert "The score is useless" in sentence(found)
    assert one(single()).finding.use is AnswerUse.SEPARATES
    assert "useless" not in headline(single()) + sentence(one(single()))


def test_a_report_of_version_0_1_is_decided_from_its_intervals():
    data = single().to_dict()
    for scorer in data["scorers"]:
        del scorer["finding"], scorer["auc_change_within"]
        del scorer["raw"]["auc_within"], scorer["adjusted"]["auc_within"]
    old = AnswerBiasReport.from_dict(data)
    found = one(old)
    assert found.style is AnswerStyle.REWARDS
    assert found.finding.use is AnswerUse.UNTESTED
    assert "cannot be tested here" in headline(old)


def test_a_score_that_rewards_short_answers():
    report = single()
    found, raw = one(report), report.scorers[0].raw
    assert (found.style, found.adjustment) == (AnswerStyle.REWARDS, AdjustmentCode.CUTS)
    assert (found.extremes.best, found.extremes.worst) == ("terse", "essay")
    gap = raw.spread.means[0] - raw.spread.means[3]
    assert found.extremes.difference.estimate == pytest.approx(gap)
    assert found.extremes.clear
    assert short(found) == "rewards style: favours terse most"
    text = style_sentence(found)
    assert f"of terse score {gap / raw.spread.within_sd:.2f} [" in text
    assert f"unfairness {raw.spread.unfairness:.3f} [{raw.unfairness.lower:.3f}, " in text
    assert f"; {raw.spread.n_questions} questions)" in text
    assert "The longer an answer, the lower its score (Spearman −0." in length_sentence(raw)
    line = headline(report)
    assert f"On {raw.spread.n_questions} questions that all 4 systems answered correctly" in line
    assert "cosine rewards a system's style" in line
    assert f"cuts the spread of the systems by {100 * report.scorers[0].spread_cut:.0f}%" in line
    assert "the AUC within systems" in line
    assert "better" not in line  # over all systems it rises by putting them side by side


def test_a_score_for_long_answers_names_the_pair_the_other_way_round():
    found = verdicts(several())[2].extremes
    assert (found.best, found.worst) == ("essay", "terse")
    assert 0 < found.difference.lower < found.difference.estimate < found.difference.upper
    raw = several().scorers[2].raw
    assert found.difference.estimate == pytest.approx(raw.spread.means[3] - raw.spread.means[0])
    assert found.effect == pytest.approx(raw.spread.effects[3] - raw.spread.effects[0])


def test_no_effect_is_claimed_of_a_fair_score():
    wide, narrow = single(0.0, n=100, noise=0.5), single(0.0, n=3000)
    assert (one(wide).style, one(wide).adjustment) == (AnswerStyle.CANNOT_TELL, AdjustmentCode.IDLE)
    assert "Cannot tell" in style_sentence(one(wide))
    assert "cosine may reward style or not: these are too few to tell" in headline(wide)
    assert (one(narrow).style, one(narrow).adjustment) == (AnswerStyle.ALIKE, AdjustmentCode.IDLE)
    assert "much alike" in style_sentence(one(narrow))
    assert "cosine shows no more than a small effect of style" in headline(narrow)
    for report in (wide, narrow):
        assert "no clear effect for the adjustment to remove" in headline(report)
        assert "above those" not in headline(report)


def test_a_small_effect_is_called_small():
    report = single(-0.004, n=3000)
    assert one(report).style is AnswerStyle.SLIGHT
    raw = report.scorers[0].raw
    assert raw.unfairness.lower > 0
    assert raw.spread.unfairness / raw.spread.within_sd < SMALL
    assert "cosine rewards style only slightly" in headline(report)
    assert "score only 0." in style_sentence(one(report))


def test_too_few_questions():
    report = single(n=15)
    found = one(report)
    assert found.style is AnswerStyle.TOO_FEW
    n = found.scorer.raw.spread.n_questions
    assert f"only {n} questions correctly: too few for an interval" in style_sentence(found)
    assert adjustment_sentence(found) == ""
    assert headline(report) == (
        f"On {n} questions that all 4 systems answered correctly, cosine may reward style or not: "
        "these are too few for an interval."
    )


def test_an_adjustment_that_finds_nothing_in_length():
    report = single(0.0, own=0.2, lengths=ALIKE)
    found = one(report)
    assert (found.style, found.adjustment) == (AnswerStyle.REWARDS, AdjustmentCode.FAILS)
    assert "It does not help here." in adjustment_sentence(found)


def test_an_adjustment_that_loses_auc():
    report = single(-0.15, gap=0.1, wrong_longer=3, lengths=(10, 14, 18, 22))
    found, scorer = one(report), report.scorers[0]
    assert found.adjustment is AdjustmentCode.COSTS
    assert scorer.auc_change_within.upper < 0
    assert f"falls from {scorer.raw.auc_within.estimate:.3f} to" in auc_clause(scorer)
    assert "tells right from wrong less well: weigh that" in adjustment_sentence(found)
    assert "%, but the AUC within systems falls from" in headline(report)


def test_a_fall_that_may_be_chance_is_said_to_be_one():
    scorer = changed(single().scorers[0], change=interval(-0.02, -0.05, 0.01))
    report = dataclasses.replace(single(), scorers=(scorer,))
    assert "may be chance" in adjustment_sentence(one(report))


def test_an_adjustment_that_goes_too_far():
    report = single()
    scorer = report.scorers[0]
    # As if what was learned elsewhere removed more than length added here.
    turned = several().scorers[2].raw
    assert extremes(turned).best == "essay"
    scorer = dataclasses.replace(scorer, adjusted=turned, spread_cut=0.5)
    scorer = dataclasses.replace(scorer, finding=answer_finding(scorer))
    report = dataclasses.replace(report, scorers=(scorer,))
    assert "It goes too far: what is left favours essay." in headline(report)
    assert "What is left is still measurable: essay over terse" in adjustment_sentence(one(report))


def test_without_wrong_answers_or_adjustment():
    report = everyone_right()
    found = one(report)
    assert found.adjustment is AdjustmentCode.ABSENT
    assert adjustment_sentence(found) == auc_sentence(found.scorer) == ""
    assert "adjust" not in sentence(found) + headline(report)
    adjusted = dataclasses.replace(found.scorer, adjusted=found.scorer.raw, spread_cut=0.5)
    assert "cannot be tested here" in auc_clause(adjusted)


def test_the_headline_counts_many_scores():
    line = headline(several())
    assert "short and long reward a system's style; fair may reward style or not" in line
    assert "above those of essay under short; answers of essay score" in line
    assert "under short and long, at no measurable loss of AUC within systems" in line
    report = several()
    four = tuple(dataclasses.replace(report.scorers[0], name=f"s{i}") for i in range(4))
    line = headline(dataclasses.replace(report, scorers=four))
    assert "all 4 scores reward a system's style" in line
    assert "and less far under 3" in line
    assert headline(dataclasses.replace(report, scorers=())) == "No score was examined."


def test_verdicts_and_order_are_counted():
    scorer = single().scorers[0]
    raw, after = scorer.raw.verdicts, scorer.adjusted.verdicts
    text = threshold_sentence(scorer)
    assert f"({raw.n_flipped} of {raw.n_questions})" in text
    assert f"({after.n_flipped})" in text
    inversions = scorer.raw.inversions
    order = order_sentence(scorer)
    assert f"{len(inversions.inversions)} of {inversions.n_pairs} pairs" in order
    better, other = inversions.inversions[0]
    assert f"{better} under {other}" in order
    none = dataclasses.replace(inversions, inversions=())
    fine = dataclasses.replace(scorer.raw, inversions=none)
    as_people = dataclasses.replace(scorer, raw=fine, adjusted=None)
    assert order_sentence(as_people).endswith("in the order of people.")


def test_numbers():
    assert [percent(v) for v in (0.0, 0.031, 0.0994, 0.5, None)] == [
        "0%",
        "3.1%",
        "9.9%",
        "50%",
        "–",
    ]
    assert of_questions(602, 1312) == "46% of the questions (602 of 1,312)"
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 112)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "12th",
        "13th",
        "21st",
        "112th",
    ]
    assert ranks((0.2, 0.9, 0.9, 0.1)) == (3, 1, 1, 4)
    assert digits_of(several().scorers[0]) == 3
    assert digits_of(several().scorers[2]) == 1  # the same on a scale of 0 to 100
