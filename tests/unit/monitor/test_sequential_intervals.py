"""Confidence sequences of means, baselines from a window, and change detection."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.stats.sequential import (
    FRACTIONS,
    BettingInterval,
    BettingTest,
    ChangeDetector,
    reference_window,
)


def test_betting_interval_bounds_what_one_sided_tests_reject():
    x = np.random.default_rng(9).beta(2, 6, 400)
    interval = BettingInterval(points=401, confidence_level=0.9)
    interval.update_many(x)
    lower, upper = interval.interval()
    grid = np.linspace(0, 1, 401)
    above = BettingTest(grid, groups=401, side="greater").update_many(np.tile(x[:, None], 401))[-1]
    below = BettingTest(grid, groups=401, side="less").update_many(np.tile(x[:, None], 401))[-1]
    assert (np.diff(above) <= 0).all()
    assert (np.diff(below) >= 0).all()
    assert lower == grid[above >= math.log(20)].max()
    assert upper == grid[below >= math.log(20)].min()
    assert lower < x.mean() < upper
    assert upper - lower < 0.12


def test_window_of_outcomes_gives_the_exact_interval():
    x = np.zeros((50, 3))
    x[:17, 0] = 1
    x[:, 2] = 1
    window = reference_window(x, confidence_level=0.95)
    assert window.window_level == pytest.approx(0.99)
    assert window.stream_level == pytest.approx(0.96)
    assert window.mean.tolist() == [0.34, 0, 1]
    low, high = window.null.lower, window.null.upper
    assert binom.sf(16, 50, low[0]) == pytest.approx(0.005)
    assert binom.cdf(17, 50, high[0]) == pytest.approx(0.005)
    assert (low[1], high[2]) == (0, 1)
    assert high[1] == pytest.approx(1 - 0.005 ** (1 / 50))
    test = BettingTest(window.null, groups=3, confidence_level=window.stream_level)
    assert test.groups == 3


def test_window_of_shares_uses_betting():
    x = np.random.default_rng(11).beta(20, 30, 500)
    window = reference_window(x)
    expected = BettingInterval(confidence_level=0.99, points=1001)
    expected.update_many(x)
    assert (window.null.lower[0], window.null.upper[0]) == expected.interval()
    assert window.null.upper[0] - window.null.lower[0] < 0.06


def test_bad_windows_are_refused():
    with pytest.raises(InsufficientDataError, match="at least 2 observations, there are 1"):
        reference_window([0.5])
    with pytest.raises(DataError, match="must be in"):
        reference_window([0, 2])


def literal_detectors(x, m, method):
    """Sum, or maximum, over all starts of the product of payoffs since, averaged over bets."""
    path = []
    for n in range(1, len(x) + 1):
        each = []
        for c in FRACTIONS:
            for stake in (c / m, -c / (1 - m)):
                since = [math.prod(1 + stake * (v - m) for v in x[start:n]) for start in range(n)]
                each.append(sum(since) if method == "sr" else max(since))
        path.append(np.mean(each))
    return path


@pytest.mark.parametrize("method", ["sr", "cusum"])
def test_detectors_match_their_definition(method):
    x = np.random.default_rng(12).random(25)
    found = ChangeDetector(0.4, run_length=1e9, method=method).update_many(x)[:, 0]
    np.testing.assert_allclose(found, literal_detectors(x, 0.4, method), rtol=1e-11)


@pytest.mark.parametrize("p0", [0.5, 0.1])
def test_expected_statistic_is_at_most_the_number_of_observations(p0):
    n = 10
    sequences = np.array(list(itertools.product([0.0, 1.0], repeat=n))).T
    chance = np.where(sequences == 1, p0, 1 - p0).prod(axis=0)
    expected = {}
    for method in ("sr", "cusum"):
        detector = ChangeDetector(p0, groups=2**n, run_length=1e12, method=method)
        expected[method] = detector.update_many(sequences) @ chance
    np.testing.assert_allclose(expected["sr"], np.arange(1, n + 1), rtol=1e-10)
    assert (expected["cusum"] <= expected["sr"] + 1e-12).all()


def test_detector_starts_again_after_an_alarm():
    quiet, shifted = np.tile([0.0, 1.0], 200), np.ones(30)
    detector = ChangeDetector(0.5, run_length=500)
    path = detector.update_many(np.concatenate([quiet, shifted, quiet]))[:, 0]
    (alarms,) = np.nonzero(path >= 500)
    assert 400 < alarms[0] < 430
    assert detector.n_alarms[0] == len(alarms)
    assert detector.last_alarm[0] == alarms[-1] + 1
    fresh = ChangeDetector(0.5, run_length=500)
    after = np.concatenate([shifted, quiet])[alarms[0] + 1 - 400 :]
    np.testing.assert_array_equal(fresh.update_many(after)[:, 0], path[alarms[0] + 1 :])
    assert ChangeDetector(0.5, run_length=2).update(1.0).tolist() == [False]


def test_joint_detector_averages_groups_and_clears_them_all():
    rows = np.tile([1.0, 0.0, 0.5], (40, 1))
    alone = ChangeDetector([0.5, 0.5, 0.5], groups=3, run_length=1e12).update_many(rows)
    joint = ChangeDetector([0.5, 0.5, 0.5], groups=3, run_length=1e12, joint=True)
    np.testing.assert_allclose(joint.update_many(rows)[:, 0], alone.mean(axis=1), rtol=1e-12)
    joint = ChangeDetector([0.5, 0.5, 0.5], groups=3, run_length=100, joint=True)
    path = joint.update_many(rows)[:, 0]
    assert joint.n_alarms.tolist() == [np.sum(path >= 100)]
    assert joint.n_alarms[0] >= 2
