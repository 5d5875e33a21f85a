"""Intervals of a style matrix."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.audit.style_intervals import (
    matching_intervals,
    style_matrix_intervals,
)
from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.measures.style import max_unfairness, unfairness_score
from rag_sourcebias.measures.style_length import length_adjusted
from rag_sourcebias.measures.style_matrix import StyleMatrix

STYLES = tuple("abcd")


def matrix(n, *, effect=0.5, match=0.0, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(effect * np.arange(4), 1, (n, 4, 4)) + match * np.eye(4)
    return StyleMatrix.from_scores(scores, query_styles=STYLES, doc_styles=STYLES)


def test_against_a_literal_bootstrap():
    m = matrix(60)
    found = style_matrix_intervals(m, ddof=1, rng=0)
    rng = np.random.default_rng(9)
    means = np.array([m.ranks[rng.integers(0, 60, 60)].mean(axis=0) for _ in range(6000)])
    tail = stats.norm.cdf(-stats.t.ppf(0.975, 59) * np.sqrt(60 / 59))
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    for a in range(4):
        for b in range(4):
            cell = found.average_ranks[a][b]
            assert cell.estimate == pytest.approx(m.average[a, b])
            assert (cell.lower, cell.upper) == pytest.approx((low[a, b], high[a, b]), abs=0.04)
    scores = unfairness_score(means, ddof=1)
    for name, draws, value in (
        ("unfairness", scores[:, 2], m.unfairness(ddof=1)[2]),
        ("mean_unfairness", scores.mean(axis=1), m.unfairness(ddof=1).mean()),
        ("sd_unfairness", scores.std(axis=1), m.unfairness(ddof=1).std()),
    ):
        interval = getattr(found, name)
        interval = interval[2] if name == "unfairness" else interval
        low, high = 2 * value - np.quantile(draws, [1 - tail, tail])
        assert interval.estimate == pytest.approx(value)
        assert interval.lower == pytest.approx(min(max(low, 0), value), abs=0.05)
        assert interval.upper == pytest.approx(max(high, value), abs=0.05)


def test_unfairness_interval_reaches_0_without_preferences():
    for interval in style_matrix_intervals(matrix(50, effect=0.0), rng=1).unfairness:
        assert interval.lower == 0
        assert interval.upper < max_unfairness(4) / 4


def test_styles_ranked_alike_by_every_query_have_no_interval():
    ranks = np.tile(np.arange(1.0, 5.0), (9, 1, 1))
    m = StyleMatrix(
        query_ids=tuple("123456789"), query_styles=("q",), doc_styles=STYLES, ranks=ranks
    )
    found = style_matrix_intervals(m, resamples=200)
    assert found.average_ranks == ((None,) * 4,)
    assert found.unfairness == (None,)
    assert found.sd_unfairness is None


def test_matching_against_student():
    m = matrix(80, match=1.0)
    found = matching_intervals(m, reference="a")
    gain = m.ranks[:, 0, 2] - m.ranks[:, 2, 2]
    low, high = stats.ttest_1samp(gain, 0).confidence_interval(0.95)
    assert (found.by_style["c"].lower, found.by_style["c"].upper) == pytest.approx((low, high))
    assert list(found.by_style) == ["b", "c", "d"]
    assert found.overall.lower > 0
    none = matching_intervals(matrix(80))
    assert list(none.by_style) == list(STYLES)
    assert none.overall.lower < 0 < none.overall.upper


def test_ranks_at_equal_length_against_a_literal_bootstrap():
    m = matrix(40, match=1.0)
    lengths = np.random.default_rng(0).integers(50, 300, (40, 4)) * np.array([1, 2, 4, 8])
    found = style_matrix_intervals(m, lengths=lengths, rng=0)
    plain = style_matrix_intervals(m, rng=0)
    assert (plain.adjusted_ranks, plain.length_slopes) == ((), ())
    draws = np.random.default_rng(1).integers(0, 40, (2000, 40))
    for at in (0, 3):
        ranks = m.ranks[:, at]
        literal = np.array([length_adjusted(ranks[r], lengths[r]).adjusted for r in draws])
        expected = length_adjusted(ranks, lengths)
        assert found.length_slopes[at] == pytest.approx(expected.slope)
        for j, interval in enumerate(found.adjusted_ranks[at]):
            assert interval.estimate == pytest.approx(expected.adjusted[j])
            low, high = np.quantile(literal[:, j], [0.0245, 0.9755])
            assert (interval.lower, interval.upper) == pytest.approx((low, high), abs=0.15)


def test_styles_that_keep_their_relative_length_are_not_adjusted():
    found = style_matrix_intervals(matrix(30), lengths=np.tile([10, 20, 30, 40], (30, 1)))
    assert found.adjusted_ranks == ()
    assert found.average_ranks[0][0] is not None


def test_one_query_is_refused():
    with pytest.raises(InsufficientDataError, match="at least 2 queries"):
        style_matrix_intervals(matrix(1), resamples=10)


def test_a_thousand_queries_in_ten_styles_are_fast():
    names = tuple("abcdefghij")
    scores = np.random.default_rng(0).random((1000, 10, 10))
    start = time.perf_counter()
    m = StyleMatrix.from_scores(scores, query_styles=names, doc_styles=names)
    style_matrix_intervals(m)
    assert time.perf_counter() - start < 5  # 0.2 s on an idle core
