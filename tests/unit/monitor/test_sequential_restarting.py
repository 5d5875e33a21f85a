"""Change detection that learns the new level after an alarm."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.stats.sequential import (
    ChangeDetector,
    NullRange,
    RestartingDetector,
    window_interval,
)


def binary(seed, *parts):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.random(n) < share for n, share in parts]).astype(float)[:, None]


def test_up_to_the_first_alarm_it_is_an_e_cusum():
    x = binary(1, (300, 0.5), (400, 0.8))
    plain = ChangeDetector(0.5, run_length=1_000 / 0.99, method="cusum")
    path = plain.update_many(x, stop=True)[:, 0]
    first, *_ = RestartingDetector(0.5, run_length=1_000, window=50).update_many(x)
    assert (first.row, first.group, first.level) == (len(path) - 1, 0, None)
    assert first.statistic == path[-1] >= 1_000 / 0.99 > path[:-1].max()
    assert 300 < len(path) < 400


def test_afterwards_it_is_one_against_the_interval_of_the_window():
    x = binary(2, (100, 0.2), (2_000, 0.9), (2_000, 0.3))
    detector = RestartingDetector(0.2, run_length=500, window=60, window_error=0.02)
    one, two = detector.update_many(x)
    window = x[one.row + 1 : one.row + 61, 0]
    low, high = window_interval(window, 0.98, points=401)
    again = ChangeDetector(NullRange(low, high), run_length=500 / 0.98, method="cusum")
    path = again.update_many(x[one.row + 61 :], stop=True)
    assert two.level == window.mean()
    assert two.row == one.row + 61 + len(path) - 1
    assert two.statistic == path[-1, 0]
    assert 2_100 < two.row < 2_200


def test_a_lasting_shift_is_one_alarm_and_going_back_another():
    x = binary(3, (1_000, 0.5), (4_000, 0.65), (4_000, 0.5))
    restarting = RestartingDetector(0.5, run_length=10_000)
    rows = [change.row for change in restarting.update_many(x)]
    assert len(rows) == 2
    assert 1_000 < rows[0] < 1_500
    assert 5_000 < rows[1] < 6_000
    assert restarting.n_alarms.tolist() == [2]
    fixed = ChangeDetector(0.5, run_length=10_000)
    fixed.update_many(x)
    assert fixed.n_alarms[0] > 20


def test_differences_from_baselines_of_their_own_may_have_a_new_level():
    rng = np.random.default_rng(4)
    pool = rng.choice([0.3, 0.5, 0.7], (6_000, 1))  # moves all the time, which is no change
    shift = np.repeat([0.0, 0.25, 0.0], 2_000)[:, None]
    x = (rng.random(pool.shape) < pool + shift).astype(float)
    found = RestartingDetector(run_length=10_000).update_many(x, null=pool)
    assert len(found) == 2
    assert 2_000 < found[0].row < 2_300 < 4_000 < found[1].row < 4_400
    assert found[1].level == pytest.approx(0.75, abs=0.07)  # of x itself


def test_groups_do_not_disturb_each_other():
    one, two = binary(5, (500, 0.5), (1_500, 0.8)), binary(6, (900, 0.3), (1_100, 0.6))
    together = RestartingDetector([0.5, 0.3], groups=2, run_length=300, window=100)
    found = together.update_many(np.hstack([one, two]))
    for group, x in enumerate((one, two)):
        alone = RestartingDetector([0.5, 0.3][group], run_length=300, window=100)
        # later ones differ: groups share the error of windows
        first = next(change.row for change in found if change.group == group)
        assert first == alone.update_many(x)[0].row


@pytest.mark.parametrize("own", [False, True])
def test_parts_and_restarts_change_nothing(own):
    rng = np.random.default_rng(7)
    x = np.hstack([binary(8, (60, 0.5), (300, 0.98), (300, 0.02)), binary(9, (660, 0.5))])
    pool = rng.choice([0.4, 0.6], x.shape) if own else None
    settings = {"groups": 2, "run_length": 5, "window": 30, "window_error": 0.3}
    null = None if own else [0.5, 0.5]
    whole = RestartingDetector(null, **settings)
    expected = whole.update_many(x, null=pool)
    assert sum(change.level is not None for change in expected) >= 2
    parts, found, start = RestartingDetector(null, **settings), [], 0
    while start < len(x):
        stop = start + int(rng.integers(1, 12))
        rows = None if pool is None else pool[start:stop]
        new = parts.update_many(x[start:stop], null=rows)
        found += [change._replace(row=start + change.row) for change in new]
        stored = json.loads(json.dumps(parts.to_dict(), allow_nan=False))
        parts, start = RestartingDetector.from_dict(stored), stop
    assert found == expected
    assert parts.to_dict() == whole.to_dict()


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="2 to 100000 observations, got 1"):
        RestartingDetector(window=1)
    with pytest.raises(DataError, match=r"window_error 1\.0 is outside"):
        RestartingDetector(window_error=1.0)
    with pytest.raises(DataError, match="if, and only if, there is no other"):
        RestartingDetector().update_many([[0.5]])
    with pytest.raises(DataError, match="if, and only if, there is no other"):
        RestartingDetector(0.5).update_many([[0.5]], null=[[0.5]])
    detector = RestartingDetector(0.5, run_length=2, window=10)
    detector.update_many(np.ones((9, 1)))
    data = detector.to_dict()
    ((group, taken),) = data["state"]["windows"]
    assert (group, 0 < len(taken) < 10) == (0, True)
    for windows in ([[3, []]], [[0, taken * 20]], [[0, [2.0]]], [[0, ["a"]]], [[0, 7]], None):
        with pytest.raises(DataError, match=r"stored window|must be in \[0, 1\]"):
            RestartingDetector.from_dict(data | {"state": data["state"] | {"windows": windows}})
    other = ChangeDetector(groups=2, method="cusum").to_dict()
    with pytest.raises(DataError, match="stored detector does not fit"):
        RestartingDetector.from_dict(data | {"state": data["state"] | {"detector": other}})
