"""Tests of paired differences hold their level where means are equal and differences skewed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from simulation import acceptable, at_one, with_ties

from rag_sourcebias.infer.means import adjust_p_values, difference_test

pytestmark = pytest.mark.slow
RUNS = 2000


def sign_flip(differences, rng):
    """The test that assumes symmetric differences."""
    signs = rng.choice([-1.0, 1.0], (399, len(differences)))
    extreme = np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9
    return (1 + np.count_nonzero(extreme)) / 400


def skewed(n, rng):
    """Mean 0: one query in ten gains 0.9, the others lose 0.1."""
    return np.where(rng.random(n) < 0.1, 0.9, -0.1)


def rejected(test, n, *, runs=RUNS):
    rng = np.random.default_rng(n)
    return float(np.mean([test(skewed(n, rng), rng) < 0.05 for _ in range(runs)]))


@pytest.mark.parametrize("n", [10, 20, 50, 300])
def test_skewed_differences_of_mean_zero(n):
    rate = rejected(lambda d, _: difference_test(d, np.arange(n)), n)
    assert 1 - rate >= acceptable(0.95, RUNS)


@pytest.mark.parametrize("n", [10, 20, 50])
def test_exchanging_signs_would_fail(n):
    assert 1 - rejected(sign_flip, n, runs=500) < acceptable(0.95, 500)


@pytest.mark.parametrize(
    "population",
    [at_one(0.2, 0.2), at_one(0.03, 0.03), with_ties(0.05, 0.05, 0.5, 0.5)],
    ids=["cutoff 1", "rare", "ties"],
)
@pytest.mark.parametrize("n", [30, 200])
def test_level_is_held_with_discrete_scores(population, n):
    rng = np.random.default_rng(n)
    p_values = []
    for _ in range(RUNS):
        h, low = population.draw(n, rng)
        p_values.append(difference_test(h - low, np.arange(n)))
    for level in (0.01, 0.05, 0.2):
        rate = float(np.mean(np.array(p_values) <= level))
        assert 1 - rate >= acceptable(1 - level, RUNS)


def test_power():
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(100):
        h, low = at_one(0.5, 0.3).draw(300, rng)
        p_values.append(difference_test(h - low, np.arange(300)))
    assert np.mean(np.array(p_values) < 0.05) > 0.9


def test_corrections_hold_the_rates_they_promise():
    """15 true nulls and 5 real effects; Holm: any false finding, BH: share of false findings."""
    rng = np.random.default_rng(1)
    any_false, share_false, found = [], [], []
    for _ in range(RUNS):
        z = rng.normal(size=20) + np.repeat([0.0, 3.5], [15, 5])
        p = list(2 * ndtr(-np.abs(z)))
        holm = np.array(adjust_p_values(p, correction="holm")) < 0.05
        bh = np.array(adjust_p_values(p, correction="bh")) < 0.05
        any_false.append(holm[:15].any())
        share_false.append(bh[:15].sum() / max(bh.sum(), 1))
        found.append((holm[15:].mean(), bh[15:].mean()))
    assert 1 - np.mean(any_false) >= acceptable(0.95, RUNS)
    assert np.mean(share_false) <= 0.05
    assert np.mean(found, axis=0)[0] > 0.6
    assert np.mean(found, axis=0)[1] > np.mean(found, axis=0)[0]
