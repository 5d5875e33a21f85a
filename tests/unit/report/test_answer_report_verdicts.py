from __future__ import annotations

import dataclasses

import pytest
from answer_reports import everyone_right, several, single

from rag_sourcebias.report.answers import headline, verdicts
from rag_sourcebias.report.answers.adjusting import (
    adjustment_sentence,
    auc_clause,
    auc_sentence,
)
from rag_sourcebias.report.answers.numbers import digits_of, of_questions, ordinal, percent
from rag_sourcebias.report.answers.order_plot import ranks
from rag_sourcebias.report.answers.verdicts import (
    SMALL,
    adjustment_kind,
    extremes,
    style_kind,
)
from rag_sourcebias.report.answers.wording import (
    length_sentence,
    order_sentence,
    sentence,
    short,
    style_sentence,
    threshold_sentence,
)
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
    """Return a scorer whose adjustment does something else."""
    return dataclasses.replace(scorer, spread_cut=cut, auc_change=change)


def biased(lower, estimate, upper, *, within=1.0):
    """Return a score with this unfairness."""
    bias = single().scorers[0].raw
    spread = dataclasses.replace(bias.spread, within_sd=within, unfairness=estimate)
    return dataclasses.replace(bias, spread=spread, unfairness=interval(estimate, lower, upper))


@pytest.mark.parametrize(
    ("bounds", "kind"),
    [
        ((0.2, 0.3, 0.4), "rewards"),
        ((0.01, 0.05, 0.3), "slight"),
        ((0.0, 0.05, 0.09), "none"),
        ((0.0, 0.05, 0.12), "unknown"),
        ((0.0, 0.3, 0.5), "unknown"),
    ],
)
def test_the_interval_decides_and_the_size_qualifies(bounds, kind):
    assert style_kind(biased(*bounds)) == kind


def test_size_is_measured_within_systems():
    assert style_kind(biased(0.01, 0.05, 0.06, within=0.1)) == "rewards"
    assert style_kind(biased(1.0, 5.0, 6.0, within=100.0)) == "slight"
    assert style_kind(biased(0.1, 0.2, 0.3, within=None)) == "rewards"
    assert style_kind(biased(0.0, 0.2, 0.3, within=None)) == "unknown"


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (None, "cuts"),
        ((0.05, 0.04, 0.06), "cuts"),
        ((-0.002, -0.01, 0.006), "cuts"),
        ((-0.02, -0.05, 0.01), "costs"),  # it may be chance, but nobody should rely on that
        ((-0.002, -0.003, -0.001), "costs"),  # small, but no chance
    ],
)
def test_an_adjustment_must_not_cost_auc(change, kind):
    found = changed(single().scorers[0], change=None if change is None else interval(*change))
    assert adjustment_kind(found) == kind


def test_an_adjustment_must_cut_the_spread():
    scorer = single().scorers[0]
    same = interval(0.0, -0.01, 0.01)
    assert adjustment_kind(changed(scorer, cut=0.05, change=same)) == "fails"
    assert adjustment_kind(changed(scorer, cut=-0.5, change=same)) == "fails"
    assert adjustment_kind(changed(scorer, cut=None, change=same)) == "fails"
    assert adjustment_kind(dataclasses.replace(scorer, adjusted=None)) == "absent"


def test_a_score_that_rewards_short_answers():
    report = single()
    found, raw = one(report), report.scorers[0].raw
    assert (found.style, found.adjustment) == ("rewards", "cuts")
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
    assert "tells right from wrong better" in line


def test_a_score_for_long_answers_names_the_pair_the_other_way_round():
    found = verdicts(several())[2].extremes
    assert (found.best, found.worst) == ("essay", "terse")
    assert 0 < found.difference.lower < found.difference.estimate < found.difference.upper
    raw = several().scorers[2].raw
    assert found.difference.estimate == pytest.approx(raw.spread.means[3] - raw.spread.means[0])
    assert found.effect == pytest.approx(raw.spread.effects[3] - raw.spread.effects[0])


def test_no_effect_is_claimed_of_a_fair_score():
    wide, narrow = single(0.0, n=100, noise=0.5), single(0.0, n=3000)
    assert (one(wide).style, one(wide).adjustment) == ("unknown", "idle")
    assert "Cannot tell" in style_sentence(one(wide))
    assert "cosine cannot be judged" in headline(wide)
    assert (one(narrow).style, one(narrow).adjustment) == ("none", "idle")
    assert "much alike" in style_sentence(one(narrow))
    assert "cosine shows no measurable effect of style" in headline(narrow)
    for report in (wide, narrow):
        assert "no clear effect for the adjustment to remove" in headline(report)
        assert "above those" not in headline(report)


def test_a_small_effect_is_called_small():
    report = single(-0.004, n=3000)
    assert one(report).style == "slight"
    raw = report.scorers[0].raw
    assert raw.unfairness.lower > 0
    assert raw.spread.unfairness / raw.spread.within_sd < SMALL
    assert "cosine rewards style only slightly" in headline(report)
    assert "score only 0." in style_sentence(one(report))


def test_too_few_questions():
    report = single(n=15)
    found = one(report)
    assert found.style == "few"
    n = found.scorer.raw.spread.n_questions
    assert f"only {n} questions correctly: too few for an interval" in style_sentence(found)
    assert adjustment_sentence(found) == ""
    assert headline(report) == (
        f"On {n} questions that all 4 systems answered correctly, cosine cannot be judged: too "
        "few questions."
    )


def test_an_adjustment_that_finds_nothing_in_length():
    report = single(0.0, own=0.2, lengths=ALIKE)
    found = one(report)
    assert (found.style, found.adjustment) == ("rewards", "fails")
    assert "It does not help here." in adjustment_sentence(found)


def test_an_adjustment_that_loses_auc():
    report = single(-0.15, gap=0.1, wrong_longer=3, lengths=(10, 14, 18, 22))
    found, scorer = one(report), report.scorers[0]
    assert found.adjustment == "costs"
    assert scorer.auc_change.upper < 0
    assert f"falls from {scorer.raw.auc.estimate:.3f} to" in auc_clause(scorer)
    assert "tells right from wrong less well: weigh that" in adjustment_sentence(found)
    assert "but the score then tells right from wrong less well (AUC" in headline(report)


def test_a_fall_that_may_be_chance_is_said_to_be_one():
    scorer = changed(single().scorers[0], change=interval(-0.02, -0.05, 0.01))
    report = dataclasses.replace(single(), scorers=(scorer,))
    assert "may be chance" in adjustment_sentence(one(report))
    assert "less well, if that is not chance" in headline(report)


def test_an_adjustment_that_goes_too_far():
    report = single()
    scorer = report.scorers[0]
    # As if what was learned elsewhere removed more than length added here.
    turned = several().scorers[2].raw
    assert extremes(turned).best == "essay"
    scorer = dataclasses.replace(scorer, adjusted=turned, spread_cut=0.5)
    report = dataclasses.replace(report, scorers=(scorer,))
    assert "It goes too far: what is left favours essay." in headline(report)
    assert "What is left is still measurable: essay over terse" in adjustment_sentence(one(report))


def test_without_wrong_answers_or_adjustment():
    report = everyone_right()
    found = one(report)
    assert found.adjustment == "absent"
    assert adjustment_sentence(found) == auc_sentence(found.scorer) == ""
    assert "adjust" not in sentence(found) + headline(report)
    adjusted = dataclasses.replace(found.scorer, adjusted=found.scorer.raw, spread_cut=0.5)
    assert "cannot be tested on these answers" in auc_clause(adjusted)


def test_the_headline_counts_many_scores():
    line = headline(several())
    assert "short and long reward a system's style; fair cannot be judged." in line
    assert "above those of essay under short; answers of essay score" in line
    assert "under short and long, at no measurable loss of AUC" in line
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
