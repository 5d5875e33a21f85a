"""Coverage when real data are resampled as if they were a population."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import sweeps
from real_sets import RealSet, real_sets
from study import CoverageCell, coverage_study

from rag_sourcebias.infer.samples import Target

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
            studied = coverage_study(
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
                for cell in studied
            ]
            if crc and methods is RIVALS:
                source = sweeps.source(data.name.split("/")[1])
                rng = np.random.default_rng([6, index])
                cells += [c for n in SIZES for c in sweeps.crc_cells(source, n, runs, rng)]
            where = {"set": data.name, "target": target, "scale": scale}
            found = [where | sweeps.line(cell) for cell in cells]
            if target == "population" and methods is DEFAULTS:
                _limit_widths(found, data)
            rows += found
    return rows


def _limit_widths(rows: list[dict], data: RealSet) -> None:
    """Add to the default's rows what it is held to beside labels alone.

    ``r`` is the correlation of judge and human values (of clusters' sums about the mean, where
    items lie in clusters), ``limit`` the largest ratio of mean widths: 1.10 at 15 labels, 1.05 from
    30 on, 1 where r is .4 or more, and 1.05 times that of an estimate that knows the slope from 30
    labels on.
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
        row |= {"r": round(r, 3), "limit": round(float(limit), 4)}


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
    studied = coverage_study(
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
    return studied[0]
