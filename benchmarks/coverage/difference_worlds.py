"""Pairs of systems whose difference is known: real, simulated, and those a judge favours."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

import numpy as np
from systems import population

Pair = tuple[np.ndarray, np.ndarray, tuple[float, float]]  # human and judge values, and their range

SIZE = 40_000  # items of a simulated population
CUTS = {"two values": [0.0], "grades": [-1.5, -0.5, 0.5, 1.5]}
BOUNDS = {"two values": (0.0, 1.0), "grades": (1.0, 5.0)}
SUMMARIES = ("coherence", "consistency", "fluency", "relevance")


def world(kind: str, r: float, shift: float) -> Pair:
    """Two systems on the same items, and a judge of this correlation before rounding."""
    rng = np.random.default_rng(1)
    quality = (rng.normal(size=(SIZE, 1)) + rng.normal(size=(SIZE, 2))) / 2**0.5 + [shift, 0]
    judged = r * quality + (1 - r * r) ** 0.5 * rng.normal(size=(SIZE, 2))
    lowest = BOUNDS[kind][0]
    y, f = (lowest + np.digitize(v, CUTS[kind]).astype(float) for v in (quality, judged))
    return y, f, BOUNDS[kind]


def rare(share: float, gap: float, mistakes: float) -> Pair:
    """Two values: systems mostly right on the same items, and a judge with so many mistakes."""
    rng = np.random.default_rng(3)
    together, level = rng.random(SIZE) < 0.6, rng.random(SIZE)
    y = np.stack(
        [np.where(together, level, rng.random(SIZE)) < share - k * gap for k in (0, 1)], axis=1
    )
    return y.astype(float), (y ^ (rng.random((SIZE, 2)) < mistakes)).astype(float), (0.0, 1.0)


def favoured(share: float, gap: float, passed: float) -> Pair:
    """Two values; the judge errs for the first system only, of whose wrong items it passes some."""
    y, _, bounds = rare(share, gap, 0.0)
    f = y.copy()
    f[(np.random.default_rng(4).random(SIZE) < passed) & (y[:, 0] == 0), 0] = 1.0
    return y, f, bounds


def mostly_best(departing: float, how: str, right: float) -> Pair:
    """Grades that are 5 but for a few, and a judge who is right about some and guesses the rest."""
    rng = np.random.default_rng(5)
    lower = {
        "any": rng.integers(1, 5, (SIZE, 2)),
        "near": np.where(rng.random((SIZE, 2)) < 0.8, 4, 1),
        "far": np.ones((SIZE, 2)),
    }[how]
    y = np.where(rng.random((SIZE, 2)) < departing, lower, 5.0)
    return y, np.where(rng.random((SIZE, 2)) < right, y, rng.integers(1, 6, (SIZE, 2))), (1.0, 5.0)


def overrated(spread: float, rate: float, by: int) -> Pair:
    """Grades; the judge gives the first system so many too much on some items, and errs nowhere."""
    rng = np.random.default_rng(6)
    f = np.clip(np.round(3.5 + 1.2 * spread * rng.normal(size=(SIZE, 2))), 1, 5)
    y = f.copy()
    y[:, 0] -= by * ((rng.random(SIZE) < rate) & (f[:, 0] > by))
    return y, f, (1.0, 5.0)


def real(name: str, first: int, second: int) -> Pair:
    """Two real systems by people and by a judge."""
    y, f, bounds = population(name)
    pair = [first, second]
    return y[:, pair], f[:, pair], bounds or (0.0, 1.0)


def _nearly(kind: str) -> list[tuple]:
    return list(product((kind,), (0.0, 0.5, 0.9, 0.99), (0.0, 0.2)))


WORLDS: dict[str, tuple[Callable[..., Pair], list[tuple]]] = {
    "EVOUNA": (real, [
        (f"EVOUNA {name}", *pair) for name in ("NQ", "TQ") for pair in combinations(range(5), 2)
    ]),
    "NDCG@10 on TREC DL": (real, [
        (f"DL {year}", *pair) for year in (19, 20)
        for pair in ((0, 1), (0, 20), (5, 38), (10, 11), (3, 32), (30, 31), (34, 35), (12, 37))
    ]),
    "SummEval": (real, [
        (f"SummEval {dimension}", *pair) for dimension in SUMMARIES
        for pair in ((0, 1), (2, 9), (5, 12), (14, 15), (3, 7), (11, 13), (4, 6), (2, 5))
    ]),
    "two values, equal or nearly": (world, _nearly("two values")),
    "grades, equal or nearly": (world, _nearly("grades")),
    "two values, differing rarely": (rare, [
        (share, gap, mistakes) for share, gap in (
            (0.5, 0.0), (0.8, 0.0), (0.95, 0.0), (0.98, 0.0), (0.98, 0.03), (0.98, 0.05),
            (0.95, 0.1), (0.8, 0.15),
        ) for mistakes in (0.0, 0.02, 0.1, 0.3)
    ]),
    "two values, one favoured": (favoured, list(product((0.5, 0.8, 0.95), (0.0, 0.05),
                                                        (0.2, 0.5, 0.9)))),
    "grades, mostly 5": (mostly_best, list(product((0.02, 0.1, 0.4), ("any", "near", "far"),
                                                   (0.1, 0.6, 0.95, 1.0)))),
    "grades, one overrated": (overrated, list(product((0.5, 1.0), (0.02, 0.05, 0.1, 0.2),
                                                      (1, 2, 4)))),
}  # fmt: skip
