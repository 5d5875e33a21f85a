"""Confidence sequence of a share: the Beta-mixture e-process, turned round."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray

# For observations x in [0, 1] with conditional mean p, the product of (q/p)^x ((1−q)/(1−p))^(1−x)
# has expectation at most 1 for every q, since its factor is convex in x and so below the chord,
# whose mean is 1; for binary x they are equal. Mixing q over Beta(a, b) gives, with S = Σx,
# e_n = B(a + S, b + n − S) / B(a, b) / (p^S (1−p)^(n−S))
# (Robbins 1970, Annals of Mathematical Statistics 41:1397; the sub-Bernoulli case of Howard,
# Ramdas, McAuliffe & Sekhon 2021, Annals of Statistics 49:1055). No independence is needed: the
# mean of each observation given all before it must be p. As a test it is compared with the bets
# of :mod:`~rag_sourcebias.stats.betting` in benchmarks/monitor.


_SMALLEST = np.log(np.finfo(np.float64).tiny)
_BISECTIONS = 60


def beta_log_e(
    n: npt.ArrayLike,
    total: npt.ArrayLike,
    null: npt.ArrayLike,
    *,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
) -> FloatArray:
    """Logarithm of the Beta-mixture e-value.

    Parameters
    ----------
    n, total : array_like
        Observations, and their sum.
    null : array_like
        Baseline share, in [0, 1].
    a, b : array_like
        Of the mixing distribution, positive.

    Returns
    -------
    ndarray
        Of the shape that all arguments broadcast to.
    """
    from scipy.special import betaln, xlog1py, xlogy

    total, null = np.asarray(total, np.float64), np.asarray(null, np.float64)
    rest = np.asarray(n, np.float64) - total
    log_e = betaln(a + total, b + rest) - betaln(a, b) - xlogy(total, null) - xlog1py(rest, -null)
    return np.asarray(np.maximum(log_e, _SMALLEST))


def beta_interval(
    n: npt.ArrayLike,
    total: npt.ArrayLike,
    *,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    confidence_level: float,
) -> tuple[FloatArray, FloatArray]:
    """Baselines that the two-sided e-value does not reject: a confidence sequence for the share.

    Returns
    -------
    lower, upper : ndarray
        In [0, 1]; together over all time they hold the share with at least this probability.
    """
    n, total = np.asarray(n, np.float64), np.asarray(total, np.float64)
    threshold = -np.log1p(-confidence_level)
    ends = []
    # log e is convex in the baseline with its smallest value at the mean: bisect on either side.
    for outside in (0.0, 1.0):
        good = np.where(n > 0, total / np.maximum(n, 1), outside)
        bad = np.full(good.shape, outside)
        for _ in range(_BISECTIONS):
            middle = (good + bad) / 2
            held = beta_log_e(n, total, middle, a=a, b=b) < threshold
            good, bad = np.where(held, middle, good), np.where(held, bad, middle)
        ends.append(bad)
    return ends[0], ends[1]
