"""Is a planted difference of two systems found, and are differences covered, null ones above all?

    python benchmarks/coverage/differences.py [--runs RUNS] [--out FOLDER]

*Planted*: simulated items of two values and of grades 1 to 5, judged with correlations from 0 to
.99; the second system is as much better as makes a normal test with the known error find it in
eight of ten draws. The oracle knows the population's slope and the critical value with which its t
covers .95 (both rates of 100,000 draws), and learns the error. Beside it, the most that any rule
may find that misses in at most .06 of draws from a null world that looks the same: the judge's
values are those of the planted world, people see no difference, and their values given the judge's
are as close to the planted ones as that allows (smallest Kullback-Leibler divergence; the most
powerful test of Neyman and Pearson). The other worlds are in difference_worlds.py; intervals for
the population and for the pool.

A cell misses a bar when an exact binomial test rejects, at .001, that .94 are covered, or that the
difference is found at .9 of the oracle's rate; of zero width is none. Writes differences.json to
FOLDER (default: benchmarks/results). Exit status 1 when a bar is missed.
"""

from __future__ import annotations

import sys
from itertools import product

import parallel  # sets the number of threads before numpy is imported

import numpy as np  # isort: skip
from bars import found_too_rarely, rejected
from difference_worlds import CUTS, WORLDS, Pair, world
from run import asked, write
from scipy.optimize import brentq
from scipy.stats import t

from rag_sourcebias.core.codec import environment
from rag_sourcebias.infer.judged import difference_interval

OTHERS = 500  # judged items without a label
SIZES = (10, 15, 20, 30, 60, 120)
FOUND = 2.8  # standard errors of a difference that is found in eight of ten draws
DRAWS = 100_000  # of the oracle and of the most powerful test
MISSED = 0.06


def planted(kind: str, r: float, n: int) -> tuple[Pair, float]:
    """A world in which n labels find the difference, and its slope."""
    for shift in np.linspace(0.05, 2.5, 50):
        y, f, bounds = world(kind, r, shift)
        d, j = y[:, 0] - y[:, 1], f[:, 0] - f[:, 1]
        slope = float(np.cov(d, j)[0, 1] / j.var(ddof=1))
        error = (d - slope * j).var() / n + slope**2 * j.var() / (n + OTHERS)
        if d.mean() > FOUND * error**0.5:
            break
    return (y, f, bounds), slope


def oracle(y: np.ndarray, f: np.ndarray, slope: float, n: int) -> float:
    """How often the difference is found by who knows the slope and the right critical value."""
    d, j = y[:, 0] - y[:, 1], f[:, 0] - f[:, 1]
    rng, rows = np.random.default_rng([43, n]), []
    for _ in range(DRAWS // 1_000):
        drawn = rng.integers(len(d), size=(1_000, n + OTHERS))
        gap = j[drawn]
        left = d[drawn[:, :n]] - slope * gap[:, :n]
        error = left.var(axis=1, ddof=1) / n + slope**2 * gap.var(axis=1, ddof=1) / len(gap[0])
        rows.append((left.mean(axis=1) + slope * gap.mean(axis=1), error**0.5))
    estimate, error = np.concatenate(rows, axis=1)
    far = np.abs(estimate - d.mean()) / np.maximum(error, 1e-12)
    critical = max(float(np.quantile(far, 0.95)), float(t.ppf(0.975, n - 1)))
    return float((estimate > critical * error).mean())


def null_world(
    y: np.ndarray, f: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The null world that looks most alike: of each of the judge's pairs of values, how people's
    pairs are shared out in the planted world and in it; how often the judge gives each; and the
    pairs of values.
    """
    values = np.unique(y)
    code = [
        np.searchsorted(values, v[:, 0]) * len(values) + np.searchsorted(values, v[:, 1])
        for v in (f, y)
    ]
    joint = np.zeros((len(values) ** 2,) * 2)
    np.add.at(joint, tuple(code), 1.0)
    joint /= len(y)
    judged = joint.sum(axis=1)
    given = joint / np.maximum(judged, 1e-15)[:, None]
    pairs = np.array(list(product(values, values)))
    gap = pairs[:, 0] - pairs[:, 1]

    def tilted(weight: float) -> np.ndarray:
        """Shares that minimise the divergence for this weight of people's mean difference."""
        found = np.zeros_like(given)
        least, most = weight * gap.max(), 1 + 2 * weight * gap.max() + 1e-9
        for row, shares in zip(found, given, strict=True):
            seen = shares > 0
            if not seen.any():
                continue

            def excess(at: float, shares: np.ndarray = shares, seen: np.ndarray = seen) -> float:
                return float((shares[seen] / (at + weight * gap[seen])).sum()) - 1

            at = least + 1e-12
            if excess(at) > 0:
                at = brentq(excess, at, most)
            row[seen] = shares[seen] / (at + weight * gap[seen])
            row[np.argmin(gap)] += max(1 - row.sum(), 0.0)
        return found

    def mean(weight: float) -> float:
        return float(judged @ (tilted(weight) @ gap))

    most = 0.01
    while mean(most) > 0:
        most *= 1.5
    return given, tilted(brentq(mean, 0, most)), judged, pairs


def most_powerful(y: np.ndarray, f: np.ndarray, n: int) -> float:
    """How often any rule may find the difference that misses rarely in the null world."""
    given, null, judged, _ = null_world(y, f)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(given > 0, np.log(given) - np.log(null), -50.0).ravel()
    rng = np.random.default_rng([44, n])

    def statistic(shares: np.ndarray) -> np.ndarray:
        cells = np.cumsum((judged[:, None] * shares).ravel())
        drawn = np.searchsorted(cells, rng.random((DRAWS, n)) * cells[-1])
        return ratio[drawn].sum(axis=1).round(6)

    true, false = statistic(given), statistic(null)
    limit = np.quantile(false, 1 - MISSED, method="higher")
    at_limit = (MISSED - (false > limit).mean()) / max((false == limit).mean(), 1e-12)
    return float((true > limit).mean() + min(at_limit, 1.0) * (true == limit).mean())


def drawn_intervals(pair: Pair, n: int, runs: int, seed: list[int]) -> np.ndarray:
    """Rows of one draw: whether population and pool are covered, the width, and the lower end."""
    y, f, bounds = pair
    rng, rows = np.random.default_rng(seed), []
    for _ in range(runs):
        drawn = rng.integers(len(y), size=n + OTHERS)
        human, judge = y[drawn], f[drawn]
        row: list[float] = []
        for target, among in (("population", y), ("pool", human)):
            truth = float((among[:, 0] - among[:, 1]).mean())
            found = difference_interval(
                human[:n], judge[:n], judge[n:], target=target, bounds=bounds
            )
            row += [
                found.lower - 1e-12 <= truth <= found.upper + 1e-12,
                found.upper - found.lower,
                found.lower,
            ]
        rows.append(row)
    return np.array(rows)


def rates(drawn: np.ndarray) -> dict:
    width = min(drawn[:, 1].min(), drawn[:, 4].min())
    return {
        "coverage": round(float(drawn[:, 0].mean()), 4),
        "pool": round(float(drawn[:, 3].mean()), 4),
        "narrowest": round(float(width), 6),
    }


def planted_cell(*, kind: str, r: float, n: int, runs: int) -> list[dict]:
    """One row: how often our interval covers and finds the difference, and others find it."""
    pair, slope = planted(kind, r, n)
    y, f, bounds = pair
    drawn = drawn_intervals(pair, n, runs, [41, n, int(100 * r)])
    _, null, judged, pairs = null_world(y, f)
    rng = np.random.default_rng([45, n])
    cells = np.cumsum((judged[:, None] * null).ravel())
    chosen = np.searchsorted(cells, rng.random(len(y)) * cells[-1])
    alike = pairs[chosen % len(pairs)], pairs[chosen // len(pairs)], bounds
    hardest = drawn_intervals(alike, n, runs, [46, n, int(100 * r)])
    return [
        {
            "kind": kind, "r": r, "n": n, "runs": runs,
            "difference": round(float((y[:, 0] - y[:, 1]).mean()), 3),
            **rates(drawn),
            "found": round(float((drawn[:, 2] > 0).mean()), 4),
            "oracle": round(oracle(y, f, slope, n), 4),
            "at most": round(most_powerful(y, f, n), 4),
            "coverage there": round(float(hardest[:, 0].mean()), 4),
        }
    ]  # fmt: skip


def world_cell(*, name: str, place: int, n: int, runs: int) -> list[dict]:
    """One row: how often the intervals cover in one world."""
    make, settings = WORLDS[name]
    pair = make(*settings[place])
    truth = float((pair[0][:, 0] - pair[0][:, 1]).mean())
    drawn = drawn_intervals(pair, n, runs, [47, n, place])
    where = {"world": name, "settings": settings[place], "n": n, "runs": runs}
    return [where | {"difference": round(truth, 3), **rates(drawn)}]


def main() -> int:
    options = asked(
        "Differences of two systems in known worlds.",
        2_000,
        "draws of each cell; half in other worlds",
    )
    path = options.out / "differences.json"
    jobs = [
        {"kind": kind, "r": r, "n": n, "runs": options.runs}
        for kind, r, n in product(CUTS, (0.0, 0.5, 0.9, 0.99), SIZES)
    ]  # fmt: skip
    cells = parallel.everywhere(planted_cell, jobs)
    jobs = [
        {"name": name, "place": place, "n": n, "runs": options.runs // 2}
        for name, (_, settings) in WORLDS.items()
        for place in range(len(settings)) for n in SIZES
    ]  # fmt: skip
    worlds = parallel.everywhere(world_cell, jobs)
    write(path, {"environment": environment(), "cells": cells, "worlds": worlds})
    few = [row for row in cells if found_too_rarely(row)]
    low = [
        (row, target)
        for row in (*cells, *worlds)
        for target in ("coverage", "pool")
        if rejected(row | {"coverage": row[target]})
    ]
    none = [row for row in (*cells, *worlds) if row["narrowest"] <= 0]
    print(*few, *low, *none, sep="\n")
    print(f"{len(few)} found too rarely of {len(cells)}; {len(low)} below .94 of "
          f"{2 * (len(cells) + len(worlds))}; {len(none)} of no width")  # fmt: skip
    return int(bool(few or low or none))


if __name__ == "__main__":
    sys.exit(main())
