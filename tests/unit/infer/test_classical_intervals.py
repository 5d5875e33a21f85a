import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.means import wilson_interval
from rag_sourcebias.infer.samples import bootstrap_interval, t_interval

VALUES = np.random.default_rng(3).gamma(2.0, 3.0, 40)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_t_equals_scipy(level):
    found = t_interval(VALUES, confidence_level=level)
    expected = stats.ttest_1samp(VALUES, 0).confidence_interval(level)
    assert (found.lower, found.upper) == pytest.approx(tuple(expected), abs=1e-12)


@pytest.mark.parametrize(("hits", "n"), [(0, 12), (1, 12), (7, 30), (30, 30)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_proportions_equal_scipy(hits, n, level):
    found = wilson_interval(hits, n, confidence_level=level)
    expected = stats.binomtest(hits, n).proportion_ci(level, "wilson")
    assert (found.lower, found.upper) == pytest.approx(tuple(expected), abs=1e-9)


def test_empirical_bootstrap_equals_scipy_percentiles():
    found = bootstrap_interval(VALUES, n_resamples=40_000, rng=1)
    expected = stats.bootstrap(
        (VALUES,), np.mean, n_resamples=40_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    width = expected.high - expected.low
    assert found.lower == pytest.approx(expected.low, abs=0.02 * width)
    assert found.upper == pytest.approx(expected.high, abs=0.02 * width)


def test_too_little_data_says_how_much_is_needed():
    with pytest.raises(InsufficientDataError, match=r"1 human label\(s\).*at least 2") as caught:
        t_interval([3.0])
    assert (caught.value.n, caught.value.n_needed) == (1, 2)
    with pytest.raises(InsufficientDataError, match=r"all 5 human values equal 2.*bounds"):
        t_interval([2.0] * 5)


def test_bad_values_are_named():
    with pytest.raises(DataError, match=r"y: 1 value\(s\) are not finite, first nan at position 1"):
        t_interval([1.0, np.nan, 2.0])
