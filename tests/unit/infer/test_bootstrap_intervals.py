"""Ends of bootstrap intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import bootstrap_intervals, bootstrap_means
from rag_sourcebias.infer.samples import bootstrap_interval


@pytest.mark.parametrize("n", [8, 30, 400])
def test_of_a_mean_it_is_about_student(n):
    x = np.random.default_rng(n).normal(3, 2, n)
    draws = bootstrap_means(x[:, None], resamples=20_000, rng=0)
    found = bootstrap_intervals(np.array([x.mean()]), draws, n=n)[0]
    low, high = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    assert (found.lower, found.upper) == pytest.approx((low, high), abs=0.09 * (high - low))
    assert (found.method.code, found.n_labeled) == (InferCode.BOOTSTRAP, n)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("n", [5, 30, 400])
def test_ends_are_quantiles_at_the_tails_that_student_asks_for(n, level):
    """Hesterberg (2015): Φ(−√(n/(n − 1)) · t). The p-quantile of these draws is p itself."""
    draws = np.linspace(0, 1, 10_001)[:, None]
    (found,) = bootstrap_intervals(np.array([0.5]), draws, n=n, confidence_level=level)
    tail = stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf(0.5 + level / 2, n - 1))
    assert (found.lower, found.upper) == pytest.approx((tail, 1 - tail), rel=1e-9)


def test_ends_hold_the_estimate():
    draws = np.random.default_rng(0).normal(5, 1, (999, 1))
    (found,) = bootstrap_intervals(np.array([1.0]), draws, n=50)
    assert found.lower == 1 < found.upper


def test_resamples_that_agree_give_no_interval():
    draws = np.column_stack((np.ones(50), np.arange(50.0)))
    found = bootstrap_intervals(np.array([1.0, 20.0]), draws, n=9)
    assert found[0] is None
    assert found[1] is not None


def test_resamples_are_held_in_parts_without_a_difference():
    """3,000 means of 2,000 values are more than 4 million draws."""
    values = np.random.default_rng(5).random(2000)
    drawn = np.random.default_rng(1).integers(0, 2000, (3000, 2000))
    found = bootstrap_interval(values, n_resamples=3000, rng=1)
    expected = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    assert (found.lower, found.upper) == pytest.approx(tuple(expected))
