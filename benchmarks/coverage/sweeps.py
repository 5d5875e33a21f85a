"""The figures of Oosterhuis et al. (KDD 2024) on simulated queries and on resampled real ones."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import simulator as sim
from real_sets import interval_labels
from study import CoverageCell, Tally, coverage_study

from rag_sourcebias.core.errors import CalibrationError
from rag_sourcebias.judged.crc import (
    RankedLabels,
    calibrate_dual,
    crc_interval,
    per_query_intervals,
)

SIZES = (3, *range(5, 101, 5))  # 21 sizes, as in Fig. 2
METHODS = ("regression", "labels", "bootstrap", "ppi", "ppi++", "ppi-crossfit", "ppi-paper")
CRC = "crc-paper"
STEPS = tuple(round(0.1 * i, 1) for i in range(11))
SOURCES = ("TREC-DL", "Robust04", "dl19_dl20_bm25_umbrela3votes", "dl20_bm25_promptdist")
_QUERIES = 100_000  # so many that drawing with replacement is drawing fresh ones


@dataclass(frozen=True, eq=False)
class Source:
    """Queries with human grades and judge distributions, drawn from with replacement."""

    labels: RankedLabels
    human_labels: RankedLabels
    unlabeled: int

    @property
    def y(self) -> np.ndarray:
        return self.human_labels.utilities()

    def with_probs(self, probs: np.ndarray) -> Source:
        return Source(replace(self.labels, probs=probs), self.human_labels, self.unlabeled)

    def adversarial(self, beta: float) -> Source:
        probs = (1 - beta) * self.labels.probs + beta * (1 - self.labels.probs)
        return self.with_probs(probs / probs.sum(axis=1, keepdims=True))

    def oracle(self, tau: float) -> Source:
        return self.with_probs((1 - tau) * self.labels.probs + tau * self.human_labels.probs)


@lru_cache(maxsize=1)
def source(name: str, n_queries: int = _QUERIES) -> Source:
    """A preset of the simulator, or one of the ``interval_labels`` files."""
    if name in sim.PRESETS:
        queries = sim.draw(n_queries, np.random.default_rng(7), preset=name)
        labels = queries.labels()
        truth = np.eye(queries.probs.shape[-1])[queries.grades].reshape(labels.probs.shape)
        return Source(labels, replace(labels, probs=truth), 125 if name == "Robust04" else 112)
    root = Path(os.environ["RAG_SOURCEBIAS_DATA"])
    for found in interval_labels(root):
        if found.name.endswith(name):
            return Source(found.labels, found.human_labels, 112)
    raise KeyError(name)


def sweep_cell(*, name: str, n: int, n_runs: int) -> list[dict]:
    """Every method at one number of labelled queries (Fig. 2)."""
    data = source(name)
    seed = [n, *name.encode()]
    studied = coverage_study(
        data.y,
        data.labels.utilities(),
        sizes=[n],
        methods=METHODS,
        n_unlabeled=data.unlabeled,
        n_runs=n_runs,
        rng=np.random.default_rng([0, *seed]),
    )
    cells = [*studied, *crc_cells(data, n, n_runs, np.random.default_rng([1, *seed]))]
    return [{"source": name, **line(cell)} for cell in cells]


def crc_cells(data: Source, n: int, n_runs: int, rng: np.random.Generator) -> list[CoverageCell]:
    """Dual calibration of [R] in the limit of many batches.

    Held to the mean of the unlabelled queries, which it is meant for, and to the population mean,
    which the other methods are held to.
    """
    y, truth = data.y, float(data.y.mean())
    goals = {CRC: Tally(CRC, n), f"{CRC}, unlabelled": Tally(f"{CRC}, unlabelled", n)}
    for _ in range(n_runs):
        drawn = rng.integers(0, len(y), n + data.unlabeled)
        first, others = data.labels.take(drawn[:n]), data.labels.take(drawn[n:])

        def work(first=first, others=others, values=y[drawn[:n]]):
            return crc_interval(calibrate_dual(first, values, confidence_level=0.95), others)

        try:
            found = work()
        except CalibrationError:
            for tally in goals.values():
                tally.attempt(work, truth)
            continue
        for tally, goal in zip(goals.values(), (truth, float(y[drawn[n:]].mean())), strict=True):
            tally.add(found.lower, found.upper, goal)
    return [tally.cell() for tally in goals.values()]


def judge_cell(*, name: str, kind: str, strength: float, n_runs: int) -> list[dict]:
    """Worse and better judges at a fixed number of labels (Fig. 3)."""
    # fewer queries: every strength needs its own copy of the distributions
    data = source(name, 20_000)
    changed = data.adversarial(strength) if kind == "adversarial" else data.oracle(strength)
    n = 112 if name in sim.PRESETS else 48
    seed = [round(10 * strength), *kind.encode(), *name.encode()]
    studied = coverage_study(
        changed.y,
        changed.labels.utilities(),
        sizes=[n],
        methods=("regression", "labels", "ppi++", "ppi-paper"),
        n_unlabeled=changed.unlabeled,
        n_runs=n_runs,
        rng=np.random.default_rng([2, *seed]),
    )
    cells = [*studied, *crc_cells(changed, n, n_runs, np.random.default_rng([3, *seed]))]
    where = {"source": name, "kind": kind, "strength": strength}
    return [where | line(cell) for cell in cells]


def line(cell: CoverageCell) -> dict:
    """One line of the results."""
    return {
        "method": cell.method,
        "n": cell.n,
        "coverage": round(cell.coverage, 4),
        "width": float(f"{cell.mean_width:.5g}"),
        "runs": cell.n_runs,
        "failed": cell.n_failed,
    }


def gain_curves(steps: int = 101) -> dict:
    """Expected gain of three label distributions against λ (Fig. 1)."""
    falling = np.array([0.35, 0.4, 0.2, 0.05, 0.01])
    shapes = {
        "mostly low": falling / falling.sum(),  # as printed they sum to 1.01
        "mostly high": falling[::-1] / falling.sum(),
        "uniform": np.full(5, 0.2),
    }
    lam = np.linspace(-1, 1, 2 * steps - 1)
    gains = np.exp2(np.arange(5)) - 1.0
    curves = {}
    for name, probs in shapes.items():
        labels = RankedLabels.from_grid(probs[None, None, :], np.ones(1), gains)
        curves[name] = [round(float(labels.utilities_at(float(value))[0]), 4) for value in lam]
    return {"lambda": [round(float(v), 3) for v in lam], "gain": curves}


def per_query_panels(name: str, *, strengths: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)) -> list:
    """Intervals of single queries by the default rule, for better and better judges (Fig. 4)."""
    data = source(name, 20_000)
    rng = np.random.default_rng([4, *name.encode()])
    total = data.labels.n_queries
    half = 112 if name in sim.PRESETS else total // 2
    drawn = rng.permutation(total)[: 2 * half]
    first, test = drawn[:half], drawn[half:]
    panels = []
    for strength in strengths:
        labels = data.oracle(strength).labels
        found = per_query_intervals(
            labels.take(first), data.y[first], labels.take(test), confidence_level=0.95
        )
        order = np.argsort(data.y[test], kind="stable")
        panels.append(
            {
                "strength": strength,
                "truth": data.y[test][order].round(3).tolist(),
                "judge": labels.take(test).utilities()[order].round(3).tolist(),
                "lower": found.lower[order].round(3).tolist(),
                "upper": found.upper[order].round(3).tolist(),
            }
        )
    return panels
