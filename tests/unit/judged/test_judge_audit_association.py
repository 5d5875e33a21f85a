from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.means import resampled_counts
from rag_sourcebias.judged.judge_audit import (
    _linearised,
    auc_interval,
    correlation_intervals,
    kendall_tau_b,
)


def draws(seed, n=200):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, n).astype(float)
    return x, np.round(x + rng.normal(0, 2, n), seed % 3)


@pytest.mark.parametrize("seed", range(6))
def test_estimates_are_those_of_scipy(seed):
    x, y = draws(seed)
    pearson, spearman = correlation_intervals(x, y, np.arange(200), resamples=50)
    assert pearson.estimate == pytest.approx(stats.pearsonr(x, y)[0], abs=1e-12)
    assert spearman.estimate == pytest.approx(stats.spearmanr(x, y)[0], abs=1e-12)
    assert kendall_tau_b(x, y) == pytest.approx(stats.kendalltau(x, y)[0], abs=1e-12)


def test_kendall_edges():
    assert kendall_tau_b(np.arange(9.0), -np.arange(9.0)) == pytest.approx(-1)
    assert kendall_tau_b(np.array([0.0, 1]), np.array([0.0, 1])) == pytest.approx(1)
    assert np.isnan(kendall_tau_b(np.ones(5), np.arange(5.0)))


@pytest.mark.parametrize("seed", range(4))
def test_auc_is_that_of_scikit_learn(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    x, y = draws(seed)
    found = auc_interval(y, x > 2, np.arange(200))
    assert found.estimate == pytest.approx(metrics.roc_auc_score(x > 2, y), abs=1e-12)
    # the standard error of DeLong, literally: variances of the placements of either kind
    pos, neg = y[x > 2], y[x <= 2]
    wins = (pos[:, None] > neg) + 0.5 * (pos[:, None] == neg)
    error = np.sqrt(wins.mean(1).var(ddof=1) / len(pos) + wins.mean(0).var(ddof=1) / len(neg))
    auc = wins.mean()
    width = stats.t.ppf(0.975, 198) * error / (auc * (1 - auc))
    logit = np.log(auc / (1 - auc))
    assert found.lower == pytest.approx(1 / (1 + np.exp(width - logit)), rel=1e-9)
    assert found.upper == pytest.approx(1 / (1 + np.exp(-width - logit)), rel=1e-9)


def test_weights_draw_whole_clusters():
    clusters = np.array([0, 0, 1, 2, 2, 2])
    weights = np.concatenate(list(resampled_counts(3, resamples=500, rng=0)))[:, clusters]
    assert weights.shape == (500, 6)
    np.testing.assert_array_equal(weights[:, 0], weights[:, 1])
    np.testing.assert_array_equal(weights[:, [0, 2, 3]].sum(axis=1), 3)
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.12)


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
    truth = np.corrcoef(x, y)[0, 1], stats.spearmanr(x, y)[0]
    held = np.zeros(2)
    for _ in range(300):
        i = rng.integers(0, len(x), 40)
        found = correlation_intervals(x[i], y[i], np.arange(40), resamples=200, rng=rng)
        held += [not f.excludes(t) for f, t in zip(found, truth, strict=True)]
    assert (held / 300 >= (0.91 if kind != "skewed" else 0.87, 0.91)).all()


def many(kind, size, n):
    """Values of n items in clusters of ``size``, whose parts depend on each other."""
    rng = np.random.default_rng(5)
    clusters = np.arange(n) // size
    shared = rng.normal(size=(2, clusters[-1] + 1))[:, clusters]
    x = rng.normal(size=n) + shared[0]
    y = 0.7 * x + rng.normal(size=n) + 0.5 * shared[1]
    if kind == "grades":
        x, y = np.clip(np.round(x), -2, 2), np.clip(np.round(y), -1, 2)
    return x, y, clusters


@pytest.mark.parametrize("kind", ["values", "grades"])
@pytest.mark.parametrize("size", [1, 6])
def test_influence_values_are_those_of_leaving_one_cluster_out(kind, size):
    """The literal jackknife, with scipy's correlations of what is left, on Fisher's scale."""
    x, y, clusters = many(kind, size, 600)
    g = clusters[-1] + 1
    for ranked, literal in ((False, stats.pearsonr), (True, stats.spearmanr)):
        y = y + ranked * x**2  # bent, so that the ranks' own part counts
        without = [literal(x[clusters != c], y[clusters != c])[0] for c in range(g)]
        expected = (g - 1) * np.std(np.arctanh(without)) / np.sqrt(g - 1)
        r, error = _linearised(x, y, clusters, ranked=ranked)
        assert r == pytest.approx(literal(x, y)[0], abs=1e-12)
        assert error == pytest.approx(expected, rel=0.02)
        if ranked:  # ranks held fixed would give another error
            wrong = _linearised(stats.rankdata(x), stats.rankdata(y), clusters, ranked=False)[1]
            assert abs(wrong / error - 1) > 0.03


def test_refusals_and_perfect_agreement():
    x = np.arange(20.0)
    with pytest.raises(InsufficientDataError, match=r"separates all 5 .* \(AUC 1\)"):
        auc_interval(x, x >= 15, np.arange(20))
    with pytest.raises(InsufficientDataError, match="1 positive and 19 negative"):
        auc_interval(x, x >= 19, np.arange(20))
    pearson, spearman = correlation_intervals(x, 2 * x, np.arange(20), resamples=20)
    assert (pearson.lower, pearson.upper) == pytest.approx((1, 1))
    assert (spearman.lower, spearman.upper) == pytest.approx((1, 1))
