"""Quantiles without scipy.stats."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError, as_generator, check_level
from rag_sourcebias.infer.means import beta_quantile, normal_quantile, t_quantile


@pytest.mark.parametrize("p", [0.001, 0.025, 0.5, 0.975, 0.9995])
def test_against_scipy_stats(p):
    assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), abs=1e-9)
    assert t_quantile(p, 4) == pytest.approx(stats.t.ppf(p, 4), abs=1e-9)
    assert beta_quantile(p, 3, 7.5) == pytest.approx(stats.beta.ppf(p, 3, 7.5), abs=1e-9)


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 95, float("nan")])
def test_levels(level):
    with pytest.raises(DataError, match=r"0\.95 is usual"):
        check_level(level)


def test_generators():
    generator = np.random.default_rng(3)
    assert as_generator(generator) is generator
    assert as_generator(3).random() == np.random.default_rng(3).random()
