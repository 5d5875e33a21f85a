"""Methods run on drawn samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.intervals.classical import t_interval
from rag_sourcebias.intervals.coverage.bootstraps import KINDS, bootstrap_ends
from rag_sourcebias.intervals.coverage.draws import Sample
from rag_sourcebias.intervals.coverage.tally import CoverageCell, Tally
from rag_sourcebias.intervals.mean import Method, mean_interval
from rag_sourcebias.intervals.values import Target
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["IntervalMethod", "Methods"]

IntervalMethod = Callable[[FloatArray, FloatArray, FloatArray], Interval]

_BOOTSTRAPS = {"bootstrap": "empirical", "bca": "bca", "studentized": "studentized"}


@dataclass(frozen=True, slots=True)
class Methods:
    """Runs methods, by name or as callables, on drawn samples."""

    target: Target
    level: float
    bounds: tuple[float, float] | None
    population: float

    def cells(
        self,
        n: int,
        samples: list[Sample],
        methods: Sequence[str] | Mapping[str, IntervalMethod],
        seed: int,
    ) -> list[CoverageCell]:
        """Every method on the same samples."""
        given = methods if isinstance(methods, Mapping) else dict.fromkeys(methods)
        truths = [sample.truth(self.target, self.population) for sample in samples]
        kinds = {
            name: _BOOTSTRAPS[name] for name in given if given[name] is None and name in _BOOTSTRAPS
        }
        ends = self._bootstraps(samples, seed) if kinds else {}
        found = []
        for name, method in given.items():
            tally = Tally(name, n)
            for i, (sample, truth) in enumerate(zip(samples, truths, strict=True)):
                if name in kinds and np.ptp(sample.y):
                    lower, upper = ends[kinds[name]][i]
                    tally.add(float(lower), float(upper), truth)
                else:
                    tally.attempt(partial(self._interval, sample, name, method, seed), truth)
            found.append(tally.cell())
        return found

    def _bootstraps(self, samples: list[Sample], seed: int) -> dict[str, FloatArray]:
        if samples[0].clusters is not None or self.target != "population":
            raise DataError("the bootstrap is defined for single items and target 'population'")
        rng = np.random.default_rng(seed)
        spread = [i for i, sample in enumerate(samples) if np.ptp(sample.y)]
        ends = {kind: np.full((len(samples), 2), np.nan) for kind in KINDS}
        if spread:
            drawn = np.stack([samples[i].y for i in spread])
            for kind, values in bootstrap_ends(drawn, confidence_level=self.level, rng=rng).items():
                ends[kind][spread] = values
        return ends

    def _interval(
        self, sample: Sample, name: str, method: IntervalMethod | None, seed: int
    ) -> Interval:
        if method is not None:
            return method(sample.y, sample.yhat, sample.yhat_unlabeled)
        if name in _BOOTSTRAPS:
            return t_interval(sample.y)  # raises: values without spread
        return mean_interval(
            sample.y,
            sample.yhat,
            sample.yhat_unlabeled,
            method=cast("Method", name),
            target=self.target,
            confidence_level=self.level,
            bounds=self.bounds if name in ("regression", "labels") else None,
            clusters=sample.clusters,
            clusters_unlabeled=sample.clusters_unlabeled,
            rng=seed,
        )
