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


def test_scores_are_those_of_scikit_learn_and_the_definitions():
    metrics = pytest.importorskip("sklearn.metrics")
    probs, observed = sample()
    found = calibration_of(probs, observed)
    literal_rps = np.mean(
        [
            sum((p[: j + 1].sum() - o[: j + 1].sum()) ** 2 for j in range(3)) / 3
            for p, o in zip(probs, observed, strict=True)
        ]
    )
    assert found.rps == pytest.approx(literal_rps, rel=1e-12)
    for grade in found.grades:
        expected = metrics.brier_score_loss(observed[:, grade.grade], probs[:, grade.grade])
        assert grade.brier == pytest.approx(expected, rel=1e-12)
        p, o = probs[:, grade.grade], observed[:, grade.grade]
        bins = np.array_split(np.argsort(p), 10)  # 600 distinct values
        gaps = [abs(p[rows].mean() - o[rows].mean()) for rows in bins]
        assert grade.ece == pytest.approx(np.mean(gaps), rel=1e-9)
    assert found.brier == pytest.approx(sum(g.brier for g in found.grades), rel=1e-12)


def test_a_calibrated_judge_looks_calibrated():
    found = calibration_of(*sample(n=20_000))
    for grade in found.grades:
        assert grade.ece == pytest.approx(grade.ece_if_calibrated, rel=0.5)
        assert not grade.difference.excludes(0)
    assert not found.gain_error.excludes(0)
    assert found.gain_slope == pytest.approx(1, abs=0.04)
    assert found.rps_skill > 0.2


def test_an_over_confident_judge_is_found_out():
    found = calibration_of(*sample(n=4000, sharpen=3.0))
    assert all(g.ece > 3 * g.ece_if_calibrated for g in found.grades)
    assert found.gain_slope < 0.85
    assert f"slope of observed on predicted gain {found.gain_slope:.3f}" in str(found)


def test_a_hard_wrong_judge_and_the_observed_shares():
    observed = np.eye(3)[[0, 1, 2, 2]]
    perfect = calibration_of(observed, observed)
    assert (perfect.brier, perfect.rps, perfect.rps_skill) == (0, 0, 1)
    assert perfect.gain_slope == pytest.approx(1)
    assert perfect.gain_error is None  # no spread
    wrong = calibration_of(np.eye(3)[[2, 2, 0, 0]], observed)
    assert wrong.brier == 2
    shares = np.tile([0.25, 0.25, 0.5], (4, 1))
    same = calibration_of(shares, observed)
    assert same.rps == same.rps_of_shares
    assert same.gain_slope is None


def test_gains_clusters_and_soft_labels():
    probs, observed = sample(n=40)
    mean = calibration_of(probs, observed, gains=range(4)).gain_error
    grade = np.arange(4)
    assert mean.estimate == pytest.approx(((probs - observed) @ grade).mean())
    copies = np.repeat(np.arange(40), 3)
    cloned = calibration_of(probs[copies], observed[copies], clusters=copies, gains=range(4))
    assert cloned.gain_error.half_width == pytest.approx(mean.half_width, rel=1e-9)
    soft = calibration_of(probs, np.full((40, 4), 0.25))
    assert soft.rps_of_shares == 0
    assert soft.rps_skill == 0


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
