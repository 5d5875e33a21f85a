"""Evidence from blocks: against a literal Bayes factor, restarts, shifts told once, their parts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.stats.blocks import DAY, BlockTest, split_shift, step_evidence


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
    quiet, at = traffic(3, {})
    assert BlockTest(2).add_many(quiet, at) == []


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
    ((_, shift),) = BlockTest(2).add_many(values, at)
    assert shift.kind == "notice"


def test_a_clock_that_jumps_makes_no_week() -> None:
    values, at = traffic(5, {1_500: 0.3})
    at = at / 14  # a day
    at[700:] += 365 * DAY  # and a jump, which counts for a day at most
    at[1_000:1_010] -= 300 * DAY
    test = BlockTest(2)
    ((_, shift),) = test.add_many(values, at)
    assert shift.kind == "notice"
    assert test.watched < 3 * DAY


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
        parted = BlockTest.from_dict(json.loads(json.dumps(parted.to_dict())))
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
    data["state"]["rows"] = [[0], "AAAA"]
    with pytest.raises(DataError, match="stored blocks"):
        BlockTest.from_dict(data | {"state": data["state"] | {"n": 3}})


def share(index: float, asked: np.ndarray, ranking: np.ndarray) -> float:
    return float((asked / (1 + np.exp(-(np.log(index / (1 - index)) + ranking)))).sum())


WORLDS = {
    "index and asked": ((0.5, (0.5, 0.5), (-0.5, 0.5)), (0.3, (0.3, 0.7), (-0.5, 0.5))),
    "asked and ranking": ((0.5, (0.5, 0.5), (-0.8, 0.8)), (0.5, (0.3, 0.7), (-1.3, 0.3))),
    "index and ranking": ((0.5, (0.5, 0.5), (-0.5, 0.5)), (0.4, (0.5, 0.5), (-0.8, 0.2))),
}


@pytest.mark.parametrize("world", WORLDS)
def test_two_components_that_change_at_once_are_split(world: str) -> None:
    """Parts are unbiased, add up, and their intervals hold them in 19 of 20 worlds or so."""
    (old, new), rng = WORLDS[world], np.random.default_rng(9)
    old, new = ((i, np.array(q), np.array(r)) for i, q, r in (old, new))
    n, covered, estimates = 60, 0, []
    untouched = [i for i in range(3) if np.array_equal(old[i], new[i])]
    for _ in range(n):
        cells = []
        for (index, asked, ranking), blocks in ((old, 80), (new, 20)):
            topic = rng.choice(2, 25 * blocks, p=asked)
            chance = 1 / (1 + np.exp(-(np.log(index / (1 - index)) + ranking[topic])))
            value, cell = rng.binomial(10, chance) / 10, np.zeros((blocks, 2, 2))
            np.add.at(cell, (np.arange(len(topic)) // 25, topic, 0), 1)
            np.add.at(cell, (np.arange(len(topic)) // 25, topic, 1), value)
            cells.append(cell)
        parts = split_shift(cells[0], cells[1], index=(old[0], new[0]), rng=rng)
        assert list(parts) == ["index", "asked", "ranking"]
        estimates.append([value for value, _, _ in parts.values()])
        (zero,) = untouched
        _, lower, upper = list(parts.values())[zero]
        covered += lower <= 1e-12 and upper >= -1e-12
    mean = np.mean(estimates, axis=0)
    assert mean.sum() == pytest.approx(share(*new) - share(*old), abs=0.01)
    assert mean[untouched[0]] == pytest.approx(0.0, abs=0.01)
    assert covered >= 50  # of 60: below it with probability .0002 at .95
