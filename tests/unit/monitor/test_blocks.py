"""Evidence from blocks: against a literal Bayes factor, restarts, shifts told once, their parts."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.blocks import DAY, BlockTest, Shift, split_shift, step_evidence


def literal_log_factor(y: np.ndarray, z: np.ndarray, step: np.ndarray, g: float) -> float:
    """Ratio of densities with σ and γ integrated out, by generalised least squares."""
    n, k = z.shape
    found = []
    for covariance in (np.eye(n), np.eye(n) + g * np.outer(step, step)):
        inverse = np.linalg.inv(covariance)
        gram = z.T @ inverse @ z
        beta = np.linalg.solve(gram, z.T @ inverse @ y)
        left = y - z @ beta
        logs = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(gram)[1]
        found.append(-0.5 * logs - (n - k) / 2 * np.log(left @ inverse @ left))
    return float(found[1] - found[0])


def test_evidence_is_that_of_the_literal_bayes_factor() -> None:
    rng = np.random.default_rng(3)
    n = 30
    y = rng.normal(0.5, 0.3, n) + 0.4 * (np.arange(n) >= 22)
    z = np.stack([np.ones(n), np.sin(np.arange(n))], axis=1)
    fit = step_evidence(y[:, None] * 100, z, np.ones(n), first=5, prior=1 / 200)
    assert fit.rho[0] < 0  # which inflates nothing
    for j in (5, 15, 22):
        step = (np.arange(n) >= j).astype(float)
        logs = [literal_log_factor(y, z, step, g) for g in (0.5, 5.0, 50.0)]
        assert fit.each[j - 5, 0] == pytest.approx(np.log(np.mean(np.exp(logs))), abs=1e-3)


def traffic(seed: int, moves: dict[int, float], n: int = 5_000) -> tuple[np.ndarray, np.ndarray]:
    """Two columns, noise around .5 with shifts from given rows on, over two weeks."""
    rng = np.random.default_rng(seed)
    level = np.full(n, 0.5)
    for row, value in moves.items():
        level[row:] = value
    values = np.clip(level[:, None] + rng.normal(0, 0.15, (n, 2)), 0, 1)
    return values, np.sort(rng.random(n)) * 14 * DAY


def test_a_shift_is_told_once_and_its_end_too() -> None:
    values, at = traffic(2, {2_700: 0.3, 4_000: 0.5})
    test = BlockTest(2)
    (first, shift), (second, end) = test.add_many(values, at)
    assert (shift.kind, end.kind) == ("page", "resolved")
    assert 2_700 <= first < 2_850
    assert 4_000 <= second < 4_400
    assert shift.base.mean[0] == pytest.approx(0.5, abs=0.02)
    assert not shift.level.lower[0] <= shift.base.mean[0] <= shift.level.upper[0]
    assert shift.since == pytest.approx(at[2_700], abs=0.15 * DAY)
    assert test.away is None
    levels = test.levels()
    assert levels is not None
    assert levels[1].lower[0] <= 0.5 <= levels[1].upper[0]
    assert not levels[1].lower[0] <= values[:, 0].mean() <= levels[1].upper[0]
    assert test.n_level == pytest.approx(3_700, abs=150)  # without those of the shift
    test.scale = 5  # as where autocorrelation has grown: too few to tell levels apart
    test._kept = None
    assert test._levels(None, test.scale) is None
    assert test.levels()[1].mean[0] == pytest.approx(0.5, abs=0.02)
    quiet, at = traffic(3, {})
    still = BlockTest(2)
    assert still.add_many(quiet, at) == []
    assert still.n_level is None


@pytest.mark.parametrize("known", [False, True])
def test_levels_without_a_shift_have_intervals(known: bool) -> None:
    values, at = traffic(10, {})
    test = BlockTest(2, known=known)
    assert test.levels() is None
    assert test.add_many(values - 0.5 if known else values, at) == []
    levels = test.levels()
    assert levels is not None
    wide = (levels[1].upper - levels[1].lower)[0]
    assert wide == pytest.approx(2 * 1.96 * 0.15 / np.sqrt(len(values)), rel=0.3)
    assert levels[1].lower[0] < (0.0 if known else 0.5) < levels[1].upper[0]


def test_before_a_week_a_shift_is_a_notice() -> None:
    values, at = traffic(4, {1_500: 0.3})
    (_, shift), (row, again) = BlockTest(2).add_many(values, at)
    assert shift.kind == "notice"
    assert again.kind == "page"  # judged anew a week after it began
    assert 7 * DAY <= at[row] - at[1_500] < 9 * DAY


def test_weekends_are_noticed_once_and_learnt() -> None:
    """Two days of seven are lower; a shift beside them is told, and they are no shift."""
    values, at = traffic(4, {}, n=20_000)
    at *= 2  # four weeks
    lower = (at / DAY) % 7 >= 5
    values[lower] -= 0.1
    told = BlockTest(2).add_many(values, at)
    assert [shift.kind for _, shift in told] in (["notice"], ["notice", "resolved"])
    values[13_000:] -= 0.2
    kinds = [(shift.kind, row) for row, shift in BlockTest(2).add_many(values, at)]
    pages = [row for kind, row in kinds if kind == "page"]
    assert len(pages) == 1
    assert 13_000 <= pages[0] < 13_400


def test_a_clock_that_jumps_makes_no_week() -> None:
    values, at = traffic(5, {1_500: 0.3})
    at = at / 14  # a day
    at[700:] += 365 * DAY  # and a jump, which counts for a day at most
    at[1_000:1_010] -= 300 * DAY
    test = BlockTest(2)
    ((_, shift),) = test.add_many(values, at)
    assert shift.kind == "notice"
    assert test.watched < 3 * DAY


@pytest.mark.parametrize("known", [False, True])
def test_a_shift_that_was_explained_moves_the_ordinary_level(known: bool) -> None:
    values, at = traffic(11, {1_500: 0.7, 2_700: 0.5, 3_600: 0.3})
    values -= 0.5 * known
    asked: list[str] = []

    def explained(shift: Shift) -> bool:
        asked.append(shift.kind)
        return len(asked) == 2  # the second, while the first is not over

    test, found = BlockTest(2, known=known), []
    for start in range(0, len(values), 400):
        part = slice(start, start + 400)
        found += [s for _, s in test.add_many(values[part], at[part], explained=explained)]
        stored = json.loads(json.dumps(test.to_dict()))
        test = BlockTest(2, known=known)
        test.restore(stored)
    assert [s.kind for s in found] == ["notice", "page", "resolved"]
    away, moved, back = found
    assert asked[1] == "resolved"  # which it would have been, had nothing explained it
    assert away.level.mean[0] - away.base.mean[0] == pytest.approx(0.2, abs=0.06)
    assert moved.base.mean[0] == pytest.approx(0.7 - 0.5 * known, abs=0.06)
    assert moved.level.mean[0] == pytest.approx(0.5 - 0.5 * known, abs=0.06)
    assert not moved.level.lower[0] <= moved.base.mean[0] <= moved.level.upper[0]
    assert back.base.mean[0] == pytest.approx(
        0.3 - 0.5 * known, abs=0.06
    )  # all of it by the second
    assert test.settled


@pytest.mark.parametrize("users", [False, True])
def test_parts_and_restarts_change_nothing(users: bool) -> None:
    values, at = traffic(6, {2_700: 0.3})
    rng = np.random.default_rng(7)
    units = [f"u{u}" for u in rng.integers(0, 300, len(values))] if users else None
    whole = BlockTest(2)
    expected = [(row, s.kind, s.evidence) for row, s in whole.add_many(values, at, units=units)]
    parted, found = BlockTest(2), []
    for start in range(0, len(values), 83):
        part = slice(start, start + 83)
        told = parted.add_many(values[part], at[part], units=None if not units else units[part])
        found += [(start + row, s.kind, s.evidence) for row, s in told]
        stored = json.loads(json.dumps(parted.to_dict()))
        parted = BlockTest(2)
        parted.restore(stored)
    assert found == expected
    assert len(found) == 1
    assert parted.to_dict() == whole.to_dict()
    assert whole.by_user == users


def test_memory_is_bounded_and_the_past_slides() -> None:
    rng = np.random.default_rng(8)
    n = 200_000
    test = BlockTest(1)
    test.add_many(np.clip(rng.normal(0.5, 0.1, (n, 1)), 0, 1), np.arange(n) * 60.0)  # 139 days
    assert test.n < 512
    assert test.size > 25
    assert test.gone > 0
    before = BlockTest(1)
    before.add_many(rng.random((n, 1)) * 0.5, np.arange(n) / 100.0)  # half an hour: nothing goes
    assert before.gone == 0
    assert before.n < 512


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="columns must be at least 1"):
        BlockTest(0)
    data: dict[str, Any] = BlockTest(2).to_dict()
    with pytest.raises(DataError, match="stored blocks"):
        BlockTest(2).restore(data | {"n": 3, "rows": [[0], "AAAA"]})
    with pytest.raises(DataError, match="stored 'log_e': expected finite numbers of shape"):
        BlockTest(3).restore(data)


def share(index: float, asked: np.ndarray, ranking: np.ndarray) -> float:
    return float((asked / (1 + np.exp(-(np.log(index / (1 - index)) + ranking)))).sum())


State = tuple[float, tuple[float, ...], tuple[float, ...]]
BEFORE: State = (0.5, (0.5, 0.5), (-0.5, 0.5))
PLANTED: dict[str, State] = {
    "index and asked": (0.3, (0.3, 0.7), (-0.5, 0.5)),
    "asked and ranking": (0.5, (0.3, 0.7), (-1.0, 0.0)),
    "index and ranking": (0.4, (0.5, 0.5), (-0.8, 0.2)),
    "nothing": BEFORE,
}
RUNS, REJECT = 300, 0.001


def true_parts(new: State) -> np.ndarray:
    """What each component changes, on average over the orders in which they may change."""
    parts = np.zeros(3)
    for order in itertools.permutations(range(3)):
        mixed: list[Any] = list(BEFORE)
        for part in order:
            last = share(mixed[0], np.array(mixed[1]), np.array(mixed[2]))
            mixed[part] = new[part]
            parts[part] += share(mixed[0], np.array(mixed[1]), np.array(mixed[2])) - last
    return parts / 6


def planted(rng: np.random.Generator, state: State, blocks: int) -> np.ndarray:
    """Counts and exposure of blocks of 25 retrievals of ten documents, on two topics."""
    index, asked, ranking = state
    topic = rng.choice(2, 25 * blocks, p=asked)
    chance = 1 / (1 + np.exp(-(np.log(index / (1 - index)) + np.array(ranking)[topic])))
    cell = np.zeros((blocks, 2, 2))
    block = np.arange(len(topic)) // 25
    np.add.at(cell, (block, topic, 0), 1)
    np.add.at(cell, (block, topic, 1), rng.binomial(10, chance) / 10)
    return cell


@pytest.mark.parametrize("world", PLANTED)
def test_two_components_that_change_at_once_are_split(world: str) -> None:
    """Parts add up, are unbiased, and each interval holds its part as often as it says."""
    new, rng = PLANTED[world], np.random.default_rng(9)
    truth, found, blind = true_parts(new), [], []
    for _ in range(RUNS):
        cells = planted(rng, BEFORE, 80), planted(rng, new, 40)
        parts = split_shift(*cells, index=(BEFORE[0], new[0]), rng=rng)
        assert list(parts) == ["index", "asked", "ranking"]
        moved = [float(c[..., 1].sum() / c[..., 0].sum()) for c in cells]
        assert sum(value for value, _, _ in parts.values()) == pytest.approx(
            moved[1] - moved[0], abs=2e-3
        )
        found.append(list(parts.values()))
        alone = [c.sum(axis=1, keepdims=True) for c in cells]  # topics are not told apart
        blind.append(split_shift(*alone, index=(BEFORE[0], new[0]), rng=rng)["ranking"])
    value, lower, upper = np.moveaxis(np.array(found), -1, 0)
    error = value.std(axis=0, ddof=1) / np.sqrt(RUNS)
    assert (np.abs(value.mean(axis=0) - truth) <= 3.9 * error + 1e-3).all()
    held = ((lower - 1e-9 <= truth) & (truth <= upper + 1e-9)).sum(axis=0)
    for part in range(3):
        assert binomtest(held[part], RUNS, 0.95, alternative="less").pvalue >= REJECT, held
        if abs(truth[part]) > 0.04:  # and says something
            clear = int((lower[:, part] * upper[:, part] > 0).sum())
            assert binomtest(clear, RUNS, 0.9, alternative="less").pvalue >= REJECT
    if "asked" in world:  # a split that does not know of topics is found out
        wrong = sum(low <= truth[2] <= high for _, low, high in blind)
        assert binomtest(wrong, RUNS, 0.95, alternative="less").pvalue < REJECT
