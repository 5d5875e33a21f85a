"""Paired comparisons of average ranks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.infer.means import adjust_p_values
from rag_sourcebias.style.measure import compare_ranks

NAMES = ("human", "0", "1", "2")


def ranks_of(n, *, effect=0.5, seed=0):
    scores = np.random.default_rng(seed).normal(effect * np.arange(4), 1, (n, 4))
    return stats.rankdata(-scores, axis=1)


def exact_p(d):
    """P(|Σ ±d| ≥ |Σ d|) for whole numbers, by convolution."""
    size = int(np.abs(d).sum())
    law = np.ones(1)
    for step in np.abs(d).astype(int):
        pair = np.zeros(2 * step + 1)
        pair[0] += 0.5
        pair[-1] += 0.5
        law = np.convolve(law, pair)
    return law[np.abs(np.arange(-size, size + 1)) >= abs(d.sum())].sum()


def test_few_queries_are_tested_exactly():
    ranks = ranks_of(7)
    for pair in compare_ranks(ranks, NAMES, "1"):
        d = ranks[:, NAMES.index(pair.first)] - ranks[:, NAMES.index(pair.second)]
        flips = [abs(np.dot(s, d)) >= abs(d.sum()) - 1e-9 for s in product((1, -1), repeat=7)]
        assert pair.p_value == pytest.approx(np.mean(flips))
        assert pair.difference == pytest.approx(d.mean())


def test_many_queries_against_the_exact_law_and_student():
    ranks = ranks_of(60, effect=0.2)
    found = compare_ranks(ranks, NAMES, "human", resamples=20_000, rng=1)
    assert [(p.first, p.second) for p in found] == [(name, "human") for name in NAMES[1:]]
    for pair in found:
        a, b = (ranks[:, NAMES.index(name)] for name in (pair.first, pair.second))
        assert pair.p_value == pytest.approx(exact_p(a - b), abs=0.016)
        low, high = stats.ttest_rel(a, b).confidence_interval(0.95)
        assert (pair.interval.lower, pair.interval.upper) == pytest.approx((low, high))
    assert [p.p_adjusted for p in found] == pytest.approx(
        adjust_p_values([p.p_value for p in found])
    )


def test_tests_are_adjusted_over_the_other_styles():
    found = compare_ranks(ranks_of(60), NAMES, "1", correction="bh")
    assert [(p.first, p.second) for p in found] == [("human", "1"), ("0", "1"), ("2", "1")]
    expected = stats.false_discovery_control([p.p_value for p in found])
    assert [p.p_adjusted for p in found] == pytest.approx(expected)


def test_one_query():
    pair = compare_ranks(np.array([[1.0, 2.0]]), ["a", "b"], "a")[0]
    assert (pair.difference, pair.interval, pair.p_value) == (1, None, 1)
