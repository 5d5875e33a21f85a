"""Regression on the judge: the estimator behind the default interval.

Human values are regressed on judge values over the labelled items; the estimate is the mean of the
fitted values over the target plus the mean residual (which ordinary least squares makes zero). The
slope this learns is the optimal power of PPI++ (Angelopoulos et al. 2023), sign included. Its
sampling error is read off the delete-one jackknife, which for single items is the HC3 form of
MacKinnon & White (1985) and for clusters the CR3 form, so that the error of the slope itself is
counted; tuned PPI leaves it out and under-covers below about 40 labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.intervals.influence import CONSTANT, cluster_influence, item_influence
from rag_sourcebias.intervals.sample import JudgedSample
from rag_sourcebias.intervals.values import Target
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["RegressionFit", "fit_regression"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionFit:
    """Estimates of k means and their covariance.

    Parameters
    ----------
    estimate : float64 array of shape (k,)
    covariance : float64 array of shape (k, k)
    degrees : float
        Degrees of freedom for a t quantile.
    slopes : float64 array of shape (p, k)
        0 for a judge column that is constant on the labelled items.
    rank : int
        Fitted parameters.
    skewness : float
        Of the first estimate.
    """

    estimate: FloatArray
    covariance: FloatArray
    degrees: float
    slopes: FloatArray
    rank: int
    skewness: float


def fit_regression(sample: JudgedSample, target: Target) -> RegressionFit:
    """Estimate the mean human values of the target.

    Returns
    -------
    RegressionFit
        The variance of the estimated means is the jackknife variance of the labelled part, times
        n/(n − rank), plus, for the population, the variance of the fitted values over the pool,
        divided by its size. For the pool the labelled part shrinks by 1 − n/(n + N); for the
        unlabelled items it grows by 1 + n/N (within each stratum).
    """
    design, pool, scale = _design(sample)
    gram = (design * sample.weights[:, None]).T @ design
    inverse, rank = _pseudo_inverse(gram)
    # A matrix product with non-contiguous operands is several times slower for a million rows.
    moments = (design * sample.weights[:, None]).T @ sample.y
    coefficients = inverse @ moments
    towards = _target_means(sample, design, pool, target)
    if sample.cluster is None:
        influence = item_influence(sample, design, inverse, coefficients, towards)
        correction = sample.n_labeled / max(sample.n_labeled - rank, 1)
        degrees = float(max(sample.n_labeled - rank, 1))
        if sample.shifted:
            degrees = max(min(degrees, _effective(sample.weights) - rank), 1.0)
    else:
        influence = cluster_influence(
            sample, design, (gram, moments), towards @ coefficients, towards
        )
        correction = 1.0
        degrees = float(max(sample.n_units - 1, 1))
    share = np.sqrt(_sampling_factor(sample, target))
    influence = influence * (share.mean() if sample.cluster is not None else share[:, None])
    covariance = correction * influence.T @ influence
    if target == "population":
        covariance = covariance + _fitted_covariance(sample, design, pool, coefficients)
    slopes = np.where(scale[:, None] > 0, coefficients[sample.n_strata :], 0.0)
    slopes = slopes / np.where(scale > 0, scale, 1.0)[:, None]
    return RegressionFit(
        estimate=towards @ coefficients,
        covariance=covariance,
        degrees=degrees,
        slopes=slopes,
        rank=rank,
        skewness=_skewness(influence[:, 0], float(covariance[0, 0])),
    )


def _skewness(influence: FloatArray, variance: float) -> float:
    """Skewness of the estimate from what each unit contributes to it; small-sample corrected."""
    n = len(influence)
    if n < 3 or variance <= 0:
        return 0.0
    third = float(((influence - influence.mean()) ** 3).sum())
    return float(third / variance**1.5 * np.sqrt(n * (n - 1)) / (n - 2))


def _design(sample: JudgedSample) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Stratum indicators and centred, scaled judge columns, of both sets; and the scales."""
    centre = np.average(sample.x, axis=0, weights=sample.weights)
    scale = sample.x.std(axis=0)
    size = np.maximum(np.abs(sample.x).max(axis=0, initial=0.0), np.finfo(float).tiny)
    scale = np.where(scale > CONSTANT * size, scale, 0.0)
    usable = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)

    def rows(x: FloatArray, stratum: npt.NDArray[np.int64]) -> FloatArray:
        matrix = np.empty((len(x), sample.n_strata + x.shape[1]))
        if sample.n_strata == 1:
            matrix[:, 0] = 1.0
        else:
            matrix[:, : sample.n_strata] = stratum[:, None] == np.arange(sample.n_strata)
        matrix[:, sample.n_strata :] = (x - centre) * usable
        return matrix

    return rows(sample.x, sample.stratum), rows(sample.x_unlabeled, sample.stratum_unlabeled), scale


def _pseudo_inverse(gram: FloatArray) -> tuple[FloatArray, int]:
    values, vectors = np.linalg.eigh(gram)
    kept = values > CONSTANT * values[-1]
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return inverse, int(kept.sum())


def _target_means(
    sample: JudgedSample, design: FloatArray, pool: FloatArray, target: Target
) -> FloatArray:
    """Mean design row of the items the estimate is about."""
    if (sample.shifted or target == "unlabeled") and len(pool):
        mean: FloatArray = pool.mean(axis=0)
    else:
        mean = (design.sum(axis=0) + pool.sum(axis=0)) / (len(design) + len(pool))
    return mean


def _effective(weights: FloatArray) -> float:
    """Kish's effective number of items."""
    return float(weights.sum() ** 2 / np.square(weights).sum())


def _sampling_factor(sample: JudgedSample, target: Target) -> FloatArray:
    """What the labelled part of the variance is multiplied with, per labelled item."""
    n = np.bincount(sample.stratum, minlength=sample.n_strata).astype(np.float64)
    n_pool = np.bincount(sample.stratum_unlabeled, minlength=sample.n_strata).astype(np.float64)
    if target == "pool" and not sample.shifted:
        factor = n_pool / (n + n_pool)
    elif target == "population" or not n_pool.all():
        factor = np.ones(sample.n_strata)
    else:
        factor = 1 + n / n_pool
    per_item: FloatArray = factor[sample.stratum]
    return per_item


def _fitted_covariance(
    sample: JudgedSample, design: FloatArray, pool: FloatArray, coefficients: FloatArray
) -> FloatArray:
    """Covariance of the mean fitted value, from drawing the pool out of the population."""
    if sample.shifted:
        fitted = pool @ coefficients
        cluster = sample.cluster_unlabeled
    else:
        fitted = np.concatenate([design, pool]) @ coefficients
        cluster = None
        if sample.cluster is not None and sample.cluster_unlabeled is not None:
            cluster = np.concatenate([sample.cluster, sample.cluster_unlabeled])
    size = len(fitted)
    if size < 2:
        return np.zeros((fitted.shape[1], fitted.shape[1]))
    centred = fitted - fitted.mean(axis=0)
    units = size
    if cluster is not None:
        codes = np.unique(cluster, return_inverse=True)[1]
        centred = np.stack([np.bincount(codes, weights=c) for c in centred.T], axis=1)
        units = len(centred)
    covariance: FloatArray = centred.T @ centred / size**2 * (units / max(units - 1, 1))
    return covariance
