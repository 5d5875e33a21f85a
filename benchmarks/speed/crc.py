"""CRC calibration against the bisection of [R], on the same batches.

    python benchmarks/speed/crc.py [--quick]

Prints and returns ratios within one run. 100 labelled queries × 100 documents × 4 grades, 10,000
bootstrap batches, DCG over all 100 documents.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from math import floor

import numpy as np

from rag_sourcebias.stats.crc import RankedLabels
from rag_sourcebias.stats.crc_intervals import calibrate_dual, crc_interval

GAINS = 2.0 ** np.arange(4) - 1
CUTS = np.array([0.0, 1.0, 2.0])
LEVEL = 0.95
TIE = 1e-9


def workload(n_queries: int, n_docs: int, rng: np.random.Generator) -> tuple:
    """Return distributions, weights and human utilities: a generous judge with soft labels."""
    latent = rng.normal(1.0, 0.9, (n_queries, 1)) - 0.5 * np.log(np.arange(1, n_docs + 1))
    latent = latent + rng.normal(0, 1, (n_queries, n_docs))
    grades = (latent[..., None] > CUTS).sum(-1)
    seen = 0.58 * latent + 1.0 + rng.normal(0, 0.7, (n_queries, 1))
    seen = seen + rng.normal(0, 0.6, (n_queries, n_docs))
    above = 1 / (1 + np.exp(-(seen[..., None] - CUTS) / 0.35))
    ends = (np.ones((n_queries, n_docs, 1)), np.zeros((n_queries, n_docs, 1)))
    full = np.concatenate([ends[0], above, ends[1]], axis=-1)
    weights = 1 / np.log2(np.arange(2, n_docs + 2))
    return full[..., :-1] - full[..., 1:], weights, GAINS[grades] @ weights


def perturbed(probs: np.ndarray, lam: float) -> np.ndarray:
    """Eq. 16–18, all documents at once."""
    if lam < 0:
        return perturbed(probs[..., ::-1], -lam)[..., ::-1]
    before = np.cumsum(probs, axis=-1) - probs
    kept = np.maximum(probs - np.maximum(lam - before, 0.0), 0.0)
    kept[..., -1] = probs[..., -1]
    return kept / kept.sum(axis=-1, keepdims=True)


def bisection(
    probs: np.ndarray, weights: np.ndarray, y: np.ndarray, indices: np.ndarray, *, tolerance: float
) -> tuple[float, float]:
    """Eq. 22–25: two binary searches over λ, every batch looked at in every step."""
    m = len(indices)
    allowed = floor((m * 5 - 95) / 200)  # ½(α − (1 − α)/M) of M batches at 95 %

    def sums(lam: float) -> np.ndarray:
        errors = (perturbed(probs, lam) @ GAINS) @ weights - y
        return errors[indices].sum(axis=1)

    low, high = -1.0, 1.0
    while high - low > tolerance:
        middle = (low + high) / 2
        covers = (sums(middle) < -TIE).sum() <= allowed
        low, high = (low, middle) if covers else (middle, high)
    lambda_high = high
    low, high = -1.0, 1.0
    while high - low > tolerance:
        middle = (low + high) / 2
        covers = (sums(middle) > TIE).sum() <= allowed
        low, high = (middle, high) if covers else (low, middle)
    return low, lambda_high


def best_seconds(work: Callable[[], object], rounds: int) -> float:
    """Best of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main(*, quick: bool = False) -> dict[str, float]:
    """Return speed ratios, the largest difference in λ and the error of the limit's width."""
    n, docs, m, many = (30, 20, 1000, 20_000) if quick else (100, 100, 10_000, 1_000_000)
    rng = np.random.default_rng(0)
    probs, weights, y = workload(n, docs, rng)
    labels = RankedLabels.from_grid(probs, weights, GAINS)
    indices = rng.integers(0, n, size=(m, n))

    def reference() -> tuple[float, float]:
        return bisection(probs, weights, y, indices, tolerance=1e-10)

    def exact() -> object:
        return calibrate_dual(labels, y, confidence_level=LEVEL, indices=indices)

    def limit() -> object:
        return calibrate_dual(labels, y, confidence_level=LEVEL)

    pair, found, smooth = reference(), exact(), limit()
    seconds = {
        work.__name__: best_seconds(work, rounds)
        for work, rounds in ((reference, 5), (exact, 30), (limit, 100))
    }
    differences, off = [], []
    for seed in range(1, 4 if quick else 7):
        draw = np.random.default_rng(seed)
        p, w, truth = workload(n, docs, draw)
        some = RankedLabels.from_grid(p, w, GAINS)
        rows = draw.integers(0, n, size=(m, n))
        ours = calibrate_dual(some, truth, confidence_level=LEVEL, indices=rows)
        theirs = bisection(p, w, truth, rows, tolerance=1e-10)
        differences += [abs(ours.lambda_low - theirs[0]), abs(ours.lambda_high - theirs[1])]
        if seed <= 3:
            widths = [
                crc_interval(calibration, some).half_width
                for calibration in (
                    calibrate_dual(some, truth, confidence_level=LEVEL),
                    calibrate_dual(some, truth, confidence_level=LEVEL, n_batches=many, rng=seed),
                    ours,
                )
            ]
            off.append([widths[0] / widths[1] - 1, widths[2] / widths[1] - 1])
    differences += [abs(found.lambda_low - pair[0]), abs(found.lambda_high - pair[1])]
    return {
        "bisection_ms": 1000 * seconds["reference"],
        "exact_ms": 1000 * seconds["exact"],
        "limit_ms": 1000 * seconds["limit"],
        "exact_speedup": seconds["reference"] / seconds["exact"],
        "limit_speedup": seconds["reference"] / seconds["limit"],
        "largest_lambda_difference": max(differences),
        "limit_width_error": max(abs(row[0]) for row in off),
        "draw_width_error": max(abs(row[1]) for row in off),
        "limit_lambda_low": smooth.lambda_low,
        "limit_lambda_high": smooth.lambda_high,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    print(json.dumps(main(quick=parser.parse_args().quick), indent=1))
