"""Ranks at equal length against ordinary least squares with dummies."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.style.measure import (
    adjusted_from_means,
    length_columns,
    length_slope,
    lengths_vary,
    rank_versions,
)


def simulate(n, k, *, slope, effect=0.0, seed=0):
    rng = np.random.default_rng(seed)
    lengths = np.round(100 * np.exp(rng.normal(np.linspace(0, 0.8, k), 0.4, (n, k))))
    style = effect * np.linspace(1, 0, k)
    scores = slope * np.log(lengths) + style + rng.normal(0, 0.5, (n, k))
    return rank_versions(scores), lengths


def test_against_regression_with_dummies():
    ranks, lengths = simulate(60, 5, slope=1.0)
    n, k = ranks.shape
    query, style = np.repeat(np.arange(n), k), np.tile(np.arange(k), n)
    design = np.column_stack((np.eye(n)[query], np.eye(k)[style][:, 1:], np.log(lengths).ravel()))
    slope = np.linalg.lstsq(design, ranks.ravel(), rcond=None)[0][-1]
    x = np.log(lengths) - np.log(lengths).mean(axis=1, keepdims=True)
    means = length_columns(ranks, lengths).mean(axis=0)
    assert length_slope(means) == pytest.approx(slope)
    adjusted = adjusted_from_means(means)
    np.testing.assert_allclose(adjusted, ranks.mean(axis=0) - slope * x.mean(axis=0))
    assert adjusted.sum() == pytest.approx(15)


def test_a_preference_for_length_alone_nearly_vanishes():
    ranks, lengths = simulate(800, 5, slope=1.0)
    means = length_columns(ranks, lengths).mean(axis=0)
    assert np.ptp(ranks.mean(axis=0)) > 1.2
    assert np.ptp(adjusted_from_means(means)) < 0.25
    assert length_slope(means) < -0.5
    assert lengths_vary(means)


def test_columns_average_to_the_same_result_and_degenerate_resamples_are_left_as_they_are():
    ranks, lengths = simulate(30, 4, slope=1.0)
    columns = length_columns(ranks, lengths)
    means = np.stack((columns.mean(axis=0), columns[0]))  # one query alone has no slope
    found = adjusted_from_means(means)
    slope = length_slope(means[0])
    np.testing.assert_allclose(found[0], columns[:, :4].mean(axis=0) - slope * means[0, 4:8])
    np.testing.assert_allclose(found[1], ranks[0])


def test_constant_lengths_tell_nothing():
    ranks = np.tile([1.0, 2.0, 3.0], (9, 1))
    means = length_columns(ranks, np.outer(np.arange(1, 10), [1, 2, 4])).mean(axis=0)
    assert not lengths_vary(means)
    assert length_slope(means) == 0
