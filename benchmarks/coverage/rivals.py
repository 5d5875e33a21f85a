"""How wide are simultaneous differences beside the narrowest other method that is true?

    python benchmarks/coverage/rivals.py [--runs RUNS] [--out FOLDER]

The draws of systems.py, whose results must be in FOLDER (default: benchmarks/results), with labels
alone, PPI and PPI++ for every pair, each at Bonferroni's level and with the quantile of the largest
of all differences (normal or t). A method is true where it missed some difference in at most 6 % of
draws. Adds to systems.json, for every cell, the narrowest method that is true in all cells of as
many labels (which somebody could choose beforehand), the narrowest that is true in this one (which
is known afterwards only), and bars: our median width is at most 1.2 times theirs. Exit status 1
when a cell misses the first.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import parallel  # sets the number of threads before numpy is imported

import numpy as np  # isort: skip
import systems
from run import write
from scipy.stats import norm, t

DRAWS = 4_000
BARS = (
    "median width / narrowest rival that is true in every cell of as many labels, at most 1.2",
    "median width / narrowest rival that is true in this cell, at most 1.2",
)
KEYS = ("rival everywhere", "rival here")


def methods(y: np.ndarray, f: np.ndarray, f_others: np.ndarray, rng: np.random.Generator) -> dict:
    """Estimate and half-width of every pair's difference, by method."""
    n, m = y.shape
    i, j = np.triu_indices(m, 1)
    d, e, other = y[:, i] - y[:, j], f[:, i] - f[:, j], f_others[:, i] - f_others[:, j]
    spread = np.concatenate([e, other]).var(axis=0, ddof=1)
    shared = ((d - d.mean(0)) * (e - e.mean(0))).sum(0) / (n - 1)
    tuned = shared / np.where(spread > 0, spread, np.inf) / (1 + n / len(other))
    found = {}
    slopes = {"labels": np.zeros_like(tuned), "PPI": np.ones_like(tuned), "PPI++": tuned.clip(0, 1)}
    for name, slope in slopes.items():
        rest = d - slope * e
        parts = [
            (rest - rest.mean(0)) / np.sqrt(n * (n - 1)),
            slope * (other - other.mean(0)) / np.sqrt(len(other) * (len(other) - 1)),
        ]
        estimate = rest.mean(0) + slope * other.mean(0)
        error = np.sqrt(sum((part**2).sum(0) for part in parts))
        root = np.concatenate(parts)
        if root.shape[1] < len(root):  # fewer differences than items: a smaller root will do
            values, vectors = np.linalg.eigh(root.T @ root)
            root = np.sqrt(values.clip(0))[:, None] * vectors.T
        largest = rng.standard_normal((DRAWS, len(root))) @ root
        largest = np.abs(largest / np.where(error > 0, error, np.inf)).max(1)
        wider = np.sqrt(rng.chisquare(n - 1, DRAWS) / (n - 1))
        tail = 1 - 0.025 / len(i)
        for what, quantile in (
            ("Bonferroni, normal", norm.ppf(tail)),
            ("Bonferroni, t", t.ppf(tail, n - 1)),
            ("largest, normal", np.quantile(largest, 0.95)),
            ("largest, t", np.quantile(largest / wider, 0.95)),
        ):
            found[f"{name}, {what}"] = estimate, quantile * error
    return found


def cells(name: str, m: int, n: int, runs: int) -> list[dict]:
    """Share of draws in which some difference is missed, and median width, by method."""
    y_all, f_all, _ = systems.population(name)
    first, second = np.triu_indices(m, 1)
    missed: dict[str, int] = {}
    widths: dict[str, list[float]] = {}
    for run in range(runs):
        chosen, rows = systems.drawn(y_all, m, n, run)
        y, f = y_all[rows][:, chosen], f_all[rows][:, chosen]
        truth = y_all[:, chosen].mean(0)
        gap = truth[first] - truth[second]
        for method, (estimate, half) in methods(
            y[:n], f[:n], f[n:], np.random.default_rng(run)
        ).items():
            out = bool((np.abs(estimate - gap) > half + 1e-12).any())
            missed[method] = missed.get(method, 0) + out
            widths.setdefault(method, []).append(2 * float(np.median(half)))
    return [{k: (missed[k] / runs, float(np.median(widths[k]))) for k in missed}]


def main() -> int:
    parser = argparse.ArgumentParser(description="Widths beside other simultaneous intervals.")
    parser.add_argument("--runs", type=int, default=1000, help="draws of each cell")
    parser.add_argument("--out", type=Path, default=systems.ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    started = time.perf_counter()
    record = json.loads((options.out / "systems.json").read_text(encoding="utf-8"))
    jobs = [
        {
            "name": row["population"],
            "m": row["systems"],
            "n": row["n"],
            "runs": options.runs // (5 if row["systems"] > 9 else 1),
        }
        for row in record["cells"]
    ]
    found = parallel.everywhere(cells, jobs)
    record["bars"] = [row for row in record["bars"] if row["what"] not in BARS]
    for what, key, everywhere in zip(BARS, KEYS, (True, False), strict=True):
        over, largest = [], 0.0
        for row, methods_, job in zip(record["cells"], found, jobs, strict=True):
            alike = [f for f, other in zip(found, jobs, strict=True) if other["n"] == job["n"]]
            true = [
                name
                for name in methods_
                if all(f[name][0] <= 0.06 for f in (alike if everywhere else [methods_]))
            ]
            best = min(true, key=lambda name: methods_[name][1], default=None)
            row[key] = best and [best, round(methods_[best][1], 4)]
            if best:
                ratio = row["width"] / methods_[best][1]
                largest = max(largest, ratio)
                where = f"{row['population']}, {row['systems']} systems, n = {row['n']}"
                over += [f"{where}: {ratio:.2f} of {best}"] if ratio > 1.2 else []
        record["bars"].append({"what": what, "value": round(largest, 4), "missed": over})
        print(f"{what}: {largest:.3f}; missed: {'; '.join(over) or 'none'}")
    record["rival runs"] = options.runs
    write(options.out / "systems.json", record)
    print(f"{time.perf_counter() - started:.0f} s")
    return int(bool(record["bars"][-2]["missed"]))


if __name__ == "__main__":
    sys.exit(main())
