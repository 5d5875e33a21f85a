"""Coverage when real data are resampled as if they were a population."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import sweeps
from real_sets import RealSet, real_sets

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.stats.coverage import CoverageCell, Population, coverage_study
from rag_sourcebias.stats.means import mean_interval
from rag_sourcebias.stats.samples import Target

SIZES = (10, 15, 20, 30, 60, 120)
RECHECK_FROM = 500  # runs; a quick pass rechecks nothing
RECHECK_RUNS = 5000
DOUBTFUL = 0.94
DEFAULTS = ("regression", "labels")  # the methods that know designs and all targets
RIVALS = tuple(name for name in sweeps.METHODS if name not in DEFAULTS)


@lru_cache(maxsize=1)
def sets() -> list[RealSet]:
    return real_sets(Path(os.environ["RAG_SOURCEBIAS_DATA"]))


def set_cells(*, indices: list[int], n_runs: int, n_rival_runs: int) -> list[dict]:
    """Each set: all methods for the population, the default for the pool and on its scale.

    ``scale`` tells whether the method was told the range of the human values.
    """
    rows: list[dict] = []
    for index in indices:
        data = sets()[index]
        clustered = data.clusters is not None
        crc = data.labels is not None
        plans = [("population", False, DEFAULTS, n_runs), ("pool", False, DEFAULTS, n_runs)]
        if data.bounds and not data.binary:
            plans += [("population", True, DEFAULTS, n_runs)]
        if not clustered:
            plans += [("population", False, RIVALS, n_rival_runs)]
        for target, scale, methods, runs in plans:
            study = coverage_study(
                data.y,
                data.yhat,
                sizes=SIZES,
                methods=methods,
                n_unlabeled=200 if clustered else 500,
                n_runs=runs,
                target=target,
                clusters=data.clusters,
                bounds=data.bounds if scale else None,
                rng=np.random.default_rng([5, index, len(target)]),
            )
            cells = [
                _again(cell, data, (target, scale), index) if runs >= RECHECK_FROM else cell
                for cell in study.cells
            ]
            if crc and methods is RIVALS:
                source = sweeps.source(data.name.split("/")[1])
                rng = np.random.default_rng([6, index])
                cells += [c for n in SIZES for c in sweeps.crc_cells(source, n, runs, rng)]
            where = {"set": data.name, "target": target, "scale": scale}
            found = [where | sweeps.line(cell) for cell in cells]
            if target == "population" and methods is DEFAULTS:
                _limit_widths(found, data, (target, scale), index, n_runs=4 * runs)
            rows += found
    return rows


def _limit_widths(
    rows: list[dict], data: RealSet, plan: tuple[Target, bool], index: int, *, n_runs: int
) -> None:
    """Add to the default's rows what it is held to beside labels alone.

    ``r`` is the correlation of judge and human values (of clusters' sums about the mean, where
    items lie in clusters), ``limit`` the largest ratio of mean widths: 1.10 at 15 labels, 1.05 from
    30 on, 1 where r is .4 or more, and 1.05 times that of an estimate that knows the slope from 30
    labels on. Where the ratio is larger, ``held`` is the coverage of the same intervals drawn in to
    that width: whether a narrower one would have been true; and ``least`` the ratio at which they
    would cover .94, known from the true mean only.
    """
    n_unlabeled = 200 if data.clusters is not None else 500
    y, yhat = data.y - data.y.mean(), data.yhat - data.yhat.mean()
    if data.clusters is not None:
        code = np.unique(data.clusters, return_inverse=True)[1]
        y, yhat = np.bincount(code, y), np.bincount(code, yhat)
    r = float(np.corrcoef(y, yhat)[0, 1])
    alone = {row["n"]: row["width"] for row in rows if row["method"] == "labels"}
    for row in rows:
        n = row["n"]
        if row["method"] != "regression" or n not in (15, 30, 60, 120) or not alone.get(n):
            continue
        limit = 1.10 if n == 15 else 1.05
        if r >= 0.4:
            limit = 1.0
        if n >= 30:
            limit = min(limit, 1.05 * np.sqrt(1 - r**2 * n_unlabeled / (n_unlabeled + n)))
        ratio = row["width"] / alone[n]
        row |= {"r": round(r, 3), "limit": round(float(limit), 4), "held": None, "least": None}
        if ratio > limit:
            factors = _factors(data, plan, (n, n_unlabeled), n_runs, index)
            row["held"] = round(float(np.mean(factors <= limit / ratio)), 4)
            row["least"] = round(ratio * float(np.quantile(factors, 0.94)), 4)


def _factors(
    data: RealSet, plan: tuple[Target, bool], sizes: tuple[int, int], n_runs: int, index: int
) -> np.ndarray:
    """How far the default's intervals could be drawn in, or must be stretched, to hold the mean."""
    codes = None
    if data.clusters is not None:
        codes = np.unique(data.clusters, return_inverse=True)[1]
    drawn = Population(data.y, data.yhat, codes)
    truth, rng = float(data.y.mean()), np.random.default_rng([8, index, *sizes])
    bounds = data.bounds if plan[1] else None
    factors = []
    for _ in range(n_runs):
        s = drawn.draw(*sizes, rng)
        design = (
            {}
            if s.clusters is None
            else {"clusters": s.clusters, "clusters_unlabeled": s.clusters_unlabeled}
        )
        try:
            found = mean_interval(s.y, s.yhat, s.yhat_unlabeled, bounds=bounds, **design)
        except InsufficientDataError:  # labels that are all alike: no interval, no width
            continue
        error = truth - found.estimate
        reach = found.upper - found.estimate if error > 0 else found.estimate - found.lower
        factors.append(max(abs(error) - 1e-12, 0.0) / max(reach, 1e-15))
    return np.array(factors)


def _again(
    cell: CoverageCell, data: RealSet, plan: tuple[Target, bool], index: int
) -> CoverageCell:
    """Measure a doubtful cell of the default method afresh, with more runs.

    Of hundreds of cells with some hundred runs, chance alone puts a few below any line. The fresh
    runs replace the first ones, whichever way they come out.
    """
    if cell.method != "regression" or cell.n < 15 or cell.coverage >= DOUBTFUL:
        return cell
    target, scale = plan
    study = coverage_study(
        data.y,
        data.yhat,
        sizes=[cell.n],
        methods=["regression"],
        n_unlabeled=200 if data.clusters is not None else 500,
        n_runs=RECHECK_RUNS,
        target=target,
        clusters=data.clusters,
        bounds=data.bounds if scale else None,
        rng=np.random.default_rng([7, index, cell.n, len(target)]),
    )
    return study.cells[0]
