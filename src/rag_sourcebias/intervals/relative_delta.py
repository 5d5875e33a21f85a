"""Relative Δ between two sources when most labels come from a judge."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level, t_quantile
from rag_sourcebias.intervals.comparison import comparison, two_columns
from rag_sourcebias.intervals.regression import RegressionFit, fit_regression
from rag_sourcebias.intervals.values import Design, Target, check_target, judge_correlation
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["judged_relative_delta_interval"]


def judged_relative_delta_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    target: Target = "population",
    confidence_level: float = 0.95,
    **design: Unpack[Design],
) -> Interval:
    """Interval for Relative Δ between two sources when most labels come from a judge.

    Parameters
    ----------
    y, yhat : array-like of shape (n, 2)
        Per-query scores of the two sources (baseline first) from human and from judge labels.
    yhat_unlabeled : array-like of shape (N, 2)

    Returns
    -------
    Interval
        In percent, within [−200, 200]. Fieller's set for the ratio of the two regression
        estimates, mapped to Relative Δ; its hull where it is not an interval.

    Raises
    ------
    InsufficientDataError
        With fewer than 10 labelled queries, or no human-judged relevant document at all.
    """
    sample = two_columns(y, yhat, yhat_unlabeled, design)
    check_level(confidence_level)
    check_target(target)
    if np.any(sample.y < 0):
        raise DataError("scores of a source may not be negative")
    if not sample.y.any():
        raise InsufficientDataError(
            f"all {sample.n_labeled} labelled queries score 0 for both sources; label more queries",
            n=sample.n_labeled,
        )
    fit = fit_regression(sample, target)
    quantile = t_quantile(0.5 + confidence_level / 2, fit.degrees)
    human, judge = (values[:, 0] - values[:, 1] for values in (sample.y, sample.x))
    return comparison(
        sample,
        _fieller(fit, quantile),
        method="Relative Δ (Fieller), regression on the judge",
        target=target,
        confidence_level=confidence_level,
        correlation=judge_correlation(human, judge),
    )


def _fieller(fit: RegressionFit, quantile: float) -> tuple[float, float, float]:
    """Relative Δ whose ratio ρ has (a − ρb)² ≤ q²·Var(a − ρb), with a, b the two means.

    With direction (cos φ, sin φ) instead of ρ, a zero in either mean is no special case.
    """
    mean = np.maximum(fit.estimate, 0.0)
    if not mean.any():
        raise InsufficientDataError(
            "both means are estimated at 0 or below; label more queries before comparing sources"
        )
    # (sin φ, −cos φ)·(a, b) is 0 at the true direction. A direction is accepted where the square of
    # this contrast is at most q² times its variance: v·form·v ≤ 0 with v = (cos φ, sin φ).
    outer = np.outer(mean, mean) - quantile**2 * fit.covariance
    form = np.array([[outer[1, 1], -outer[0, 1]], [-outer[0, 1], outer[0, 0]]])
    here = math.atan2(mean[1], mean[0])
    roots = _crossings(form)
    low = max((root for root in roots if root <= here), default=0.0)
    high = min((root for root in roots if root >= here), default=math.pi / 2)
    ends = [_relative_delta(angle) for angle in (here, high, low)]
    return ends[0], min(ends[1], ends[0]), max(ends[2], ends[0])


def _crossings(form: FloatArray) -> list[float]:
    """Angles in [0, π/2] where v·form·v = 0."""
    a, b, c = form[0, 0], form[0, 1], form[1, 1]
    # a cos² + 2b sin cos + c sin² = (a + c)/2 + R cos(2φ − δ)
    size = math.hypot((a - c) / 2, b)
    level = -(a + c) / 2
    if size == 0 or abs(level) > size:
        return []
    delta = math.atan2(b, (a - c) / 2)
    turn = math.acos(level / size)
    angles = [((delta + sign * turn) / 2) % math.pi for sign in (-1, 1)]
    # a rounding error below 0 would come out as π
    angles = [0.0 if angle > math.pi - 1e-12 else angle for angle in angles]
    return sorted(angle for angle in angles if angle <= math.pi / 2 + 1e-12)


def _relative_delta(angle: float) -> float:
    first, second = math.cos(angle), math.sin(angle)
    return 200.0 * (first - second) / (first + second)
