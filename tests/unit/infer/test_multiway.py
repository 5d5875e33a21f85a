"""Variances over several factors, against literal sums over pairs of terms."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    design_effect,
    independent_share,
    multiway_variance,
    require_clusters,
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


@pytest.mark.parametrize("n_factors", [1, 2, 3])
def test_is_the_double_sum(n_factors):
    terms, factors = lopsided(n_factors)
    wanted = literal(terms, factors)
    assert wanted > max(literal(terms, [f]) for f in factors[1:] or factors) - 1e-9
    assert multiway_variance(terms, factors) == pytest.approx(wanted, rel=1e-12)


def test_clusters_of_two_factors_are_told_apart_by_both():
    first, second = (codes.ravel() for codes in np.indices((3, 3, 2))[:2])
    terms = np.random.default_rng(1).normal(size=18) + first - second
    terms -= terms.mean()
    factors = [first, second]
    assert multiway_variance(terms, factors) == pytest.approx(literal(terms, factors))


def test_terms_outside_all_clusters_of_a_factor_are_alone_in_it():
    terms, (query, document) = lopsided(2)
    outside = np.where(np.arange(70) % 3, document, -1)
    own = np.where(outside < 0, 1000 + np.arange(70), outside)
    assert multiway_variance(terms, [query, outside]) == pytest.approx(literal(terms, [query, own]))


def test_is_never_below_one_factor_alone():
    """Terms that cancel within the second factor would lower the sum."""
    query, document = np.repeat(np.arange(6), 2), np.repeat(np.arange(6), 2)[::-1].copy()
    document[::2], document[1::2] = np.arange(6), (np.arange(6) + 1) % 6
    terms = np.tile([1.0, 1.0, -1.0, -1.0], 3)
    alone = multiway_variance(terms, [query])
    assert literal(terms, [query, document]) < alone
    assert multiway_variance(terms, [query, document]) == alone


class TestIndependentShare:
    def test_is_the_share_of_the_variance(self):
        rng = np.random.default_rng(0)
        units, document = np.repeat(np.arange(40), 5), rng.integers(0, 100, 200)
        terms = rng.normal(size=100)[document] + 0.1 * rng.normal(size=200)
        terms -= terms.mean()
        found = independent_share(terms, units, [document], confidence_level=0.95)
        wanted = literal(terms, [units]) / literal(terms, [units, document])
        assert found == pytest.approx(wanted, rel=1e-9)
        assert found < 0.7

    def test_few_clusters_of_a_factor_cost_degrees_of_freedom(self):
        rng = np.random.default_rng(0)
        units, rewriter = np.repeat(np.arange(40), 6), np.tile(np.arange(6), 40)
        terms = rng.normal(size=240) + rng.normal(size=6)[rewriter]
        terms -= terms.mean()
        found = independent_share(terms, units, [rewriter], confidence_level=0.95)
        share = literal(terms, [units]) / multiway_variance(terms, [units, rewriter])
        ratio = stats.t.ppf(0.975, 39) / stats.t.ppf(0.975, 5)
        assert found == pytest.approx(share * ratio**2, rel=1e-9)

    def test_documents_of_one_query_each_cost_nothing(self):
        terms, units = np.random.default_rng(0).normal(size=60), np.repeat(np.arange(20), 3)
        for nested in (np.arange(60), np.full(60, -1), units.copy()):
            assert independent_share(terms, units, [nested], confidence_level=0.95) == 1.0

    def test_where_nothing_varies_units_are_as_many_as_the_documents(self):
        units, document = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)
        share = independent_share(np.zeros(60), units, [document], confidence_level=0.95)
        assert share == pytest.approx(3 / 20)


class TestDesignEffect:
    def test_is_the_variance_of_sums_over_that_of_independent_terms(self):
        rng = np.random.default_rng(0)
        units = np.repeat(np.arange(50), 4)
        terms = rng.normal(size=50)[units] + rng.normal(size=200)
        terms -= terms.mean()
        effect, kept = design_effect(terms, units)
        assert effect == pytest.approx(multiway_variance(terms, [units]) / (terms @ terms))
        assert 2 < effect < 3  # 1 + 3 · ½
        assert kept == pytest.approx((stats.norm.ppf(0.975) / stats.t.ppf(0.975, 49)) ** 2)

    def test_single_terms_have_none(self):
        assert design_effect(np.random.default_rng(0).normal(size=9), np.arange(9)) == (1.0, 1.0)


def test_fewer_than_six_clusters_are_refused():
    require_clusters(6, InferCode.FEW_WITH_PAIRS)
    with pytest.raises(InsufficientDataError, match=r"5 queries.*: judge more") as caught:
        require_clusters(5, InferCode.FEW_WITH_PAIRS)
    assert (caught.value.n, caught.value.n_needed) == (5, 6)
