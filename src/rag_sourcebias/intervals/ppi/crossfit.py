"""Prediction-powered inference with a cross-fitted power."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.quantiles import (
    as_generator,
    check_level,
    t_quantile,
)
from rag_sourcebias.intervals.ppi.forms import DISTINCT, RANDOM, ppi_result, ppi_samples
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["crossfit_ppi_interval"]


def crossfit_ppi_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    n_folds: int = 10,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """PPI for the population, with λ for each fold tuned on the other folds.

    The power is not clipped, so an inverted judge helps too. The residuals that give the variance
    were not used to choose the power they are formed with.

    Parameters
    ----------
    y, yhat : array-like of shape (n,)
        Human and judge values of the labelled items.
    yhat_unlabeled : array-like of shape (N,)
        Judge values of other items.
    n_folds : int
        At least 2; no more folds than labelled items are made.
    """
    check_level(confidence_level)
    human, judge, pool = ppi_samples(y, yhat, yhat_unlabeled)
    n, n_pool = len(human), len(pool)
    folds = min(n_folds, n)
    if folds < 2:
        raise DataError(f"n_folds {n_folds} is below 2")
    code = as_generator(rng).permutation(n) % folds
    sizes = np.bincount(code, minlength=folds).astype(np.float64)
    rest = n - sizes

    def without(values: FloatArray) -> FloatArray:
        return np.asarray(values.sum() - np.bincount(code, weights=values, minlength=folds))

    sums_y, sums_f = without(human), without(judge)
    together = (without(human * judge) - sums_y * sums_f / rest) / np.maximum(rest - 1, 1)
    everything = np.concatenate([judge, pool])
    spread = float(everything.var(ddof=1))
    power = together / ((1 + n / n_pool) * spread) if spread > 0 else np.zeros(folds)
    residual = human - power[code] * judge
    weight = float((power * sizes).sum() / n)
    estimate = weight * float(pool.mean()) + float(residual.mean())
    # The residuals of different folds have different centres when λ differs; remove the shift.
    level = residual + (power[code] - weight) * float(pool.mean())
    variance = float(level.var(ddof=1)) / n + weight**2 * float(pool.var(ddof=1)) / n_pool
    half = t_quantile(0.5 + confidence_level / 2, n - 1) * math.sqrt(variance)
    return ppi_result(
        estimate,
        half,
        confidence_level=confidence_level,
        method=f"PPI (cross-fitted λ = {weight:.3g})",
        target="population",
        human=human,
        judge=judge,
        n_pool=n_pool,
        assumptions=(RANDOM, DISTINCT),
    )
