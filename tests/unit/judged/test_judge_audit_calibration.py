from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.data import LabelDistributions
from rag_sourcebias.judged.judge_audit import calibration_of, rows_of


def sample(seed=0, n=600, k=4, sharpen=1.0):
    """Probabilities and grades drawn from them; ``sharpen`` > 1 makes the judge over-confident."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(k), n)
    grades = (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)
    probs = truth**sharpen
    return probs / probs.sum(axis=1, keepdims=True), np.eye(k)[grades]


def test_a_calibrated_judge_looks_calibrated():
    probs, observed = sample(n=20_000)
    found = calibration_of(probs, observed)
    for grade in found.grades:
        assert grade.predicted_share == pytest.approx(probs[:, grade.grade].mean())
        assert grade.observed_share == pytest.approx(observed[:, grade.grade].mean())
        assert not grade.difference.excludes(0)
    assert not found.gain_error.excludes(0)
    assert found.gain_slope == pytest.approx(1, abs=0.04)


def test_an_over_confident_judge_is_found_out():
    probs, observed = sample(n=4000, sharpen=3.0)
    found = calibration_of(probs, observed)
    gains = np.array([0, 1, 3, 7])
    literal = np.polyfit(probs @ gains, observed @ gains, 1)[0]
    assert found.gain_slope == pytest.approx(literal)
    assert found.gain_slope < 0.85
    said = dict(found.rows())
    assert said["slope of people's gain on the judge's (1: calibrated)"] == f"{literal:.2f}"


def test_a_perfect_judge_and_one_who_always_says_the_shares():
    observed = np.eye(3)[[0, 1, 2, 2]]
    perfect = calibration_of(observed, observed)
    assert perfect.gain_slope == pytest.approx(1)
    assert perfect.gain_error is None  # no spread
    same = calibration_of(np.tile([0.25, 0.25, 0.5], (4, 1)), observed)
    assert same.gain_slope is None
    assert [grade.difference.estimate for grade in same.grades] == [0, 0, 0]


def test_gains_clusters_and_soft_labels():
    probs, observed = sample(n=40)
    mean = calibration_of(probs, observed, gains=range(4)).gain_error
    grade = np.arange(4)
    assert mean.estimate == pytest.approx(((probs - observed) @ grade).mean())
    copies = np.repeat(np.arange(40), 3)
    cloned = calibration_of(probs[copies], observed[copies], clusters=copies, gains=range(4))
    assert cloned.gain_error.half_width == pytest.approx(mean.half_width, rel=1e-9)
    soft = calibration_of(probs, np.full((40, 4), 0.25))
    assert [grade.observed_share for grade in soft.grades] == [0.25] * 4


def labels(rows):
    return LabelDistributions.from_rows(rows)


def test_rows_are_found_by_pair():
    judge = labels([("q", f"d{i}", [0.5, 0.5]) for i in range(5)])
    human = labels([("q", "d3", [0, 1]), ("q", "d1", [1, 0]), ("q", "d9", [0, 1])])
    assert rows_of(human, judge).tolist() == [3, 1, -1]
    no_rows = np.zeros(0, dtype=np.int32)
    nothing = LabelDistributions(
        query_ids=(), doc_ids=(), query_codes=no_rows, doc_codes=no_rows, probs=np.zeros((0, 2))
    )
    assert rows_of(human, nothing).tolist() == [-1, -1, -1]
