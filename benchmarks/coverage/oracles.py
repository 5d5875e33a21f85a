"""Could intervals that are wider than their limit be narrower?

    python benchmarks/coverage/oracles.py [--runs RUNS] [--out FOLDER]

Cells of coverage_real.json whose mean width was above its limit are drawn afresh, beside estimates
that know the population's best slope, or slope and error; and populations close to theirs, from
useless to nearly perfect judges, show what the same intervals drawn in would cover. Reads the real
sets of the folder named by RAG_SOURCEBIAS_DATA. Writes oracles.json to FOLDER (default:
benchmarks/results).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import parallel  # sets the number of threads before numpy is imported

import numpy as np  # isort: skip
import bars
from real_sets import RealSet
from resampled import sets
from run import unfolded, write
from scipy.stats import t

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.core.values import environment
from rag_sourcebias.stats import regression
from rag_sourcebias.stats.coverage import Population
from rag_sourcebias.stats.means import mean_interval

ROOT = Path(__file__).parents[2]
OTHERS = 500
DRAWN_IN = (1.0, 0.98, 0.95)
WORLDS = 40_000  # items of a simulated population
LOWEST = ("dl_human_llm/dl19 umbrela_llama32 DCG@10", 20)  # the set and labels of that cell


@contextmanager
def t_alone() -> Iterator[None]:
    """Intervals that reach no further than t, whatever few labels may not have shown."""
    kept = regression._far_errors
    regression._far_errors = lambda *_: (0.0, 0.0)
    try:
        yield
    finally:
        regression._far_errors = kept


def cell(*, name: str, scale: bool, n: int, r: float, limit: float, runs: int) -> list[dict]:
    """One row: mean widths as multiples of the limit, and at which multiples they cover .94."""
    data = next(s for s in sets() if s.name == name)
    truth, bounds = float(data.y.mean()), data.bounds if scale else None
    slope = float(np.cov(data.y, data.yhat)[0, 1] / data.yhat.var(ddof=1))
    drawn, rng = Population(data.y, data.yhat, None), np.random.default_rng([31, n, *name.encode()])
    rows = []
    for _ in range(runs):
        s = drawn.draw(n, OTHERS, rng)
        try:
            ours, alone = (
                mean_interval(s.y, s.yhat, s.yhat_unlabeled, bounds=bounds, method=method)
                for method in ("regression", "labels")
            )
        except InsufficientDataError:  # labels that are all alike: no interval, no width
            continue
        with t_alone():
            less = mean_interval(s.y, s.yhat, s.yhat_unlabeled, bounds=bounds)
        left, judge = s.y - slope * s.yhat, np.concatenate([s.yhat, s.yhat_unlabeled])
        error = abs(float(left.mean() + slope * judge.mean()) - truth)
        variance = left.var(ddof=1) / n + slope**2 * judge.var(ddof=1) / len(judge)
        half = float(t.ppf(0.975, n - 1)) * float(np.sqrt(variance))
        hit, near = (found.lower <= truth <= found.upper for found in (ours, less))
        rows.append((ours.upper - ours.lower, alone.upper - alone.lower, hit, near, error, half))
    ours_, alone_, hits, near_, error_, half_ = np.array(rows, dtype=float).T
    unit = limit * alone_.mean()
    ratio = ours_.mean() / unit
    stretch = float(np.quantile(error_ / np.maximum(half_, 1e-15), 0.94))
    found = {
        "coverage": hits.mean(),
        "t alone": near_.mean(),
        "width": ratio,
        "error": np.std(ours_ / unit - ratio * alone_ / alone_.mean()) / np.sqrt(len(rows)),
        "known slope": 2 * half_.mean() / unit,
        "known slope, true": stretch * 2 * half_.mean() / unit,
        "known slope and error, true": 2 * float(np.quantile(error_, 0.94)) / unit,
    }
    where = {"set": name, "scale": scale, "n": n, "r": r, "limit": limit, "runs": len(rows)}
    return [where | {key: round(float(value), 4) for key, value in found.items()}]


def worlds() -> list[RealSet]:
    """Populations of two values, and of grades that pile up at one end."""
    rng = np.random.default_rng(0)
    made = []
    for share, high, low in product((0.5, 0.6, 0.7, 0.8), (0.9, 0.94, 0.97), (0.2, 0.35, 0.5)):
        f = (rng.random(WORLDS) < share).astype(float)
        y = (rng.random(WORLDS) < np.where(f == 1, high, low)).astype(float)
        name = f"two values/judge says 1: {share}; right: {high}; 1 where it says 0: {low}"
        made.append(RealSet(name, y, f, (0.0, 1.0)))
    for near, far in product((0.0, 0.1, 0.2, 0.3, 0.5), (0.05, 0.1, 0.2)):
        u, seen = rng.random(WORLDS), rng.random(WORLDS) < 0.5
        y = np.where(u < far, 1.0, np.where(u < far + near, 4.0, 5.0))
        f = np.where(seen, y, np.where(y == 1, 5.0, y)) + rng.normal(0, 0.15, WORLDS)
        made.append(RealSet(f"grades/4: {near}; 1, half of them seen: {far}", y, f, (1.0, 5.0)))
    return made


def world(*, index: int, n: int, runs: int) -> list[dict]:
    """One row: coverage of our intervals as they are, and drawn in."""
    data = worlds()[index]
    truth, rng = float(data.y.mean()), np.random.default_rng([32, index, n])
    drawn, factors, near = Population(data.y, data.yhat, None), [], 0
    for _ in range(runs):
        s = drawn.draw(n, OTHERS, rng)
        found = mean_interval(s.y, s.yhat, s.yhat_unlabeled, bounds=data.bounds)
        with t_alone():
            less = mean_interval(s.y, s.yhat, s.yhat_unlabeled, bounds=data.bounds)
        near += less.lower <= truth <= less.upper
        error = truth - found.estimate
        reach = found.upper - found.estimate if error > 0 else found.estimate - found.lower
        factors.append(max(abs(error) - 1e-12, 0.0) / max(reach, 1e-15))
    kind, name = data.name.split("/")
    covered = [round(float(np.mean(np.array(factors) <= factor)), 4) for factor in DRAWN_IN]
    where = {"kind": kind, "world": name, "n": n, "runs": runs}
    return [where | {"coverage": covered, "t alone": round(near / runs, 4)}]


def cause(*, below: float, runs: int) -> list[dict]:
    """One row: on which side intervals miss the pool of the one cell that covers too little."""
    data = next(s for s in sets() if s.name == LOWEST[0])
    kept = data.y < below
    drawn, rng = Population(data.y[kept], data.yhat[kept], None), np.random.default_rng(33)
    sides = np.zeros(2)
    for _ in range(runs):
        s = drawn.draw(LOWEST[1], OTHERS, rng)
        found = mean_interval(s.y, s.yhat, s.yhat_unlabeled, target="pool")
        truth = float(np.concatenate([s.y, s.y_unlabeled]).mean())
        sides += (found.lower > truth, found.upper < truth)
    too_high, too_low = (sides / runs).round(4).tolist()
    found_ = {"items": int(kept.sum()), "of": len(data.y), "above truth": too_high}
    return [{"below": below, "runs": runs} | found_ | {"below truth": too_low}]


def main() -> int:
    parser = argparse.ArgumentParser(description="Intervals beside estimates that know more.")
    parser.add_argument("--runs", type=int, default=6_000, help="draws of each cell")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    started = time.perf_counter()
    real = json.loads((options.out / "coverage_real.json").read_text(encoding="utf-8"))
    jobs = [
        {key: row[key] for key in ("scale", "n", "r", "limit")}
        | {"name": row["set"], "runs": options.runs}
        for row in bars.over_limit(unfolded(real["sets"]))
    ]
    cells = parallel.everywhere(cell, jobs)
    near = [
        {"index": i, "n": n, "runs": max(options.runs // 2, 20)}
        for i, data in enumerate(worlds())
        for n in ((15, 30, 60) if data.name.startswith("grades") else (30,))
    ]
    tails = [{"below": below, "runs": options.runs} for below in (100.0, 25.0)]
    record = {
        "environment": environment(),
        "drawn in": DRAWN_IN,
        "cells": cells,
        "worlds": parallel.everywhere(world, near),
        "lowest": parallel.everywhere(cause, tails),
    }
    write(options.out / "oracles.json", record)
    print(f"{time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
