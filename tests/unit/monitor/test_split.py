"""A shift is split into what changed: each part unbiased, and in its interval."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from rag_sourcebias.monitor.split import split_shift


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
RUNS, REJECT = 150, 0.001


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
