"""Holm and Benjamini–Hochberg against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.means import adjust_p_values


def holm(p):
    """Smallest level at which Holm's step-down procedure rejects each hypothesis."""
    order = sorted(range(len(p)), key=p.__getitem__)
    return {
        i: min(1.0, max((len(p) - j) * p[order[j]] for j in range(rank + 1)))
        for rank, i in enumerate(order)
    }


@pytest.mark.parametrize("seed", range(10))
def test_against_definitions(seed):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(rng.integers(1, 20)) ** 3, 2).tolist()
    assert adjust_p_values(p) == pytest.approx([holm(p)[i] for i in range(len(p))])
    assert adjust_p_values(p, correction="bh") == pytest.approx(stats.false_discovery_control(p))
    assert adjust_p_values(p, correction="none") == p


def test_missing_tests_are_not_counted():
    assert adjust_p_values([0.01, None, 0.04, None]) == pytest.approx([0.02, None, 0.04, None])
    assert adjust_p_values([None, None]) == [None, None]
    assert adjust_p_values([]) == []


def test_unknown_correction():
    with pytest.raises(DataError, match="'bonferroni'"):
        adjust_p_values([0.1], correction="bonferroni")
