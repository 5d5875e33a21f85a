"""The bootstrap distribution of a mean error without drawing from it.

The sign probability of a sum of n draws with replacement is approximated by Lugannani and Rice's
saddlepoint formula in its r* form (Barndorff-Nielsen), which stays inside (0, 1). Draws of
exactly 0 are counted apart: a batch of only such draws is a tie, and how many others a batch
holds is binomial.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from rag_sourcebias.intervals.crc.critical import TIE
from rag_sourcebias.intervals.crc.roots import rising_root
from rag_sourcebias.intervals.utility import FloatArray

__all__ = ["negative_share", "normal_score", "solve_level"]

Errors = Callable[[float], FloatArray]
_NORMAL = NormalDist()
_FAR = 38.0  # standard deviations at which a normal tail is 0 in double precision
_CLOSE = 1e-7
_ACCURATE = 3e-5  # normal quantile; far below the error of the approximation
_STEPS = 200


def negative_share(errors: FloatArray) -> float:
    """P(Σ of n draws < 0) for n draws with replacement from the n ``errors``."""
    return _NORMAL.cdf(normal_score(errors))


def normal_score(errors: FloatArray) -> float:
    """Return the normal quantile of :func:`negative_share`, within ±38."""
    n = len(errors)
    present = errors[np.abs(errors) > TIE / n]
    if len(present) == n:
        return _signed_root(errors, n)
    if not len(present):
        return -_FAR
    share = len(present) / n
    if present.min() > 0:
        return -_FAR
    if present.max() < 0:
        return _score(1.0 - (1.0 - share) ** n)
    draws = np.arange(1, n + 1)
    mass = np.array([math.comb(n, int(k)) for k in draws], dtype=np.float64)
    mass *= share**draws * (1.0 - share) ** (n - draws)
    root, ratio = _saddle(present)
    score = root * np.sqrt(draws) + np.log(ratio) / (root * np.sqrt(draws))
    tails = np.array([_NORMAL.cdf(float(s)) for s in np.clip(score, -_FAR, _FAR)])
    tails[0] = np.mean(present < 0)  # one draw needs no approximation
    return _score(float(mass @ tails))


def _score(share: float) -> float:
    return _NORMAL.inv_cdf(share) if 1e-300 < share < 1 else math.copysign(_FAR, share - 0.5)


def _signed_root(errors: FloatArray, n: int) -> float:
    """r* of the sum of n draws."""
    if errors.min() > 0 or errors.max() < 0:
        return math.copysign(_FAR, -float(errors[0]))
    root, ratio = _saddle(errors)
    scaled = root * math.sqrt(n)
    return max(-_FAR, min(_FAR, scaled + math.log(ratio) / scaled))


def _saddle(errors: FloatArray) -> tuple[float, float]:
    """Return r and q/r of one draw at 0; r is negative where the mean is positive.

    The saddlepoint minimises log mean exp(s·e), which is convex in s.
    """
    scale = math.sqrt(float(errors @ errors) / len(errors))
    e = errors / scale
    squares = e * e
    s, low, high = -float(e.mean()), -math.inf, math.inf
    for _ in range(_STEPS):
        exponent = s * e
        peak = float(exponent.max())
        tilted = np.exp(exponent - peak)
        total = float(tilted.sum())
        slope = float(tilted @ e) / total
        curve = float(tilted @ squares) / total - slope * slope
        low, high = (s, high) if slope < 0 else (low, s)
        if abs(slope) <= _CLOSE * math.sqrt(curve):
            break
        step = s - slope / curve
        s = step if low < step < high else _between(low, high)
    fit = math.log(total / len(e)) + peak
    root = math.copysign(math.sqrt(max(-2.0 * fit, 0.0)), s)
    if abs(root) < 1e-5:  # q/r -> 1 + r·skewness/6 as both vanish
        skew = float(np.mean(e**3)) / float(np.mean(squares)) ** 1.5
        root = root if root else 1e-12
        return root, 1.0 + root * skew / 6
    return root, s * math.sqrt(curve) / root


def _between(low: float, high: float) -> float:
    if math.isinf(low):
        return 2.0 * high - 1.0
    return 2.0 * low + 1.0 if math.isinf(high) else (low + high) / 2


def solve_level(
    errors: Errors,
    share: float,
    *,
    start: float = 0.0,
    known: FloatArray | None = None,
    tolerance: float = _ACCURATE,
) -> float:
    """Return the smallest λ in (−1, 1] at which :func:`negative_share` is at most ``share``.

    Parameters
    ----------
    errors : callable
        Errors of all queries at λ, not decreasing in λ; shape (n,).
    share : float
        In (0, 1).
    start : float
        First λ tried.
    known : float64 array of shape (n,), optional
        Errors at ``start``, where they are at hand.
    tolerance : float
        Accepted error of the normal quantile of the share.
    """
    goal = _NORMAL.inv_cdf(share)
    return rising_root(
        lambda lam: goal - normal_score(errors(lam)),
        start=start,
        known=None if known is None else goal - normal_score(known),
        tolerance=tolerance,
    )
