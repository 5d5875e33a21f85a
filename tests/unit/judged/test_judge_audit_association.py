from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.judged.judge_audit import agreement_intervals


def correlation(x, y, clusters):
    pearson, _ = agreement_intervals(x, y, clusters)
    return pearson


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_estimates_are_those_of_scipy(seed, far):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, 200).astype(float)
    y = np.round(x + rng.normal(0, 2, 200), seed % 3)
    found = correlation(x + far, y - far, np.arange(200))
    assert found.estimate == pytest.approx(stats.pearsonr(x, y)[0], abs=1e-9)


@pytest.mark.parametrize("kind", ["normal", "verdicts", "skewed"])
def test_coverage(kind):
    """300 samples of 40: at least .91 of intervals hold the correlation of the population.

    Fisher's interval covers .72 of the skewed case.
    """
    rng = np.random.default_rng(7)
    x, y = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 200_000).T
    if kind == "verdicts":
        x, y = (x > 0.3) * 1.0, (y > 0) * 1.0
    if kind == "skewed":
        x, y = np.exp(x), np.exp(y)
    truth = np.corrcoef(x, y)[0, 1]
    held = 0
    for _ in range(300):
        i = rng.integers(0, len(x), 40)
        held += not correlation(x[i], y[i], np.arange(40)).excludes(truth)
    assert held / 300 >= (0.87 if kind == "skewed" else 0.91)


@pytest.mark.parametrize("size", [1, 6])
def test_the_interval_is_the_literal_jackknife_of_clusters(size):
    rng = np.random.default_rng(5)
    clusters = np.arange(300) // size
    shared = rng.normal(size=(2, clusters[-1] + 1))[:, clusters]
    x = rng.normal(size=300) + shared[0]
    y = 0.7 * x + rng.normal(size=300) + 0.5 * shared[1]
    g = clusters[-1] + 1
    without = [stats.pearsonr(x[clusters != c], y[clusters != c])[0] for c in range(g)]
    error = (g - 1) * np.std(np.arctanh(without)) / np.sqrt(g - 1)
    width = stats.t.ppf(0.975, g - 2) * error
    found = correlation(x, y, clusters)
    ends = np.tanh(np.arctanh(found.estimate) + np.array([-width, width]))
    assert (found.lower, found.upper) == pytest.approx(tuple(ends), rel=1e-9)
    assert found.n_labeled == g


def test_perfect_correlation():
    x = np.arange(20.0)
    found = correlation(x, 2 * x, np.arange(20))
    assert (found.lower, found.upper) == pytest.approx((1, 1))
