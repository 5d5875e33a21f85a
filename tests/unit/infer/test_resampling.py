"""Bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.infer.means import bootstrap_means, dirichlet_sums


class TestBootstrap:
    @pytest.mark.parametrize("kind", ["continuous", "half distinct", "binary"])
    def test_moments(self, kind):
        """Whatever way resamples are drawn, their mean and covariance are the known ones."""
        rng = np.random.default_rng(0)
        n = 500
        columns = rng.random((n, 2))
        columns[:, 1] += columns[:, 0]
        if kind == "half distinct":
            columns = columns[rng.integers(0, 250, n)]
        if kind == "binary":
            columns = np.round(columns)
        means = bootstrap_means(columns, resamples=20_000, rng=1)
        assert means.shape == (20_000, 2)
        cov = np.cov(columns.T, ddof=0) / n
        np.testing.assert_allclose(means.mean(axis=0), columns.mean(axis=0), atol=4e-4)
        np.testing.assert_allclose(np.cov(means.T), cov, rtol=0.06, atol=1e-6)


@pytest.mark.parametrize("hits", [0, 3, 10])
def test_bounds_of_shares_are_those_of_clopper_and_pearson(hits):
    values = np.repeat([1.0, 0.0], [hits, 10 - hits])[:, None]
    sums, share = dirichlet_sums(values, resamples=100_000, rng=0)
    low, high = stats.binomtest(hits, 10).proportion_ci(method="exact")
    assert np.quantile(sums[:, 0], 0.025) == pytest.approx(low, abs=0.005)
    assert np.quantile(sums[:, 0] + share, 0.975) == pytest.approx(high, abs=0.005)


def test_equal_rows_are_drawn_together_without_a_difference():
    rng = np.random.default_rng(1)
    apart = rng.normal(size=(12, 2))
    joined = np.repeat(apart[:3], 4, axis=0)
    for columns in (apart, joined):
        sums, share = dirichlet_sums(columns, resamples=60_000, rng=2)
        assert sums.mean(axis=0) == pytest.approx(columns.sum(axis=0) / 13, abs=0.01)
        spread = columns - columns.sum(axis=0) / 13
        expected = ((spread**2).sum(axis=0) + (columns.sum(axis=0) / 13) ** 2) / (13 * 14)
        assert sums.var(axis=0) == pytest.approx(expected, rel=0.05)
        assert share.mean() == pytest.approx(1 / 13, rel=0.03)


@pytest.mark.parametrize("distinct", [1, 2, 15, 16])
def test_a_seed_draws_known_rows(distinct: int) -> None:
    """Rows are drawn one by one; with fewer than n / 8 different ones, how often each comes is."""
    n = 16
    rows = np.stack([np.arange(distinct) ** 2.0, -np.arange(distinct, dtype=float)], axis=1)
    columns = rows[np.arange(n) % distinct]
    found = bootstrap_means(columns, resamples=50, rng=3)
    generator = np.random.default_rng(3)
    ordered = columns[np.lexsort(columns.T[::-1])]
    if distinct < n / 8:
        counts = np.bincount(np.arange(n) % distinct)
        expected = generator.multinomial(n, counts / n, size=50) @ rows / n
    else:
        expected = ordered[generator.integers(0, n, (50, n), dtype=np.int32)].mean(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-12)
