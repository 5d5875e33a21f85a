"""Cluster-robust means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.means import clustered_mean, clustered_standardised_mean


def test_singletons_give_the_t_interval():
    values = np.random.default_rng(0).normal(size=40)
    interval = clustered_mean(values, np.arange(40), confidence_level=0.9)
    ends = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert (interval.lower, interval.upper) == pytest.approx((ends.low, ends.high))
    assert interval.n_labeled == 40


def test_repeating_observations_adds_no_certainty():
    values = np.random.default_rng(0).normal(size=30)
    once = clustered_mean(values, np.arange(30))
    thrice = clustered_mean(np.repeat(values, 3), np.repeat(np.arange(30), 3))
    assert (once.lower, once.upper) == pytest.approx((thrice.lower, thrice.upper))


class TestBounded:
    bounds = (0.0, 1.0)

    @pytest.mark.parametrize("hits", [3, 25, 48])
    def test_independent_shares_are_close_to_clopper_pearson(self, hits):
        values = np.repeat([1.0, 0.0], [hits, 50 - hits])
        interval = clustered_mean(values, np.arange(50), bounds=self.bounds)
        exact = stats.binomtest(hits, 50).proportion_ci(method="exact")
        assert interval.lower == pytest.approx(exact.low, abs=0.02)
        assert interval.upper == pytest.approx(exact.high, abs=0.02)

    def test_values_outside_are_refused(self):
        with pytest.raises(DataError, match=r"from 0\.0 to 2\.0, outside the bounds"):
            clustered_mean(np.array([0.0, 2.0]), np.arange(2), bounds=self.bounds)


class TestRefusals:
    def test_no_spread_without_bounds(self):
        with pytest.raises(InsufficientDataError, match=r"all 8 clusters .* agree exactly"):
            clustered_mean(np.full(8, 0.3), np.arange(8))

    def test_clusters_that_balance(self):
        with pytest.raises(InsufficientDataError, match="agree exactly"):
            clustered_mean(np.tile([-1.0, 1.0], 9), np.repeat(np.arange(9), 2))
        with pytest.raises(InsufficientDataError, match="agree exactly"):
            clustered_standardised_mean(np.tile([-1.0, 1.0], 9), np.repeat(np.arange(9), 2))

    @pytest.mark.parametrize("n", [0, 1, 5])
    def test_one_cluster(self, n):
        with pytest.raises(InsufficientDataError, match="at least 2 clusters"):
            clustered_mean(np.arange(n, dtype=float), np.zeros(n, dtype=int))
        with pytest.raises(InsufficientDataError, match="at least 2"):
            clustered_standardised_mean(np.arange(n, dtype=float), np.zeros(n, dtype=int))

    def test_standardised_without_spread(self):
        with pytest.raises(InsufficientDataError, match="without spread"):
            clustered_standardised_mean(np.ones(9), np.arange(9))


def test_standardised_mean_has_no_unit():
    values = np.random.default_rng(0).normal(0.5, 1, 50)
    a, b = (clustered_standardised_mean(s * values, np.arange(50)) for s in (1, 40))
    assert a.estimate == pytest.approx(values.mean() / values.std(ddof=1))
    assert (a.lower, a.upper) == pytest.approx((b.lower, b.upper))


def test_standardised_mean_has_the_error_of_its_derivative():
    """Weights of single observations are moved a little: mean and deviation both answer."""
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(200), 3)
    values = 2.0 + rng.normal(size=200)[clusters] + rng.gamma(2.0, 0.5, 600)

    def standardised(weights):
        mean = weights @ values / weights.sum()
        return mean / np.sqrt(weights @ (values - mean) ** 2 / weights.sum())

    step = 1e-6
    slope = np.array([
        (standardised(1 + step * (clusters == c)) - standardised(np.ones(600))) / step
        for c in range(200)
    ])  # fmt: skip
    error = np.sqrt(slope @ slope * 200 / 199)
    found = clustered_standardised_mean(values, clusters)
    assert found.estimate == pytest.approx(values.mean() / values.std(ddof=1))
    assert found.half_width == pytest.approx(stats.t.ppf(0.975, 199) * error, rel=0.01)
