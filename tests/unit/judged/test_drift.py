from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import (
    CalibrationError,
    DataError,
    InsufficientDataError,
    UnsupportedVersionError,
)
from rag_sourcebias.judged.data import DriftCheck
from rag_sourcebias.judged.judge_audit import (
    build_anchor_set,
    check_drift,
    read_anchor_set,
    require_stable,
    write_anchor_set,
)


def by_id(anchors, values):
    return dict(zip(anchors.ids, values, strict=True))


def items(n=100, seed=0):
    rng = np.random.default_rng(seed)
    human = rng.integers(0, 4, n).astype(float)
    judge = 0.5 * human + rng.normal(1, 0.5, n)
    human[n - 10 :] = np.nan
    judge[0] = np.nan
    return JudgedItems(ids=tuple(f"i{i}" for i in range(n)), human=human, judge=judge)


@pytest.fixture
def anchors():
    return build_anchor_set(items(), settings={"model": "judge-1"})


def test_calibration_is_least_squares_with_mean_error_zero(anchors):
    assert len(anchors.ids) == 89
    slope, intercept = np.polyfit(anchors.judge, anchors.human, 1)
    assert (anchors.slope, anchors.intercept) == pytest.approx((slope, intercept))
    residual = anchors.human - anchors.intercept - anchors.slope * anchors.judge
    assert residual.mean() == pytest.approx(0, abs=1e-12)


def test_an_unchanged_judge_is_stable(anchors):
    check = check_drift(anchors, by_id(anchors, anchors.judge))
    assert check.stable
    assert (check.share_changed, check.shift.estimate, check.n_missing) == (0, 0, 0)
    assert str(check).startswith("89 anchors judged again, 0 without a value, 0% changed")
    require_stable(check)


def test_the_test_is_paired(anchors):
    rng = np.random.default_rng(1)
    new = anchors.judge + rng.normal(0.1, 0.2, 89)
    check = check_drift(anchors, by_id(anchors, new))
    paired = stats.ttest_rel(new, anchors.judge).confidence_interval(0.95)
    assert (check.shift.lower, check.shift.upper) == pytest.approx((paired.low, paired.high))
    assert check.error_shift.estimate == pytest.approx(-anchors.slope * check.shift.estimate)
    assert check.error_now == pytest.approx(check.error_shift.estimate)
    assert not check.stable
    with pytest.raises(CalibrationError) as error:
        require_stable(check)
    text = str(error.value)
    assert text.startswith("the judge has drifted: its mean error after calibration moved by ")
    assert "on 89 anchors, not within 0" in text
    assert "label a new sample and calibrate again" in text


@pytest.mark.parametrize(("margin", "stable"), [(0.01, False), (0.1, False), (0.3, True)])
def test_equivalence_needs_the_whole_interval_within_the_margin(anchors, margin, stable):
    new = anchors.judge + np.random.default_rng(1).normal(0.1, 0.2, 89)
    check = check_drift(anchors, by_id(anchors, new), margin=margin)
    assert check.stable == stable
    if not stable:
        with pytest.raises(CalibrationError, match=f"not within the margin ± {margin:g}"):
            require_stable(check)


def test_false_alarms_and_power(anchors):
    """200 re-judgings with noise .2: 5 % alarms (at most 18 with P .993), nearly all shifts."""
    rng = np.random.default_rng(4)
    quiet = sum(
        not check_drift(anchors, by_id(anchors, anchors.judge + rng.normal(0, 0.2, 89))).stable
        for _ in range(200)
    )
    found = sum(
        not check_drift(anchors, by_id(anchors, anchors.judge + rng.normal(0.1, 0.2, 89))).stable
        for _ in range(200)
    )
    assert quiet <= 18
    assert found >= 190


def test_failures_on_the_anchors_are_counted(anchors):
    some = dict(zip(anchors.ids[:82], anchors.judge[:82], strict=True))
    assert check_drift(anchors, some).stable
    fewer = dict(zip(anchors.ids[:79], anchors.judge[:79], strict=True))
    check = check_drift(anchors, {**fewer, anchors.ids[80]: float("nan")})
    assert check.n_missing == 10
    assert not check.stable
    with pytest.raises(CalibrationError, match="failed on 10 of 89 anchors, more than 10%"):
        require_stable(check)
    with pytest.raises(InsufficientDataError, match="5 of 89 anchors have a new judge value"):
        check_drift(anchors, dict(list(some.items())[:5]))


def test_refusals(anchors):
    with pytest.raises(DataError, match="margin 0 must be above 0"):
        check_drift(anchors, by_id(anchors, anchors.judge), margin=0)
    with pytest.raises(InsufficientDataError, match="4 labelled and judged") as error:
        build_anchor_set(items(15))
    assert error.value.n_needed == 20
    flat = items()
    with pytest.raises(CalibrationError, match="the value 2; a constant judge"):
        build_anchor_set(replace(flat, judge=np.full(100, 2.0)))


def test_files(tmp_path, anchors):
    path = tmp_path / "anchors.json"
    write_anchor_set(anchors, path)
    again = read_anchor_set(path)
    assert again.to_dict() == anchors.to_dict()
    assert again.settings == {"model": "judge-1"}
    assert check_drift(again, by_id(anchors, anchors.judge)).stable
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**data, "schema_version": 99}), encoding="utf-8")
    with pytest.raises(UnsupportedVersionError, match="schema version 99; this release reads"):
        read_anchor_set(path)
    for text, message in [
        ("{}", "is no set of anchors"),
        ("not json", "is not the JSON of a set of anchors"),
        (json.dumps({**data, "human": [1]}), "is not a complete set of anchors: human values"),
        (json.dumps({k: v for k, v in data.items() if k != "human"}), "required field 'human'"),
        (json.dumps({**data, "ids": ["x"] * 89}), "an anchor id occurs twice"),
    ]:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            read_anchor_set(path)
    check = check_drift(anchors, by_id(anchors, anchors.judge + 0.1))
    assert DriftCheck.from_dict(json.loads(json.dumps(check.to_dict()))) == check
