"""Ranks of versions against scipy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.style.measure import rank_versions


@pytest.mark.parametrize("shape", [(40, 10), (7, 4, 6), (5, 2), (3, 1), (0, 4)])
def test_against_scipy(shape):
    scores = np.random.default_rng(1).integers(0, 4, shape) / 4
    expected = stats.rankdata(-scores, axis=-1) if scores.size else scores
    np.testing.assert_array_equal(rank_versions(scores), expected)


def test_every_version_tied():
    np.testing.assert_array_equal(rank_versions(np.full((2, 10), 0.3)), np.full((2, 10), 5.5))


def test_scores_that_single_precision_cannot_tell_apart_are_tied():
    assert rank_versions(np.array([0.7, 0.7 + 1e-12, 0.2])).tolist() == [1.5, 1.5, 3.0]
    assert rank_versions(np.array([0.7, 0.7 + 1e-6, 0.2])).tolist() == [2.0, 1.0, 3.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
def test_what_cannot_be_ranked(bad):
    with pytest.raises(DataError, match="NaN, infinity or a number beyond single precision"):
        rank_versions(np.array([0.1, bad]))
