"""All differences of several systems hold at once: worlds of known truth."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from rag_sourcebias.infer.judged import compare_systems, difference_interval

RUNS = 400


def world(seed, n, *, binary, levels, judge):
    rng = np.random.default_rng(seed)
    m = len(levels)
    z = (0.8 * rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, m))) + levels
    if not binary:
        y = np.exp(z / 2)  # skewed
        return y, y + rng.normal(0, judge, (n, m))
    y = (z > 0).astype(float)
    return y, np.where(rng.random((n, m)) < judge, 1 - y, y)


def wrong(found, truth):
    """Whether some difference is outside its interval; and whether some rank is."""
    gap = truth[found.first] - truth[found.second]
    miss = bool(((found.lower > gap) | (found.upper < gap)).any())
    above = (truth[None] > truth[:, None] + 1e-9).sum(1)
    below = (truth[None] < truth[:, None] - 1e-9).sum(1)
    ranks = (found.best <= len(truth) - below) & (found.worst >= 1 + above)
    return miss, not ranks.all()


@pytest.mark.parametrize(
    ("binary", "n", "spread", "judge"),
    [(True, 10, 0, 0.02), (True, 20, 0.5, 0.1), (True, 30, 0, 0.3), (False, 10, 0, 0.3),
     (False, 30, 0.5, 1.0)],
)  # fmt: skip
def test_all_differences_hold_at_once(binary, n, spread, judge):
    levels = spread * np.linspace(-1, 1, 5) + 0.5
    truth = norm.cdf(levels) if binary else np.exp(levels / 2 + 1 / 8)
    missed = ranks = alone = 0
    for run in range(RUNS):
        y, f = world([n, run], n + 150, binary=binary, levels=levels, judge=judge)
        found = compare_systems(y[:n], f[:n], f[n:], n_resamples=1_000, rng=run)
        miss, rank = wrong(found, truth)
        missed, ranks = missed + miss, ranks + rank
        if run < 100:
            for a, b in zip(found.first, found.second, strict=True):
                one = difference_interval(*(v[:, [a, b]] for v in (y[:n], f[:n], f[n:])))
                if not one.lower <= truth[a] - truth[b] <= one.upper:
                    alone += 1
                    break
    assert binom.sf(missed - 1, RUNS, 0.06) > 1e-3
    assert binom.sf(ranks - 1, RUNS, 0.06) > 1e-3
    if not binary and n == 30:  # intervals that hold one by one do not hold at once
        assert binom.sf(alone - 1, 100, 0.06) < 1e-3


def test_a_clear_winner_is_found():
    levels = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    best = 0
    for run in range(100):
        y, f = world([7, run], 260, binary=False, levels=levels, judge=0.5)
        found = compare_systems(y[:60], f[:60], f[60:], n_resamples=1_000, rng=run)
        best += bool(found.worst[4] == 1)
    assert binom.cdf(best, 100, 0.9) > 1e-3


def test_a_judge_that_favours_one_system():
    """It passes half of that one's wrong answers, so one slope cannot suit all systems.

    What the judge does not see then goes with what it sees; taken for unrelated, as once here,
    these parts gave intervals of which some missed in .085 of draws.
    """
    levels, n, missed = np.linspace(0, 1, 5), 120, 0
    for run in range(1_000):
        y, f = world([n, run], n + 60, binary=True, levels=levels, judge=0.0)
        passed = np.random.default_rng([5, run]).random(len(y)) < 0.5
        f[passed, 0] = 1.0
        found = compare_systems(y[:n], f[:n], f[n:], bounds=(0.0, 1.0), n_resamples=1_000, rng=run)
        missed += wrong(found, norm.cdf(levels))[0]
    assert binom.sf(missed - 1, 1_000, 0.05) > 1e-3  # then: 84
