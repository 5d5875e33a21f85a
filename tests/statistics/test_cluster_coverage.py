"""Coverage of intervals for observations clustered in queries."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import FLOOR, acceptable

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.means import (
    clustered_difference,
    clustered_mean,
    clustered_standardised_mean,
)
from rag_sourcebias.source.audit import win_rate_at

pytestmark = pytest.mark.slow
RUNS = 600


def wins(rng, g, *, size, p, rho, tied):
    """Beta-binomial wins in clusters of random size; ``tied`` of them count half."""
    cluster = np.repeat(np.arange(g), 1 + rng.poisson(size - 1, g))
    rate = rng.beta(p * (1 / rho - 1), (1 - p) * (1 / rho - 1), g) if rho else np.full(g, p)
    value = (rng.random(len(cluster)) < rate[cluster]).astype(float)
    value[rng.random(len(cluster)) < tied] = 0.5
    return value, cluster


@pytest.mark.parametrize("g", [5, 30, 300])
@pytest.mark.parametrize(
    "setting",
    [
        {"size": 1, "p": 0.5, "rho": 0, "tied": 0},
        {"size": 1, "p": 0.01, "rho": 0, "tied": 0},
        {"size": 1, "p": 0.97, "rho": 0, "tied": 0.1},
        {"size": 3, "p": 0.57, "rho": 0.2, "tied": 0},
        {"size": 3, "p": 0.95, "rho": 0.2, "tied": 0},
        {"size": 3, "p": 0.1, "rho": 0.1, "tied": 0.2},
        {"size": 1, "p": 0.7, "rho": 0, "tied": 0.3},
        {"size": 1, "p": 0.9, "rho": 0, "tied": 0.97},
    ],
    ids=str,
)
def test_win_rates(setting, g):
    rng = np.random.default_rng(g)
    truth = setting["p"] * (1 - setting["tied"]) + 0.5 * setting["tied"]
    covered = 0
    for _ in range(RUNS):
        interval = clustered_mean(*wins(rng, g, **setting), bounds=(0.0, 1.0))
        covered += interval.lower <= truth <= interval.upper
        assert interval.half_width > 0
    assert covered / RUNS >= acceptable(FLOOR, RUNS)


@pytest.mark.parametrize("g", [5, 20, 200])
@pytest.mark.parametrize("shape", ["normal", "skewed", "binary"])
def test_standardised_means(g, shape):
    def draw(clusters):
        cluster = np.repeat(np.arange(clusters), 2)
        values = 0.4 + rng.normal(0, 0.7, clusters)[cluster] + rng.normal(size=2 * clusters)
        if shape == "skewed":
            values = np.exp(values / 2) - 1
        return (values > 0) * 1.0 if shape == "binary" else values, cluster

    rng = np.random.default_rng(g)
    population, _ = draw(500_000)
    truth = population.mean() / population.std()
    covered = returned = 0
    for _ in range(RUNS):
        try:
            interval = clustered_standardised_mean(*draw(g))
        except InsufficientDataError:  # all values alike
            continue
        returned += 1
        covered += interval.lower <= truth <= interval.upper
    assert returned > 0.95 * RUNS
    assert covered / returned >= acceptable(FLOOR - 0.01, returned)


@pytest.mark.parametrize("g", [30, 300])
@pytest.mark.parametrize(
    ("intercept", "tied", "spread", "size"),
    [(0.0, 0.0, 0.0, 1), (0.5, 0.1, 0.7, 2), (-1.5, 0.05, 0.5, 3), (-2.5, 0.0, 0.0, 1)],
)
def test_win_rate_at_equal_length(intercept, tied, spread, size, g):
    at = np.array([0.0, 0.6])

    def draw(clusters):
        cluster = np.repeat(np.arange(clusters), 1 + rng.poisson(size - 1, clusters))
        m = len(cluster)
        covariates = np.column_stack((rng.normal(-0.1, 0.25, m), rng.normal(0.6, 0.1, m)))
        eta = intercept + (covariates - at) @ [1.2, 2.0] + rng.normal(0, spread, clusters)[cluster]
        won = (rng.random(m) < 1 / (1 + np.exp(-eta))).astype(float)
        won[rng.random(m) < tied] = 0.5
        return won, covariates, cluster

    rng = np.random.default_rng(g)
    truth = win_rate_at(*draw(150_000), at=at).estimate
    runs, covered, returned = 500, 0, 0
    for _ in range(runs):
        try:
            interval = win_rate_at(*draw(g), at=at)
        except InsufficientDataError:  # fewer than 5 pairs one way
            continue
        returned += 1
        covered += interval.lower <= truth <= interval.upper
    assert (returned - covered) / runs <= 1 - acceptable(FLOOR, runs)
    if returned > 0.5 * runs:
        assert covered / returned >= acceptable(FLOOR, returned)


@pytest.mark.parametrize("n", [50, 300])
@pytest.mark.parametrize(
    ("gain", "loss"), [(0.0, 0.0), (0.01, 0.005), (0.03, 0.03), (0.1, 0.05), (0.3, 0.25)]
)
@pytest.mark.parametrize("step", [1.0, 0.37])
def test_paired_differences(gain, loss, step, n):
    """Two columns of scores that agree on most queries, or on all."""
    rng = np.random.default_rng(n)
    truth = step * (gain - loss)
    covered, widest = 0, 0.0
    for _ in range(RUNS):
        draw = rng.random(n)
        values = step * ((draw < gain).astype(float) - (draw > 1 - loss))
        interval = clustered_difference(values, np.arange(n))
        covered += interval.lower <= truth <= interval.upper
        widest = max(widest, interval.half_width)
        assert interval.half_width > 0
    assert covered / RUNS >= acceptable(FLOOR, RUNS)
    assert widest < 12 / n + 2.2 * np.sqrt((gain + loss) / n) + 0.08
