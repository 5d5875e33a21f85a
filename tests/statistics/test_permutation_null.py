"""The sign-flip test holds its level when the sources score alike."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import acceptable, at_one, with_ties

from rag_sourcebias.inference import adjust_p_values, sign_flip_test

pytestmark = pytest.mark.slow
RUNS = 2000


@pytest.mark.parametrize("n", [16, 40, 300])
def test_p_values_are_uniform_under_the_null(n):
    """Scores of unequal spread over queries; only symmetry of the differences is assumed."""
    rng = np.random.default_rng(n)
    p_values = np.empty(RUNS)
    for i in range(RUNS):
        spread = rng.gamma(1, size=n)
        h = rng.random(n)
        p_values[i] = sign_flip_test(h, h + spread * rng.normal(size=n), resamples=499, rng=rng)
    distance = np.max(np.abs(np.sort(p_values) - (np.arange(RUNS) + 0.5) / RUNS))
    # Kolmogorov–Smirnov at 0.001, and half a step of the p-value grid
    assert distance < 1.95 / np.sqrt(RUNS) + 0.5 / 500


@pytest.mark.parametrize(
    "population",
    [at_one(0.2, 0.2), at_one(0.03, 0.03), with_ties(0.05, 0.05, 0.5, 0.5)],
    ids=["cutoff 1", "rare", "ties"],
)
@pytest.mark.parametrize("n", [30, 200])
def test_level_is_held_with_discrete_scores(population, n):
    rng = np.random.default_rng(n)
    p_values = [
        sign_flip_test(*population.draw(n, rng), resamples=499, rng=rng) for _ in range(RUNS)
    ]
    for level in (0.01, 0.05, 0.2):
        rejected = float(np.mean(np.array(p_values) <= level))
        assert 1 - rejected >= acceptable(1 - level, RUNS)


def test_power():
    rng = np.random.default_rng(0)
    p_values = [sign_flip_test(*at_one(0.5, 0.3).draw(300, rng), rng=rng) for _ in range(100)]
    assert np.mean(np.array(p_values) < 0.05) > 0.9


def test_corrections_hold_the_rates_they_promise():
    """15 true nulls and 5 real effects; Holm: any false finding, BH: share of false findings."""
    from scipy.special import ndtr

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
