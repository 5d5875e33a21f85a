"""Coverage when real data are resampled as if they were a population."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import sweeps
from real_sets import RealSet, real_sets

from rag_sourcebias.stats.coverage import CoverageCell, coverage_study
from rag_sourcebias.stats.samples import Target

SIZES = (10, 20, 30, 40, 60, 100)
RECHECK_FROM = 500  # runs; a quick pass rechecks nothing
RECHECK_RUNS = 5000
DOUBTFUL = 0.94
DEFAULTS = ("regression", "labels")  # the methods that know designs and all targets


@lru_cache(maxsize=1)
def sets() -> list[RealSet]:
    return real_sets(Path(os.environ["RAG_SOURCEBIAS_DATA"]))


def set_cells(*, indices: list[int], n_runs: int, n_pool_runs: int) -> list[dict]:
    """Each set: all methods for the population, the default for the pool and on its scale.

    ``scale`` tells whether the method was told the range of the human values.
    """
    rows: list[dict] = []
    for index in indices:
        data = sets()[index]
        clustered = data.clusters is not None
        crc = data.labels is not None
        everything = DEFAULTS if clustered else sweeps.METHODS
        plans = [("population", False, everything, n_runs), ("pool", False, DEFAULTS, n_pool_runs)]
        if data.bounds and not data.binary:
            plans += [("population", True, DEFAULTS, n_pool_runs)]
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
            if crc and target == "population":
                source = sweeps.source(data.name.split("/")[1])
                rng = np.random.default_rng([6, index])
                cells += [c for n in SIZES for c in sweeps.crc_cells(source, n, runs, rng)]
            where = {"set": data.name, "target": target, "scale": scale}
            rows += [where | sweeps.line(cell) for cell in cells]
    return rows


def _again(
    cell: CoverageCell, data: RealSet, plan: tuple[Target, bool], index: int
) -> CoverageCell:
    """Measure a doubtful cell of the default method afresh, with more runs.

    Of hundreds of cells with some hundred runs, chance alone puts a few below any line. The fresh
    runs replace the first ones, whichever way they come out.
    """
    if cell.method != "regression" or cell.n < 20 or cell.coverage >= DOUBTFUL:
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
