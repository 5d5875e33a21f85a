"""Shares corrected for the errors of a detector."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from monitor_streams import HALF, event

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.verified import DetectorQuality
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import TagErrors

THREE = TagErrors(
    ("human", "llm:a", "llm:b"), ((0.9, 0.05, 0.05), (0.1, 0.7, 0.2), (0.1, 0.3, 0.6))
)


def test_two_groups_are_corrected_as_in_the_formula() -> None:
    errors = TagErrors.of_rates(sensitivity=0.9, specificity=0.8, baseline="human", other="llm:a")
    assert errors.separation == pytest.approx(0.7)
    for true in (0.0, 0.3, 1.0):
        observed = 0.9 * true + 0.2 * (1 - true)
        found = errors.correct({"human": 1 - observed, "llm:a": observed})
        assert found == pytest.approx({"human": 1 - true, "llm:a": true}, abs=1e-12)


def test_more_groups_are_corrected_by_the_inverse() -> None:
    true = np.array([0.5, 0.2, 0.3])
    observed = true @ np.array(THREE.confusion)
    shares = dict(zip(THREE.groups, (0.8 * observed).tolist(), strict=True)) | {"": 0.2}
    found = THREE.correct(shares)
    assert [found[g] for g in THREE.groups] == pytest.approx((0.8 * true).tolist())
    assert found[""] == 0.2  # untagged documents stay what they are
    # the separation is how far two groups stay apart at worst
    rng, ratios = np.random.default_rng(1), []
    for _ in range(300):
        apart = rng.dirichlet(np.ones(3)) - rng.dirichlet(np.ones(3))
        ratios.append(np.abs(apart @ np.array(THREE.confusion)).sum() / np.abs(apart).sum())
    assert THREE.separation <= min(ratios) < THREE.separation + 0.05


def test_a_labelled_sample_gives_them_unless_it_is_too_small() -> None:
    made: dict[str, Any] = {"baseline": "human", "other": "llm:a"}
    big = DetectorQuality(n_other=200, n_other_detected=180, n_baseline=200, n_baseline_kept=160)
    assert TagErrors.of_detector(big, **made) == TagErrors(
        ("human", "llm:a"), ((0.8, 1 - 0.8), (1 - 0.9, 0.9))
    )
    small = DetectorQuality(n_other=10, n_other_detected=8, n_baseline=10, n_baseline_kept=7)
    with pytest.raises(DataError, match=r"is 0\.50 ± 0\.\d\d, which reaches below 0\.3"):
        TagErrors.of_detector(small, **made)


@pytest.mark.parametrize(
    ("groups", "confusion", "message"),
    [
        (("a",), ((1.0,),), "two or more different groups"),
        (("a", "a"), ((1, 0), (0, 1)), "two or more different groups"),
        (("a", ""), ((1, 0), (0, 1)), "not of '' or 'other'"),
        (("a", "b"), ((1, 0),), "needs 2 rows of 2 numbers"),
        (("a", "b"), ((1, 0.5), (0, 1)), r"documents of 'a' are tagged \[1, 0\.5\]"),
        (("a", "b"), ((float("nan"), 1), (0, 1)), "which is no distribution"),
        (("a", "b"), ((0.6, 0.4), (0.4, 0.6)), r"separates the groups by 0\.20 only"),
        (("a", "b"), ((0.5, 0.5), (0.5, 0.5)), r"separates the groups by 0\.00 only"),
    ],
)
def test_useless_and_impossible_ones_are_refused(groups: Any, confusion: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TagErrors(groups, confusion)


def test_a_monitor_shows_corrected_shares_beside_raw_ones() -> None:
    errors = TagErrors.of_rates(sensitivity=0.9, specificity=0.8, baseline="human", other="llm:a")
    rng = np.random.default_rng(2)
    true = rng.random((3_000, 5)) < 0.3
    tagged = np.where(true, rng.random(true.shape) < 0.9, rng.random(true.shape) < 0.2)
    missing = rng.random(true.shape) < 0.1
    names = np.where(missing, "", np.where(tagged, "llm:a", "human"))
    monitor = SkewMonitor(tag_errors=errors)
    monitor.observe_many(event(*(name or None for name in row)) for row in names.tolist())
    (snapshot,) = monitor.snapshot()
    raw = {g.group: g.share for g in snapshot.groups if g.measure == "exposure"}
    assert raw["llm:a"] == pytest.approx(0.9 * 0.41, abs=0.02)
    assert snapshot.corrected["llm:a"] == pytest.approx(0.9 * 0.3, abs=0.02)
    assert snapshot.corrected[""] == raw[""]
    assert sum(snapshot.corrected.values()) == pytest.approx(1.0)
    stored = SkewMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert stored.snapshot() == monitor.snapshot()
    assert SkewMonitor(tag_errors=None).snapshot() == ()


def test_groups_that_were_not_told_apart_are_not_corrected() -> None:
    errors = TagErrors.of_rates(sensitivity=0.9, specificity=0.8, baseline="human", other="llm:b")
    monitor = SkewMonitor(tag_errors=errors, max_groups=2)
    monitor.observe_many([event("human", "x")])
    assert monitor.snapshot()[0].corrected != {}  # llm:b has not come: its share is 0
    monitor.observe_many([event("llm:b", "x")])
    assert monitor.snapshot()[0].corrected == {}  # now it is part of "other"
    with pytest.raises(DataError, match=r"groups \['llm:b'\] of tag_errors are not told apart"):
        SkewMonitor(tag_errors=errors, baseline=HALF)
    with pytest.raises(DataError, match="measures must have 'exposure'"):
        SkewMonitor(tag_errors=errors, measures=("first",))
