"""The rule behind alarms, beside its definition written out; and what it does at its edges."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from rag_sourcebias.core.codec import to_plain
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.cusum import (
    HALF_DAY,
    KEPT,
    LEARN,
    LEARN_VARIANCE,
    Change,
    SlotCusum,
    half_days,
    slots,
)

DAY = 2 * HALF_DAY
MONDAY = 4 * DAY + 6 * 3_600.0  # the fifth of January 1970, when its day begins


def traffic(
    seed: int, days: float, *, moves: dict[float, float] | None = None, level: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Two columns, 100 retrievals a day, noise around a level that moves at the end of days."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.random(int(100 * days))) * days * DAY
    mean = np.full(len(at), level)
    for day, value in (moves or {}).items():
        mean[at >= day * DAY] = value
    return mean[:, None] + rng.normal(0, 0.15, (len(at), 2)), MONDAY + at


def unknown(columns: int = 2, **settings: Any) -> SlotCusum:
    return SlotCusum(np.zeros(columns, bool), **settings)


def literal_alarm(values: np.ndarray, at: np.ndarray) -> tuple[float, float] | None:
    """One column, half-day by half-day: when the first alarm comes, and since when."""
    days: dict[int, list[int]] = {}
    for i, time in enumerate(at.tolist()):
        days.setdefault(math.floor((time - 21_600) / 43_200), []).append(i)
    means = {h: float(np.mean(values[rows])) for h, rows in days.items()}
    slot = {h: ((h // 2 + 3) % 7 >= 5, h % 2) for h in days}
    learnt = sorted(days)[:28]
    usual, counted = {}, {}
    for one in set(slot.values()):
        rows = [i for h in learnt if slot[h] == one for i in days[h]]
        usual[one], counted[one] = float(np.mean(values[rows])), len(rows)
    left = [math.sqrt(len(days[h])) * (means[h] - usual[slot[h]]) for h in learnt]
    variance = sum(x * x for x in left) / (28 - 4)
    rho = sum(x * y for x, y in itertools.pairwise(left)) / sum(x * x for x in left)
    rho = min(max(rho + 1 / 28, 0.0), 0.9)
    variance *= (1 + rho) / (1 - rho)
    up = down = 0.0
    since_up = since_down = -1
    for h in sorted(days)[28:-1]:  # the last is not over
        error = math.sqrt(variance * (1 / len(days[h]) + 1 / counted[slot[h]]))
        z = (means[h] - usual[slot[h]]) / max(error, 0.01)
        z = min(max(z, -5.0), 5.0)
        since_up = h if up == 0 else since_up
        since_down = h if down == 0 else since_down
        up, down = max(up + z - 0.75, 0.0), max(down - z - 0.75, 0.0)
        if max(up, down) >= 7:
            zero = since_up if up >= down else since_down
            after = [x for x in sorted(days)[28:] if zero <= x <= h]
            far = {}
            for start in after:
                total = sum(len(days[x]) for x in after if x >= start)
                left = [len(days[x]) * (means[x] - usual[slot[x]]) for x in after if x >= start]
                far[start] = abs(sum(left)) / math.sqrt(total)
            return at[days[h][-1]], at[days[max(far, key=far.__getitem__)][0]]
    return None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shift", [0.0, -0.03, 0.06])
def test_an_alarm_is_that_of_the_definition(seed: int, shift: float) -> None:
    values, at = traffic(seed, 35, moves={19.0: 0.5 + shift})
    values += 0.1 * (half_days(at)[:, None] % 2)  # nights are other than days
    found = unknown(1).add_many(values[:, :1], at)
    expected = literal_alarm(values[:, 0], at)
    assert ((found[0][1].at, found[0][1].since) if found else None) == expected
    if shift > 0.05:
        assert expected is not None


def test_half_days_and_their_slots() -> None:
    saturday = MONDAY + 5 * DAY
    numbers = half_days(np.array([MONDAY - 1, MONDAY, MONDAY + HALF_DAY, saturday]))
    assert np.diff(numbers).tolist() == [1, 1, 9]
    assert slots(numbers.astype(float)).tolist() == [3, 0, 1, 2]


def test_a_change_is_told_once_and_its_end_too() -> None:
    values, at = traffic(1, 40, moves={20.0: 0.3, 28.0: 0.5})
    cusum = unknown()
    (row, change), (_, end) = cusum.add_many(values, at)
    assert (change.kind, end.kind) == ("shift", "resolved")
    assert abs(change.since - MONDAY - 20 * DAY) <= HALF_DAY
    assert change.at == at[row]
    assert change.at - MONDAY < 22 * DAY
    assert set(change.columns) == {0, 1}
    assert change.before == pytest.approx([0.5, 0.5], abs=0.02)
    assert change.now == pytest.approx([0.3, 0.3], abs=0.04)
    assert abs(end.since - MONDAY - 28 * DAY) <= DAY
    assert not cusum.away.any()
    level = cusum.since_change()
    assert level is not None
    assert level == pytest.approx([0.5, 0.5], abs=0.02)


def test_nothing_is_told_of_the_first_two_weeks_nor_before_enough_came() -> None:
    values, at = traffic(2, 13.9, moves={5.0: 0.1})
    assert unknown().add_many(values, at) == []
    values, at = traffic(2, 20, moves={15.0: 0.1})
    assert len(unknown(learn=1_000).add_many(values, at)) == 1
    assert unknown(learn=1_800).add_many(values, at) == []


@pytest.mark.parametrize(("from_day", "kind"), [(0.0, "level"), (9.0, "shift")])
def test_only_what_was_at_its_known_level_has_moved(from_day: float, kind: str) -> None:
    values, at = traffic(3, 14, moves={from_day: 0.3})
    cusum = SlotCusum(np.ones(2, bool))
    ((_, change),) = cusum.add_many(values - 0.5, at)
    assert change.kind == kind
    assert change.now == pytest.approx([-0.2, -0.2], abs=0.05)
    assert cusum.away.all()


def test_after_a_level_a_change_is_one_from_there() -> None:
    values, at = traffic(4, 30, moves={0.0: 0.3, 20.0: 0.4})
    told = SlotCusum(np.ones(2, bool)).add_many(values - 0.5, at)
    assert [change.kind for _, change in told] == ["level", "shift"]
    assert told[1][1].before == pytest.approx([-0.2, -0.2], abs=0.02)


def test_a_change_that_was_explained_makes_its_level_the_usual_one() -> None:
    values, at = traffic(5, 40, moves={20.0: 0.3, 30.0: 0.5})
    asked: list[Change] = []
    cusum = unknown()

    def explained(change: Change) -> bool:
        asked.append(change)
        return len(asked) == 1

    told = cusum.add_many(values, at, None, explained)
    assert [change.kind for _, change in told] == ["shift", "shift"]
    assert asked[1].before == pytest.approx([0.3, 0.3], abs=0.02)
    assert cusum.away.all()  # from what had become usual


def test_one_half_day_alone_raises_nothing() -> None:
    values, at = traffic(6, 30)
    odd = half_days(at) == half_days(np.array([MONDAY + 20 * DAY]))
    values[odd] = 0.0
    assert unknown().add_many(values, at) == []


def test_a_foremost_column_is_told_first_and_alone() -> None:
    values, at = traffic(7, 30)
    moved = at >= MONDAY + 20 * DAY
    values[moved] += [-0.2, 0.1]
    for foremost, lead in ((None, 0), (1, 1)):
        cusum = unknown()
        cusum.foremost = foremost
        ((_, change),) = cusum.add_many(values, at)
        assert change.columns[0] == lead


def test_a_user_counts_ten_times_in_a_half_day() -> None:
    at = MONDAY + np.arange(100.0)
    values = np.concatenate([np.ones((50, 1)), np.zeros((50, 1))])
    users = ["a"] * 50 + [f"u{i}" for i in range(50)]
    cusum = unknown(1)
    cusum.add_many(values, at, users)
    cusum.add_many(values[:1], at[:1] + DAY)
    assert cusum.rows[0, 0] == 10
    assert cusum.rows[0, -4] == 60


def test_late_ones_count_where_they_come_and_a_clock_set_back_begins_anew() -> None:
    at = MONDAY + np.arange(20) * HALF_DAY / 10
    at[15] -= HALF_DAY
    cusum = unknown(1)
    cusum.add_many(np.ones((20, 1)), at)
    assert len(cusum.rows) == 1
    cusum.add_many(np.ones((30, 1)), MONDAY - 100 * DAY + np.arange(30) * HALF_DAY / 10)
    assert np.diff(cusum.rows[:, -3]).tolist() == [1, -201, 1]
    assert cusum.rows[:, -4].tolist() == [10, 10, 10, 10]


def test_a_half_day_goes_on_until_ten_came() -> None:
    cusum = unknown(1)
    cusum.add_many(np.ones((40, 1)), MONDAY + np.arange(40) * HALF_DAY / 2)
    assert cusum.rows[:, -4].tolist() == [10, 10, 10]


@pytest.mark.parametrize("known", [False, True])
def test_parts_and_restarts_change_nothing(known: bool) -> None:
    values, at = traffic(8, 60, moves={20.0: 0.3, 40.0: 0.45})
    users: list[str | None] = [f"u{i % 40}" if i % 3 else None for i in range(len(at))]
    whole = SlotCusum(np.full(2, known))
    told = whole.add_many(values - 0.5 * known, at, users)
    parts = SlotCusum(np.full(2, known))
    again = []
    for start in range(0, len(at), 37):
        part = slice(start, start + 37)
        again += parts.add_many(values[part] - 0.5 * known, at[part], users[part])
        state = json.loads(json.dumps(to_plain([parts.numbers(), parts.users]), allow_nan=False))
        parts = SlotCusum(np.full(2, known))
        parts.restore(*state)
    assert told
    assert [change.at for _, change in again] == [change.at for _, change in told]
    assert to_plain(parts.numbers()) == to_plain(whole.numbers())
    assert parts.users == whole.users


def test_memory_is_bounded() -> None:
    values, at = traffic(9, 100, moves={70.0: 0.3})
    cusum = unknown()
    (_, change), *_ = cusum.add_many(values, at)
    assert len(cusum.rows) == KEPT
    assert abs(change.since - MONDAY - 70 * DAY) <= HALF_DAY
    assert LEARN_VARIANCE < LEARN < KEPT


def test_a_state_that_does_not_fit_is_refused() -> None:
    data = to_plain(unknown().numbers())
    with pytest.raises(DataError, match="stored 'usual': expected finite numbers of shape"):
        unknown(3).restore(data, {})
    with pytest.raises(DataError, match="stored 'rows'"):
        unknown().restore(data | {"rows": [[1.0]]}, {})
