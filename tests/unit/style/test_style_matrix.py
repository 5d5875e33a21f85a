"""The matrix of query and document styles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.style.measure import StyleMatrix, matching_gains, rank_versions

FORMS = ("original", "3", "8")
STYLES = ("human", "3", "8", "9")


@pytest.fixture
def scores():
    return np.random.default_rng(4).integers(0, 9, (5, 3, 4)) / 9


def matrix_of(scores):
    return StyleMatrix(query_styles=FORMS, doc_styles=STYLES, ranks=rank_versions(scores))


def test_averages_against_a_loop(scores):
    found = matrix_of(scores)
    expected = [
        [np.mean([stats.rankdata(-scores[i, a])[b] for i in range(5)]) for b in range(4)]
        for a in range(3)
    ]
    np.testing.assert_allclose(found.average, expected)
    np.testing.assert_allclose(found.average.sum(axis=1), 10)


def test_matching_gains_by_hand(scores):
    found = matrix_of(scores)
    gains = matching_gains(found, ["3", "8"])
    for i in range(5):
        for j, (form, rest) in enumerate([(1, [0, 2]), (2, [0, 1])]):
            expected = found.ranks[i, rest, form].mean() - found.ranks[i, form, form]
            assert gains[i, j] == pytest.approx(expected)
