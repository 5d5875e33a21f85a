"""Intervals for a mean from few labels: ours beside ppi_py, on the same draws."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ppi_py

from rag_sourcebias.infer.judged import mean_interval, ppi_interval
from rag_sourcebias.infer.samples import t_interval

LEVEL = 0.95
POOL = 1_000
LABELS = (15, 30, 100)
Bounds = tuple[float, float]
Method = Callable[[np.ndarray, np.ndarray, np.ndarray, Bounds | None], Bounds]


def tuned_theirs(y: np.ndarray, f: np.ndarray, pool: np.ndarray, _: Bounds | None) -> Bounds:
    low, high = ppi_py.ppi_mean_ci(y, f, pool, alpha=1 - LEVEL)
    return float(np.squeeze(low)), float(np.squeeze(high))


def fixed_theirs(y: np.ndarray, f: np.ndarray, pool: np.ndarray, _: Bounds | None) -> Bounds:
    low, high = ppi_py.ppi_mean_ci(y, f, pool, alpha=1 - LEVEL, lam=1)
    return float(np.squeeze(low)), float(np.squeeze(high))


def default_ours(y: np.ndarray, f: np.ndarray, pool: np.ndarray, bounds: Bounds | None) -> Bounds:
    found = mean_interval(y, f, pool, bounds=bounds)
    return found.lower, found.upper


def same_ours(y: np.ndarray, f: np.ndarray, pool: np.ndarray, _: Bounds | None) -> Bounds:
    found = ppi_interval(y, f, pool, lam=None, normal=True)
    return found.lower, found.upper


def labels_alone(y: np.ndarray, _f: np.ndarray, _pool: np.ndarray, _: Bounds | None) -> Bounds:
    if np.ptp(y) == 0:  # refused, as it would be a point
        return float(y[0]), float(y[0])
    found = t_interval(y, confidence_level=LEVEL)
    return found.lower, found.upper


METHODS: dict[str, Method] = {
    "ours, default": default_ours,
    "ppi_py, tuned λ": tuned_theirs,
    "ppi_py, λ = 1": fixed_theirs,
    "labels alone (t)": labels_alone,
}


def graded(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Skewed grades; a judge that correlates with them by about 0.8."""
    truth = rng.gamma(2.0, 1.0, n)
    return truth, 0.6 * truth + 0.5 + rng.normal(0, 0.6, n)


def verdicts(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Nine answers in ten are correct; a judge that is right about 85 in 100."""
    truth = (rng.random(n) < 0.9).astype(float)
    return truth, np.where(rng.random(n) < 0.85, truth, 1 - truth)


KINDS = {"skewed grades": (graded, 2.0, None), "90 % correct": (verdicts, 0.9, (0.0, 1.0))}


def covered(kind: str, n: int, draws: int) -> list[dict[str, Any]]:
    """Share of draws whose interval holds the population mean, and the mean width."""
    draw, mean, bounds = KINDS[kind]
    made = []
    for seed in range(draws):
        truth, judge = draw(np.random.default_rng([seed, n]), n + POOL)
        made.append((truth[:n], judge[:n], judge[n:]))
    ends: dict[str, list[Any]] = {
        name: [method(*parts, bounds) for parts in made] for name, method in METHODS.items()
    }
    rows = []
    for name, pairs in ends.items():
        # what is not finite where all labels agree counts as a point
        points = [
            pair if np.isfinite(sum(pair)) else (parts[0].mean(),) * 2
            for pair, parts in zip(pairs, made, strict=True)
        ]
        low, high = np.array(points).T
        rows.append(
            {
                "kind": kind,
                "labels": n,
                "method": name,
                "coverage": round(float(np.mean((low <= mean) & (mean <= high))), 4),
                "width": round(float(np.mean(high - low)), 4),
            }
        )
    return rows


def largest_difference(draws: int) -> float:
    """Between the bounds of ppi_py and our form of its formula."""
    found = 0.0
    for seed in range(draws):
        truth, judge = graded(np.random.default_rng(seed), 50 + POOL)
        parts = truth[:50], judge[:50], judge[50:]
        pairs = zip(tuned_theirs(*parts, None), same_ours(*parts, None), strict=True)
        found = max(found, *(abs(a - b) for a, b in pairs))
    return found


def milliseconds(method: Method, rounds: int) -> float:
    """Of one interval from 50 labels and the pool: the best of five blocks."""
    truth, judge = graded(np.random.default_rng(0), 50 + POOL)
    parts = truth[:50], judge[:50], judge[50:]
    blocks = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(rounds):
            method(*parts, None)
        blocks.append((time.process_time() - start) / rounds)
    return round(1000 * min(blocks), 3)


def ppi_rows(*, quick: bool) -> dict[str, Any]:
    """All measurements of this part."""
    draws, rounds = (50, 5) if quick else (2_000, 100)
    timed = {
        "ours, default": default_ours,
        "ours, the formula of ppi_py": same_ours,
        "ppi_py, tuned λ": tuned_theirs,
    }
    return {
        "draws": draws,
        "pool": POOL,
        "difference": largest_difference(draws // 10),
        "ms": {name: milliseconds(method, rounds) for name, method in timed.items()},
        "coverage": [row for kind in KINDS for n in LABELS for row in covered(kind, n, draws)],
    }
