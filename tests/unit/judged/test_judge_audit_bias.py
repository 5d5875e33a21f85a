from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.judged.judge_audit import bias_differences, group_biases, mean_error


def test_mean_error_is_the_t_interval_for_independent_items():
    errors = np.random.default_rng(0).normal(0.3, 1, 40)
    found = mean_error(errors, np.arange(40), span=4)
    low, high = stats.t.interval(0.95, 39, errors.mean(), stats.sem(errors))
    assert (found.lower, found.upper) == pytest.approx((low, high), rel=1e-12)


def test_full_agreement_is_not_certainty():
    found = mean_error(np.zeros(30), np.arange(30), span=2)
    assert found.estimate == 0
    assert found.upper == pytest.approx(2 * stats.beta.ppf(0.975, 0.65, 30), rel=1e-4)
    assert found.lower == pytest.approx(-found.upper)


def test_what_cannot_be_estimated_is_none():
    assert mean_error(np.ones(30), np.arange(30), span=1) is None
    assert mean_error(np.zeros(5), np.zeros(5, dtype=int), span=1) is None


def test_differences_are_welch_tests_for_independent_items():
    rng = np.random.default_rng(1)
    errors = np.concatenate((rng.normal(0, 1, 30), rng.normal(1, 3, 50)))
    groups = ["a"] * 30 + ["b"] * 50
    (found,) = bias_differences(errors, groups, np.arange(80))
    welch = stats.ttest_ind(errors[:30], errors[30:], equal_var=False)
    interval = welch.confidence_interval(0.95)
    assert found.p_value == pytest.approx(welch.pvalue, rel=1e-9)
    assert found.p_adjusted == found.p_value
    assert found.difference.estimate == pytest.approx(errors[:30].mean() - errors[30:].mean())
    assert (found.difference.lower, found.difference.upper) == pytest.approx(
        (interval.low, interval.high), rel=1e-9
    )


def test_systems_that_answered_the_same_questions_are_compared_as_pairs():
    rng = np.random.default_rng(2)
    hard = rng.normal(0, 2, 60)
    a, b = hard + rng.normal(0, 0.2, 60), hard + rng.normal(0.2, 0.2, 60)
    (found,) = bias_differences(
        np.concatenate((a, b)), ["a"] * 60 + ["b"] * 60, np.tile(np.arange(60), 2)
    )
    paired = stats.ttest_rel(a, b)
    assert found.p_value == pytest.approx(paired.pvalue, rel=1e-6)
    assert found.difference.half_width == pytest.approx(
        paired.confidence_interval(0.95).high - (a - b).mean(), rel=1e-9
    )


def test_many_groups_are_held_against_the_rest_and_holm_adjusted():
    rng = np.random.default_rng(3)
    groups = np.repeat([f"s{i}" for i in range(8)], 40)
    errors = rng.normal(size=320) + (groups == "s5")
    found = bias_differences(errors, groups.tolist(), np.arange(320))
    assert len(found) == 8
    assert (found[0].group, found[0].other) == ("s5", "rest")
    assert found[0].p_adjusted == pytest.approx(8 * found[0].p_value)
    assert [d.p_value for d in found] == sorted(d.p_value for d in found)
    rest = stats.ttest_ind(errors[groups == "s5"], errors[groups != "s5"], equal_var=False)
    assert found[0].p_value == pytest.approx(rest.pvalue, rel=1e-9)


def test_false_findings_are_rare():
    """6 comparisons of 4 equal groups, clustered: at most 5 % of 200 families have a finding."""
    rng = np.random.default_rng(4)
    clusters = np.tile(np.arange(50), 4)
    groups = np.repeat(["a", "b", "c", "d"], 50).tolist()
    hits = 0
    for _ in range(200):
        errors = np.tile(rng.normal(size=50), 4) + rng.normal(size=200)
        hits += bias_differences(errors, groups, clusters)[0].p_adjusted < 0.05
    assert hits <= 18  # P of more at 5 %: 0.007


def test_groups_are_described():
    human = np.array([1.0, 2, 3, 4, 1, 2])
    judge = np.array([2.0, 2, 4, 4, 1, 1])
    a, b, c = group_biases(judge - human, list("bbbbac"), np.arange(6), span=3)
    assert (a.group, a.n, a.bias) == ("a", 1, None)
    assert (b.group, b.n) == ("b", 4)
    assert b.bias.estimate == 0.5
    assert c.group == "c"
    assert len(bias_differences(judge - human, list("bbbbac"), np.arange(6))) == 0
    assert bias_differences(judge - human, ["a"] * 6, np.arange(6)) == ()
