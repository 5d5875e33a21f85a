"""Per-query intervals: exact ranks, the rules written out, and awkward judges."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from crc_oracles import GAINS, awkward_labels, judged
from hypothesis import given
from hypothesis import strategies as st

from rag_sourcebias.core.errors import CalibrationError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.judged.crc import (
    RankedLabels,
    crossings,
    paper_misses,
    per_query_intervals,
    recalibration,
    score_rank,
)

RULES = ("residual", "recalibrated", "paper")


@given(st.integers(1, 3000), st.sampled_from(["0.9", "0.95", "0.99", "0.8", "0.975", "0.7"]))
def test_ranks_equal_rational_arithmetic(n, level):
    alpha = 1 - Fraction(level)
    if n >= 1 / alpha - 1:
        assert score_rank(n, float(level)) == ceil((n + 1) * (1 - alpha)) <= n
        k = paper_misses(n, float(level))
        threshold = (alpha - (1 - alpha) / n) / 2
        assert Fraction(k, n) <= threshold < Fraction(k + 1, n)


@pytest.mark.parametrize(
    ("level", "rule", "needed"),
    [
        (0.95, "recalibrated", 19),
        (0.95, "residual", 19),
        (0.95, "paper", 19),
        (0.9, "recalibrated", 9),
        (0.99, "paper", 99),
    ],
)
def test_too_few_queries_are_refused_with_the_number_needed(level, rule, needed):
    labels, y = judged(needed)
    target, _ = judged(3, seed=5)
    per_query_intervals(labels, y, target, rule=rule, confidence_level=level)
    fewer = labels.take(np.arange(needed - 1))
    message = f"{needed - 1} labelled queries .* at least {needed} are needed"
    with pytest.raises(CalibrationError, match=message):
        per_query_intervals(fewer, y[:-1], target, rule=rule, confidence_level=level)


def test_rule_of_the_paper_leaves_out_what_it_may():
    labels, y = judged(112)
    found = per_query_intervals(labels, y, labels, rule="paper", confidence_level=0.95)
    assert int((y > found.upper + 2e-9).sum()) == 2
    assert int((y < found.lower - 2e-9).sum()) <= 2
    tighter = labels.utilities_at(found.lambda_high - 1e-6)
    assert int((y > tighter + 2e-9).sum()) == 3
    assert InferCode.ONE_CORRECTION() in found.assumptions


def test_one_parameter_rule_is_the_smallest_radius_that_holds_the_rank():
    labels, y = judged(50)
    found = per_query_intervals(labels, y, labels, rule="recalibrated", confidence_level=0.95)
    center = recalibration(labels, y)
    radius = max(found.lambda_high - center, center - found.lambda_low)

    def held(t):
        low = labels.utilities_at(max(center - t, -1.0))
        high = labels.utilities_at(min(center + t, 1.0))
        return int(((low - 2e-9 <= y) & (y <= high + 2e-9)).sum())

    assert held(radius) == score_rank(50, 0.95) == 49
    assert held(radius - 1e-6) == 48


def test_residual_rule_leaves_each_query_out():
    labels, y = judged(30)
    found = per_query_intervals(labels, y, labels, rule="residual", confidence_level=0.8)
    judge = labels.utilities_at(recalibration(labels, y))
    fit = np.polynomial.Polynomial.fit(judge, y, 1)
    np.testing.assert_allclose(found.estimate, np.maximum(fit(judge), 0.0), atol=1e-6)
    sizes = np.empty(30)
    for i in range(30):
        rest = np.arange(30) != i
        sizes[i] = abs(y[i] - np.polynomial.Polynomial.fit(judge[rest], y[rest], 1)(judge[i]))
    scale = np.polynomial.Polynomial.fit(judge, sizes, 1)
    noise = np.sum((sizes - scale(judge)) ** 2) / 28 / np.sum((judge - judge.mean()) ** 2)
    slope = scale.convert().coef[1]
    kept = max(0.0, 1 - noise / slope**2)
    spread = np.maximum(sizes.mean() + kept * slope * (judge - judge.mean()), 0.25 * sizes.mean())
    inside = (found.lower > 1e-9) & (found.upper < labels.utilities_at(1.0) - 1e-9)
    ratio = (found.upper - found.estimate)[inside] / spread[inside]
    assert inside.sum() > 3
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(25))
def test_bounds_are_ordered_finite_and_within_reach(rule, seed):
    labels, y = awkward_labels(seed, n_queries=45)
    target, _ = awkward_labels(seed, n_queries=45)
    found = per_query_intervals(labels, y, target, rule=rule, confidence_level=0.95)
    assert found.lower.shape == (45,)
    assert np.all(target.utilities_at(-1.0) - 1e-9 <= found.lower)
    assert np.all(found.lower <= found.estimate)
    assert np.all(found.estimate <= found.upper)
    assert np.all(found.upper <= target.utilities_at(1.0) + 1e-9)
    # the labelled queries themselves are held at least as often as the level asks
    held = (found.lower - 1e-8 <= y) & (y <= found.upper + 1e-8)
    assert held.sum() >= 42


@pytest.mark.parametrize("rule", RULES)
def test_perfect_judge_has_no_width(rule):
    rng = np.random.default_rng(1)
    labels = RankedLabels.from_grid(np.eye(4)[rng.integers(0, 4, (60, 5))], np.ones(5), GAINS)
    y = labels.utilities()
    found = per_query_intervals(labels, y, labels, rule=rule, confidence_level=0.95)
    np.testing.assert_allclose(found.upper - found.lower, 0.0, atol=1e-6)
    np.testing.assert_allclose(found.estimate, y, atol=1e-6)


def test_a_query_that_alone_fixes_the_slope_does_not_break_the_residual_rule():
    grades = np.zeros((40, 3), dtype=int)
    grades[0] = 3
    labels = RankedLabels.from_grid(np.eye(4)[grades], np.ones(3), GAINS)
    y = np.random.default_rng(0).uniform(0, 5, 40)
    found = per_query_intervals(labels, y, labels, confidence_level=0.9)
    assert np.isfinite(found.lower).all()
    assert np.isfinite(found.upper).all()


def test_scores_of_the_labelled_queries_come_from_their_crossings():
    labels, y = judged(45)
    first, last = crossings(labels, y)
    found = per_query_intervals(labels, y, labels, rule="paper", confidence_level=0.95)
    assert found.lambda_high == first.max()
    assert found.lambda_low == last.min()
