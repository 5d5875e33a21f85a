"""Parts of a score gap against known coefficients and an independent regression."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.explain.causes import decompose_gap, perplexity_gap
from rag_sourcebias.explain.data import GapDecomposition


def simulated(seed: int, *, queries: int = 80, per_query: int = 4, offset: float = 0.05):
    """Gap = offset + 0.2 · length + 0.1 · (overlap − 1) + noise, part of it per query."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(queries), per_query)
    n = len(group)
    length = 0.3 + 0.2 * rng.standard_normal(queries)[group] + 0.2 * rng.standard_normal(n)
    overlap = np.clip(0.7 - 0.2 * length + 0.1 * rng.standard_normal(n), 0, 1)
    noise = 0.04 * rng.standard_normal(queries)[group] + 0.05 * rng.standard_normal(n)
    gaps = offset + 0.2 * length + 0.1 * (overlap - 1) + noise
    return gaps, {"length": length, "overlap": overlap - 1}, group


def decompose(seed: int, **settings) -> GapDecomposition:
    gaps, factors, group = simulated(seed, **settings)
    return decompose_gap(gaps, factors, queries=group)


def test_parts_sum_to_the_gap() -> None:
    found = decompose(0)
    parts = sum(f.component.estimate for f in found.factors) + found.remainder.estimate
    assert parts == pytest.approx(found.gap.estimate)
    assert "associations" in found.notes[0]


def test_slopes_and_errors_are_those_of_a_regression_written_out() -> None:
    gaps, factors, group = simulated(1)
    found = decompose(1)
    design = np.column_stack((np.ones(len(gaps)), factors["length"], factors["overlap"]))
    beta, *_ = np.linalg.lstsq(design, gaps, rcond=None)
    estimates = [found.remainder.estimate, *(f.slope.estimate for f in found.factors)]
    np.testing.assert_allclose(estimates, beta)
    bread = np.linalg.inv(design.T @ design)
    meat = np.zeros((3, 3))
    for query in range(80):
        score = design[group == query].T @ (gaps - design @ beta)[group == query]
        meat += np.outer(score, score)
    n = len(gaps)
    errors = np.sqrt(np.diag(bread @ meat @ bread) * 80 / 79 * (n - 1) / (n - 3))
    widths = [found.remainder.half_width, *(f.slope.half_width for f in found.factors)]
    np.testing.assert_allclose(widths, 1.9904502 * errors, rtol=1e-6)  # t(79), .975


def test_intervals_hold_the_truth() -> None:
    runs = [decompose(seed) for seed in range(150)]
    # E length = .3, E overlap = .64 (clipping moves it by less than .001)
    truth = {"length": 0.06, "overlap": 0.1 * -0.36}
    for k, name in enumerate(truth):
        inside = [not run.factors[k].component.excludes(truth[name]) for run in runs]
        assert np.mean(inside) > 0.9
    assert np.mean([not run.remainder.excludes(0.05) for run in runs]) > 0.9


def test_extrapolation_is_named() -> None:
    found = decompose(4)
    assert [f.extrapolated for f in found.factors] == [False, True]
    assert any("no pair reaches no difference in overlap" in note for note in found.notes)


def test_what_cannot_be_decomposed_is_refused() -> None:
    gaps, factors, group = simulated(6)
    with pytest.raises(InsufficientDataError, match="at least 30 queries with pairs, there are 20"):
        decompose_gap(gaps[:80], {k: v[:80] for k, v in factors.items()}, queries=group[:80])
    with pytest.raises(InsufficientDataError, match="same is 1 for every pair"):
        decompose_gap(gaps, {"same": np.ones(len(gaps))}, queries=group)
    twice = {"a": factors["length"], "b": 2 * factors["length"]}
    with pytest.raises(InsufficientDataError, match="a, b cannot be told apart"):
        decompose_gap(gaps, twice, queries=group)
    with pytest.raises(InsufficientDataError, match="no difference to explain"):
        decompose_gap(gaps, {}, queries=group)


def perplexities(seed: int, n: int = 100):
    """Perplexity falls with length; at equal length, rewrites are 0.2 lower."""
    rng = np.random.default_rng(seed)
    ratio = 0.4 + 0.3 * rng.standard_normal(n)
    human = 3.4 + 0.4 * rng.standard_normal(n)
    other = human - 0.2 - 0.5 * ratio + 0.1 * rng.standard_normal(n)
    return human, other, ratio


def test_the_gap_at_equal_length_takes_out_what_goes_with_length() -> None:
    human, other, ratio = perplexities(0)
    found = perplexity_gap(human, other, log_length_ratio=ratio)
    assert found.gap.estimate == pytest.approx((other - human).mean())
    assert found.gap_equal_length.estimate == pytest.approx(-0.2, abs=0.04)
    assert found.gap.upper < found.gap_equal_length.lower
    runs = [perplexities(seed) for seed in range(200)]
    inside = [
        not perplexity_gap(h, o, log_length_ratio=r).gap_equal_length.excludes(-0.2)
        for h, o, r in runs
    ]
    assert np.mean(inside) > 0.9


def test_pairs_without_perplexity_are_counted_not_used() -> None:
    human, other, ratio = perplexities(1)
    human[3], other[8], ratio[8] = np.nan, np.nan, np.inf
    found = perplexity_gap(human, other, log_length_ratio=ratio)
    assert (found.n, found.n_left_out) == (98, 2)
    kept = np.isfinite(human) & np.isfinite(other)
    assert found.share_lower.estimate == pytest.approx(np.mean(other[kept] < human[kept]))


def test_without_variation_of_length_there_is_no_adjusted_gap() -> None:
    human, other, ratio = perplexities(3)
    assert perplexity_gap(human, other, log_length_ratio=0 * ratio).gap_equal_length is None
    few = perplexity_gap(human[:10], other[:10], log_length_ratio=ratio[:10])
    assert few.gap_equal_length is None
    with pytest.raises(InsufficientDataError):
        perplexity_gap(human * np.nan, other, log_length_ratio=ratio)
