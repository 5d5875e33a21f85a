"""The change in Relative Δ: against definitions, brute force and hand-made cases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.equivalence import delta_change_interval, delta_change_test
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import relative_delta_interval
from rag_sourcebias.measure.relevance import relative_delta


def systems(n: int = 100, *, seed: int = 0, lift: float = 0.1, share: float = 1.0):
    """Scores of two systems; the second raises the baseline's by about ``lift`` on a share."""
    rng = np.random.default_rng(seed)
    query = rng.uniform(0.2, 0.7, n)
    h, low = (np.clip(query + rng.normal(0, 0.1, n), 0, 1) for _ in range(2))
    hit = rng.random(n) < share
    after = np.clip(h + hit * (lift + rng.normal(0, 0.1, n)), 0, 1)
    return h, low, after, np.clip(low + hit * rng.normal(0, 0.05, n), 0, 1)


def change(h1, l1, h2, l2) -> float:
    return relative_delta(h2.mean(), l2.mean()) - relative_delta(h1.mean(), l1.mean())


def test_the_estimate_is_the_difference_of_two_relative_deltas() -> None:
    columns = systems()
    found = delta_change_interval(*columns)
    assert found.estimate == pytest.approx(change(*columns), abs=1e-12)
    assert (found.method.code, found.n_labeled) == (InferCode.WEIGHTED_QUERIES, 100)
    first, second = (relative_delta_interval(*columns[i : i + 2]).estimate for i in (0, 2))
    assert found.estimate == pytest.approx(second - first, abs=1e-12)


def test_with_many_queries_it_is_little_wider_than_that_of_the_jackknife() -> None:
    """Influence values are derivatives: leaving out each query gives them numerically."""
    columns, n = systems(2000), 2000
    h1, l1, h2, l2 = ((c.sum() - c) / (n - 1) for c in columns)
    left_out = 200 * ((h2 - l2) / (h2 + l2) - (h1 - l1) / (h1 + l1))
    error = math.sqrt((n - 1) / n * np.sum((left_out - left_out.mean()) ** 2))
    found = delta_change_interval(*columns)
    assert 1.96 * error < found.half_width < 1.1 * 1.96 * error


@pytest.mark.parametrize("n", [20, 300])
def test_no_change_is_exactly_zero(n: int) -> None:
    h, low, _, _ = systems(n)
    found = delta_change_interval(h, low, h.copy(), low.copy())
    assert (found.estimate, found.lower, found.upper) == (0.0, 0.0, 0.0)
    assert delta_change_test(h, low, h, low) == 1.0


def brute_force(h1, l1, h2, l2) -> float:
    """Literally: every swap of before and after, the change over its standard error."""

    def statistic(a, b, c, d) -> float:
        values = np.stack((a, b, c, d))
        means = values.mean(axis=1)
        parts = []
        for h, low, top in ((values[0], values[1], means[:2]), (values[2], values[3], means[2:])):
            ratio = (top[0] - top[1]) / top.sum()
            parts.append(((h - low) - ratio * (h + low)) / top.sum())
        error = np.sqrt(np.sum((parts[1] - parts[0]) ** 2))
        size = abs(change(a, b, c, d))
        return size / max(error, 1e-12)

    observed = statistic(h1, l1, h2, l2)
    n = len(h1)
    count = 0
    for swap in itertools.product((False, True), repeat=n):
        s = np.array(swap)
        swapped = [np.where(s, x, y) for x, y in ((h2, h1), (l2, l1), (h1, h2), (l1, l2))]
        count += statistic(*swapped) >= observed * (1 - 1e-9)
    return count / 2**n


@pytest.mark.parametrize("seed", range(5))
def test_the_test_is_exact_for_few_queries(seed: int) -> None:
    columns = systems(9, seed=seed, lift=0.05)
    assert delta_change_test(*columns) == pytest.approx(brute_force(*columns), abs=1e-12)


@pytest.mark.parametrize(("n", "all_swaps"), [(14, True), (15, False)])
def test_up_to_fourteen_queries_all_swaps_are_made(n: int, all_swaps: bool) -> None:
    columns = systems(n, seed=3, lift=0.04)
    found = [delta_change_test(*columns, resamples=500, rng=seed) for seed in range(4)]
    assert (len(set(found)) == 1) == all_swaps


def test_drawn_swaps_agree_with_all_swaps(monkeypatch) -> None:
    columns = systems(13, seed=3, lift=0.04)
    exact = delta_change_test(*columns)
    assert 0.02 < exact < 0.9
    monkeypatch.setattr("rag_sourcebias.infer.equivalence._EXACT_LIMIT", 0)
    drawn = delta_change_test(*columns, resamples=20_000, rng=1)
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 20_000))


def test_refusals_say_what_is_needed() -> None:
    columns = systems(19)
    with pytest.raises(InsufficientDataError, match="at least 20 queries, not 19") as caught:
        delta_change_interval(*columns)
    assert (caught.value.n, caught.value.n_needed) == (19, 20)
    h, low, _, _ = systems(30)
    nothing = np.zeros(30)
    for call in (delta_change_interval, delta_change_test):
        with pytest.raises(InsufficientDataError, match="after: neither source scores on any of"):
            call(h, low, nothing, nothing)
        with pytest.raises(DataError, match="NaN"):
            call(h, low, h, np.full(30, np.nan))
    with pytest.raises(DataError, match="confidence_level 2"):
        delta_change_interval(h, low, h, low, confidence_level=2)


def test_extremes_stay_within_bounds() -> None:
    one, none = np.ones(40), np.zeros(40)
    found = delta_change_interval(none, one, one, none)
    assert (found.estimate, found.upper) == (400.0, 400.0)
    assert found.lower < 400
    assert delta_change_test(none, one, one, none, resamples=999) == 1 / 1000
