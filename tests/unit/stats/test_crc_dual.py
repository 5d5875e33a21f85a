"""Dual calibration against two binary searches, and its limit against many batches."""

from __future__ import annotations

import numpy as np
import pytest
from crc_oracles import GAINS, awkward_labels, bisect_dual, judged
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rag_sourcebias.core.errors import CalibrationError, DataError
from rag_sourcebias.stats.crc import RankedLabels
from rag_sourcebias.stats.crc_intervals import (
    calibrate_dual,
    crc_interval,
    crc_mean_interval,
    negative_share,
    two_grades,
)


def compare(labels, y, indices, level):
    oracle = bisect_dual(labels, y, indices, level)
    if oracle is None:
        with pytest.raises(CalibrationError, match="no lambda covers enough"):
            calibrate_dual(labels, y, confidence_level=level, indices=indices)
        return
    found = calibrate_dual(labels, y, confidence_level=level, indices=indices)
    np.testing.assert_allclose([found.lambda_low, found.lambda_high], oracle, atol=1e-9, rtol=0)
    assert found.lambda_low <= found.lambda_center <= found.lambda_high
    assert found.n_batches == len(indices)


@pytest.mark.parametrize("seed", range(30))
def test_same_pair_as_bisection_on_awkward_labels(seed):
    labels, y = awkward_labels(seed, n_queries=6)
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, 6, size=(300, int(rng.integers(1, 9))))
    compare(labels, y, indices, (0.95, 0.8, 0.5, 0.99)[seed % 4])


@settings(max_examples=15)
@given(st.integers(0, 100_000), st.floats(-2, 3))
def test_same_pair_as_bisection(seed, bias):
    labels, y = judged(12, seed=seed, bias=bias, docs=3)
    indices = np.random.default_rng(seed).integers(0, 12, size=(400, 12))
    compare(labels, y, indices, 0.9)


def test_batches_are_drawn_from_the_seed():
    labels, y = judged(20)
    indices = np.random.default_rng(7).integers(0, 20, size=(500, 20))
    given_ = calibrate_dual(labels, y, confidence_level=0.95, indices=indices)
    assert calibrate_dual(labels, y, confidence_level=0.95, n_batches=500, rng=7) == given_
    assert calibrate_dual(labels, y, confidence_level=0.95, n_batches=500, rng=8) != given_


@pytest.mark.slow
@pytest.mark.parametrize(("n", "bias"), [(12, 0.7), (30, 0.0), (100, 0.7), (100, 1.5)])
def test_limit_is_many_batches(n, bias):
    labels, y = judged(n, seed=n, bias=bias)
    limit = calibrate_dual(labels, y, confidence_level=0.95)
    assert limit.n_batches is None
    many = calibrate_dual(labels, y, confidence_level=0.95, n_batches=400_000)
    target, _ = judged(50, seed=1, bias=bias)
    ours, reference = crc_interval(limit, target), crc_interval(many, target)
    # twice the sampling error of the reference, and .002 for the approximation
    assert ours.half_width == pytest.approx(reference.half_width, rel=0.005)
    assert ours.lower == pytest.approx(reference.lower, abs=0.01 * reference.half_width)


def test_limit_lists_every_batch_of_few_queries():
    labels, y = judged(4, seed=2)
    every = np.stack(np.meshgrid(*[np.arange(4)] * 4), axis=-1).reshape(-1, 4)
    limit = calibrate_dual(labels, y, confidence_level=0.8)
    # 256 · .1 = 25.6 misses; Eq. 24 allows 25 of 256 at the level whose threshold is that
    listed = bisect_dual(labels, y, every, 0.8016)
    np.testing.assert_allclose([limit.lambda_low, limit.lambda_high], listed, atol=1e-9)


@pytest.mark.parametrize("zeros", [0, 30, 90])
def test_share_of_negative_sums(zeros):
    rng = np.random.default_rng(zeros)
    n = 100
    errors = rng.gamma(2.0, 1.0, n) - 1.6
    errors[:zeros] = 0.0
    draws = errors[rng.integers(0, n, size=(200_000, n))].sum(axis=1)
    expected = np.mean(draws < -1e-9)
    assert negative_share(errors) == pytest.approx(expected, abs=0.004)


def test_share_at_the_edges():
    assert negative_share(np.zeros(20)) == 0.0
    assert negative_share(np.ones(20)) == 0.0
    assert negative_share(-np.ones(20)) == pytest.approx(1.0)
    partly = np.concatenate([np.zeros(19), [-1.0]])
    assert negative_share(partly) == pytest.approx(1 - 0.95**20)
    assert negative_share(np.array([-1.0, 1.0] * 10)) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("n_batches", [None, 1000])
@pytest.mark.parametrize("n", [5, 40])
def test_perfect_judge_has_no_width(n, n_batches):
    rng = np.random.default_rng(0)
    probs = np.eye(4)[rng.integers(0, 4, size=(n, 6))]
    labels = RankedLabels.from_grid(probs, np.ones(6), GAINS)
    found = calibrate_dual(labels, labels.utilities(), confidence_level=0.95, n_batches=n_batches)
    assert (found.lambda_low, found.lambda_high) == (0.0, 0.0)
    assert crc_interval(found, labels).half_width == 0.0


@pytest.mark.parametrize("n_batches", [None, 1000])
def test_one_hot_judges_get_the_extremes_not_nan(n_batches):
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 4, size=(40, 6))
    labels = RankedLabels.from_grid(np.eye(4)[grades], np.ones(6), GAINS)
    y = GAINS[np.maximum(grades - 1, 0)].sum(axis=1)
    found = calibrate_dual(labels, y, confidence_level=0.95, n_batches=n_batches)
    interval = crc_interval(found, labels)
    assert interval.lower == 0.0
    assert interval.upper == pytest.approx(labels.utilities().mean())


def test_interval_says_what_it_leaves_out():
    labels, y = judged(40)
    target, _ = judged(25, seed=9)
    interval = crc_interval(calibrate_dual(labels, y, confidence_level=0.9), target)
    assert interval.method == "crc (paper)"
    assert interval.target == "unlabeled"
    assert (interval.n_labeled, interval.n_unlabeled) == (40, 25)
    assert "under-covers" in str(interval)


def test_refusals():
    labels, y = judged(10)
    with pytest.raises(CalibrationError, match=r"18 bootstrap batches .* at least 19 are needed"):
        calibrate_dual(labels, y, confidence_level=0.95, n_batches=18)
    calibrate_dual(labels, y, confidence_level=0.95, n_batches=19)
    with pytest.raises(CalibrationError, match="at least 2 are needed"):
        calibrate_dual(labels.take(np.arange(1)), y[:1], confidence_level=0.95)
    for n_batches in (None, 100):
        with pytest.raises(CalibrationError, match="beyond what the labels can reach"):
            calibrate_dual(labels, y + 1000, confidence_level=0.95, n_batches=n_batches)
    with pytest.raises(DataError, match="batch index 10 with 10 labelled queries"):
        calibrate_dual(labels, y, confidence_level=0.95, indices=np.full((20, 10), 10))
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        calibrate_dual(labels, y, confidence_level=0.95, indices=np.arange(3))
    with pytest.raises(DataError, match=r"confidence_level 1\.5"):
        calibrate_dual(labels, y, confidence_level=1.5)
    calibration = calibrate_dual(labels, y, confidence_level=0.95)
    with pytest.raises(DataError, match="no unlabelled queries"):
        crc_interval(calibration, labels.take(np.arange(0)))


@pytest.mark.parametrize("n", [300, 3000])
def test_share_of_negative_sums_with_many_ties(n):
    """Exact for errors of −1, 0 and 1: how many are drawn that are not 0, and of which sign."""
    parts = np.repeat([-1.0, 0.0, 1.0], [n // 10, n - n // 10 - n // 9, n // 9])
    draws = np.arange(1, n + 1)
    either = n // 10 + n // 9
    # fewer than half of the k that count are positive; a tie, half of them, counts one half
    up = stats.binom(draws, (n // 9) / either)
    lower = (up.cdf(np.ceil(draws / 2) - 1) + up.cdf(np.floor(draws / 2))) / 2
    exact = stats.binom.pmf(draws, n, either / n) @ lower
    assert negative_share(parts) == pytest.approx(exact, abs=0.003)
    assert abs(negative_share(-parts) - exact) > 0.2


def test_one_call_gives_the_interval_of_calibration_and_target():
    labels, y = judged(60, seed=3)
    known, others = labels.take(np.arange(40)), labels.take(np.arange(40, 60))
    literal = crc_interval(calibrate_dual(known, y[:40], confidence_level=0.9), others)
    found = crc_mean_interval(known, y[:40], others, confidence_level=0.9)
    assert (found.lower, found.estimate, found.upper) == (
        literal.lower, literal.estimate, literal.upper,
    )  # fmt: skip
    assert found.notes == literal.notes
    assert found.correlation == pytest.approx(np.corrcoef(known.utilities(), y[:40])[0, 1])


def test_judge_values_as_probabilities():
    labels = two_grades(np.array([0.0, 0.25, 1.0]), None)
    np.testing.assert_array_equal(labels.utilities(), [0, 0.25, 1])
    np.testing.assert_allclose(two_grades(np.array([1.0, 4.0]), (1, 5)).utilities(), [1, 4])
    with pytest.raises(DataError, match="between 0 and 1, and one is 4"):
        two_grades(np.array([1.0, 4.0]), None)
