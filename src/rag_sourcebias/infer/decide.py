"""From intervals and p-values to verdicts, and the queries that these need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

import numpy as np

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.quantiles import normal_quantile

Correction = Literal["holm", "bh", "none"]


def adjust_p_values(
    p_values: Sequence[float | None], *, correction: Correction = "holm"
) -> list[float | None]:
    """Adjust p-values over their family.

    Parameters
    ----------
    p_values : sequence of float or None
        None marks a test that could not be made; it stays None and is not counted.
    correction : {"holm", "bh", "none"}
        Holm (1979) controls the chance of any false finding, under any dependence; Benjamini and
        Hochberg (1995) the expected share of false findings, under independence or positive
        dependence.

    Returns
    -------
    list of float or None
        In the given order, each in [0, 1].

    Examples
    --------
    >>> adjust_p_values([0.01, None, 0.03])
    [0.02, None, 0.03]
    """
    p = np.array([p for p in p_values if p is not None], dtype=np.float64)
    if np.any((p < 0) | (p > 1) | np.isnan(p)):
        raise DataError(f"p-values must lie in [0, 1], got {list(p_values)}")
    m = len(p)
    order = np.argsort(p, kind="stable")
    if correction == "holm":
        adjusted = np.maximum.accumulate(p[order] * (m - np.arange(m)))
    elif correction == "bh":
        adjusted = np.minimum.accumulate((p[order] * m / np.arange(1, m + 1))[::-1])[::-1]
    elif correction == "none":
        adjusted = p[order]
    else:
        raise DataError(f"unknown correction {correction!r}; there are 'holm', 'bh' and 'none'")
    found = np.empty(m)
    found[order] = np.minimum(adjusted, 1.0)
    known = iter(found.tolist())
    return [None if p is None else next(known) for p in p_values]


class SkewCode(StrEnum):
    """What can be said about one retriever and two sources.

    The first that applies: the interval lies inside the margin, or the test against no skew is
    significant, or neither.
    """

    ALIKE = "alike"
    FAVOURS_BASELINE = "favours_baseline"
    FAVOURS_OTHER = "favours_other"
    CANNOT_TELL = "cannot_tell"
    REFUSED = "refused"


_ASSURANCE = 0.8
_MOST = 10**8
_GRID = (np.arange(99) + 1) / 100  # quantiles of what the pilot leaves open


def skew_code(interval: Interval | None, p_adjusted: float | None, *, margin: float) -> SkewCode:
    """Decide what one interval and its adjusted p-value allow to say.

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
    truth = interval.estimate + error * stdtrit(max(n - 1, 1), _GRID)

    def assurance(size: float) -> float:
        later = error * math.sqrt(n / size)
        alike = np.maximum(
            ndtr((margin - truth) / later - z) - ndtr((-margin - truth) / later + z), 0.0
        )
        return float(np.minimum(np.maximum(ndtr(np.abs(truth) / later - z), alike), 1.0).mean())

    low, high = float(n), float(n)
    while assurance(high) < _ASSURANCE:
        low, high = high, 2 * high
        if high > _MOST:
            return None
    while high - low > max(0.5, low / 1000):
        middle = (low + high) / 2
        low, high = (low, middle) if assurance(middle) >= _ASSURANCE else (middle, high)
    return math.ceil(high)
