"""Do intervals cover? Resampling complete data as if they were a population."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np

from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import CalibrationError, InsufficientDataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.judged import Method, mean_interval
from rag_sourcebias.infer.samples import Target

# Samples drawn from complete data as if it were a population.


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Labelled and unlabelled items, with the human value of all of them."""

    y: FloatArray
    yhat: FloatArray
    y_unlabeled: FloatArray
    yhat_unlabeled: FloatArray
    clusters: IntArray | None
    clusters_unlabeled: IntArray | None

    def truth(self, target: Target, population: float) -> float:
        """Return the mean the interval is for."""
        if target == "population":
            return population
        if target == "unlabeled":
            return float(self.y_unlabeled.mean())
        return float(np.concatenate([self.y, self.y_unlabeled]).mean())


class Population:
    """Items, or clusters of them, to be drawn with replacement."""

    def __init__(self, y: FloatArray, yhat: FloatArray, codes: IntArray | None) -> None:
        self.y, self.yhat = y, yhat
        self.order, self.starts = np.arange(len(y)), np.arange(len(y) + 1)
        self.clustered = codes is not None
        if codes is not None:
            self.order = np.argsort(codes, kind="stable")
            self.starts = np.searchsorted(codes[self.order], np.arange(int(codes.max()) + 2))

    def draw(self, n: int, pool: int, rng: np.random.Generator) -> Sample:
        """Labelled items and ``pool`` others or, with clusters, that many of them."""
        drawn = rng.integers(0, len(self.starts) - 1, n + pool)
        if not self.clustered:
            rows, copy, cut = drawn, None, n
        else:
            sizes = (self.starts[1:] - self.starts[:-1])[drawn]
            rows = np.repeat(self.starts[drawn] - (np.cumsum(sizes) - sizes), sizes) + np.arange(
                int(sizes.sum())
            )
            # a cluster drawn twice counts as two
            rows, copy = self.order[rows], np.repeat(np.arange(n + pool), sizes)
            cut = int(sizes[:n].sum())
        return Sample(
            y=self.y[rows[:cut]],
            yhat=self.yhat[rows[:cut]],
            y_unlabeled=self.y[rows[cut:]],
            yhat_unlabeled=self.yhat[rows[cut:]],
            clusters=None if copy is None else copy[:cut],
            clusters_unlabeled=None if copy is None else copy[cut:],
        )


# Counts of what a method did over simulated samples.


_EXACT = 1e-9  # an interval of a perfect judge has no width, but rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageCell:
    """What one method did with ``n_runs`` samples of ``n`` labelled items (clusters, where given).

    ``coverage`` is the share of its intervals that hold the true value (0 when none was returned),
    ``failures`` says why no interval was returned, and how often.
    """

    method: str
    n: int
    coverage: float
    mean_width: float
    n_runs: int
    failures: dict[str, int] = field(default_factory=dict)

    @property
    def n_failed(self) -> int:
        """Samples for which the method returned no interval."""
        return sum(self.failures.values())


class Tally:
    """Counts what a method did over simulated samples."""

    def __init__(self, method: str, n: int) -> None:
        self.method, self.n = method, n
        self.returned = self.covered = 0
        self.width = 0.0
        self.failures: Counter[str] = Counter()

    def add(self, lower: float, upper: float, truth: float) -> None:
        """Count one interval."""
        slack = _EXACT * max(1.0, abs(truth))
        self.returned += 1
        self.covered += bool(lower - slack <= truth <= upper + slack)
        self.width += upper - lower

    def attempt(self, work: Callable[[], Interval], truth: float) -> None:
        """Count the interval ``work`` returns, or why it returns none."""
        try:
            interval = work()
        except (InsufficientDataError, CalibrationError) as error:
            # numbers differ from sample to sample; the reason does not
            self.failures[re.sub(r"\d[\d.e+-]*", "#", str(error))] += 1
            return
        self.add(interval.lower, interval.upper, truth)

    def cell(self) -> CoverageCell:
        """Return what was counted."""
        share = max(self.returned, 1)
        return CoverageCell(
            method=self.method,
            n=self.n,
            coverage=self.covered / share,
            mean_width=self.width / share,
            n_runs=self.returned + self.failures.total(),
            failures=dict(self.failures),
        )


IntervalMethod = Callable[[FloatArray, FloatArray, FloatArray], Interval]


def coverage_study(
    population_y: FloatArray,
    population_yhat: FloatArray,
    *,
    sizes: Sequence[int],
    methods: Sequence[str] | Mapping[str, IntervalMethod],
    n_unlabeled: int,
    n_runs: int = 500,
    target: Target = "population",
    clusters: IntArray | None = None,
    bounds: tuple[float, float] | None = None,
    rng: np.random.Generator | int = 0,
) -> tuple[CoverageCell, ...]:
    """Resample complete data as a population and count how often intervals cover.

    Where the human value of every item is known, the true mean is known too. Samples of labelled
    items (``sizes``) and ``n_unlabeled`` others, or of clusters of them, are drawn with
    replacement, the same for all methods. A method is a name that ``mean_interval`` knows, or a
    callable of (y, yhat, yhat_unlabeled); of the names, ``regression`` and ``labels`` are told the
    ``bounds``. Returns cells by size, then by method.
    """
    generator = np.random.default_rng(rng)
    y, yhat = np.asarray(population_y, float), np.asarray(population_yhat, float)
    codes = None if clusters is None else np.unique(clusters, return_inverse=True)[1]
    population = Population(y, yhat, codes)
    given = methods if isinstance(methods, Mapping) else dict.fromkeys(methods)

    def interval(sample: Sample, name: str, seed: int) -> Interval:
        method = given[name]
        if method is not None:
            return method(sample.y, sample.yhat, sample.yhat_unlabeled)
        return mean_interval(
            sample.y,
            sample.yhat,
            sample.yhat_unlabeled,
            method=cast("Method", name),
            target=target,
            bounds=bounds if name in ("regression", "labels") else None,
            clusters=sample.clusters,
            clusters_unlabeled=sample.clusters_unlabeled,
            rng=seed,
        )

    cells = []
    for n in sizes:
        samples = [population.draw(n, n_unlabeled, generator) for _ in range(n_runs)]
        seed = int(generator.integers(2**63))
        for name in given:
            tally = Tally(name, n)
            for sample in samples:
                work = partial(interval, sample, name, seed)
                tally.attempt(work, sample.truth(target, float(y.mean())))
            cells.append(tally.cell())
    return tuple(cells)
