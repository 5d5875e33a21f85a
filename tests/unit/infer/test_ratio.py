"""Intervals for Relative Δ: values, choice of method, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import relative_delta_interval
from rag_sourcebias.measure.relevance import relative_delta


def at_one(wins, losses, n):
    """Cutoff 1: ``wins`` queries won by the baseline, ``losses`` by the other, the rest by none."""
    h, low = np.zeros(n), np.zeros(n)
    h[:wins] = 1
    low[wins : wins + losses] = 1
    return h, low


def correlated(n=400, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.random(n)
    return np.clip(shared + rng.normal(0, 0.2, n), 0, 1), np.clip(
        0.8 * shared + rng.normal(0, 0.2, n), 0, 1
    )


class TestDelta:
    def test_formula(self):
        h, low = correlated()
        n = len(h)
        interval = relative_delta_interval(h, low, method="delta", confidence_level=0.9)
        influence = h / h.mean() - low / low.mean()  # of ln(h/l), query by query
        error = influence.std(ddof=1) / math.sqrt(n)
        x, t = math.log(h.mean() / low.mean()), stats.t.ppf(0.95, n - 1)
        assert interval.estimate == pytest.approx(relative_delta(h.mean(), low.mean()))
        assert interval.lower == pytest.approx(200 * math.tanh((x - t * error) / 2))
        assert interval.upper == pytest.approx(200 * math.tanh((x + t * error) / 2))
        assert interval.n_labeled == n


def test_fieller_is_the_set_of_ratios_that_a_t_test_does_not_reject():
    h, low = correlated(60)
    interval = relative_delta_interval(h, low, method="fieller")
    for end in (interval.lower, interval.upper):
        rest = (h - low) - end / 200 * (h + low)
        statistic = rest.mean() / (rest.std(ddof=1) / math.sqrt(len(rest)))
        assert abs(statistic) == pytest.approx(stats.t.ppf(0.975, len(h) - 1), rel=1e-6)


def test_bootstrap_is_close_to_delta_and_reproducible():
    h, low = correlated()
    delta = relative_delta_interval(h, low, method="delta")
    boot = relative_delta_interval(h, low, method="bootstrap", rng=1)
    assert boot.lower == pytest.approx(delta.lower, abs=1)
    assert boot.upper == pytest.approx(delta.upper, abs=1)
    assert boot == relative_delta_interval(h, low, method="bootstrap", rng=1)
    assert boot != relative_delta_interval(h, low, method="bootstrap", rng=2)


class TestExact:
    @pytest.mark.parametrize(("wins", "losses"), [(3, 9), (0, 5), (7, 0), (40, 41)])
    def test_is_clopper_pearson(self, wins, losses):
        interval = relative_delta_interval(*at_one(wins, losses, 100), method="exact")
        ends = stats.binomtest(wins, wins + losses).proportion_ci(method="exact")
        assert interval.lower == pytest.approx(200 * (2 * ends.low - 1), abs=1e-9)
        assert interval.upper == pytest.approx(200 * (2 * ends.high - 1), abs=1e-9)

    def test_needs_exclusive_wins(self):
        both = np.array([1.0, 1.0]), np.array([1.0, 0.0])
        graded = np.array([0.5, 0.0]), np.array([0.0, 1.0])
        for pair in (both, graded):
            with pytest.raises(DataError, match="scores of 0 and 1 of which at most one"):
                relative_delta_interval(*pair, method="exact")


class TestAuto:
    """One method wherever some query scores (its own tests: test_weighted.py)."""

    @pytest.mark.parametrize(("wins", "losses"), [(3, 9), (0, 5), (7, 0), (40, 41)])
    def test_exclusive_wins_have_beta_quantiles(self, wins, losses):
        """Queries that neither won do not count; the extra unit weighs 0.65."""
        interval = relative_delta_interval(*at_one(wins, losses, 100))
        low = stats.beta.ppf(0.025, wins, losses + 0.65) if wins else 0.0
        high = stats.beta.ppf(0.975, wins + 0.65, losses) if losses else 1.0
        assert interval.lower == pytest.approx(200 * (2 * low - 1), abs=1e-4)
        assert interval.upper == pytest.approx(200 * (2 * high - 1), abs=1e-4)


class TestNoVariation:
    """Nothing varies in the sample: not certainty, so no interval of width zero."""

    @pytest.mark.parametrize("method", ["delta", "bootstrap", "fieller"])
    def test_methods_by_name_refuse(self, method):
        with pytest.raises(InsufficientDataError, match="all 100 queries give") as caught:
            relative_delta_interval(np.ones(100), np.full(100, 0.5), method=method)
        assert (caught.value.n, caught.value.n_needed) == (100, None)


class TestRefusals:
    @pytest.mark.parametrize("method", ["auto", "delta", "bootstrap", "fieller", "exact"])
    def test_nothing_scores(self, method):
        with pytest.raises(InsufficientDataError, match="neither source scores on any of 9"):
            relative_delta_interval(np.zeros(9), np.zeros(9), method=method)

    @pytest.mark.parametrize("method", ["delta", "bootstrap", "fieller"])
    def test_mean_near_zero_says_how_many_queries_are_needed(self, method):
        h, low = at_one(4, 40, 100)  # 4 wins: 2.03 standard errors
        with pytest.raises(InsufficientDataError, match=r"2\.0 standard errors.*'auto'") as caught:
            relative_delta_interval(h, low, method=method)
        assert caught.value.n_needed == 388
        enough = relative_delta_interval(np.tile(h, 4), np.tile(low, 4), method=method)
        assert enough.method.code is InferCode[method.upper()]

    @pytest.mark.parametrize("method", ["delta", "bootstrap", "fieller"])
    def test_four_standard_errors_are_enough_of_a_mean(self, method):
        """The standard error of five .125 and five .875 is .125, and their mean is .5."""
        h = np.repeat([0.125, 0.875], 5)
        with pytest.raises(InsufficientDataError, match="at least 15 that differ"):
            relative_delta_interval(h, 1 - h, method=method)

    @pytest.mark.parametrize("n", [0, 1])
    def test_one_query(self, n):
        with pytest.raises(InsufficientDataError, match="at least 2 queries"):
            relative_delta_interval(np.ones(n), np.ones(n))

    @pytest.mark.parametrize(
        ("h", "low", "message"),
        [
            ([1, np.nan], [1, 1], "NaN or infinity"),
            ([1, np.inf], [1, 1], "NaN or infinity"),
            ([1, -0.1], [1, 1], "negative value"),
            ([1, 1, 1], [1, 1], "two columns of equal length"),
            ([[1, 1]], [[1, 1]], "two columns of equal length"),
        ],
    )
    def test_bad_columns(self, h, low, message):
        with pytest.raises(DataError, match=message):
            relative_delta_interval(np.array(h, dtype=float), np.array(low, dtype=float))
