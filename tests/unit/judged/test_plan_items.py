from __future__ import annotations

import math

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.values import t_quantile
from rag_sourcebias.judged.plan import plan_item_labels


def pilot(r, n=100, seed=0):
    """Pairs whose sample correlation is exactly r, y with variance 1."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n)
    f = (f - f.mean()) / f.std(ddof=1)
    e = rng.normal(size=n)
    e -= e.mean() + (e @ f) / (f @ f) * f
    y = r * f + math.sqrt(1 - r * r) * e / e.std(ddof=1)
    return y, 3 * f + 1


@pytest.mark.parametrize("r", [0.3, -0.6, 0.9])
def test_numbers_follow_the_formulas(r):
    y, f = pilot(r)
    plan = plan_item_labels(y, f, 4900, half_width=0.1)
    n = plan.n_judge

    def half(k):
        missed = (1 - r * r) * 99 / 98
        return t_quantile(0.975, k - 2) * math.sqrt(missed / k + r * r / 5000)

    assert half(n) <= 0.1 < half(n - 1)
    alone = plan.n_alone
    assert t_quantile(0.975, alone - 1) / math.sqrt(alone) <= 0.1
    assert t_quantile(0.975, alone - 2) / math.sqrt(alone - 1) > 0.1
    assert plan.correlation == pytest.approx(r)
    assert plan.saved == pytest.approx(1 - n / alone)
    assert plan.saved_low <= plan.saved <= plan.saved_high
    assert plan.saved == pytest.approx(r * r, abs=0.08)


def test_the_pool_is_soon_exhausted():
    y, f = pilot(0.5)
    open_ended = plan_item_labels(y, f, 200, half_width=0.15)
    pool = plan_item_labels(y, f, 200, half_width=0.15, target="pool")
    assert pool.n_judge < open_ended.n_judge
    assert pool.n_alone < open_ended.n_alone
    assert pool.n_alone <= 300


def test_a_useless_judge_saves_nothing_and_the_line_says_so():
    y, _ = pilot(0.0)
    plan = plan_item_labels(y, np.ones(100), 1000, half_width=0.2)
    assert plan.correlation == 0
    assert plan.n_judge >= plan.n_alone
    assert "no labels saved" in str(plan) or "more labels than without" in str(plan)
    assert "\n" not in str(plan)
    weak = plan_item_labels(*pilot(0.2), 1000, half_width=0.2)
    assert 0 <= weak.saved < 0.1


def test_few_labels_can_cost_more_with_the_judge():
    y, f = pilot(0.01, n=10)
    plan = plan_item_labels(y, f, 1000, half_width=1.0)
    assert plan.saved < 0
    assert "more labels than without a judge" in str(plan)


def test_a_perfect_judge_needs_the_fewest():
    y, _ = pilot(0.5)
    plan = plan_item_labels(y, y, 5000, half_width=0.1)
    assert plan.n_judge <= 5
    assert plan.saved > 0.9


def test_refusals():
    y, f = pilot(0.5)
    with pytest.raises(InsufficientDataError, match="labelling all 150 items") as caught:
        plan_item_labels(y, f, 50, half_width=0.1)
    assert caught.value.n_needed > 300
    with pytest.raises(InsufficientDataError, match="pilot of 9 pairs"):
        plan_item_labels(y[:9], f[:9], 50, half_width=0.1)
    with pytest.raises(InsufficientDataError, match="all 100 human values of the pilot are 1"):
        plan_item_labels(np.ones(100), f, 50, half_width=0.1)
    with pytest.raises(DataError, match="expect pairs"):
        plan_item_labels(y, f[:-1], 50, half_width=0.1)
    with pytest.raises(DataError, match=r"1 pilot pair.* first at position 3"):
        plan_item_labels(y, np.where(np.arange(100) == 3, np.nan, f), 50, half_width=0.1)
    with pytest.raises(DataError, match="half_width 0 must be"):
        plan_item_labels(y, f, 50, half_width=0)
    with pytest.raises(DataError, match="n_unlabeled -1 is negative"):
        plan_item_labels(y, f, -1, half_width=0.1)
