from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.judged.judge_audit import agreement_of


def grades(seed, n=150, k=4, noise=0.5):
    rng = np.random.default_rng(seed)
    human = rng.choice(k, n, p=rng.dirichlet(np.full(k, 2.0)))
    judge = np.where(rng.random(n) < noise, rng.integers(0, k, n), human)
    return human.astype(float), judge.astype(float)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [2, 4])
def test_kappa_is_that_of_scikit_learn(seed, k):
    metrics = pytest.importorskip("sklearn.metrics")
    human, judge = grades(seed, k=k)
    found = agreement_of(human, judge, np.arange(150))
    expected = metrics.cohen_kappa_score(human, judge, weights="quadratic")
    assert found.kappa.estimate == pytest.approx(expected, abs=1e-12)
    assert found.exact.estimate == np.mean(human == judge)
    assert found.n_grades == k
    assert not found.rounded


def test_coverage_of_kappa():
    """250 samples of 80 from 20,000 items: at least .92 hold the kappa of all."""
    human, judge = grades(1, n=20_000)
    truth = agreement_of(human, judge, np.arange(20_000)).kappa.estimate
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(250):
        i = rng.integers(0, 20_000, 80)
        held += not agreement_of(human[i], judge[i], np.arange(80)).kappa.excludes(truth)
    assert held / 250 >= 0.92


def test_probabilities_and_mean_votes_are_rounded():
    human = np.tile([0.0, 1.0], 10)
    found = agreement_of(human, np.where(human == 1, 0.7, 0.4), np.arange(20))
    assert found.rounded
    assert found.kappa.estimate == 1
    assert found.exact.estimate == 1
    assert 0.8 < found.exact.lower < 0.9  # 20 agreements are not certainty


@pytest.mark.parametrize(
    "judge",
    [
        np.linspace(1, 5, 20),
        np.full(20, 100.0),
        np.tile([-3.0, 2.0], 10),
    ],
)
def test_another_scale_has_no_agreement(judge):
    human = np.tile([0.0, 1.0], 10)
    assert agreement_of(human, judge, np.arange(20)) is None


def test_what_is_not_graded_or_undefined():
    rng = np.random.default_rng(0)
    y = rng.normal(size=50)
    assert agreement_of(y, y, np.arange(50)) is None
    assert agreement_of(np.ones(50), np.ones(50), np.arange(50)) is None
    rare = np.zeros(30)
    rare[0] = 1.0  # one item that two agree on tells next to nothing of kappa
    found = agreement_of(rare, rare, np.arange(30))
    assert found.exact.estimate == found.kappa.estimate == 1
    assert found.kappa.lower < 0
    assert agreement_of(rare, np.zeros(30), np.arange(30)).kappa is None


def test_a_grade_only_the_judge_uses():
    human = np.tile([0.0, 1.0, 2.0], 10)
    judge = np.tile([0.0, 1.0, 3.0], 10)
    found = agreement_of(human, judge, np.arange(30))
    assert found.n_grades == 4
    assert not found.rounded
    assert found.exact.estimate == pytest.approx(2 / 3)
