"""Evidence against literal formulas, and its expectation over all short sequences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln
from scipy.stats import beta as beta_distribution

from rag_sourcebias.stats.aggregation import beta_interval, beta_log_e
from rag_sourcebias.stats.sequential import FRACTIONS, BettingTest, NullRange

N = 12
SEQUENCES = np.array(list(itertools.product([0.0, 1.0], repeat=N))).T  # (n, 2 ** n) as groups
P = np.array([0.5, 0.03, 0.3, 0.86])


def probabilities(p):
    """Of every sequence, when the chances of 1 are p: one number, or n of them."""
    p = np.broadcast_to(np.asarray(p, float).reshape(-1, 1), SEQUENCES.shape)
    return np.where(SEQUENCES == 1, p, 1 - p).prod(axis=0)


def expectations(log_e, p):
    return np.exp(log_e) @ probabilities(p)


def beta_path(rows, null, strength=50.0):
    n = np.arange(1.0, len(rows) + 1)[:, None]
    return beta_log_e(n, rows.cumsum(axis=0), null, a=strength * null, b=strength * (1 - null))


@pytest.mark.parametrize("p0", P)
@pytest.mark.parametrize("strength", [1.0, 50.0])
def test_beta_is_a_martingale(p0, strength):
    log_e = beta_path(SEQUENCES, p0, strength)
    np.testing.assert_allclose(expectations(log_e, p0), 1, rtol=1e-10)


def test_beta_never_gains_on_values_between():
    values = np.array(list(itertools.product([0.0, 0.3, 0.8], repeat=6))).T
    chances = {0.0: 0.35, 0.3: 0.4, 0.8: 0.25}
    weights = np.vectorize(chances.get)(values).prod(axis=0)
    mean = sum(x * w for x, w in chances.items())
    log_e = beta_path(values, mean)
    assert (np.exp(log_e) @ weights < 1).all()


@pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
def test_betting_is_a_martingale_with_baselines_that_differ(side):
    null = np.random.default_rng(1).uniform(0.02, 0.98, N)
    test = BettingTest(groups=2**N, side=side)
    log_e = test.update_many(SEQUENCES, null=null[:, None])
    np.testing.assert_allclose(expectations(log_e, null), 1, rtol=1e-10)


def test_betting_on_three_values_is_a_martingale():
    values = np.array(list(itertools.product([0.0, 0.3, 0.8], repeat=6))).T
    weights = np.vectorize({0.0: 0.35, 0.3: 0.4, 0.8: 0.25}.get)(values).prod(axis=0)
    log_e = BettingTest(0.32, groups=values.shape[1]).update_many(values)
    np.testing.assert_allclose(np.exp(log_e) @ weights, 1, rtol=1e-12)


def test_betting_against_a_range_never_gains():
    log_e = BettingTest(NullRange(0.3, 0.45), groups=2**N).update_many(SEQUENCES)
    for p in np.linspace(0.3, 0.45, 7):
        assert (expectations(log_e, p) <= 1 + 1e-12).all()


@pytest.mark.parametrize("share", [0.0, 1.0, 1e-5])
def test_betting_at_the_edge_of_the_range_stays_finite_and_pays_nothing_for_what_must_be(share):
    test = BettingTest()
    must = float(round(share))
    assert test.update_many([must] * 5, null=share)[-1, 0] == pytest.approx(0, abs=1e-2)
    other = test.update_many([1 - must] * 3, null=share)
    assert np.isfinite(other).all()
    assert other[-1, 0] > 3


def test_betting_matches_the_literal_products():
    rng = np.random.default_rng(2)
    x, m = rng.uniform(size=40), rng.uniform(0.1, 0.9, 40)
    above = [
        math.prod(1 + c / mi * (xi - mi) for xi, mi in zip(x, m, strict=True)) for c in FRACTIONS
    ]
    below = [
        math.prod(1 - c / (1 - mi) * (xi - mi) for xi, mi in zip(x, m, strict=True))
        for c in FRACTIONS
    ]
    found = BettingTest().update_many(x, null=m)[-1, 0]
    assert found == pytest.approx(math.log(np.mean(above + below)), abs=1e-12)


@pytest.mark.parametrize(("n", "total", "p0"), [(1, 1, 0.5), (30, 21, 0.4), (400, 90.5, 0.2)])
def test_beta_matches_formula_and_integration(n, total, p0):
    a, b = 50 * p0, 50 * (1 - p0)
    literal = betaln(a + total, b + n - total) - betaln(a, b)
    literal -= total * math.log(p0) + (n - total) * math.log(1 - p0)
    assert float(beta_log_e(n, total, p0, a=a, b=b)) == pytest.approx(literal, abs=1e-11)

    def mixed(q):
        ratio = total * math.log(q / p0) + (n - total) * math.log((1 - q) / (1 - p0))
        return math.exp(ratio) * beta_distribution.pdf(q, a, b)

    area = quad(mixed, 0, 1, points=[p0, total / n * 0.98 + 0.001], limit=400, epsabs=0)[0]
    assert float(beta_log_e(n, total, p0, a=a, b=b)) == pytest.approx(math.log(area), abs=1e-7)


def test_beta_of_a_long_stream_is_accurate():
    # Against the product of predictive chances, which loses nothing to cancellation.
    n, p0 = 200_000, 0.5
    x = np.random.default_rng(3).random(n) < 0.5
    before = np.concatenate([[0], np.cumsum(x)[:-1]])
    chance = (25 + before) / (50 + np.arange(n))
    literal = math.fsum(np.log(np.where(x, chance, 1 - chance)) - math.log(p0))
    assert float(beta_log_e(n, x.sum(), p0, a=25, b=25)) == pytest.approx(literal, abs=1e-6)


@pytest.mark.parametrize(("n", "total"), [(1, 0), (7, 7), (60, 21), (3000, 1512.5)])
def test_interval_is_what_is_not_rejected(n, total):
    lower, upper = beta_interval(n, total, a=20, b=30, confidence_level=0.9)
    grid = np.linspace(1e-4, 1 - 1e-4, 9999)
    held = grid[beta_log_e(n, total, grid, a=20, b=30) < math.log(10)]
    assert lower <= held[0] <= lower + 1.01e-4 + 1e-12
    assert upper >= held[-1] >= upper - 1.01e-4 - 1e-12


def test_interval_without_observations_is_everything():
    lower, upper = beta_interval([0, 0], [0, 0], a=1, b=1, confidence_level=0.95)
    assert lower.tolist() == [0, 0]
    assert upper.tolist() == [1, 1]
