"""Unfairness against its literal definition, and its null expectation against shuffled ranks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rag_sourcebias.style.measure import (
    max_unfairness,
    null_unfairness,
    rank_versions,
    unfairness,
    unfairness_score,
)


def literal(average, ddof):
    middle = sum(average) / len(average)
    spread = math.sqrt(sum((r - middle) ** 2 for r in average) / (len(average) - ddof))
    return (max(average) - min(average)) * spread


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_against_the_definition(k, ddof):
    average = np.random.default_rng(k).random((4, k)) * k
    found = unfairness_score(average, ddof=ddof)
    assert found.shape == (4,)
    assert found == pytest.approx([literal(row.tolist(), ddof) for row in average])


@pytest.mark.parametrize(("k", "ddof"), [(2, 0), (3, 1), (10, 0), (10, 1)])
def test_maximum_is_reached_when_all_queries_agree(k, ddof):
    ranks = np.tile(np.arange(1.0, k + 1), (3, 1))
    assert max_unfairness(k, ddof=ddof) == pytest.approx(literal(ranks[0].tolist(), ddof))
    found = unfairness(ranks, ddof=ddof)
    assert found.normalised == pytest.approx(1)
    assert (found.n_queries, found.n_styles, found.ddof) == (3, k, ddof)


def test_ten_styles_have_the_published_maximum():
    assert max_unfairness(10) == pytest.approx(25.85, abs=0.005)


@pytest.mark.parametrize(
    ("n", "k", "levels", "ddof"), [(80, 10, None, 0), (30, 10, 4, 0), (40, 3, None, 1)]
)
def test_null_expectation_is_the_mean_over_shuffled_ranks(n, k, levels, ddof):
    rng = np.random.default_rng(n)
    scores = rng.random((n, k)) if levels is None else rng.integers(0, levels, (n, k)) / levels
    ranks = rank_versions(scores)
    runs = np.array(
        [unfairness_score(rng.permuted(ranks, axis=1).mean(axis=0), ddof=ddof) for _ in range(4000)]
    )
    error = runs.std() / math.sqrt(len(runs))
    assert null_unfairness(ranks, ddof=ddof) == pytest.approx(runs.mean(), abs=4 * error)
    assert error < 0.02 * runs.mean()


def test_two_styles_have_an_exact_null_expectation():
    # (max − min)·std = d²/2 for two averages d apart, and E[d²] = 1/n.
    ranks = np.tile([1.0, 2.0], (50, 1))
    assert null_unfairness(ranks) == pytest.approx(0.5 / 50, rel=1e-9)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_null_expectation_stays_within_the_largest_score(k, ddof):
    """Of one query the score does not depend on its order: the normal form is above it."""
    for n in (1, 2, 3):
        found = null_unfairness(np.tile(np.arange(1.0, k + 1), (n, 1)), ddof=ddof)
        assert found <= max_unfairness(k, ddof=ddof) * (1 + 1e-12)
    tied = np.array([[1.0, *[(k + 2) / 2] * (k - 1)]])
    assert null_unfairness(tied, ddof=ddof) == pytest.approx(literal(tied[0].tolist(), ddof))
