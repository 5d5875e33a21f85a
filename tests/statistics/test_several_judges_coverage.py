"""Several judges of the same items: coverage, and width beside their mean and the median judge."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import acceptable

from rag_sourcebias.core.completions import mean_judge
from rag_sourcebias.infer.judged import mean_interval

pytestmark = pytest.mark.slow
RUNS, SIZE = 600, 20_000


def population(kind, rng):
    """Human values, and the judges' of the same items."""
    truth = rng.normal(size=SIZE)
    if kind == "five alike":
        return truth, truth[:, None] + rng.normal(0, 1.5, (SIZE, 5))
    if kind == "one good, four bad":
        return truth, truth[:, None] + rng.normal(size=(SIZE, 5)) * [0.4, 5, 5, 5, 5]
    if kind == "36 that share errors":
        shared = rng.normal(0, 0.9, (SIZE, 1))
        return truth, truth[:, None] + shared + rng.normal(0, 1, (SIZE, 36))
    if kind == "one inverted":
        return truth, (truth[:, None] + rng.normal(size=(SIZE, 3))) * [1, 1, -1]
    if kind == "binary":
        y = (truth > 0.5).astype(float)
        return y, np.where(rng.random((SIZE, 4)) < 0.8, y[:, None], 1 - y[:, None])
    judges = truth[:, None] + rng.normal(0, 1.2, (SIZE, 4))  # fail on what is hard
    judges[rng.random((SIZE, 4)) < np.where(truth < -0.8, 0.6, 0.03)[:, None]] = np.nan
    return truth, judges


NARROWER_FROM = {"one inverted": 60, "binary": 15}  # labels; else from the first on
KINDS = ["five alike", "one good, four bad", "36 that share errors", "one inverted", "binary",
         "failures that tell"]  # fmt: skip


@pytest.mark.parametrize("n", [10, 30, 120])
@pytest.mark.parametrize("kind", KINDS)
def test_several_judges(kind, n):
    rng = np.random.default_rng([n, KINDS.index(kind)])
    truth, judges = population(kind, rng)
    mean = mean_judge(judges)
    mean = np.where(np.isnan(mean), np.nanmean(mean), mean)
    single = np.where(np.isnan(judges), np.nanmean(judges, axis=0), judges)
    hits, widths = 0, []
    for run in range(RUNS):
        rows = rng.integers(0, SIZE, n + 300)
        y, head, tail = truth[rows[:n]], rows[:n], rows[n:]
        found = mean_interval(y, judges[head], judges[tail])
        hits += found.lower <= truth.mean() <= found.upper
        if run < RUNS // 5:
            others = [mean, *single.T[:5]]
            each = [mean_interval(y, judge[head], judge[tail]) for judge in others]
            widths.append([i.upper - i.lower for i in (found, *each)])
    assert hits / RUNS >= acceptable(0.94, RUNS)
    ours, of_mean, *of_one = np.mean(widths, axis=0)
    assert ours <= 1.05 * of_mean
    alike = np.corrcoef(single.T)[np.triu_indices(single.shape[1], 1)].mean()
    if alike <= 0.5 and n >= NARROWER_FROM.get(kind, 0):
        assert ours <= 0.9 * np.median(of_one)
