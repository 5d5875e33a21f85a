from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import skew

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.judged import mean_interval
from rag_sourcebias.infer.means import normal_quantile, t_quantile
from rag_sourcebias.infer.samples import residual_share
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
    n = plan.n_labels
    slope, level = np.polyfit(f, y, 1)
    e = y - level - slope * f
    # unbiased kurtosis, by its definition
    kurtosis = 100 * (e**4).sum() / (e**2).sum() ** 2 - 3
    kurtosis = 99 / (98 * 97) * (101 * kurtosis + 6)
    kurtosis = max(kurtosis, 1.5 * skew(e, bias=False) ** 2)  # a gamma distribution's
    first = mean_interval(y, f, np.resize(f, 4900)).half_width

    def half(k):
        spread = (2 + kurtosis) * (k - 100) / (k * 98)
        more = math.exp(t_quantile(0.8, 98) * math.sqrt(spread) + spread / 2)
        missed = (1 - r * r) * 99 / 98 * more / (1 - 2 / k)
        return t_quantile(0.975, k - 2) * math.sqrt(missed / k + r * r / 5000)

    def as_long_as_the_pilots(k):
        return half(k) * math.sqrt(1 + ((first / half(100)) ** 2 - 1) * 100 / k)

    if n > 100:
        assert as_long_as_the_pilots(n) <= 0.1 < as_long_as_the_pilots(n - 1)
    else:
        assert as_long_as_the_pilots(100) <= 0.1
    assert first == pytest.approx(half(100), rel=0.03)  # leverages differ from item to item
    assert half(100) != first
    assert f"judge r = {r:.2f}" in str(plan)
    assert 1 - n / plan.n_alone == pytest.approx(r * r, abs=0.12)


def test_a_useless_judge_saves_nothing_and_the_line_says_so():
    y, _ = pilot(0.0)
    plan = plan_item_labels(y, np.ones(100), 1000, half_width=0.2)
    assert "judge r = 0.00" in str(plan)
    assert plan.n_labels >= plan.n_alone
    assert "no labels saved" in str(plan) or "more labels than without" in str(plan)
    assert "reached in about 80% of draws like this" in str(plan)
    assert "\n" not in str(plan)
    weak = plan_item_labels(*pilot(0.2), 1000, half_width=0.15)
    assert 1 - weak.n_labels / weak.n_alone < 0.1


def test_a_judge_that_followed_people_so_far_may_not_go_on():
    y = np.repeat([0.0, 1.0], [4, 11])
    plan = plan_item_labels(y, y, 5000, half_width=0.05)
    assert plan.n_labels > 15
    left, error = residual_share(y, y)
    assert left == pytest.approx(0.5 / (4 * 11 / 15))
    assert error > 1


def test_the_lower_bound_of_what_a_judge_explains_holds():
    """With normal values Fisher's z is right and close by; with rare labels only ours holds."""
    rng = np.random.default_rng(3)
    ours = fisher = 0
    for _ in range(1000):
        y = (rng.random(60) < 0.9).astype(float)
        f = np.where(rng.random(60) < 0.85, y, 1 - y)
        if np.ptp(y) == 0 or np.ptp(f) == 0:
            continue
        left, error = residual_share(y, f)
        r = abs(np.corrcoef(y, f)[0, 1])
        low = math.tanh(max(math.atanh(min(r, 0.999)) - normal_quantile(0.8) / math.sqrt(57), 0))
        true = 1 - 0.9 * 0.1 * (0.85 + 0.85 - 1) ** 2 / (0.78 * 0.22)
        ours += left * math.exp(normal_quantile(0.8) * error) >= true
        fisher += 1 - low * low >= true
    assert ours >= 750
    assert fisher < ours
    y, f = pilot(0.6, n=400, seed=1)
    assert residual_share(y, f)[1] == pytest.approx(2 * 0.6 / 20, rel=0.2)


def test_a_promise_is_kept_in_about_80_percent_of_draws():
    rng = np.random.default_rng(5)
    kept = short = 0
    for _ in range(250):
        y = rng.normal(size=1200)
        f = y + rng.normal(size=1200)
        plan = plan_item_labels(y[:30], f[:30], 1170, half_width=0.17)
        n = plan.n_labels
        kept += mean_interval(y[:n], f[:n], f[n:]).half_width <= 0.17
        n = round(n / 1.3)  # labels on average enough, without the pilot's uncertainty
        short += n > 30 and mean_interval(y[:n], f[:n], f[n:]).half_width <= 0.17
    assert 175 <= kept <= 230  # .75 and .90, less what chance does to 250 draws
    assert short < 150


def test_refusals():
    y, f = pilot(0.5)
    with pytest.raises(InsufficientDataError, match="labelling all 150 items") as caught:
        plan_item_labels(y, f, 50, half_width=0.1)
    assert caught.value.n_needed > 300
    with pytest.raises(InsufficientDataError, match="pilot of 9 pairs"):
        plan_item_labels(y[:9], f[:9], 50, half_width=0.1)
    with pytest.raises(InsufficientDataError, match="all 100 human values of the pilot are 1"):
        plan_item_labels(np.ones(100), f, 50, half_width=0.1)
    with pytest.raises(DataError, match="100 human values and 99 judge values"):
        plan_item_labels(y, f[:-1], 50, half_width=0.1)
    with pytest.raises(DataError, match=r"yhat: 1 value.*not finite.* at position 3"):
        plan_item_labels(y, np.where(np.arange(100) == 3, np.nan, f), 50, half_width=0.1)
    with pytest.raises(DataError, match="half_width 0 must be"):
        plan_item_labels(y, f, 50, half_width=0)
