"""Coverage on simulated judged rankings, where the true value is known; fresh data in every run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import get_args

import numpy as np
import simulator as sim
from study import CoverageCell, Tally

from rag_sourcebias.core.errors import CalibrationError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.judged import mean_interval
from rag_sourcebias.judged.crc import PerQueryRule, per_query_intervals, recalibration
from rag_sourcebias.judged.plan import design_document_sample, document_interval

SIZES = (15, 20, 30, 50, 100)
POOLS = (112, 1000)
TARGETS = ("population", "pool")
SIGMAS, RHOS = (0.5, 1.0, 1.5), (0.0, 0.7)
BAR_PRESETS = ("TREC-DL", "2x-biased", "over-confident", "Robust04")
DEFAULT, RECALIBRATED = "regression", "regression, judge recalibrated"
JUDGES: dict[str, Callable[[sim.JudgedQueries, np.random.Generator], sim.JudgedQueries]] = {
    "one-hot": lambda queries, _: sim.one_hot(queries),
    "1 vote": lambda queries, rng: sim.votes(queries, 1, rng),
    "5 votes": lambda queries, rng: sim.votes(queries, 5, rng),
    "constant": lambda queries, _: sim.constant(queries),
    "inverted": lambda queries, _: sim.inverted(queries),
    "perfect": lambda queries, _: sim.perfect(queries),
}


def true_mean(preset: str, *, n_queries: int = 2_000_000) -> float:
    """Mean human DCG@10 of the population; standard error below 0.005."""
    rng = np.random.default_rng(0)
    chunk = 50_000
    means = [sim.draw(chunk, rng, preset=preset).human().mean() for _ in range(n_queries // chunk)]
    return float(np.mean(means))


def default_cell(
    *, preset: str, judge: str | None, n: int, n_unlabeled: int, n_runs: int, truth: float
) -> list[dict]:
    """The default method, plain and after recalibration, with labels alone and [R]'s PPI."""
    rng = np.random.default_rng([n, n_unlabeled, *preset.encode(), *(judge or "").encode()])
    tallies: dict[tuple[str, str], Tally] = {}

    def attempt(method: str, target: str, work: Callable[[], Interval], goal: float) -> None:
        tallies.setdefault((method, target), Tally(method, n)).attempt(work, goal)

    for _ in range(n_runs):
        queries = sim.draw(n + n_unlabeled, rng, preset=preset)
        if judge is not None:
            queries = JUDGES[judge](queries, rng)
        y, plain = queries.human(), queries.judge()
        labels = queries.labels()
        lam = recalibration(labels.take(np.arange(n)), y[:n])
        recalibrated = labels.utilities_at(lam)
        for target, goal in zip(TARGETS, (truth, float(y.mean())), strict=True):
            for method, name, yhat in (
                (DEFAULT, "regression", plain),
                (RECALIBRATED, "regression", recalibrated),
                ("labels", "labels", plain),
                ("ppi-paper", "ppi-paper", plain),
            ):
                if (name, target) != ("ppi-paper", "pool"):
                    work = partial(
                        mean_interval, y[:n], yhat[:n], yhat[n:], method=name, target=target
                    )
                    attempt(method, target, work, goal)
    return [
        as_row(tally.cell(), preset=preset, judge=judge, n_unlabeled=n_unlabeled, target=target)
        for (_, target), tally in tallies.items()
    ]


def as_row(cell: CoverageCell, **where: object) -> dict:
    """One line of the results."""
    row = {
        **where,
        "method": cell.method,
        "n": cell.n,
        "coverage": round(cell.coverage, 4),
        "width": float(f"{cell.mean_width:.5g}"),
        "runs": cell.n_runs,
    }
    return row | ({"failures": cell.failures} if cell.failures else {})


def skewed_cell(*, sigma: float, rho: float, n: int, n_runs: int) -> list[dict]:
    """Lognormal values and judges without bounds; ``rho`` between their logarithms; 300 others."""
    rng = np.random.default_rng([n, round(10 * sigma), round(10 * rho)])
    truth = float(np.exp(sigma**2 / 2))
    tallies = {name: Tally(name, n) for name in (DEFAULT, "labels")}
    for _ in range(n_runs):
        z, error = rng.normal(size=(2, n + 300))
        y, f = np.exp(sigma * z), np.exp(sigma * (rho * z + np.sqrt(1 - rho**2) * error))
        for name, tally in tallies.items():
            tally.attempt(partial(mean_interval, y[:n], f[:n], f[n:], method=name), truth)
    return [as_row(tally.cell(), sigma=sigma, rho=rho) for tally in tallies.values()]


def per_query_cell(*, preset: str, n: int, n_runs: int, n_target: int = 200) -> list[dict]:
    """Coverage and width of intervals for single queries, on average over runs and queries."""
    rng = np.random.default_rng([n, 1, *preset.encode()])
    held: dict[str, list[float]] = {}
    widths: dict[str, list[float]] = {}
    failures: dict[str, int] = {}
    for _ in range(n_runs):
        queries = sim.draw(n + n_target, rng, preset=preset)
        labels, y = queries.labels(), queries.human()
        first, others = labels.take(np.arange(n)), labels.take(np.arange(n, n + n_target))
        for rule in get_args(PerQueryRule):
            try:
                found = per_query_intervals(first, y[:n], others, rule=rule, confidence_level=0.95)
            except CalibrationError:
                failures[rule] = failures.get(rule, 0) + 1
                continue
            inside = (found.lower - 1e-9 <= y[n:]) & (y[n:] <= found.upper + 1e-9)
            held.setdefault(rule, []).append(float(inside.mean()))
            widths.setdefault(rule, []).append(float((found.upper - found.lower).mean()))
    return [
        {
            "preset": preset,
            "rule": rule,
            "n": n,
            "coverage": round(float(np.mean(held[rule])), 4) if rule in held else None,
            "width": round(float(np.mean(widths[rule])), 4) if rule in held else None,
            "runs": n_runs,
            "failed": failures.get(rule, 0),
        }
        for rule in get_args(PerQueryRule)
    ]


def document_cell(
    *, preset: str, judge: str | None, n_labels: int, n_queries: int, n_runs: int, truth: float
) -> list[dict]:
    """Labels spread over documents, against whole queries with the same number of labels."""
    rng = np.random.default_rng([n_labels, n_queries, 2, *preset.encode(), *(judge or "").encode()])
    depth = 10
    n = n_labels // depth
    tallies = {
        (name, target): Tally(name, n_labels)
        for name in ("documents", "regression", "ppi-paper")
        for target in TARGETS
        if (name, target) != ("ppi-paper", "pool")
    }
    for _ in range(n_runs):
        queries = sim.draw(n_queries, rng, preset=preset, depth=depth)
        if judge is not None:
            queries = JUDGES[judge](queries, rng)
        labels, y, yhat = queries.labels(), queries.human(), queries.judge()
        gains = queries.gains[queries.grades].ravel()
        sample = design_document_sample(labels, n_labels, seed=int(rng.integers(2**53)))
        for (name, target), tally in tallies.items():
            goal = truth if target == "population" else float(y.mean())
            if name == "documents":
                work = partial(document_interval, labels, sample, gains[sample.rows], target=target)
            else:
                work = partial(mean_interval, y[:n], yhat[:n], yhat[n:], method=name, target=target)
            tally.attempt(work, goal)
    return [
        as_row(tally.cell(), preset=preset, judge=judge, n_queries=n_queries, target=target)
        for (_, target), tally in tallies.items()
    ]
