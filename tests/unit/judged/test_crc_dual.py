"""Dual calibration against two binary searches, and its limit against many batches."""

from __future__ import annotations

import numpy as np
import pytest
from crc_oracles import GAINS, awkward_labels, bisect_dual, judged
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_sourcebias.core.errors import CalibrationError, DataError
from rag_sourcebias.judged.crc import (
    RankedLabels,
    calibrate_dual,
    crc_interval,
    crc_mean_interval,
    two_grades,
)


def compare(labels, y, level, rng, n_batches=400):
    n = labels.n_queries
    indices = np.random.default_rng(rng).integers(0, n, size=(n_batches, n))
    oracle = bisect_dual(labels, y, indices, level)
    options = {"confidence_level": level, "n_batches": n_batches, "rng": rng}
    if oracle is None:
        with pytest.raises(CalibrationError, match="no lambda covers enough"):
            calibrate_dual(labels, y, **options)
        return
    found = calibrate_dual(labels, y, **options)
    np.testing.assert_allclose([found.lambda_low, found.lambda_high], oracle, atol=1e-9, rtol=0)
    assert found.lambda_low <= found.lambda_center <= found.lambda_high


@pytest.mark.parametrize("seed", range(30))
def test_same_pair_as_bisection_on_awkward_labels(seed):
    labels, y = awkward_labels(seed, n_queries=6)
    compare(labels, y, (0.95, 0.8, 0.5, 0.99)[seed % 4], seed)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 100_000), st.floats(-2, 3))
def test_same_pair_as_bisection(seed, bias):
    labels, y = judged(12, seed=seed, bias=bias, docs=3)
    compare(labels, y, 0.9, seed)


@pytest.mark.parametrize("n", [5, 40])
def test_perfect_judge_has_no_width(n):
    rng = np.random.default_rng(0)
    probs = np.eye(4)[rng.integers(0, 4, size=(n, 6))]
    labels = RankedLabels.from_grid(probs, np.ones(6), GAINS)
    found = calibrate_dual(labels, labels.utilities(), confidence_level=0.95)
    assert (found.lambda_low, found.lambda_high) == (0.0, 0.0)
    assert crc_interval(found, labels).half_width == 0.0


def test_one_hot_judges_get_the_extremes_not_nan():
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 4, size=(40, 6))
    labels = RankedLabels.from_grid(np.eye(4)[grades], np.ones(6), GAINS)
    y = GAINS[np.maximum(grades - 1, 0)].sum(axis=1)
    found = calibrate_dual(labels, y, confidence_level=0.95)
    interval = crc_interval(found, labels)
    assert interval.lower == 0.0
    assert interval.upper == pytest.approx(labels.utilities().mean())


def test_refusals():
    labels, y = judged(10)
    with pytest.raises(CalibrationError, match=r"18 bootstrap batches .* at least 19 are needed"):
        calibrate_dual(labels, y, confidence_level=0.95, n_batches=18)
    calibrate_dual(labels, y, confidence_level=0.95, n_batches=19)
    with pytest.raises(CalibrationError, match="at least 2 are needed"):
        calibrate_dual(labels.take(np.arange(1)), y[:1], confidence_level=0.95)
    with pytest.raises(CalibrationError, match="beyond what the labels can reach"):
        calibrate_dual(labels, y + 1000, confidence_level=0.95)
    with pytest.raises(DataError, match=r"confidence_level 1\.5"):
        calibrate_dual(labels, y, confidence_level=1.5)
    calibration = calibrate_dual(labels, y, confidence_level=0.95)
    with pytest.raises(DataError, match="no unlabelled queries"):
        crc_interval(calibration, labels.take(np.arange(0)))


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
