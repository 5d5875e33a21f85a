from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.equivalence import equivalence_test
from rag_sourcebias.infer.findings import InferCode


def scores(n: int, *, shift: float = 0.0, sd: float = 0.1, seed: int = 0):
    rng = np.random.default_rng(seed)
    second = rng.uniform(0.4, 0.6, n)
    return np.clip(second + shift + rng.normal(0, sd, n), 0, 1), second


@pytest.mark.parametrize("margin", [0.02, 0.05])
@pytest.mark.parametrize("shift", [-0.03, 0.0, 0.01])
def test_is_two_one_sided_paired_t_tests(margin: float, shift: float) -> None:
    first, second = scores(80, shift=shift)
    above = stats.ttest_rel(first, second - margin, alternative="greater").pvalue
    below = stats.ttest_rel(first, second + margin, alternative="less").pvalue
    test = equivalence_test(first, second, margin=margin)
    assert test.p_value == pytest.approx(max(above, below), rel=1e-6)
    low, high = stats.ttest_rel(first, second).confidence_interval(0.9)
    assert (test.difference.lower, test.difference.upper) == pytest.approx((low, high))
    assert test.difference.confidence_level == pytest.approx(0.9)
    assert test.equivalent == (max(abs(low), abs(high)) < margin)
    assert test.note is None


def passed(n: int, *, margin: float, shift: float, kind: str, runs: int) -> float:
    """Share of fresh data sets that pass; the true difference is exactly ``shift``."""
    rng, count = np.random.default_rng(5), 0
    for _ in range(runs):
        second = rng.uniform(0.4, 0.6, n)
        if kind == "normal":
            noise = rng.normal(0, 0.1, n)
        else:  # most queries score the same, few much lower or higher
            noise = rng.choice([-0.3, 0.0, 0.3], n, p=[0.15, 0.7, 0.15])
        count += equivalence_test(
            np.clip(second + shift + noise, 0, 1), second, margin=margin
        ).equivalent
    return count / runs


@pytest.mark.parametrize(
    ("n", "kind"), [(25, "normal"), (80, "normal"), (80, "sparse"), (300, "sparse")]
)
@pytest.mark.parametrize("sign", [-1, 1])
def test_means_that_differ_by_the_margin_pass_at_most_at_the_level(n, kind, sign) -> None:
    runs = 300
    rate = passed(n, margin=0.05, shift=sign * 0.05, kind=kind, runs=runs)
    # Three standard errors above the nominal .05.
    assert rate <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


@pytest.mark.parametrize(("n", "margin"), [(58, 0.04), (120, 0.02), (75, 0.04)])
def test_one_sided_ends_hold_on_their_own(n: int, margin: float) -> None:
    """A loss of .9 on so few queries that none may be seen; true rates, not simulated ones.

    With the weight of a two-sided interval 58 and 120 queries would pass .09 of the time.
    """
    second, passes = np.full(n, 0.9), 0.0
    for losses in range(6):
        first = second.copy()
        first[:losses] = 0.0
        chance = float(stats.binom.pmf(losses, n, margin / 0.9))
        passes += chance * equivalence_test(first, second, margin=margin).equivalent
    assert passes <= 0.05
    tail = stats.beta.ppf(0.95, 0.65, 58)
    assert tail < 0.04 < stats.beta.ppf(0.95, 1, 58)
    assert stats.binom.pmf(0, 58, 0.04 / 0.9) > 0.05


@pytest.mark.parametrize("margin", [0.01, 0.02, 0.03])
def test_the_queries_needed_are_the_first_number_with_the_power(margin: float) -> None:
    """Both tests pass with .8 from the first n with t(.95) + t(.9) ≤ margin · √n / spread."""
    first, second = scores(200, sd=0.1)
    spread = np.std(first - second, ddof=1)
    wanted = next(
        n
        for n in itertools.count(10)
        if (stats.t.ppf(0.95, n - 1) + stats.t.ppf(0.9, n - 1)) * spread <= margin * math.sqrt(n)
    )
    assert equivalence_test(first, second, margin=margin).n_needed == wanted


def test_equal_columns_pass_only_when_there_are_enough() -> None:
    few, many = (equivalence_test(np.full(n, 0.5), np.full(n, 0.5), margin=0.02) for n in (30, 400))
    assert not few.equivalent
    assert many.equivalent
    assert few.note == InferCode.FEW_DIFFER(changed=0, n=30)
    assert few.difference.lower < 0 < few.difference.upper
    assert few.n_needed is not None
    assert 30 < few.n_needed <= 400
    enough, short = np.full(few.n_needed, 0.5), np.full(few.n_needed - 1, 0.5)
    assert equivalence_test(enough, enough, margin=0.02).equivalent
    assert not equivalence_test(short, short, margin=0.02).equivalent


def test_what_cannot_be_tested_is_refused() -> None:
    good = np.full(30, 0.5)
    with pytest.raises(DataError, match=r"level 0.5 must be below 0.5"):
        equivalence_test(good, good, margin=0.1, level=0.5)
    with pytest.raises(InsufficientDataError, match="at least 20 queries, not 19") as caught:
        equivalence_test(good[:19], good[:19], margin=0.1)
    assert caught.value.n_needed == 20


@pytest.mark.parametrize(("changed", "few"), [(14, True), (15, False)])
def test_fifteen_queries_that_differ_make_a_t_test(changed: int, few: bool) -> None:
    second = np.full(60, 0.5)
    first = second + np.where(np.arange(60) < changed, 0.1, 0.0)
    test = equivalence_test(first, second, margin=0.1)
    assert (test.note == InferCode.FEW_DIFFER(changed=changed, n=60)) == few
    low, high = stats.ttest_rel(first, second).confidence_interval(0.9)
    found = (test.difference.lower, test.difference.upper)
    assert (found == pytest.approx((low, high))) != few
