"""Coverage of every form of the regression interval: designs, comparisons, proportions.

Each run draws fresh data from a population with a known value. The bound is the binomial tolerance
of ``simulation.acceptable``: 1 chance in 1,000 to fail at a true coverage of exactly .93.
"""

from functools import partial

import numpy as np
import pytest
from simulation import FLOOR, acceptable

from rag_sourcebias.infer.judged import (
    difference_interval,
    judged_relative_delta_interval,
    mean_interval,
)

pytestmark = pytest.mark.slow
RUNS = 700
BOUND = acceptable(FLOOR, RUNS)


def coverage(one_run, seed=0):
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(RUNS):
        interval, truth = one_run(rng)
        hits += interval.lower <= truth <= interval.upper
    return hits / RUNS


def judged(truth, rng, noise=1.0, bias=1.0):
    return 0.7 * truth + bias + rng.normal(0, noise, truth.shape)


@pytest.mark.parametrize("target", ["population", "pool", "unlabeled"])
@pytest.mark.parametrize("n", [15, 60])
def test_items(n, target):
    def run(rng):
        y = rng.gamma(1.5, 2.0, n + 150)
        f = judged(y, rng)
        truth = {"population": 3.0, "pool": y.mean(), "unlabeled": y[n:].mean()}[target]
        return mean_interval(y[:n], f[:n], f[n:], target=target), truth

    assert coverage(run) >= BOUND


@pytest.mark.parametrize("target", ["population", "unlabeled"])
@pytest.mark.parametrize("n_clusters", [10, 40])
def test_clusters(n_clusters, target):
    def run(rng):
        total = n_clusters + 80
        sizes = rng.integers(1, 7, total)
        cluster = np.repeat(np.arange(total), sizes)
        y = 3 + np.repeat(rng.normal(0, 1, total), sizes) + rng.normal(0, 1, len(cluster))
        f = judged(y, rng) + np.repeat(rng.normal(0, 1, total), sizes)
        known = cluster < n_clusters
        truth = {"population": 3.0, "pool": y.mean(), "unlabeled": y[~known].mean()}[target]
        found = mean_interval(
            y[known],
            f[known],
            f[~known],
            target=target,
            clusters=cluster[known],
            clusters_unlabeled=cluster[~known],
        )
        return found, truth

    assert coverage(run) >= BOUND


@pytest.mark.parametrize("share", [0.03, 0.9])
@pytest.mark.parametrize("accuracy", [0.6, 1.0])
@pytest.mark.parametrize("n", [20, 60])
def test_binary(share, accuracy, n):
    def run(rng):
        y = (rng.random(n + 500) < share).astype(float)
        f = np.where(rng.random(n + 500) < accuracy, y, 1 - y)
        return mean_interval(y[:n], f[:n], f[n:]), share

    assert coverage(run) >= BOUND


@pytest.mark.parametrize(("n", "most"), [(15, 1.11), (60, 1.05)])
@pytest.mark.parametrize("outcome", ["normal", "graded", "binary"])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_a_useless_judge_hardly_costs_width_and_a_useful_one_saves_some(
    correlation, outcome, n, most
):
    bounds = {"normal": None, "graded": (1, 5), "binary": (0, 1)}[outcome]
    widths = []

    def run(rng):
        level = rng.normal(size=n + 500)
        y = {
            "normal": level,
            "graded": np.clip(np.round(3 + level), 1, 5),
            "binary": (level > 0.5).astype(float),
        }[outcome]
        scaled = (y - y.mean()) / y.std()
        f = correlation * scaled + np.sqrt(1 - correlation**2) * rng.normal(size=n + 500)
        found, alone = (
            mean_interval(y[:n], f[:n], f[n:], bounds=bounds, method=method)
            for method in ("regression", "labels")
        )
        widths.append([found.upper - found.lower, alone.upper - alone.lower])
        return found, {"normal": 0.0, "graded": 3.0, "binary": 0.3085}[outcome]

    assert coverage(run) >= acceptable(0.94, RUNS)
    ours, alone = np.mean(widths, axis=0)
    assert ours <= (most if correlation < 0.4 else 1.0) * alone
    if n >= 30 and outcome != "binary":
        assert ours <= 1.05 * np.sqrt(1 - correlation**2 * 500 / (n + 500)) * alone


def judge_of_half_the_lowest(n, second, lowest):
    """Grades 5, 4 and 1, of which a judge takes half the last for the first."""
    truth = 5 - second - 4 * lowest

    def run(rng, *, bounds, target):
        level, seen = rng.random(n + 500), rng.random(n + 500) < 0.5
        y = np.where(level < lowest, 1.0, np.where(level < lowest + second, 4.0, 5.0))
        f = np.where(seen | (y > 1), y, 5.0) + rng.normal(0, 0.15, n + 500)
        found = mean_interval(y[:n], f[:n], f[n:], bounds=bounds, target=target)
        return found, truth if target == "population" else y.mean()

    return run


@pytest.mark.parametrize("bounds", [(1.0, 5.0), None])
@pytest.mark.parametrize("target", ["population", "pool"])
@pytest.mark.parametrize("lowest", [0.05, 0.2])
@pytest.mark.parametrize(("n", "second"), [(15, 0.5), (60, 0.3)])
def test_rare_far_errors_that_no_label_shows(n, second, lowest, target, bounds):
    one = judge_of_half_the_lowest(n, second, lowest)
    assert coverage(partial(one, bounds=bounds, target=target)) >= acceptable(0.94, RUNS)


def test_without_errors_unseen_such_judges_are_believed_too_much(monkeypatch):
    monkeypatch.setattr("rag_sourcebias.infer.judged._far_errors", lambda *_: (0.0, 0.0))
    one = judge_of_half_the_lowest(30, 0.3, 0.05)
    assert coverage(partial(one, bounds=(1.0, 5.0), target="population")) < 0.9


def two_sources(rng, n):
    level = rng.beta(1.2, 2.0, n)
    y = np.stack([level * (rng.random(n) < 0.9), 0.6 * level + rng.beta(1, 4, n) * 0.4], axis=1)
    f = y + np.array([0.0, 0.3]) + rng.normal(0, 0.15, y.shape)
    means = np.array([0.9 * 0.375, 0.6 * 0.375 + 0.08])
    return y, f, means


@pytest.mark.parametrize("n", [15, 40, 100])
def test_paired_difference(n):
    def run(rng):
        y, f, means = two_sources(rng, n + 400)
        return difference_interval(y[:n], f[:n], f[n:]), means[0] - means[1]

    assert coverage(run) >= BOUND


def two_binary(rng, n, share, planted, mistakes):
    """Two systems that are mostly right on the same questions; a judge with so many mistakes."""
    together, level = rng.random(n) < 0.6, rng.random(n)
    y = np.stack(
        [np.where(together, level, rng.random(n)) < share - k * planted for k in (0, 1)], axis=1
    )
    return y.astype(float), (y ^ (rng.random((n, 2)) < mistakes)).astype(float)


@pytest.mark.parametrize("n", [10, 60])
@pytest.mark.parametrize("mistakes", [0.02, 0.5])
@pytest.mark.parametrize(("share", "planted"), [(0.5, 0.0), (0.95, 0.0), (0.95, 0.1)])
def test_paired_difference_of_binary_outcomes(n, mistakes, share, planted):
    widths = []

    def run(rng):
        y, f = two_binary(rng, n + 400, share, planted, mistakes)
        found = difference_interval(y[:n], f[:n], f[n:])
        widths.append(found.upper - found.lower)
        return found, planted

    assert coverage(run) >= acceptable(0.94, RUNS)
    assert min(widths) > 0


@pytest.mark.parametrize(("mistakes", "size"), [(0.02, 0.15), (0.1, 0.22), (0.3, 0.3)])
def test_planted_differences_are_found_about_as_often_as_with_a_known_variance(mistakes, size):
    """At n = 60 by .9 of the power of a normal interval whose true variance is known."""
    found = {"ours": 0, "oracle": 0}
    estimates = []

    def run(rng):
        y, f = two_binary(rng, 460, 0.8, size, mistakes)
        interval = difference_interval(y[:60], f[:60], f[60:])
        found["ours"] += interval.lower > 0
        estimates.append(interval.estimate)
        return interval, size

    coverage(run)
    found["oracle"] = int((np.array(estimates) > 1.96 * np.std(estimates)).sum())
    assert found["oracle"] > 0.5 * RUNS
    assert found["ours"] >= 0.9 * found["oracle"]


@pytest.mark.parametrize("n", [15, 40, 100])
def test_relative_delta(n):
    def run(rng):
        y, f, means = two_sources(rng, n + 400)
        truth = 200 * (means[0] - means[1]) / means.sum()
        return judged_relative_delta_interval(y[:n], f[:n], f[n:]), truth

    assert coverage(run) >= BOUND
