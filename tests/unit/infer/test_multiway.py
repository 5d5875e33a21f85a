"""Variances over several factors, against literal sums over pairs of terms."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    ClusterFlips,
    design_effect,
    effective_number,
    require_clusters,
    shared_variance,
    two_way_variance,
)


def literal(terms, factors, *, factor_of_groups=True, subtract=True):
    """Every pair of terms, for every set of factors that they share, with the sign of the set.

    Without G/(G − 1) each pair that shares any factor counts exactly once.
    """
    total = 0.0
    for size in range(1, len(factors) + 1):
        sign = (-1) ** (size + 1) if subtract else 1
        for chosen in combinations(factors, size):
            groups = len(set(zip(*(f.tolist() for f in chosen), strict=True)))
            scale = groups / (groups - 1) if factor_of_groups else 1.0
            for i in range(len(terms)):
                for j in range(len(terms)):
                    if all(f[i] == f[j] for f in chosen):
                        total += sign * scale * terms[i] * terms[j]
    return total


def lopsided(n_factors, *, n=70, seed=2):
    """Half of the terms in one query, the others spread; documents and topics cut across."""
    rng = np.random.default_rng(seed)
    query = np.where(rng.random(n) < 0.5, 0, rng.integers(0, 12, n))
    document = (rng.gamma(1, 4, n)).astype(np.int64)
    topic = rng.integers(0, 9, n)
    effects = rng.normal(size=12)[query] + rng.normal(size=60)[document] + rng.normal(size=9)[topic]
    terms = effects + rng.normal(size=n)
    return terms - terms.mean(), [query, document, topic][:n_factors]


def test_is_the_double_sum():
    terms, factors = lopsided(2)
    assert two_way_variance(terms, *factors) == pytest.approx(literal(terms, factors), rel=1e-12)


def test_clusters_of_two_factors_are_told_apart_by_both():
    first, second = (codes.ravel() for codes in np.indices((3, 3, 2))[:2])
    terms = np.random.default_rng(1).normal(size=18) + first - second
    terms -= terms.mean()
    wanted = literal(terms, [first, second])
    assert two_way_variance(terms, first, second) == pytest.approx(wanted)


def test_terms_outside_all_clusters_of_a_factor_are_alone_in_it():
    terms, (query, document) = lopsided(2)
    outside = np.where(np.arange(70) % 3, document, -1)
    own = np.where(outside < 0, 1000 + np.arange(70), outside)
    assert two_way_variance(terms, query, outside) == pytest.approx(literal(terms, [query, own]))


def test_is_never_below_one_factor_alone():
    """Terms that cancel within the second factor would lower the sum."""
    query, document = np.repeat(np.arange(6), 2), np.repeat(np.arange(6), 2)[::-1].copy()
    document[::2], document[1::2] = np.arange(6), (np.arange(6) + 1) % 6
    terms = np.tile([1.0, 1.0, -1.0, -1.0], 3)
    alone = literal(terms, [query])
    assert literal(terms, [query, document]) < alone
    assert two_way_variance(terms, query, document) == pytest.approx(alone)


class TestSharedVariance:
    def test_is_that_of_a_model_of_effects(self):
        """Sums of squares are set to their expectations by matrices written out."""
        rng = np.random.default_rng(0)
        units, documents = np.repeat(np.arange(40), 3), rng.integers(0, 12, 120)
        units, documents = np.unique(np.stack((units, documents)), axis=1)
        shown = np.zeros((40, 12))
        shown[units, documents] = 1
        values = shown @ rng.normal(size=12) + 2 * rng.normal(size=40)
        values -= values.mean()
        centre = np.eye(40) - 1 / 40
        kernel = centre @ shown @ shown.T @ centre
        powers = [np.trace(centre), *(np.trace(kernel @ m) for m in (centre, kernel))]
        matrix = np.array([[powers[1], powers[0]], [powers[2], powers[1]]])
        seen = np.array([values @ values, values @ kernel @ values])
        effect, error = np.linalg.solve(matrix, seen)
        assert min(effect, error) > 0
        total = np.array([np.sum(shown @ shown.T), 40.0])
        weight = np.linalg.solve(matrix.T, total)
        form = weight[0] * centre + weight[1] * kernel
        model = effect * kernel + error * centre
        wanted = total @ (effect, error)
        variance, degrees = shared_variance(values, units, documents)
        assert variance == pytest.approx(wanted)
        assert degrees == pytest.approx(wanted**2 / np.trace(form @ model @ form @ model))

    def test_documents_of_one_unit_each_are_not_shared(self):
        values = np.random.default_rng(0).normal(size=20)
        assert shared_variance(values, np.arange(20), np.arange(20)) == (0.0, math.inf)

    def test_documents_of_every_unit_tell_nothing(self):
        values = np.random.default_rng(0).normal(size=20)
        units, documents = np.repeat(np.arange(20), 2), np.tile(np.arange(2), 20)
        assert shared_variance(values, units, documents) == (0.0, 0.0)

    def test_where_nothing_varies_documents_are_counted(self):
        units, documents = np.arange(20), np.arange(20) % 4
        assert shared_variance(np.zeros(20), units, documents) == (0.0, 3.0)


class TestClusterFlips:
    sizes = np.array([30.0, 9, 5, 4, 3, 3, 2, 2, 1, 1, 1, 1])

    def flips(self, numerator, **kind):
        return ClusterFlips(numerator=numerator, denominator=self.sizes, **kind)

    def test_all_patterns_are_tried(self):
        sums = np.random.default_rng(0).normal(size=12) * self.sizes + 0.4 * self.sizes
        weight = 1 / (1 - self.sizes / self.sizes.sum())

        def statistic(flipped):
            left = flipped - flipped.sum() / self.sizes.sum() * self.sizes
            return flipped.sum() ** 2 / (weight @ left**2)

        every = [statistic(sums * signs) for signs in product((-1, 1), repeat=12)]
        wanted = np.mean(np.array(every) >= statistic(sums) * (1 - 1e-9))
        assert self.flips(sums).p_value() == wanted
        drawn = self.flips(sums, resamples=2_000).p_value()
        assert drawn == pytest.approx(wanted, abs=0.04)

    def test_ends_are_where_the_test_turns(self):
        found = self.flips(np.random.default_rng(1).normal(size=12) * self.sizes)
        for end, out in zip(found.ends(0.9), (-1, 1), strict=True):
            assert found.p_value(end - 1e-6 * out) > 0.1 >= found.p_value(end + 1e-6 * out)

    def test_signs_turned_round_turn_the_interval_round(self):
        sums = np.random.default_rng(2).normal(size=12)
        lower, upper = self.flips(sums).ends(0.95)
        assert self.flips(-sums).ends(0.95) == pytest.approx((-upper, -lower))

    @pytest.mark.parametrize(("level", "needed"), [(0.9, 10), (0.95, 19), (0.99, 99)])
    def test_too_few_flips_reject_nothing_and_are_refused(self, level, needed):
        sums = np.random.default_rng(3).normal(size=12)
        with pytest.raises(InsufficientDataError, match=f"at least {needed} resamples, not"):
            self.flips(sums, resamples=needed - 1).ends(level)
        assert np.ptp(self.flips(sums, resamples=needed).ends(level)) < 100

    def test_clusters_that_agree_end(self):
        lower, upper = self.flips(3 * self.sizes).ends(0.95)
        assert lower <= upper == pytest.approx(3.0)


def test_clusters_of_unequal_size_count_as_fewer():
    assert effective_number(np.repeat(np.arange(7), 4)) == 7
    assert effective_number(np.array([5, 5, 5, 9])) == 16 / 10


class TestDesignEffect:
    def test_is_the_variance_of_sums_over_that_of_independent_terms(self):
        rng = np.random.default_rng(0)
        units = np.repeat(np.arange(50), 4)
        terms = rng.normal(size=50)[units] + rng.normal(size=200)
        terms -= terms.mean()
        effect, kept = design_effect(terms, units)
        assert effect == pytest.approx(literal(terms, [units]) / (terms @ terms))
        assert 2 < effect < 3  # 1 + 3 · ½
        assert kept == pytest.approx((stats.norm.ppf(0.975) / stats.t.ppf(0.975, 49)) ** 2)

    def test_single_terms_have_none(self):
        assert design_effect(np.random.default_rng(0).normal(size=9), np.arange(9)) == (1.0, 1.0)


def test_fewer_than_six_clusters_are_refused():
    require_clusters(6, InferCode.FEW_WITH_PAIRS)
    with pytest.raises(InsufficientDataError, match=r"5 queries.*: judge more") as caught:
        require_clusters(5, InferCode.FEW_WITH_PAIRS)
    assert (caught.value.n, caught.value.n_needed) == (5, 6)
