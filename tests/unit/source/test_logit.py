"""Win rate at equal length."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize, root

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.source.audit import win_rate_at

AT = np.array([0.0, 0.6])


def data(n=300, seed=0, slope=2.0, intercept=0.4):
    rng = np.random.default_rng(seed)
    x = np.column_stack((rng.normal(-0.3, 0.2, n), rng.normal(0.6, 0.1, n)))
    p = 1 / (1 + np.exp(-(intercept + slope * x[:, 0])))
    return (rng.random(n) < p).astype(float), x, np.arange(n)


def test_is_the_maximum_likelihood_estimate():
    wins, x, clusters = data()

    def loss(beta):
        eta = beta[0] + (x - AT) @ beta[1:]
        return np.sum(np.logaddexp(0, eta) - wins * eta)

    best = minimize(loss, np.zeros(3), tol=1e-12).x
    found = win_rate_at(wins, x, clusters, at=AT)
    assert found.estimate == pytest.approx(1 / (1 + np.exp(-best[0])), abs=1e-5)
    assert found.lower < found.estimate < found.upper


def test_pairs_of_a_query_vary_together():
    """Variance of Liang and Zeger (1986), times g/(g − 1), of t with g − 1 degrees of freedom."""
    wins, x, _ = data()
    clusters = np.arange(300) % 40
    design = np.column_stack((np.ones(300), x - AT))
    found = win_rate_at(wins, x, clusters, at=AT, confidence_level=0.9)

    def score(beta):
        return design.T @ (wins - 1 / (1 + np.exp(-design @ beta)))

    beta = root(score, np.zeros(3), tol=1e-12).x
    p = 1 / (1 + np.exp(-design @ beta))
    bread = np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design)
    sums = np.array([design[clusters == g].T @ (wins - p)[clusters == g] for g in range(40)])
    variance = (bread @ sums.T @ sums @ bread)[0, 0] * 40 / 39
    half = stats.t.ppf(0.95, 39) * np.sqrt(variance)
    expected = 1 / (1 + np.exp(-beta[0] + half)), 1 / (1 + np.exp(-beta[0] - half))
    assert (found.lower, found.upper) == pytest.approx(expected, rel=1e-6)
    assert found.n_labeled == 40


def test_extrapolation_is_stated():
    wins, x, clusters = data()
    inside = win_rate_at(wins, x, clusters, at=AT)
    assert InferCode.EXTRAPOLATED() not in inside.assumptions
    for at in (x.min(axis=0), x.max(axis=0)):
        ends = win_rate_at(wins, x, clusters, at=at)
        assert InferCode.EXTRAPOLATED() not in ends.assumptions
    far = win_rate_at(wins, x, clusters, at=np.array([1.5, 0.6]))
    assert InferCode.EXTRAPOLATED() in far.assumptions


class TestRefusals:
    def test_constant_covariate_elsewhere(self):
        wins, x, clusters = data()
        x[:, 0] = -0.2
        with pytest.raises(InsufficientDataError, match=r"covariate 0 is −0\.200 .* wins at 0"):
            win_rate_at(wins, x, clusters, at=AT)

    def test_few_queries(self):
        wins, x, _ = data(200)
        with pytest.raises(InsufficientDataError, match="at least 30 queries") as caught:
            win_rate_at(wins, x, np.arange(200) % 29, at=AT)
        assert (caught.value.n, caught.value.n_needed) == (29, 30)
        assert win_rate_at(wins, x, np.arange(200) % 30, at=AT).n_labeled == 30

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_one_outcome_only(self, value):
        _, x, clusters = data()
        with pytest.raises(InsufficientDataError, match=r"0\.0 of 300 pairs went one way"):
            win_rate_at(np.full(300, value), x, clusters, at=AT)

    def test_five_pairs_that_went_the_other_way_are_enough(self):
        _, x, clusters = data()
        wins = np.ones(300)
        wins[:4] = 0
        with pytest.raises(InsufficientDataError, match=r"4\.0 of 300 pairs went one way"):
            win_rate_at(wins, x, clusters, at=AT)
        wins[4] = 0
        assert win_rate_at(wins, x, clusters, at=AT).upper < 1

    def test_separation(self):
        _, x, clusters = data()
        with pytest.raises(InsufficientDataError, match="separate wins from losses completely"):
            win_rate_at((x[:, 0] > -0.3).astype(float), x, clusters, at=AT)
