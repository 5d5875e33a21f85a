"""Do intervals cover? Resampling complete data as if they were a population."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import (
    CalibrationError,
    DataError,
    InsufficientDataError,
    as_generator,
)
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.judged import Method, mean_interval
from rag_sourcebias.infer.samples import Labels, Target, as_values, check_target

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
    """What one method did with samples of one size.

    Parameters
    ----------
    method : str
    n : int
        Labelled items (clusters, where given) in each sample.
    coverage : float
        Share of the intervals that hold the true value; 0 when none was returned.
    mean_width : float
        Mean distance between the ends.
    n_runs : int
        Samples drawn.
    failures : dict of str to int
        Why no interval was returned, and how often.
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


# Methods run on drawn samples.


IntervalMethod = Callable[[FloatArray, FloatArray, FloatArray], Interval]


def _cells(
    samples: list[Sample],
    methods: Mapping[str, IntervalMethod | None],
    truths: list[float],
    seed: int,
    *,
    n: int,
    target: Target,
    bounds: tuple[float, float] | None,
) -> list[CoverageCell]:
    """Run every method, by name or as a callable, on the same samples."""

    def interval(sample: Sample, name: str, method: IntervalMethod | None) -> Interval:
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

    found = []
    for name, method in methods.items():
        tally = Tally(name, n)
        for sample, truth in zip(samples, truths, strict=True):
            tally.attempt(partial(interval, sample, name, method), truth)
        found.append(tally.cell())
    return found


# Do intervals cover? Resampling complete data as if they were a population.
# Where the human value of every item is known, the true mean is known too. Samples of n labelled
# and N unlabelled items are drawn from the items with replacement, a method gives its interval for
# each, and the share of intervals that hold the truth is the coverage.


def coverage_study(
    population_y: npt.ArrayLike,
    population_yhat: npt.ArrayLike,
    *,
    sizes: Sequence[int],
    methods: Sequence[str] | Mapping[str, IntervalMethod],
    n_unlabeled: int,
    n_runs: int = 500,
    target: Target = "population",
    clusters: Labels | None = None,
    bounds: tuple[float, float] | None = None,
    rng: np.random.Generator | int = 0,
) -> tuple[CoverageCell, ...]:
    """Resample complete data as a population and count how often intervals cover.

    Parameters
    ----------
    population_y, population_yhat : array-like of shape (m,)
        Human and judge value of every item.
    sizes : sequence of int
        Numbers of labelled items (of clusters, where given) to study.
    methods : sequence of str, or mapping of str to callable
        Names :func:`~rag_sourcebias.mean_interval` knows; or callables of (y, yhat,
        yhat_unlabeled) that return an interval for the target. An InsufficientDataError or
        CalibrationError counts as a failure.
    n_unlabeled : int
        Unlabelled items (clusters) beside them.
    n_runs : int
        Samples for each size; all methods see the same samples.
    target : {"population", "pool", "unlabeled"}
        What the intervals are for. The truth is the mean of ``population_y``, or of the human
        values that were drawn.
    clusters : sequence of length m, optional
        Items that belong together; whole clusters are drawn, and one drawn twice counts as two.
    bounds : tuple of float, optional
        Range of the human values, for the methods that use it.

    Returns
    -------
    tuple of CoverageCell
        By size, then by method.

    Raises
    ------
    DataError
        If values are missing, a size is below 2, or a method is unknown.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(5, 2, 2000)
    >>> cells = coverage_study(
    ...     y, y + rng.normal(1, 1, 2000), sizes=[20], methods=["regression", "labels"],
    ...     n_unlabeled=500, n_runs=200,
    ... )
    >>> [(cell.method, round(cell.coverage, 2), round(cell.mean_width, 2)) for cell in cells]
    [('regression', 0.91, 0.9), ('labels', 0.94, 1.83)]
    """
    check_target(target)
    y, yhat = as_values("population_y", population_y), as_values("population_yhat", population_yhat)
    if len(y) != len(yhat) or not len(y):
        raise DataError(f"{len(y)} human and {len(yhat)} judge values; one of each per item")
    if min(sizes, default=2) < 2 or n_unlabeled < 1 or n_runs < 1:
        raise DataError(
            f"sizes {list(sizes)}, {n_unlabeled} unlabelled, {n_runs} runs: at least 2, 1 and 1"
        )
    generator = as_generator(rng)
    codes = None if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    if codes is not None and len(codes) != len(y):
        raise DataError(f"{len(codes)} clusters for {len(y)} items")
    given = methods if isinstance(methods, Mapping) else dict.fromkeys(methods)
    truth, population = float(y.mean()), Population(y, yhat, codes)
    cells = []
    for n in sizes:
        samples = [population.draw(n, n_unlabeled, generator) for _ in range(n_runs)]
        cells += _cells(
            samples,
            given,
            [sample.truth(target, truth) for sample in samples],
            int(generator.integers(2**63)),
            n=n,
            target=target,
            bounds=bounds,
        )
    return tuple(cells)
