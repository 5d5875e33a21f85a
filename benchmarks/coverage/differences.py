"""Is a planted difference of two systems found nearly as often as one who knows the slope finds it?

    python benchmarks/coverage/differences.py [--runs RUNS] [--out FOLDER]

Simulated items of two values and of grades 1 to 5, judged with correlations from 0 to .99; the
second system is as much better as makes a normal test with the known error find it in eight of ten
draws. The oracle knows the population's slope and the critical value with which its t covers .95,
and learns the error. A cell misses the bar when an exact binomial test rejects, at .001, that
intervals find the difference at .9 of the oracle's rate. Writes differences.json to FOLDER
(default: benchmarks/results). Exit status 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path

import parallel  # sets the number of threads before numpy is imported

import numpy as np  # isort: skip
from bars import found_too_rarely, rejected
from run import write
from scipy.stats import t

from rag_sourcebias.core.values import environment
from rag_sourcebias.stats.means import difference_interval

ROOT = Path(__file__).parents[2]
SIZE, OTHERS = 40_000, 500  # items of a population, judged items without a label
SIZES = (10, 15, 20, 30, 60, 120)
CUTS = {"two values": [0.0], "grades": [-1.5, -0.5, 0.5, 1.5]}
LOWEST = {"two values": 0, "grades": 1}
FOUND = 2.8  # standard errors of a difference that is found in eight of ten draws


def world(kind: str, r: float, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Human and judge values of two systems on the same items, both of shape (SIZE, 2)."""
    rng = np.random.default_rng(1)
    quality = (rng.normal(size=(SIZE, 1)) + rng.normal(size=(SIZE, 2))) / 2**0.5 + [shift, 0]
    judged = r * quality + (1 - r * r) ** 0.5 * rng.normal(size=(SIZE, 2))
    return tuple(LOWEST[kind] + np.digitize(v, CUTS[kind]).astype(float) for v in (quality, judged))


def planted(kind: str, r: float, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    """A world in which n labels find the difference, and its slope."""
    for shift in np.linspace(0.05, 2.5, 50):
        y, f = world(kind, r, shift)
        d, j = y[:, 0] - y[:, 1], f[:, 0] - f[:, 1]
        slope = float(np.cov(d, j)[0, 1] / j.var(ddof=1))
        error = (d - slope * j).var() / n + slope**2 * j.var() / (n + OTHERS)
        if d.mean() > FOUND * error**0.5:
            break
    return y, f, slope


def cell(*, kind: str, r: float, n: int, runs: int) -> list[dict]:
    """One row: how often our interval covers and finds the difference, and the oracle finds it."""
    y, f, slope = planted(kind, r, n)
    truth, rng = float((y[:, 0] - y[:, 1]).mean()), np.random.default_rng([41, n, int(100 * r)])
    rows = []
    for _ in range(runs):
        drawn = rng.integers(SIZE, size=n + OTHERS)
        some, human, judge = drawn[:n], y[drawn[:n]], f[drawn]
        bounds = (0.0, 1.0) if kind == "two values" else (1.0, 5.0)
        ours = difference_interval(human, judge[:n], judge[n:], bounds=bounds)
        gap = judge[:, 0] - judge[:, 1]
        left = y[some, 0] - y[some, 1] - slope * gap[:n]
        error = left.var(ddof=1) / n + slope**2 * gap.var(ddof=1) / len(gap)
        known = left.mean() + slope * gap.mean(), error**0.5
        rows.append((ours.lower <= truth <= ours.upper, ours.lower > 0, *known))
    covered, found, estimate, error_ = np.array(rows, dtype=float).T
    far = np.abs(estimate - truth) / np.maximum(error_, 1e-12)
    critical = max(float(np.quantile(far, 0.95)), float(t.ppf(0.975, n - 1)))
    where = {"kind": kind, "r": r, "n": n, "runs": runs, "difference": round(truth, 3)}
    rates = {"coverage": covered.mean(), "found": found.mean()}
    rates["oracle"] = (estimate > critical * error_).mean()
    return [where | {key: round(float(value), 4) for key, value in rates.items()}]


def main() -> int:
    parser = argparse.ArgumentParser(description="Planted differences beside an oracle.")
    parser.add_argument("--runs", type=int, default=2_000, help="draws of each cell")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    jobs = [
        {"kind": kind, "r": r, "n": n, "runs": options.runs}
        for kind, r, n in product(CUTS, (0.0, 0.5, 0.9, 0.99), SIZES)
    ]
    cells = parallel.everywhere(cell, jobs)
    write(options.out / "differences.json", {"environment": environment(), "cells": cells})
    print(*(tuple(row.values()) for row in cells), sep="\n")
    missed = sum(map(found_too_rarely, cells)) + sum(map(rejected, cells))
    print(f"{missed} bars missed, {len(cells)} cells")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
