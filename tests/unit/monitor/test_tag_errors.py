"""Shares corrected for the errors of a detector."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from monitor_streams import HALF, event

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.verified import DetectorQuality
from rag_sourcebias.monitor.follow import replay
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import TagErrors

ERRORS = TagErrors(sensitivity=0.9, specificity=0.8, other="llm:a")


def test_two_groups_are_corrected_as_in_the_formula() -> None:
    errors = ERRORS
    assert errors.youden == pytest.approx(0.7)
    for true in (0.0, 0.3, 1.0):
        observed = 0.9 * true + 0.2 * (1 - true)
        found = errors.correct({"human": 1 - observed, "llm:a": observed})
        assert found == pytest.approx({"human": 1 - true, "llm:a": true}, abs=1e-12)


def test_shares_that_cannot_be_are_cut_and_others_stay() -> None:
    found = ERRORS.correct({"human": 0.75, "llm:a": 0.05, "": 0.2})
    assert found == pytest.approx({"human": 0.8, "llm:a": 0.0, "": 0.2})
    assert ERRORS.correct({"llm:a": 1.0}) == pytest.approx({"human": 0.0, "llm:a": 1.0})


def test_a_labelled_sample_gives_them_unless_it_is_too_small() -> None:
    big = DetectorQuality(n_other=200, n_other_detected=180, n_baseline=200, n_baseline_kept=160)
    assert TagErrors.of_detector(big, other="llm:a") == ERRORS
    small = DetectorQuality(n_other=10, n_other_detected=8, n_baseline=10, n_baseline_kept=7)
    with pytest.raises(DataError, match=r"is 0\.50 ± 0\.\d\d, which reaches below 0\.3"):
        TagErrors.of_detector(small, other="llm:a")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"other": "human"}, "of two sources"),
        ({"other": ""}, "of two sources"),
        ({"baseline": "other"}, "of two sources"),
        ({"sensitivity": 1.5}, "numbers in .0, 1., got 1.5 and 0.8"),
        ({"specificity": float("nan")}, "numbers in .0, 1."),
        ({"sensitivity": 0.4}, r"separates the groups by 0\.20 only"),
    ],
)
def test_useless_and_impossible_ones_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        replace(ERRORS, **changed)


def test_a_monitor_shows_corrected_shares_beside_raw_ones() -> None:
    errors = ERRORS
    rng = np.random.default_rng(2)
    true = rng.random((3_000, 5)) < 0.3
    tagged = np.where(true, rng.random(true.shape) < 0.9, rng.random(true.shape) < 0.2)
    missing = rng.random(true.shape) < 0.1
    names = np.where(missing, "", np.where(tagged, "llm:a", "human"))
    monitor = SkewMonitor(tag_errors=errors)
    replay([event(*(name or None for name in row)) for row in names.tolist()], monitor)
    (snapshot,) = monitor.snapshot()
    raw = {g.group: g.share for g in snapshot.groups if g.measure == "exposure"}
    assert raw["llm:a"] == pytest.approx(0.9 * 0.41, abs=0.02)
    assert snapshot.corrected["llm:a"] == pytest.approx(0.9 * 0.3, abs=0.02)
    assert snapshot.corrected[""] == raw[""]
    assert sum(snapshot.corrected.values()) == pytest.approx(1.0)
    stored = SkewMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert stored.snapshot() == monitor.snapshot()
    assert SkewMonitor(tag_errors=None).snapshot() == ()


def test_groups_that_were_not_told_apart_are_not_corrected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rag_sourcebias.monitor.settings.MOST_GROUPS", 2)
    errors = replace(ERRORS, other="llm:b")
    monitor = SkewMonitor(tag_errors=errors)
    replay([event("human", "x")], monitor)
    assert monitor.snapshot()[0].corrected != {}  # llm:b has not come: its share is 0
    replay([event("llm:b", "x")], monitor)
    assert monitor.snapshot()[0].corrected == {}  # now it is part of "other"
    with pytest.raises(DataError, match=r"groups \['llm:b'\] of tag_errors have no share"):
        SkewMonitor(tag_errors=errors, baseline=HALF)
