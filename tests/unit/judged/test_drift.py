from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import CalibrationError, DataError, InsufficientDataError
from rag_sourcebias.judged.data import DriftCheck
from rag_sourcebias.judged.judge_audit import check_drift


def items(n=100, seed=0):
    """Items of which the last ten have no label, and the judge failed on the first."""
    rng = np.random.default_rng(seed)
    human = rng.integers(0, 4, n).astype(float)
    judge = 0.5 * human + rng.normal(1, 0.5, n)
    human[n - 10 :] = np.nan
    judge[0] = np.nan
    return JudgedItems(ids=tuple(f"i{i}" for i in range(n)), human=human, judge=judge)


BEFORE = items()
ROWS = np.flatnonzero(BEFORE.labeled & BEFORE.judged)


def again(values, rows=ROWS) -> JudgedItems:
    """The items judged again, without labels and in another order."""
    return JudgedItems(
        ids=tuple(BEFORE.ids[i] for i in rows[::-1]),
        human=np.full(len(rows), np.nan),
        judge=np.asarray(values)[::-1],
    )


def moved(mean, seed=1):
    """Judge values of the labelled items that moved by a mean."""
    return BEFORE.judge[ROWS] + np.random.default_rng(seed).normal(mean, 0.2, len(ROWS))


def test_an_unchanged_judge_is_stable():
    check = check_drift(BEFORE, BEFORE)
    assert check.stable
    assert (check.share_changed, check.shift.estimate, check.n_missing) == (0, 0, 0)
    assert str(check).startswith("89 items judged again, 0 without a value, 0% changed")
    assert str(check).endswith("stable: the calibration still holds")


def test_the_test_is_paired():
    old, new = BEFORE.judge[ROWS], moved(0.1)
    check = check_drift(BEFORE, again(new))
    paired = stats.ttest_rel(new, old).confidence_interval(0.95)
    assert (check.shift.lower, check.shift.upper) == pytest.approx((paired.low, paired.high))
    slope, _ = np.polyfit(old, BEFORE.human[ROWS], 1)
    assert check.error_shift.estimate == pytest.approx(-slope * check.shift.estimate)
    assert not check.stable
    assert check.verdict.startswith(
        "the judge has drifted: its mean error after calibration moved by "
    )
    assert "on 89 items, not within 0" in check.verdict
    assert "label a new sample and calibrate again" in check.verdict


@pytest.mark.parametrize(("margin", "stable"), [(0.01, False), (0.1, False), (0.3, True)])
def test_equivalence_needs_the_whole_interval_within_the_margin(margin, stable):
    check = check_drift(BEFORE, again(moved(0.1)), margin=margin)
    assert check.stable == stable
    assert (f"not within the margin ± {margin:g}" in check.verdict) != stable


def test_false_alarms_and_power():
    """200 re-judgings with noise .2: 5 % alarms (at most 18 with P .993), nearly all shifts."""
    rng = np.random.default_rng(4)
    old = BEFORE.judge[ROWS]
    quiet = sum(
        not check_drift(BEFORE, again(old + rng.normal(0, 0.2, 89))).stable for _ in range(200)
    )
    found = sum(
        not check_drift(BEFORE, again(old + rng.normal(0.1, 0.2, 89))).stable for _ in range(200)
    )
    assert quiet <= 18
    assert found >= 190


def test_failures_are_counted():
    old = BEFORE.judge[ROWS]
    assert check_drift(BEFORE, again(old[:82], ROWS[:82])).stable
    check = check_drift(BEFORE, again([*old[:79], np.nan], ROWS[:80]))
    assert check.n_missing == 10
    assert not check.stable
    assert "failed on 10 of 89 items, more than 10%" in check.verdict
    with pytest.raises(InsufficientDataError, match="5 of 89 labelled and judged") as error:
        check_drift(BEFORE, again(old[:5], ROWS[:5]))
    assert error.value.n_needed == 20


def test_refusals():
    with pytest.raises(DataError, match="margin 0 must be above 0"):
        check_drift(BEFORE, BEFORE, margin=0)
    few = items(15)
    with pytest.raises(InsufficientDataError, match="4 of 4 labelled and judged"):
        check_drift(few, few)
    with pytest.raises(CalibrationError, match="the value 2; a constant judge"):
        check_drift(replace(BEFORE, judge=np.full(100, 2.0)), BEFORE)


def test_json():
    check = check_drift(BEFORE, again(moved(0.1)))
    assert DriftCheck.from_dict(json.loads(json.dumps(check.to_dict()))) == check
