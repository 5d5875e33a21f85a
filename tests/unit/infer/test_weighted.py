"""Weighted ratios: against beta quantiles, drawn weights and what must not change them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.means import BoundedRatio, relative_delta_interval

EXTRA = 0.65  # shape of the unit that stands for what was not seen


def share(values, **options):
    """Mean of values in [0, 1]."""
    values = np.asarray(values, dtype=float)
    return BoundedRatio(
        numerator=values,
        denominator=np.ones(len(values)),
        lowest=(0.0, 1.0),
        highest=(1.0, 1.0),
        **options,
    )


def ratio(n=30, *, seed=0, scale=1.0):
    """Ratio of correlated columns, from −200 to 200."""
    rng = np.random.default_rng(seed)
    base = rng.random(n) * (rng.random(n) < 0.8)
    skew = base * np.clip(rng.normal(0.3, 0.5, n), -1, 1)
    return BoundedRatio(
        numerator=200 * scale * skew,
        denominator=base * scale,
        lowest=(-200 * scale, scale),
        highest=(200 * scale, scale),
    )


def drawn(found, extra, rng, *, runs=200_000):
    """Ratios under random Dirichlet weights of the units and the extra one."""
    top, bottom = (
        np.append(column, end)
        for column, end in zip((found.numerator, found.denominator), extra, strict=True)
    )
    shapes = np.append(np.full(len(top) - 1, found.information), EXTRA)
    weights = rng.standard_gamma(shapes, (runs, len(top)))
    return (weights @ top) / (weights @ bottom)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("hits", "n"), [(0, 12), (3, 50), (25, 50), (50, 50), (1, 2000)])
def test_shares_of_zero_and_one_have_beta_quantiles(hits, n, level):
    """Clopper–Pearson has a full unit where this has one of 0.65."""
    lower, upper = share(np.arange(n) < hits).ends(level)
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, hits, n - hits + EXTRA) if hits else 0.0
    high = stats.beta.ppf(1 - tail, hits + EXTRA, n - hits) if hits < n else 1.0
    assert (lower, upper) == pytest.approx((low, high), abs=1e-6)


def test_a_full_unit_would_fail():
    """The same comparison with Clopper–Pearson itself: wider by more than the tolerance."""
    exact = stats.binomtest(3, 50).proportion_ci(method="exact")
    lower, upper = share(np.arange(50) < 3).ends(0.95)
    assert exact.low < lower - 5e-5
    assert exact.high > upper + 1e-3


@pytest.mark.parametrize("information", [1.0, 0.5])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [8, 30])
def test_ends_are_quantiles_of_drawn_weights(n, seed, information):
    """A tail of .025 within .002: 4 standard errors of the 200,000 draws are .0014."""
    rng = np.random.default_rng(seed)
    found = BoundedRatio(
        **{**vars_of(ratio(n, seed=seed)), "information": information},
    )
    lower, upper = found.ends(0.95)
    assert np.mean(drawn(found, found.lowest, rng) < lower) == pytest.approx(0.025, abs=0.002)
    assert np.mean(drawn(found, found.highest, rng) > upper) == pytest.approx(0.025, abs=0.002)
    # the control: the tail of another level is not within that
    narrow = found.ends(0.93)[0]
    assert np.mean(drawn(found, found.lowest, rng) < narrow) > 0.025 + 0.002


def vars_of(found):
    names = ("numerator", "denominator", "lowest", "highest", "information")
    return {name: getattr(found, name) for name in names}


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("found", [ratio(), ratio(200), share(np.arange(40) < 7)], ids=str)
def test_p_value_of_an_end_is_the_level(found, level):
    for end in found.ends(level):
        assert found.p_value(end) == pytest.approx(1 - level, rel=1e-4)
    lower, upper = found.ends(level)
    width = upper - lower
    assert found.p_value(lower - 0.01 * width) < 1 - level < found.p_value(lower + 0.01 * width)
    assert found.p_value(found.estimate) > 0.5


shares = st.floats(0, 1).map(lambda share: round(share, 9))  # 1 − 1e-18 is 1
values = st.lists(st.sampled_from([0.0, 0.5, 1.0]) | shares, min_size=2, max_size=40)


@given(values)
def test_the_mirror_image(rows):
    lower, upper = share(rows).ends(0.95)
    mirrored = share(1 - np.array(rows)).ends(0.95)
    np.testing.assert_allclose((1 - upper, 1 - lower), mirrored, atol=1e-6)


def test_equal_units_may_be_counted_together():
    """From 4,096 units on equal ones are: the same ends up to rounding."""
    rows = np.random.default_rng(0).integers(0, 5, 4200) / 4
    counted = share(rows)
    apart = share(rows + np.linspace(0, 1e-10, len(rows)) * (rows < 1))
    np.testing.assert_allclose(counted.ends(0.95), apart.ends(0.95), atol=1e-6)


def largest_step(interval, n=80):
    """Largest move of an end, in points, as queries in which one source scores 0 go 0, 1, …, 30.

    Relative Δ itself moves by at most 1.9 points for each.
    """
    ends = []
    for differing in range(31):
        h, low = np.full(n, 0.5), np.full(n, 0.5)
        low[:differing] = 0.0
        ends.append(interval(h, low, differing))
    return float(np.abs(np.diff(ends, axis=0)).max())


def test_no_jump_as_queries_differ():
    def ends(h, low, _):
        found = relative_delta_interval(h, low)
        return found.lower, found.upper

    assert largest_step(ends) < 2.3


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, float("nan")])
def test_bad_level(level):
    with pytest.raises(DataError, match="confidence_level"):
        share([0.0, 1.0]).ends(level)


def rare_losses(n=15):
    """Nearly all units at 100, one at −200 and one at −150: skewed to the left."""
    top = np.full(n, 100.0)
    top[:2] = -200, -150
    return BoundedRatio(
        numerator=top, denominator=np.ones(n), lowest=(-200.0, 1.0), highest=(200.0, 1.0)
    )


def test_the_p_value_has_no_step_where_the_ratio_is_the_expected_one():
    """There the saddlepoint is 0, and its formula 0 / 0."""
    found = rare_losses()
    expected = (found.numerator.sum() - EXTRA * 200) / (len(found.numerator) + EXTRA)
    chances = [found.p_value(expected + d) / 2 for d in (-0.2, -0.1, 0.0, 0.1, 0.2)]
    ratios = drawn(found, found.lowest, np.random.default_rng(0))
    assert chances[2] == pytest.approx(np.mean(ratios <= expected), abs=0.01)
    assert np.diff(chances, 2) == pytest.approx(0, abs=1e-4)


def test_units_without_a_denominator_push_the_ratio_beyond_all_others():
    rng = np.random.default_rng(2)
    base = rng.random(30)
    base[:4] = 0.0
    skew = 100 * base * rng.normal(0.2, 0.5, 30)
    skew[:4] = 60, 80, -40, 100
    found = BoundedRatio(
        numerator=skew, denominator=base, lowest=(-200.0, 1.0), highest=(200.0, 1.0)
    )
    assert skew.sum() / base.sum() < found.ends(0.99)[1]
    for level in (0.8, 0.95):
        lower, upper = found.ends(level)
        tail = (1 - level) / 2
        below, above = (
            np.mean(drawn(found, extra, np.random.default_rng(1)) <= end)
            for extra, end in ((found.lowest, lower), (found.highest, upper))
        )
        assert (below, above) == pytest.approx((tail, 1 - tail), abs=0.004)
