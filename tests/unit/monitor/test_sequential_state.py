"""Single and batch updates, restarts, alarms and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.stats.sequential import BettingInterval, BettingTest, ChangeDetector, NullRange

GROUPS = 3
KINDS = {
    "betting": lambda: BettingTest([0.2, 0.3, 0.5], groups=3),
    "betting, less": lambda: BettingTest(NullRange(0.2, 0.4), groups=3, side="less"),
    "change, sr": lambda: ChangeDetector([0.2, 0.3, 0.5], groups=3, run_length=40),
    "change, cusum": lambda: ChangeDetector(
        [0.2, 0.3, 0.5], groups=3, run_length=40, method="cusum", joint=True
    ),
}


@pytest.fixture
def rows():
    return np.random.default_rng(5).dirichlet([3, 2, 1], 300)


def state_of(test):
    return test.to_dict()["state"]


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_batches_equal_single_updates_bit_for_bit(make, rows):
    one, many, uneven = make(), make(), make()
    single = []
    for row in rows:
        one.update(row)
        single.append(getattr(one, "log_e", None))
    path = many.update_many(rows)
    parts = [uneven.update_many(rows[i:j]) for i, j in ((0, 1), (1, 1), (1, 88), (88, 300))]
    assert state_of(one) == state_of(many) == state_of(uneven)
    assert np.array_equal(np.concatenate(parts), path)
    if single[0] is not None:
        assert np.array_equal(single, path)


def test_large_batches_are_cut_without_a_trace(monkeypatch, rows):
    whole, cut = KINDS["betting"](), KINDS["betting"]()
    whole.update_many(rows)
    monkeypatch.setattr("rag_sourcebias.stats.sequential._CHUNK", 200)
    cut.update_many(rows)
    assert state_of(whole) == state_of(cut)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_a_restart_goes_on(make, rows):
    straight, first = make(), make()
    straight.update_many(rows)
    first.update_many(rows[:111])
    second = type(first).from_dict(json.loads(json.dumps(first.to_dict(), allow_nan=False)))
    assert second.to_dict() == first.to_dict()
    second.update_many(rows[111:])
    assert second.to_dict() == straight.to_dict()


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_state_does_not_grow(make, rows):
    test = make()
    test.update_many(rows)
    size = np.size(np.concatenate([np.ravel(v) for v in state_of(test).values()]))
    test.update_many(np.tile(rows, (10, 1)))
    assert np.size(np.concatenate([np.ravel(v) for v in state_of(test).values()])) == size


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_bad_states_are_refused(make, rows):
    test = make()
    test.update_many(rows[:5])
    good = test.to_dict()
    cls = type(test)
    with pytest.raises(DataError, match="expected the state of kind"):
        cls.from_dict({**good, "kind": "other"})
    with pytest.raises(DataError, match="expected the state of kind"):
        cls.from_dict([])
    with pytest.raises(UnsupportedVersionError, match="state version 99 cannot be read"):
        cls.from_dict({**good, "version": 99})
    with pytest.raises(DataError, match="needs 'settings' and 'state'"):
        cls.from_dict({**good, "state": None})
    with pytest.raises(DataError, match="stored settings"):
        cls.from_dict({**good, "settings": {**good["settings"], "colour": 1}})
    for name in good["state"]:
        for bad in (None, "many", [[1.0]], float("nan")):
            with pytest.raises(DataError, match=f"stored '{name}'"):
                cls.from_dict({**good, "state": {**good["state"], name: bad}})


def test_the_first_alarm_stays_and_the_peak_is_kept():
    test = BettingTest(0.5, groups=2)
    rows = np.ones((40, 2))
    rows[:, 1] = np.arange(40) % 2
    log_e = test.update_many(rows)
    first = int(np.argmax(log_e[:, 0] >= np.log(20))) + 1
    assert test.alarm_at.tolist() == [first, 0]
    assert test.alarms.tolist() == [True, False]
    test.update_many(1 - rows)
    assert test.alarm_at.tolist() == [first, 0]
    assert test.log_e[0] < test.peak[0] == pytest.approx(log_e[:, 0].max())
    test.reset()
    assert (test.n, test.alarms.any(), test.peak.max()) == (0, False, 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.2, 1.2, 0.1]], r"observation 0 of group 1 is 1\.2; it must be in \[0, 1\]"),
        ([[0.2, 0.3, 0.1], [0.1, np.nan, 0]], "observation 1 of group 1 is nan"),
        ([0.2, 0.3, 0.1], r"expected observations of shape \(n, 3\), found \(3,\)"),
        ([[0.2, 0.3]], r"expected observations of shape \(n, 3\), found \(1, 2\)"),
    ],
)
@pytest.mark.parametrize("name", ["betting", "change, sr"])
def test_bad_observations_change_nothing(name, values, message):
    test = KINDS[name]()
    before = test.to_dict()
    with pytest.raises(DataError, match=message):
        test.update_many(values)
    assert test.to_dict() == before


def test_other_bad_observations():
    for test in (BettingTest(), ChangeDetector()):
        with pytest.raises(DataError, match="has no baseline: pass null="):
            test.update(0.5)
        with pytest.raises(DataError, match=r"must lie in \[0, 1\], found -0\.1"):
            test.update(0.5, null=-0.1)
    with pytest.raises(DataError, match=r"baselines of shape \(3,\) do not fit"):
        BettingTest().update_many([0.1, 0.2], null=[0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NullRange(0.3, 0.2), "lower ≤ upper"),
        (lambda: BettingTest(1.5), r"must lie in \[0, 1\], found 1\.5"),
        (lambda: BettingTest(np.nan), r"must lie in \[0, 1\], found nan"),
        (lambda: BettingTest(side="up"), "side 'up' is none of two-sided, greater, less"),
        (lambda: BettingTest(confidence_level=1), "confidence_level 1 is outside"),
        (lambda: BettingTest(groups=0), "groups must be at least 1, got 0"),
        (lambda: BettingTest([0.1, 0.2]), r"baselines of shape \(2,\) do not fit"),
        (lambda: ChangeDetector(method="max"), "method 'max' is neither 'sr' nor 'cusum'"),
        (lambda: ChangeDetector(run_length=1), "run_length above 1, got 1 and 1"),
        (lambda: BettingInterval(points=2), "points must be at least 3, got 2"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()
