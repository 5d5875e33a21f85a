"""Intervals for the spread of paired means, against their definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.answers.audit import spread_interval
from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.means import crossing


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_ends_are_spreads_that_resampling_makes_just_believable(level):
    """Deviations t times those seen, with skewed errors of 25 rows; of a t interval in size."""
    rng = np.random.default_rng(3)
    rows = np.array([0.0, 0.6, 1.5]) + rng.exponential(size=(25, 3)) * [0.3, 0.5, 3.0]
    found = spread_interval(rows, confidence_level=level, resamples=40_000)
    means = rows.mean(axis=0)
    seen = means - means.mean()
    errors = rows[rng.integers(0, 25, (40_000, 25))].mean(axis=1) - means
    errors -= errors.mean(axis=1, keepdims=True)
    tail = (1 - level) / 2
    errors *= stats.t.ppf(1 - tail, 24) / stats.norm.ppf(1 - tail) * math.sqrt(25 / 24)
    assert found.estimate == pytest.approx(np.std(means))
    for end, share in ((found.lower, 1 - tail), (found.upper, tail)):
        moved = end / found.estimate * seen + errors
        assert np.mean(moved.std(axis=1) < found.estimate) == pytest.approx(share, abs=0.006)
    assert found.lower > 0


def test_columns_that_agree():
    same = np.repeat(np.arange(30.0)[:, None], 3, axis=1)
    found = spread_interval(same, resamples=100)
    assert (found.estimate, found.lower, found.upper) == (0, 0, 0)
    shifted = spread_interval(same + np.arange(3), resamples=100)  # known without error
    assert shifted.lower == pytest.approx(shifted.estimate)
    assert shifted.upper == pytest.approx(shifted.estimate)
    assert shifted.estimate == pytest.approx(math.sqrt(2 / 3))


def test_bad_input_is_refused():
    with pytest.raises(InsufficientDataError, match="bootstrap over 19 rows") as error:
        spread_interval(np.zeros((19, 2)))
    assert (error.value.n, error.value.n_needed) == (19, 20)


def test_a_crossing_is_found_wherever_the_search_starts():
    for start in (1e-6, 1.0, 1e6):
        assert crossing(lambda t: t**3, 8.0, start=start) == pytest.approx(2.0, rel=1e-6)
    assert crossing(lambda t: 1 + t, 0.5) == 0
