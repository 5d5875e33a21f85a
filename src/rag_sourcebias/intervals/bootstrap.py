"""Bootstrap intervals for a mean, from human labels alone."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.quantiles import as_generator, check_level, normal_quantile
from rag_sourcebias.intervals.classical import RANDOM, spread_values
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["BootstrapKind", "bootstrap_interval"]

BootstrapKind = Literal["bca", "studentized", "empirical"]
_CHUNK = 4_000_000  # resampled values held at a time


def bootstrap_interval(
    y: npt.ArrayLike,
    *,
    confidence_level: float = 0.95,
    kind: BootstrapKind = "bca",
    n_resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """Bootstrap interval for a mean.

    Parameters
    ----------
    y : array-like of shape (n,)
        Finite values, in any unit.
    kind : {"bca", "studentized", "empirical"}
        Bias-corrected and accelerated (Efron 1987); bootstrap t; or the plain percentiles, the
        baseline of Oosterhuis et al. (KDD 2024), which is too short with few labels.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 values, or values that do not differ.
    """
    check_level(confidence_level)
    values = spread_values(y)
    n = len(values)
    means, errors = _resample(
        values, n_resamples, as_generator(rng), with_errors=kind == "studentized"
    )
    tails = np.array([0.5 - confidence_level / 2, 0.5 + confidence_level / 2])
    mean = float(values.mean())
    if kind == "studentized":
        error = values.std(ddof=1) / math.sqrt(n)
        # A resample without spread says nothing about the ratio; with n ≥ 10 there are few.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = (means - mean) / errors
        ratios = ratios[np.isfinite(ratios)]
        high, low = np.quantile(ratios, tails) * error
        lower, upper = mean - low, mean - high
    elif kind == "bca":
        lower, upper = np.quantile(means, _bca_tails(values, means, tails))
    elif kind == "empirical":
        lower, upper = np.quantile(means, tails)
    else:
        raise DataError(f"bootstrap kind {kind!r} is not one of bca, studentized, empirical")
    return Interval(
        estimate=mean,
        lower=min(float(lower), mean),
        upper=max(float(upper), mean),
        confidence_level=confidence_level,
        method=f"labels alone ({kind} bootstrap)",
        n_labeled=n,
        assumptions=(RANDOM, "resampling them imitates sampling the population"),
    )


def _resample(
    values: FloatArray, n_resamples: int, rng: np.random.Generator, *, with_errors: bool
) -> tuple[FloatArray, FloatArray]:
    n = len(values)
    means = np.empty(n_resamples)
    errors = np.empty(n_resamples if with_errors else 0)
    step = max(_CHUNK // n, 1)
    for start in range(0, n_resamples, step):
        stop = min(start + step, n_resamples)
        drawn = values[rng.integers(0, n, (stop - start, n))]
        means[start:stop] = drawn.mean(axis=1)
        if with_errors:
            errors[start:stop] = drawn.std(axis=1, ddof=1) / math.sqrt(n)
    return means, errors


def _bca_tails(values: FloatArray, means: FloatArray, tails: FloatArray) -> FloatArray:
    """Shift the percentiles by bias and acceleration (Efron 1987, eq. 2.3)."""
    mean = float(values.mean())
    below = (np.count_nonzero(means < mean) + np.count_nonzero(means == mean) / 2) / len(means)
    bias = normal_quantile(min(max(below, 1 / len(means)), 1 - 1 / len(means)))
    centred = values - mean
    acceleration = float((centred**3).sum() / (6 * (centred**2).sum() ** 1.5))
    shifted = []
    for tail in tails:
        z = bias + normal_quantile(float(tail))
        shifted.append(_normal_cdf(bias + z / (1 - acceleration * z)))
    return np.array(shifted)


def _normal_cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))
