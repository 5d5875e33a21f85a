from __future__ import annotations

import itertools

import numpy as np
import pytest

from rag_sourcebias.judged import judge_audit
from rag_sourcebias.judged.judge_audit import agreement_of

KINDS = ("kappa", "kappa_quadratic", "alpha_ordinal")


def grades(seed, n=150, k=4, noise=0.5):
    rng = np.random.default_rng(seed)
    human = rng.choice(k, n, p=rng.dirichlet(np.full(k, 2.0)))
    judge = np.where(rng.random(n) < noise, rng.integers(0, k, n), human)
    return human.astype(float), judge.astype(float)


def literal_alpha(human, judge, distance):
    """Krippendorff (2004): observed over expected disagreement of pairable values."""
    values = np.concatenate((human, judge))
    seen = np.mean([distance(a, b) for a, b in zip(human, judge, strict=True)])
    chance = np.mean([distance(a, b) for a, b in itertools.permutations(values, 2)])
    return 1 - seen / chance


@pytest.mark.parametrize("seed", range(5))
def test_kappas_are_those_of_scikit_learn(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    human, judge = grades(seed)
    found = agreement_of(human, judge, np.arange(150), resamples=20)
    for kind, weights in (("kappa", None), ("kappa_quadratic", "quadratic")):
        expected = metrics.cohen_kappa_score(human, judge, weights=weights, labels=[0, 1, 2, 3])
        assert getattr(found, kind).estimate == pytest.approx(expected, abs=1e-12)
    assert found.exact.estimate == np.mean(human == judge)
    assert found.n_grades == 4
    assert not found.rounded


@pytest.mark.parametrize("seed", range(3))
def test_alpha_is_the_literal_definition(seed):
    human, judge = grades(seed, n=40)
    found = agreement_of(human, judge, np.arange(40), resamples=20)
    values = np.concatenate((human, judge))

    def ordinal(a, b):
        low, high = min(a, b), max(a, b)
        between = np.sum((values >= low) & (values <= high))
        return (between - (np.sum(values == a) + np.sum(values == b)) / 2) ** 2 if a != b else 0.0

    assert found.alpha_ordinal.estimate == pytest.approx(
        literal_alpha(human, judge, ordinal), abs=1e-12
    )


def test_coverage_of_kappa():
    """250 samples of 80 from 20,000 items: at least .90 hold the kappa of all."""
    human, judge = grades(1, n=20_000)
    truth = agreement_of(human, judge, np.arange(20_000), resamples=2)
    rng = np.random.default_rng(0)
    held = np.zeros(len(KINDS))
    for _ in range(250):
        i = rng.integers(0, 20_000, 80)
        found = agreement_of(human[i], judge[i], np.arange(80), resamples=300, rng=rng)
        held += [not getattr(found, k).excludes(getattr(truth, k).estimate) for k in KINDS]
    assert (held / 250 >= 0.90).all()


def test_bundles_of_clusters_spread_as_the_clusters_do(monkeypatch):
    human, judge = grades(4, n=6000)
    pairs = np.arange(6000)
    fast = agreement_of(human, judge, pairs)
    monkeypatch.setattr(judge_audit, "_BUNDLES", 6000)
    slow = agreement_of(human, judge, pairs)
    for kind in KINDS:
        a, b = getattr(fast, kind), getattr(slow, kind)
        assert a.estimate == b.estimate
        assert a.n_labeled == b.n_labeled == 6000
        assert a.half_width == pytest.approx(b.half_width, rel=0.15)
    # bundled in their order, items that lie together would count as one cluster
    order = np.lexsort((judge, human))
    monkeypatch.setattr(judge_audit, "_BUNDLES", 2048)
    again = agreement_of(human[order], judge[order], np.arange(6000))
    assert again.kappa.half_width == pytest.approx(slow.kappa.half_width, rel=0.15)


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
    rare[0] = 1.0  # absent from a third of the resamples: kappa is undefined there
    found = agreement_of(rare, rare, np.arange(30))
    assert found.kappa is None
    assert found.exact.estimate == 1


def test_a_grade_only_the_judge_uses():
    human = np.tile([0.0, 1.0, 2.0], 10)
    judge = np.tile([0.0, 1.0, 3.0], 10)
    found = agreement_of(human, judge, np.arange(30), resamples=50)
    assert found.n_grades == 4
    assert not found.rounded
    assert found.exact.estimate == pytest.approx(2 / 3)
