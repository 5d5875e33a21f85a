"""What the numbers allow to say: favours one source, treats both alike, or cannot tell."""

from __future__ import annotations

import math

import numpy as np

from rag_sourcebias.inference.quantiles import normal_quantile
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.verdicts import SkewCode

__all__ = ["queries_for_verdict", "skew_code"]

_ASSURANCE = 0.8
_MOST = 10**8
_GRID = (np.arange(99) + 1) / 100  # quantiles of what the pilot leaves open


def skew_code(interval: Interval | None, p_adjusted: float | None, *, margin: float) -> SkewCode:
    """Decide what one interval and its adjusted p-value allow to say (METHODS §10.3).

    Parameters
    ----------
    interval : Interval or None
        Of centred Relative Δ in percent; None where it was refused.
    p_adjusted : float or None
        Of no skew, with the same dependence as the interval.
    margin : float
        Points within which sources count as treated alike.
    """
    if interval is None or p_adjusted is None:
        return SkewCode.REFUSED
    if -margin <= interval.lower and interval.upper <= margin:
        return SkewCode.ALIKE
    if interval.excludes(0.0) and p_adjusted < 1 - interval.confidence_level:
        return SkewCode.FAVOURS_BASELINE if interval.estimate > 0 else SkewCode.FAVOURS_OTHER
    return SkewCode.CANNOT_TELL


def queries_for_verdict(interval: Interval, *, margin: float) -> int | None:
    """Estimate the queries with which a verdict is reached with probability .8.

    The truth is taken to be spread as the interval says, t-distributed around the estimate, and
    the variance of a query as the interval's width says; a verdict is an interval that lies
    inside the margin or excludes 0.

    Returns
    -------
    int or None
        None where more than 10⁸ would be needed, or the interval is a point.
    """
    from scipy.special import ndtr, stdtrit

    n, level = interval.n_labeled, interval.confidence_level
    z = normal_quantile(0.5 + level / 2)
    error = interval.half_width / z
    if not error > 0:
        return None
    degrees = max(n - 1, 1)
    truth = interval.estimate + error * stdtrit(degrees, _GRID)

    def assurance(size: float) -> float:
        later = error * math.sqrt(n / size)
        favours = ndtr(np.abs(truth) / later - z)
        alike = np.maximum(
            ndtr((margin - truth) / later - z) - ndtr((-margin - truth) / later + z), 0.0
        )
        return float(np.minimum(np.maximum(favours, alike), 1.0).mean())

    low, high = float(n), float(n)
    while assurance(high) < _ASSURANCE:
        low, high = high, 2 * high
        if high > _MOST:
            return None
    while high - low > max(0.5, low / 1000):
        middle = (low + high) / 2
        low, high = (low, middle) if assurance(middle) >= _ASSURANCE else (middle, high)
    return math.ceil(high)
