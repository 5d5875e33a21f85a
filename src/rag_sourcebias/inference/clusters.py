"""Intervals for means of observations that come in clusters, such as pairs within a query."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level, t_quantile
from rag_sourcebias.types.intervals import Interval

__all__ = ["clustered_mean", "clustered_standardised_mean"]

FloatArray = npt.NDArray[np.float64]
_ASSUMPTIONS = (
    "clusters (queries) are a random sample; observations within one may depend on each other",
)


def clustered_mean(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """Mean over observations with a cluster-robust interval (CR1, t with clusters − 1).

    Parameters
    ----------
    values : float64 array of shape (n,)
    clusters : integer array of shape (n,)
    bounds : tuple of float
        Range of the mean; the interval is cut to it.
    """
    estimate = float(np.mean(values)) if len(values) else math.nan
    return _interval(
        estimate,
        values - estimate,
        clusters,
        level=confidence_level,
        method="cluster-robust mean",
        bounds=bounds,
    )


def clustered_standardised_mean(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """Mean in units of the standard deviation, with a cluster-robust interval.

    The standard deviation is estimated too; its error enters through the influence function.
    """
    n = len(values)
    if n < 2 or not np.ptp(values) > 0:
        raise InsufficientDataError(
            f"{n} observation(s) without spread cannot be standardised; at least 2 different "
            "values are needed",
            n=n,
        )
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    centred = (values - mean) / sd
    influence = centred - mean / sd / 2 * (centred**2 - 1)
    return _interval(
        mean / sd,
        influence,
        clusters,
        level=confidence_level,
        method="cluster-robust standardised mean",
    )


def _interval(
    estimate: float,
    influence: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    level: float,
    method: str,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    check_level(level)
    if influence.shape != clusters.shape:
        raise DataError(f"{len(influence)} values but {len(clusters)} cluster labels")
    n = len(influence)
    _, code = np.unique(clusters, return_inverse=True)
    g = int(code.max(initial=-1)) + 1
    if g < 2:
        raise InsufficientDataError(
            f"a cluster-robust interval needs at least 2 clusters, there is {g}", n=g, n_needed=2
        )
    sums = np.bincount(code, weights=influence)
    error = math.sqrt(float(np.sum(sums**2)) * g / (g - 1)) / n
    width = t_quantile(0.5 + level / 2, g - 1) * error
    return Interval(
        estimate=estimate,
        lower=max(estimate - width, bounds[0]),
        upper=min(estimate + width, bounds[1]),
        confidence_level=level,
        method=method,
        n_labeled=g,
        assumptions=_ASSUMPTIONS,
    )
