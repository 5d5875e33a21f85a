"""Perplexities of both versions: distributions, and how far one version predicts the other."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.explain.causes import bounded_perplexity, compare_perplexities


def values(n: int = 200, seed: int = 0):
    rng = np.random.default_rng(seed)
    human = rng.normal(3.5, 0.4, n)
    return human, human - 0.3 + rng.normal(0, 0.1, n), rng.normal(0, 0.2, n)


def test_both_sides_are_counted_between_the_same_edges() -> None:
    human, other, ratio = values()
    human[3] = np.nan
    found = compare_perplexities(human, other, log_length_ratio=ratio, model="m", kind="masked")
    np.testing.assert_array_equal(found.human.edges, found.other.edges)
    assert (found.human.counts.sum(), found.other.counts.sum()) == (199, 200)
    assert found.gap.n_left_out == 1
    assert found.gap.gap.estimate == pytest.approx(np.nanmean(other - human))
    assert -0.33 < found.gap.gap.estimate < -0.27
    assert found.bounded is None
    assert (found.model, found.kind) == ("m", "masked")


def test_the_bound_is_a_quantile_of_the_drop() -> None:
    human, other, ratio = values(seed=1)
    conditional = other - np.random.default_rng(2).gamma(4, 0.25, 200)
    conditional[7] = np.nan
    found = compare_perplexities(
        human, other, log_length_ratio=ratio, model="m", kind="causal", conditional=conditional
    ).bounded
    drops = np.delete(other - conditional, 7)
    assert found.n == 199
    assert found.mean.estimate == pytest.approx(drops.mean())
    assert np.mean(drops <= found.upper) == pytest.approx(0.95, abs=0.01)


def test_a_bound_needs_two_pairs_that_vary() -> None:
    assert bounded_perplexity(np.array([1.0]), np.array([0.5])) is None
    assert bounded_perplexity(np.ones(9), np.zeros(9)) is None
