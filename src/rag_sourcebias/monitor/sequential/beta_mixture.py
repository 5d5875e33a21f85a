r"""Shares against a known baseline: the Beta-mixture e-process and its confidence sequence.

For observations x in [0, 1] with conditional mean p, the product of
(q/p)^x ((1−q)/(1−p))^(1−x) has expectation at most 1 for every q, since its factor is convex in x
and so below the chord, whose mean is 1; for binary x they are equal. Mixing q over Beta(a, b)
gives, with S = Σx,

    e_n = B(a + S, b + n − S) / B(a, b) / (p^S (1−p)^(n−S))

(Robbins 1970, Annals of Mathematical Statistics 41:1397; the sub-Bernoulli case of Howard, Ramdas,
McAuliffe & Sekhon 2021, Annals of Statistics 49:1055). No independence is needed: the mean of each
observation given all before it must be p. One-sided, the mixture is cut at p. Over a range of
baselines, one of which is true all the time, the smallest value counts: at the one nearest to S/n.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.sequential.null import NullMean, as_range
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["SIDES", "Side", "beta_interval", "beta_log_e", "check_side"]

Side = Literal["two-sided", "greater", "less"]
SIDES = ("two-sided", "greater", "less")
_SMALLEST = np.log(np.finfo(np.float64).tiny)
_BISECTIONS = 60


def check_side(side: str) -> None:
    """Raise unless ``side`` is one of :data:`SIDES`."""
    if side not in SIDES:
        raise DataError(f"side {side!r} is none of {', '.join(SIDES)}")


def beta_log_e(
    n: npt.ArrayLike,
    total: npt.ArrayLike,
    null: NullMean,
    *,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    side: Side = "two-sided",
) -> FloatArray:
    """Logarithm of the Beta-mixture e-value.

    Parameters
    ----------
    n, total : array_like
        Observations, and their sum.
    null : float, array_like or NullRange
        Baseline.
    a, b : array_like
        Of the mixing distribution, positive.
    side : {"two-sided", "greater", "less"}
        Which shares count as evidence, compared with the baseline.

    Returns
    -------
    ndarray
        Of the shape that all arguments broadcast to.
    """
    from scipy.special import betainc, betaincc, betaln, xlog1py, xlogy

    n, total = np.asarray(n, np.float64), np.asarray(total, np.float64)
    rest = n - total
    ends = as_range(null)
    if side == "two-sided":
        near: Any = np.clip(total / np.maximum(n, 1), ends.lower, ends.upper)
    else:
        near = ends.upper if side == "greater" else ends.lower
    log_e = betaln(a + total, b + rest) - betaln(a, b) - xlogy(total, near) - xlog1py(rest, -near)
    if side != "two-sided":
        part = betaincc if side == "greater" else betainc
        with np.errstate(divide="ignore"):
            log_e = log_e + np.log(part(a + total, b + rest, near)) - np.log(part(a, b, near))
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
