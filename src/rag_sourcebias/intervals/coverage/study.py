"""Do intervals cover? Resampling complete data as if they were a population.

Where the human value of every item is known, the true mean is known too. Samples of n labelled and
N unlabelled items are drawn from the items with replacement, a method gives its interval for each,
and the share of intervals that hold the truth is the coverage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.quantiles import as_generator, check_level
from rag_sourcebias.intervals.coverage.draws import Population
from rag_sourcebias.intervals.coverage.methods import IntervalMethod, Methods
from rag_sourcebias.intervals.coverage.tally import CoverageCell
from rag_sourcebias.intervals.values import Labels, Target, as_values, check_target
from rag_sourcebias.types.serial import to_plain

__all__ = ["CoverageStudy", "coverage_study"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageStudy:
    """Coverage and mean width for every method and size.

    Parameters
    ----------
    cells : tuple of CoverageCell
    target : {"population", "pool", "unlabeled"}
    confidence_level : float
    n_unlabeled : int
    truth : float
        Mean of the population resampled.
    """

    cells: tuple[CoverageCell, ...]
    target: str
    confidence_level: float
    n_unlabeled: int
    truth: float

    def cell(self, method: str, n: int) -> CoverageCell:
        """Return one cell; KeyError when it was not studied."""
        for cell in self.cells:
            if cell.method == method and cell.n == n:
                return cell
        raise KeyError((method, n))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))


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
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> CoverageStudy:
    """Resample complete data as a population and count how often intervals cover.

    Parameters
    ----------
    population_y, population_yhat : array-like of shape (m,)
        Human and judge value of every item.
    sizes : sequence of int
        Numbers of labelled items (of clusters, where given) to study.
    methods : sequence of str, or mapping of str to callable
        Names :func:`~rag_sourcebias.intervals.mean.mean_interval` knows, ``"bca"`` and
        ``"studentized"``; or callables of (y, yhat, yhat_unlabeled) that return an interval for
        the target. An InsufficientDataError or CalibrationError counts as a failure.
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
    CoverageStudy

    Raises
    ------
    DataError
        If values are missing, a size is below 2, or a method is unknown.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(5, 2, 2000)
    >>> study = coverage_study(
    ...     y, y + rng.normal(1, 1, 2000), sizes=[20], methods=["regression", "labels"],
    ...     n_unlabeled=500, n_runs=200,
    ... )
    >>> [(cell.method, round(cell.coverage, 2), round(cell.mean_width, 2)) for cell in study.cells]
    [('regression', 0.94, 1.0), ('labels', 0.94, 1.83)]
    """
    check_level(confidence_level)
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
    study = Methods(target, confidence_level, bounds, float(y.mean()))
    population = Population(y, yhat, codes)
    cells = []
    for n in sizes:
        samples = [population.draw(n, n_unlabeled, generator) for _ in range(n_runs)]
        cells += study.cells(n, samples, methods, int(generator.integers(2**63)))
    return CoverageStudy(
        cells=tuple(cells),
        target=target,
        confidence_level=confidence_level,
        n_unlabeled=n_unlabeled,
        truth=study.population,
    )
