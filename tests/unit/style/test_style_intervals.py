"""Intervals of a style matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.style.audit import style_matrix_intervals
from rag_sourcebias.style.measure import (
    StyleMatrix,
    adjusted_from_means,
    length_columns,
    length_slope,
    max_unfairness,
    rank_versions,
    unfairness_score,
)

STYLES = tuple("abcd")


def intervals(m, **settings):
    """Of versions that are all of one length."""
    return style_matrix_intervals(m, np.ones(m.ranks[:, 0].shape), **settings)


def matrix(n, *, effect=0.5, match=0.0, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(effect * np.arange(4), 1, (n, 4, 4)) + match * np.eye(4)
    return StyleMatrix(query_styles=STYLES, doc_styles=STYLES, ranks=rank_versions(scores))


def test_average_ranks_against_clopper_and_pearson():
    """With two styles an average rank is a share, and the ends are exact."""
    rng = np.random.default_rng(4)
    scores = rng.normal([0.9, 0.0], 1, (24, 1, 2))
    m = StyleMatrix(query_styles=("q",), doc_styles=("a", "b"), ranks=rank_versions(scores))
    found = intervals(m, resamples=100_000)
    seconds = int((m.ranks[:, 0, 0] == 2).sum())
    low, high = stats.binomtest(seconds, 24).proportion_ci(method="exact")
    cell = found.average_ranks[0][0]
    assert (cell.lower, cell.upper) == pytest.approx((1 + low, 1 + high), abs=0.004)
    # Half the squared difference of the two averages, 2 · share − 1.
    ends = sorted((2 * e - 1) ** 2 / 2 for e in (low, high))
    expected = (0.0 if low < 0.5 < high else ends[0], ends[1])
    unfair = found.unfairness[0]
    assert (unfair.lower, unfair.upper) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(("n", "effect"), [(12, 1.0), (60, 0.3)])
def test_unfairness_against_a_literal_inversion(n, effect):
    m = matrix(n, effect=effect)
    found = intervals(m, rng=0)
    ranks = m.ranks[:, 2] - 2.5
    mean, rng = ranks.mean(axis=0), np.random.default_rng(9)
    weights = rng.dirichlet(np.ones(n + 1), 20_000)
    scale = np.sqrt((n + 1) * (n + 2) / (n * (n - 1)))
    scale *= stats.t.ppf(0.975, n - 1) / stats.norm.ppf(0.975)
    order = stats.rankdata(mean) - 2.5
    for end, unseen, tail in (("lower", 0 * order, 0.975), ("upper", order, 0.025)):
        errors = mean - weights[:, :n] @ ranks - weights[:, n:] * unseen
        errors = errors.mean(axis=0) + scale * (errors - errors.mean(axis=0))
        # The interval's end is what makes the seen unfairness just believable.
        t = np.sqrt(getattr(found.unfairness[2], end) / found.unfairness[2].estimate)
        share = np.mean(unfairness_score(t * mean + errors) < found.unfairness[2].estimate)
        assert share == pytest.approx(tail, abs=0.006)
    assert found.mean_unfairness.estimate == pytest.approx(unfairness_score(m.average).mean())
    assert found.mean_unfairness.lower > 0


def test_unfairness_interval_reaches_0_without_preferences():
    for interval in intervals(matrix(50, effect=0.0), rng=1).unfairness:
        assert interval.lower == 0
        assert interval.upper < max_unfairness(4) / 4


def test_queries_that_all_agree_leave_room_for_one_that_does_not():
    ranks = np.tile(np.arange(1.0, 5.0), (9, 1, 1))
    m = StyleMatrix(query_styles=("q",), doc_styles=STYLES, ranks=ranks)
    found = intervals(m, resamples=20_000)
    assert found.unfairness == (None,)  # fewer than 10 queries
    share = 1 - 0.025 ** (1 / 9)
    assert found.average_ranks[0][0].lower == 1
    assert found.average_ranks[0][0].upper == pytest.approx(1 + 3 * share, abs=0.05)


def test_ranks_at_equal_length_against_a_literal_bootstrap():
    m = matrix(40, match=1.0)
    lengths = np.random.default_rng(0).integers(50, 300, (40, 4)) * np.array([1, 2, 4, 8])
    found = style_matrix_intervals(m, lengths, rng=0)
    plain = intervals(m, rng=0)
    assert (plain.adjusted_ranks, plain.length_slopes) == (((),) * 4, (None,) * 4)
    draws = np.random.default_rng(1).integers(0, 40, (2000, 40))
    for at in (0, 3):
        ranks = m.ranks[:, at]
        columns = length_columns(ranks, lengths)
        literal = adjusted_from_means(np.array([columns[r].mean(axis=0) for r in draws]))
        means = columns.mean(axis=0)
        expected = adjusted_from_means(means)
        assert found.length_slopes[at] == pytest.approx(length_slope(means))
        for j, interval in enumerate(found.adjusted_ranks[at]):
            assert interval.estimate == pytest.approx(expected[j])
            low, high = np.quantile(literal[:, j], [0.0245, 0.9755])
            assert (interval.lower, interval.upper) == pytest.approx((low, high), abs=0.15)


def test_styles_that_keep_their_relative_length_are_not_adjusted():
    found = style_matrix_intervals(matrix(30), np.tile([10, 20, 30, 40], (30, 1)))
    assert found.adjusted_ranks == ((),) * 4
    assert found.average_ranks[0][0] is not None


def test_one_query_has_no_interval():
    found = intervals(matrix(1), resamples=10)
    assert found.average_ranks == ((None,) * 4,) * 4
    assert found.adjusted_ranks == ((),) * 4
    assert (found.unfairness, found.mean_unfairness) == ((None,) * 4, None)
