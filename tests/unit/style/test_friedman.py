"""Friedman's test and Kendall's W against scipy and the textbook formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.style.measure import friedman_test


def textbook_w(ranks):
    n, k = ranks.shape
    sums = ranks.sum(axis=0)
    s = ((sums - sums.mean()) ** 2).sum()
    ties = sum(
        sum(t**3 - t for t in np.unique(row, return_counts=True)[1].tolist()) for row in ranks
    )
    return 12 * s / (n**2 * (k**3 - k) - n * ties)


@pytest.mark.parametrize("levels", [3, 1000])
@pytest.mark.parametrize(("n", "k"), [(4, 3), (25, 10), (200, 5)])
def test_against_scipy(n, k, levels):
    scores = np.random.default_rng(n).integers(0, levels, (n, k)) + np.arange(k) * levels / 20
    ranks = stats.rankdata(-scores, axis=1)
    expected = stats.friedmanchisquare(*scores.T)
    found = friedman_test(ranks)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.w == pytest.approx(textbook_w(ranks))
    assert (found.degrees, found.n_queries, found.n_styles) == (k - 1, n, k)


def test_the_p_value_is_that_of_box_f_by_its_formulas():
    scores = np.random.default_rng(1).normal(size=(30, 4)) * [0.2, 1, 2, 3] + [0, 0.6, 0, 0]
    ranks = stats.rankdata(-scores, axis=1)
    v = sum(np.outer(r - ranks.mean(axis=0), r - ranks.mean(axis=0)) for r in ranks) / 29
    statistic = 30 * sum((ranks.mean(axis=0) - 2.5) ** 2) / np.trace(v) * 30 / 31
    # Unbiased for tr(V²) and tr(V)² under normality.
    square = (np.trace(v @ v) - np.trace(v) ** 2 / 29) / (1 + 1 / 29 - 2 / 29**2)
    degrees = (np.trace(v) ** 2 - 2 * square / 29) / square
    assert friedman_test(ranks).p_value == pytest.approx(
        stats.f.sf(statistic, degrees, 29 * degrees)
    )


def test_two_styles_are_a_sign_test_that_leaves_out_ties():
    ranks = np.array([[1.0, 2.0]] * 9 + [[2.0, 1.0]] * 2 + [[1.5, 1.5]] * 5)
    assert friedman_test(ranks).p_value == pytest.approx(stats.binomtest(9, 11).pvalue)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_agreement_of_few_queries_may_be_chance(n):
    found = friedman_test(np.tile([1.0, 2.0, 3.0], (n, 1)))
    assert found.p_value == pytest.approx(2.0 ** (1 - n))


def test_ties_everywhere():
    found = friedman_test(np.full((6, 4), 2.5))
    assert (found.statistic, found.p_value, found.w) == (0, 1, None)
