"""Traffic in which retrievals depend on one another: 5,000 of ten documents over two weeks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

SPREAD = 0.1  # standard deviation of a share that drifts

# Traffic as it is: 5,000 retrievals of ten documents over two weeks, human with some chance.


RETRIEVALS, DEPTH, DAYS, DAY = 5_000, 10, 14, 86_400.0
SHIFT_AT = RETRIEVALS // 2 + 100  # after seven days
WEIGHTS = 1 / np.log2(np.arange(2, DEPTH + 2))


class Traffic(NamedTuple):
    """Times, documents (True: human), and who asks where that is known."""

    at: np.ndarray
    human: np.ndarray
    user: np.ndarray | None

    def values(self) -> np.ndarray:
        """Exposure and first rank of human text, shape (n, 2)."""
        return np.stack([self.human @ WEIGHTS / WEIGHTS.sum(), self.human[:, 0]], axis=1)


def _of_sessions(size: int) -> Callable:
    def chances(rng, at: np.ndarray) -> np.ndarray:
        return np.repeat(rng.beta(2, 2, len(at) // size + 1), size)[: len(at)]

    return chances


def _of_walk(phi: float) -> Callable:
    def chances(rng, at: np.ndarray) -> np.ndarray:
        noise = SPREAD * rng.standard_normal(len(at))
        noise[1:] *= np.sqrt(1 - phi**2)
        return np.clip(0.5 + lfilter([1.0], [1.0, -phi], noise), 0.02, 0.98)

    return chances


def _of_cycle(height: float) -> Callable:
    def chances(rng, at: np.ndarray) -> np.ndarray:
        return 0.5 + height * np.sin(2 * np.pi * (at / DAY + rng.random()))

    return chances


def _weekend(rng, at: np.ndarray) -> np.ndarray:
    """Twenty points less on two days of seven, and a daily cycle; from any moment of the week."""
    week = at / DAY + 7 * rng.random()
    return 0.5 - 0.2 * (week % 7 >= 5) + 0.05 * np.sin(2 * np.pi * week)


def _regimes(rng, at: np.ndarray) -> np.ndarray:
    """Two topics, .4 and .6, for 100 retrievals each on average."""
    turns = np.cumsum(rng.random(len(at)) < 1 / 100) + rng.integers(2)
    return np.where(turns % 2, 0.4, 0.6)


CHANCES = {
    "independent": lambda _, at: np.full(len(at), 0.5),
    "sessions of 10": _of_sessions(10),
    "sessions of 50": _of_sessions(50),
    "AR(1), φ = .9": _of_walk(0.9),
    "AR(1), φ = .99": _of_walk(0.99),
    "daily cycle ±.05": _of_cycle(0.05),
    "daily cycle ±.10": _of_cycle(0.10),
    "weekends −.20": _weekend,
    "two regimes of topics": _regimes,
}


def _by_query(rng, query: np.ndarray, shift: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """The same query finds the same documents, until their sources shift."""
    drawn = rng.random((len(chance), DEPTH))
    return drawn[query] < np.clip(chance[query] + shift, 0, 1)[:, None]


def _zipf(rng, shift: np.ndarray) -> np.ndarray:
    weights = 1 / np.arange(1, 1_001)
    query = rng.choice(len(weights), len(shift), p=weights / weights.sum())
    return _by_query(rng, query, shift, rng.beta(2, 2, len(weights)))


def _users(rng, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Five users at a time, each with a taste; how much one asks has a heavy tail (Pareto 1.5)."""
    n, at_once = len(shift), 5
    left = np.minimum(3 * (rng.pareto(1.5, n) + 1), 2_000).astype(int)
    taste, seat = rng.beta(2, 2, n), rng.integers(0, at_once, n)
    user, sitting, new = np.empty(n, int), list(range(at_once)), at_once
    for i, place in enumerate(seat.tolist()):
        user[i] = sitting[place]
        left[user[i]] -= 1
        if left[user[i]] <= 0:
            sitting[place], new = new, new + 1
    chance = np.clip(taste[user] + shift, 0, 1)
    return rng.random((n, DEPTH)) < chance[:, None], user


def _replayed(rng, shift: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Real queries in their order, from a place drawn; sources shuffled over the documents."""
    drawn = rng.random(found.max() + 1)  # a document is human where this is below its chance
    rows = found[(np.arange(len(shift)) + rng.integers(len(found))) % len(found)]
    return drawn[rows] < (0.5 + shift)[:, None]


def traffic(
    rng,
    world: str,
    *,
    shift: float = 0.0,
    end: int = RETRIEVALS,
    found: np.ndarray | None = None,
) -> Traffic:
    """Return a stream of a world; until ``end`` the share of human text moves by ``shift``."""
    at, row = np.sort(rng.random(RETRIEVALS)) * DAYS * DAY, np.arange(RETRIEVALS)
    moved = np.where((row >= SHIFT_AT) & (row < end), shift, 0.0)
    if world == "Zipf repeats":
        return Traffic(at, _zipf(rng, moved), None)
    if world == "heavy-tailed users":
        return Traffic(at, *_users(rng, moved))
    if world == "replayed queries":
        if found is None:
            raise ValueError("the queries' documents are missing")
        return Traffic(at, _replayed(rng, moved, found), None)
    chance = np.clip(CHANCES[world](rng, at) + moved, 0, 1)
    return Traffic(at, rng.random((RETRIEVALS, DEPTH)) < chance[:, None], None)


WORLDS = (*CHANCES, "Zipf repeats", "heavy-tailed users", "replayed queries")
