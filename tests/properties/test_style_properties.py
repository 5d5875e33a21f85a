"""What must hold for every table of style scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from rag_sourcebias.style.measure import rank_versions

scores = array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=8).flatmap(
    lambda shape: arrays(float, shape, elements=st.integers(-6, 6).map(lambda i: i / 4))
)


@given(scores)
def test_average_ranks_sum_to_a_constant(table):
    k = table.shape[1]
    ranks = rank_versions(table)
    assert ranks.sum(axis=1) == pytest.approx(np.full(len(table), k * (k + 1) / 2))
    assert ranks.min() >= 1
    assert ranks.max() <= k


@given(scores)
def test_only_the_order_counts(table):
    np.testing.assert_array_equal(rank_versions(3 * table + 1), rank_versions(table))
    np.testing.assert_array_equal(rank_versions(-table), table.shape[1] + 1 - rank_versions(table))
