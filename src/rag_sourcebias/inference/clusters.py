"""Intervals for means of observations that come in clusters, such as pairs within a query."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import (
    beta_quantile,
    check_level,
    normal_quantile,
    t_quantile,
)
from rag_sourcebias.types.intervals import Interval

__all__ = ["clustered_difference", "clustered_mean", "clustered_standardised_mean"]

FloatArray = npt.NDArray[np.float64]
_ASSUMPTIONS = (
    "clusters (queries) are a random sample; observations within one may depend on each other",
)
_NO_SPREAD = 1e-12
_MIN_DEPARTING = 15  # as for Relative Δ: fewer make a variance too uncertain


def clustered_mean(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """Mean over observations with a cluster-robust interval.

    Without bounds: CR1 variance and t(clusters − 1). With finite bounds: Clopper–Pearson on the
    effective number of observations (Korn & Graubard 1998), which covers near the bounds, where
    the t interval fails (.63–.93 for a share of .01–.05 with 100 clusters); when no cluster
    differs from another, the number of clusters counts.

    Parameters
    ----------
    values : float64 array of shape (n,)
    clusters : integer array of shape (n,)
    bounds : tuple of float
        Range of the values, such as (0, 1) for win rates.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 2 clusters, or no bounds and no variation between clusters.
    """
    check_level(confidence_level)
    estimate = float(np.mean(values)) if len(values) else math.nan
    error, g = _standard_error(values - estimate, clusters)
    lowest, highest = bounds
    if math.isfinite(lowest) and math.isfinite(highest):
        if float(values.min()) < lowest or float(values.max()) > highest:
            raise DataError(
                f"values reach from {values.min()} to {values.max()}, outside the bounds {bounds}"
            )
        span = highest - lowest
        p = (estimate - lowest) / span
        size = _effective_size(values, clusters, p=p, error=error, span=span, g=g)
        lower, upper = _korn_graubard(p, size, g=g, level=confidence_level)
        lower, upper = lowest + span * lower, lowest + span * upper
        method = "cluster-robust proportion"
    else:
        _require_spread(error, g)
        width = t_quantile(0.5 + confidence_level / 2, g - 1) * error
        lower, upper = max(estimate - width, lowest), min(estimate + width, highest)
        method = "cluster-robust mean"
    return Interval(
        estimate=estimate,
        lower=min(lower, estimate),
        upper=max(upper, estimate),
        confidence_level=confidence_level,
        method=method,
        n_labeled=g,
        assumptions=_ASSUMPTIONS,
    )


def clustered_difference(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """Mean of paired differences of scores in [0, 1], with a cluster-robust interval.

    Where at least 15 differences are not 0 this is :func:`clustered_mean`. Where fewer are, their
    variance is too uncertain: gains and losses are then bounded one by one (Clopper–Pearson, half
    of the error probability each) and the bounds subtracted, so that columns that agree on every
    query give a narrow interval, not a point.

    Parameters
    ----------
    values : float64 array of shape (n,)
        In [−1, 1].
    clusters : integer array of shape (n,)
    """
    check_level(confidence_level)
    if np.count_nonzero(np.abs(values) > _NO_SPREAD) >= _MIN_DEPARTING:
        plain = clustered_mean(values, clusters, confidence_level=confidence_level)
        return replace(plain, lower=max(plain.lower, -1.0), upper=min(plain.upper, 1.0))
    gain, loss = (
        clustered_mean(
            np.maximum(sign * values, 0.0),
            clusters,
            confidence_level=(1 + confidence_level) / 2,
            bounds=(0.0, 1.0),
        )
        for sign in (1, -1)
    )
    return Interval(
        estimate=gain.estimate - loss.estimate,
        lower=gain.lower - loss.upper,
        upper=gain.upper - loss.lower,
        confidence_level=confidence_level,
        method="gains and losses, Clopper–Pearson",
        n_labeled=gain.n_labeled,
        assumptions=_ASSUMPTIONS,
    )


def clustered_standardised_mean(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """Mean in units of the standard deviation, with a cluster-robust interval.

    The standard deviation is estimated too; its error enters through the influence function.

    Parameters
    ----------
    values : float64 array of shape (n,)
        In any unit.
    clusters : integer array of shape (n,)
        Same number, dependent observations.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 2 clusters, or no variation between clusters.
    """
    check_level(confidence_level)
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
    error, g = _standard_error(influence, clusters)
    _require_spread(error, g)
    width = t_quantile(0.5 + confidence_level / 2, g - 1) * error
    return Interval(
        estimate=mean / sd,
        lower=mean / sd - width,
        upper=mean / sd + width,
        confidence_level=confidence_level,
        method="cluster-robust standardised mean",
        n_labeled=g,
        assumptions=_ASSUMPTIONS,
    )


def _standard_error(
    influence: FloatArray, clusters: npt.NDArray[np.integer[Any]]
) -> tuple[float, int]:
    """CR1 standard error of a mean, and the number of clusters."""
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
    return math.sqrt(float(np.sum(sums**2)) * g / (g - 1)) / n, g


def _require_spread(error: float, g: int) -> None:
    if error < _NO_SPREAD:
        raise InsufficientDataError(
            f"all {g} clusters (queries) agree exactly, so nothing is known about how much they "
            "vary; an interval needs clusters that differ",
            n=g,
        )


def _effective_size(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    p: float,
    error: float,
    span: float,
    g: int,
) -> float:
    """Independent 0/1 observations that would give the mean p the same standard error.

    Clustering may lower it below, not raise it above what independent values of this spread
    give; and where few clusters depart from the rest, their spread is not trusted.
    """
    if error < _NO_SPREAD:
        return float(g)
    _, code = np.unique(clusters, return_inverse=True)
    means = np.bincount(code, weights=values) / np.bincount(code)
    _, alike = np.unique(np.round(means, 9), return_counts=True)
    most = float(len(values))
    if g - int(alike.max()) >= _MIN_DEPARTING:
        most *= p * (1 - p) * span**2 / float(values.var())
    return min(p * (1 - p) * (span / error) ** 2, most)


def _korn_graubard(p: float, size: float, *, g: int, level: float) -> tuple[float, float]:
    """Clopper–Pearson ends for a mean p in [0, 1] of ``size`` effective observations."""
    if size != g:
        size *= (normal_quantile(0.5 + level / 2) / t_quantile(0.5 + level / 2, g - 1)) ** 2
    tail = (1 - level) / 2
    hits, misses = p * size, (1 - p) * size
    lower = beta_quantile(tail, hits, misses + 1) if hits > 0 else 0.0
    upper = beta_quantile(1 - tail, hits + 1, misses) if misses > 0 else 1.0
    return lower, upper
