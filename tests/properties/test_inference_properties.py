"""What must hold for every pair of score columns."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.means import (
    adjust_p_values,
    bootstrap_means,
    clustered_difference,
    clustered_mean,
    difference_test,
    relative_delta_interval,
)

values = st.sampled_from([0.0, 0.5, 1.0]) | st.integers(0, 10**6).map(lambda i: i / 10**6)


@st.composite
def columns(draw, min_size=2, max_size=60):
    n = draw(st.integers(min_size, max_size))
    return draw(arrays(float, n, elements=values)), draw(arrays(float, n, elements=values))


def interval_of(pair, **options):
    try:
        return relative_delta_interval(*pair, **options)
    except InsufficientDataError:
        assume(False)


@given(columns(), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_interval_holds_its_estimate_and_stays_in_range(pair, level):
    interval = interval_of(pair, confidence_level=level)
    assert -200 <= interval.lower <= interval.estimate <= interval.upper <= 200
    assert interval.half_width > 0


@given(columns())
def test_interval_exists_unless_nothing_scores(pair):
    assume(sum(map(np.sum, pair)) > 1e-6)
    relative_delta_interval(*pair)


@given(columns())
def test_swapping_sources_mirrors_the_interval(pair):
    one, two = interval_of(pair), interval_of(pair[::-1])
    np.testing.assert_allclose(
        (one.lower, one.estimate, one.upper), (-two.upper, -two.estimate, -two.lower), atol=1e-6
    )


@given(columns())
def test_more_confidence_is_wider(pair):
    narrow, wide = (interval_of(pair, confidence_level=c) for c in (0.8, 0.95))
    assert wide.lower <= narrow.lower + 1e-9
    assert wide.upper >= narrow.upper - 1e-9


@given(columns(), st.randoms(use_true_random=False))
def test_order_of_queries_does_not_matter(pair, random):
    order = list(range(len(pair[0])))
    random.shuffle(order)
    one, two = interval_of(pair), interval_of([c[order] for c in pair])
    np.testing.assert_allclose((one.lower, one.upper), (two.lower, two.upper), atol=1e-6)


@settings(max_examples=30)
@given(columns(min_size=15), st.integers(0, 2**32 - 1))
def test_resampling_repeats_from_a_seed(pair, seed):
    both = np.column_stack(pair)
    np.testing.assert_array_equal(
        bootstrap_means(both, resamples=20, rng=seed), bootstrap_means(both, resamples=20, rng=seed)
    )
    try:
        found = [
            relative_delta_interval(*pair, method="bootstrap", resamples=100, rng=seed)
            for _ in range(2)
        ]
    except InsufficientDataError:
        return
    assert found[0] == found[1]
    assert -200 <= found[0].lower <= found[0].upper <= 200


@given(columns(), st.sampled_from([0.9, 0.95]))
def test_p_value_is_dual_to_the_interval_and_symmetric(pair, level):
    difference, queries = pair[0] - pair[1], np.arange(len(pair[0]))
    p = difference_test(difference, queries)
    assert 0 <= p <= 1
    np.testing.assert_allclose(p, difference_test(-difference, queries), atol=1e-6)
    interval = clustered_difference(difference, queries, confidence_level=level)
    if abs(p - (1 - level)) > 1e-3:
        assert interval.excludes(0.0) == (p < 1 - level)


p_lists = st.lists(st.none() | st.floats(0, 1), max_size=15)


@given(p_lists, st.sampled_from(["holm", "bh", "none"]))
def test_adjusted_p_values(p_values, correction):
    adjusted = adjust_p_values(p_values, correction=correction)
    pairs = [(p, a) for p, a in zip(p_values, adjusted, strict=True) if p is not None]
    assert [a is None for a in adjusted] == [p is None for p in p_values]
    for p, a in pairs:
        assert p <= a + 1e-15
        assert a <= 1
    ordered = [a for _, a in sorted(pairs)]
    assert ordered == sorted(ordered)  # a smaller p-value never gets a larger adjusted one


@given(p_lists)
def test_bh_is_never_stricter_than_holm(p_values):
    holm = adjust_p_values(p_values, correction="holm")
    bh = adjust_p_values(p_values, correction="bh")
    for h, b in zip(holm, bh, strict=True):
        assert h is None or b <= h + 1e-12


@given(st.lists(values, min_size=2, max_size=50), st.data())
def test_clustered_share_stays_in_bounds(rows, data):
    clusters = data.draw(arrays(np.int64, len(rows), elements=st.integers(0, 9)))
    assume(len(set(clusters.tolist())) > 1)
    interval = clustered_mean(np.array(rows), clusters, bounds=(0.0, 1.0))
    assert 0 <= interval.lower <= interval.estimate <= interval.upper <= 1
    assert interval.half_width > 0
