from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.equivalence import CrossedMean, noninferiority_test
from rag_sourcebias.infer.findings import InferCode


def scores(seeds: int, n: int, *, shift: float = 0.0, seed: int = 0, seed_sd: float = 0.0):
    rng = np.random.default_rng(seed)
    before = np.tile(rng.uniform(0.3, 0.7, n), (seeds, 1))
    after = before + shift + rng.normal(0, 0.03, (seeds, n))
    return after + seed_sd * rng.normal(size=(seeds, 1)), before


@pytest.mark.parametrize("margin", [0.01, 0.05])
@pytest.mark.parametrize("shift", [-0.02, 0.0, 0.01])
def test_one_row_is_the_one_sided_paired_t_test(margin: float, shift: float) -> None:
    after, before = scores(1, 60, shift=shift)
    expected = stats.ttest_rel(after[0], (1 - margin) * before[0], alternative="greater")
    test = noninferiority_test(after, before, relative_margin=margin, quality="mixed")
    assert test.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    assert test.passed == (expected.pvalue <= 0.05)
    assert test.change == pytest.approx(100 * (after.mean() / before.mean() - 1))
    assert (test.quality, test.n_queries, test.n_seeds) == ("mixed", 60, 1)


@pytest.mark.parametrize("seeds", [1, 3])
def test_lower_end_is_the_margin_at_which_the_test_just_passes(seeds: int) -> None:
    after, before = scores(seeds, 60, shift=-0.01, seed_sd=0.005)
    lower = noninferiority_test(after, before).lower
    assert lower < noninferiority_test(after, before).change
    at_end = noninferiority_test(after, before, relative_margin=-lower / 100)
    assert at_end.p_value == pytest.approx(0.05, abs=1e-6)
    assert at_end.lower == lower


def test_moments_are_those_of_the_two_way_table() -> None:
    rng = np.random.default_rng(3)
    seeds, n = 4, 30
    values = rng.normal(size=(seeds, 1)) + rng.normal(size=n) + rng.normal(size=(seeds, n))
    # The literal sums of a two-way analysis of variance without replication.
    grand = values.mean()
    ms_query = sum(seeds * (values[:, q].mean() - grand) ** 2 for q in range(n)) / (n - 1)
    ms_seed = sum(n * (values[s].mean() - grand) ** 2 for s in range(seeds)) / (seeds - 1)
    ms_rest = sum(
        (values[s, q] - values[s].mean() - values[:, q].mean() + grand) ** 2
        for s in range(seeds)
        for q in range(n)
    ) / ((seeds - 1) * (n - 1))
    moments = CrossedMean.of(values)
    assert moments.mean == pytest.approx(grand)
    assert moments.query_variance == pytest.approx(ms_query / (seeds * n))
    assert moments.seed_variance == pytest.approx((ms_seed - ms_rest) / (seeds * n))
    expected = (
        stats.t.ppf(0.95, n - 1) ** 2 * moments.query_variance
        + stats.t.ppf(0.95, seeds - 1) ** 2 * moments.seed_variance
    ) ** 0.5
    assert moments.half_width(0.05) == pytest.approx(expected)


def test_few_changed_queries_bound_the_loss_by_clopper_pearson() -> None:
    before = np.full((1, 400), 0.8)
    test = noninferiority_test(before, before, relative_margin=0.01)
    # No loss seen: the bound is 1 - level^(1/n), the "rule of three".
    assert test.lower == pytest.approx(-100 * (1 - 0.05 ** (1 / 400)) / 0.8)
    assert test.p_value == pytest.approx((1 - 0.01 * 0.8) ** 400, rel=1e-6)
    assert test.passed
    assert test.note == InferCode.FEW_CHANGED(changed=0, n=400)
    few = noninferiority_test(before[:, :80], before[:, :80])
    assert not few.passed
    assert few.n_needed == int(np.ceil(80 * (1 - 0.05 ** (1 / 80)) / 0.008))


def test_a_t_test_is_not_trusted_where_one_query_changed() -> None:
    before = np.random.default_rng(0).uniform(0.5, 0.9, (1, 100))
    after = before.copy()
    after[0, 0] -= 0.05
    t_test = stats.ttest_rel(after[0], 0.98 * before[0], alternative="greater")
    assert t_test.pvalue < 1e-6
    # Rarer, larger losses could have gone unseen: 100 queries exclude about 3 / 100.
    test = noninferiority_test(after, before, relative_margin=0.02)
    assert not test.passed
    assert -8 < test.lower < -3 / 0.9


def test_nothing_left_has_no_lower_end() -> None:
    before = np.full((1, 40), 0.5)
    test = noninferiority_test(np.zeros((1, 40)), before)
    assert (test.change, test.lower, test.passed) == (-100.0, -100.0, False)


@pytest.mark.parametrize(
    ("shape", "kwargs", "error", "message"),
    [
        ((1, 30), {"level": 0.6}, DataError, "level 0.6 must be below 0.5"),
    ],
)
def test_refuses_settings_and_arrays(shape, kwargs, error, message) -> None:
    with pytest.raises(error, match=message):
        noninferiority_test(np.full((1, 30), 0.5), np.full(shape, 0.5), **kwargs)


def test_refuses_too_little() -> None:
    with pytest.raises(InsufficientDataError, match="at least 20 queries, not 19") as raised:
        noninferiority_test(np.full((1, 19), 0.5), np.full((1, 19), 0.5))
    assert raised.value.n_needed == 20
    with pytest.raises(InsufficientDataError, match="scores on none of 30 queries"):
        noninferiority_test(np.full((1, 30), 0.5), np.zeros((1, 30)))
    with pytest.raises(DataError, match="NaN or infinity"):
        noninferiority_test(np.full((1, 30), np.nan), np.full((1, 30), 0.5))


@pytest.mark.parametrize(("seeds", "seed_sd"), [(1, 0.0), (4, 0.001)])
def test_the_queries_needed_pass_with_power_when_nothing_changed(seeds, seed_sd) -> None:
    """The margin is z(.95) + z(.8) standard errors; what seeds add to these stays."""
    after, before = scores(seeds, 60, seed_sd=seed_sd)
    needed = noninferiority_test(after, before).n_needed
    seen = CrossedMean.of(after - 0.99 * before)
    assert (seen.seed_variance > 0) == (seeds > 1)

    def errors(n: int) -> float:
        margin = 0.01 * before.mean()
        return margin / math.sqrt(60 * seen.query_variance / n + seen.seed_variance)

    wanted = stats.norm.ppf(0.95) + stats.norm.ppf(0.8)
    assert errors(needed) >= wanted > errors(needed - 1)
    assert needed > 20


def test_seeds_that_differ_by_more_than_the_margin_leave_no_number_of_queries() -> None:
    after, before = scores(4, 60, seed_sd=0.05)
    assert noninferiority_test(after, before).n_needed is None


def test_a_loss_of_just_the_margin_needs_no_number_of_queries() -> None:
    """1 of 64 queries lost all of its .5: a loss of the margin itself, 1 / 64."""
    before = np.full((1, 64), 0.5)
    after = before.copy()
    after[0, 0] = 0.0
    assert noninferiority_test(after, before, relative_margin=1 / 64).n_needed is None
    assert noninferiority_test(after, before, relative_margin=1.01 / 64).n_needed is not None


@pytest.mark.parametrize(("changed", "few"), [(14, True), (15, False)])
def test_fifteen_queries_that_changed_make_a_t_test(changed: int, few: bool) -> None:
    before = np.full((1, 60), 0.5)
    after = before + np.where(np.arange(60) < changed, 0.1, 0.0)
    expected = stats.ttest_rel(after[0], 0.99 * before[0], alternative="greater").pvalue
    test = noninferiority_test(after, before)
    assert (test.note == InferCode.FEW_CHANGED(changed=changed, n=60)) == few
    assert (test.p_value == pytest.approx(expected, rel=1e-6)) != few
