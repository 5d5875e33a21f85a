"""How far the means of paired columns, such as systems' scores, lie apart, with an interval."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import InsufficientDataError, as_generator
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.decide import crossing, normal_quantile, t_quantile
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.resampling import bootstrap_means

MIN_ROWS = 20


def spread_interval(
    columns: FloatArray,
    *,
    ddof: int = 0,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """Interval for the standard deviation of the columns' true means.

    Sampling error alone spreads means, so that the spread of resampled means lies above that of
    the data, and percentiles never reach 0. Here each candidate spread is tested instead: true
    means that deviate in the seen direction by t are kept if the seen spread lies within the
    central part of those of t·direction + (resampled − seen means).

    Parameters
    ----------
    columns : float64 array of shape (n, k)
        One row per query, one column per system.
    ddof : int
        As for the estimate, the plain standard deviation of the column means.

    Raises
    ------
    InsufficientDataError
        With fewer than 20 rows.
    """
    n, k = columns.shape
    if n < MIN_ROWS:
        raise InsufficientDataError(
            f"a bootstrap over {n} rows covers too rarely; at least {MIN_ROWS} are needed",
            n=n,
            n_needed=MIN_ROWS,
        )
    means = columns.mean(axis=0)
    deviations = means - means.mean()
    seen = float(np.linalg.norm(deviations))
    errors = bootstrap_means(columns, resamples=resamples, rng=as_generator(rng)) - means
    errors -= errors.mean(axis=1, keepdims=True)
    # To the variance and the quantile of a t interval: without it 20 rows of 2 columns cover .91.
    probability = 0.5 + confidence_level / 2
    errors *= t_quantile(probability, n - 1) / normal_quantile(probability)
    errors *= math.sqrt(n / (n - 1))
    along = errors @ (deviations / seen) if seen > 0 else np.zeros(resamples)
    square = (errors**2).sum(axis=1)
    tail = (1 - confidence_level) / 2

    def at(probability: float, t: float) -> float:
        spread = np.sqrt(np.maximum(t**2 + 2 * t * along + square, 0.0))
        return float(np.quantile(spread, probability))

    start = seen + float(np.sqrt(square.max()))
    lower, upper = (
        crossing(partial(at, p), seen, start=start) if start else 0.0 for p in (1 - tail, tail)
    )
    scale = np.sqrt(k - ddof)
    return Interval(
        estimate=seen / scale,
        lower=min(lower, seen) / scale,
        upper=max(upper, seen) / scale,
        confidence_level=confidence_level,
        method=InferCode.SPREAD(),
        n_labeled=n,
        assumptions=(InferCode.QUERIES_SAMPLED(),),
    )
