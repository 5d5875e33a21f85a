"""Intervals of a change in Relative Δ cover, and its test errs as rarely as it says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaincinv, ndtr
from simulation import FLOOR, acceptable

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.equivalence import delta_change_interval, delta_change_test

pytestmark = pytest.mark.slow
RUNS = 300
N = 60_000


def twins(lead: float, lead_after: float, noise: float, *, k: int = 5, share: float = 1.0):
    """NDCG@k of twins among 18 documents; a second system scores all of them again on a share."""
    rng = np.random.default_rng(1)
    query = rng.normal(0.5, 1, N)
    human, llm = (query + rng.normal(0, 1, N) for _ in range(2))
    rest = rng.normal(0, 1, (N, 18))
    hit = (rng.random(N) < share).astype(float)

    def scores(lead, size):
        a, b = (x + size * rng.normal(0, 1, N) for x in (human, llm + lead))
        others = rest + np.atleast_1d(size)[:, None] * rng.normal(0, 1, (N, 18))
        first = 1 + (others > a[:, None]).sum(axis=1) + (b > a)
        second = 1 + (others > b[:, None]).sum(axis=1) + (a > b)
        return [np.where(r <= k, 1 / np.log2(r + 1), 0) for r in (first, second)]

    before = scores(lead, 0.0)
    after = scores(lead + hit * (lead_after - lead), hit * noise)
    return np.column_stack((*before, *after))


def won(h: float, low: float, share: float, tilt: float):
    """Cutoff 1: one source wins or none; a share of the queries is decided anew."""
    rng = np.random.default_rng(3)
    first = rng.choice(3, size=N, p=[h, low, 1 - h - low])
    weights = np.array([h * (1 + tilt), low * (1 - tilt), 1 - h - low])
    again = rng.choice(3, size=N, p=weights / weights.sum())
    second = np.where(rng.random(N) < share, again, first)
    return np.column_stack([x == i for x in (first, second) for i in (0, 1)]).astype(float)


def skewed(shape: float, zero: float, shape_other: float, zero_other: float):
    """Correlated beta scores, most of them tiny, and many zeros."""
    rng = np.random.default_rng(4)
    shared, columns = rng.normal(size=N), []
    own, kept = rng.normal(size=(2, N)), rng.random((2, N))
    for factors in ((1.0, 1.0), (1.3, 0.8)):
        for j, (a, zeros) in enumerate(((shape, zero), (shape_other, zero_other))):
            mine = np.sqrt(0.9) * own[j] + np.sqrt(0.1) * rng.normal(size=N)
            place = ndtr(0.5 * shared + np.sqrt(0.75) * mine)
            columns.append(betaincinv(a * factors[j], 2, place) * (kept[j] > zeros))
    return np.column_stack(columns)


SETTINGS = {
    "all change": lambda: twins(0.6, 0.0, 0.4),
    "small changes": lambda: twins(0.3, 0.2, 0.1),
    "cutoff 10": lambda: twins(0.3, -0.3, 0.3, k=10),
    "one in five changes": lambda: twins(0.6, -0.5, 0.5, share=0.2),
    "one in fifty changes": lambda: twins(0.6, -1.5, 0.5, share=0.02),
    "cutoff 1": lambda: won(0.28, 0.46, 0.3, 0.4),
    "cutoff 1, rare": lambda: won(0.05, 0.12, 0.5, 0.3),
    "skewed": lambda: skewed(0.2, 0.3, 0.4, 0.3),
    "skewed, rare": lambda: skewed(0.3, 0.9, 0.3, 0.8),
    "skewed, one-sided": lambda: skewed(0.1, 0.9, 0.5, 0.5),
}


def truth(values) -> float:
    h1, l1, h2, l2 = values.mean(axis=0)
    return 200 * ((h2 - l2) / (h2 + l2) - (h1 - l1) / (h1 + l1))


@pytest.mark.parametrize("name", SETTINGS)
def test_intervals_cover(name: str) -> None:
    """Over samples in which some query changed: where none did, the change is 0 by decision."""
    values = SETTINGS[name]()
    for n in (50, 325):
        rng, hits, asked, unchanged = np.random.default_rng(n), 0, 0, 0
        for _ in range(RUNS):
            try:
                found = delta_change_interval(*values[rng.integers(0, N, n)].T)
            except InsufficientDataError:  # nothing scored at all
                continue
            if found.lower == found.upper:
                unchanged += 1
                continue
            asked += 1
            hits += not found.excludes(truth(values))
        assert hits / asked >= acceptable(FLOOR, asked), (name, n)
        if name != "one in fifty changes":
            assert unchanged == 0
            assert asked > 0.9 * RUNS


@pytest.mark.parametrize("name", ["all change", "one in five changes", "cutoff 1", "skewed, rare"])
def test_systems_that_can_be_exchanged_are_rarely_told_apart(name: str) -> None:
    values = SETTINGS[name]()
    swap = np.random.default_rng(9).random(N) < 0.5
    values[swap] = values[swap][:, [2, 3, 0, 1]]
    for n in (20, 80):
        rng, rejected = np.random.default_rng(n), 0
        for _ in range(RUNS):
            sample = values[rng.integers(0, N, n)].T
            rejected += (
                delta_change_test(*sample, resamples=199, rng=rng) <= 0.05
                if min(sample[:2].sum(), sample[2:].sum()) > 0
                else 0
            )
        assert 1 - rejected / RUNS >= acceptable(0.95, RUNS)
