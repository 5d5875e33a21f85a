"""Which interval to draw around a regression estimate: score, skew-corrected t, or t.

A t interval assumes that the estimate is close to normal. It misses on one side where labels are
few and skewed, and most where they pile up at one end of their range: then the few labels that
depart decide everything, and often none of the rare ones is among them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.intervals.classical import has_spread
from rag_sourcebias.intervals.regression import RegressionFit
from rag_sourcebias.intervals.sample import JudgedSample
from rag_sourcebias.intervals.score_form import score_form
from rag_sourcebias.intervals.values import Target
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["Form", "choose_form", "draw_interval"]

_MIN_DEPARTING = 10  # labels away from the end they pile up at; from here on skewness is seen
_MIN_TIED = 3  # the smallest of a few values is always equal to itself
_MIN_SKEW = 20  # units below which the skewness itself is too uncertain to correct for
_SAME_SCALE = 15.0  # ratio of ranges above which judge and people use different scales


class Form(NamedTuple):
    """The form of an interval.

    Parameters
    ----------
    bounds : tuple of float or None
        Range for a score interval; None for t.
    clip : tuple of float or None
        Range that a t interval is cut to.
    note : str
        What the reader must know about the range; may be empty.
    """

    bounds: tuple[float, float] | None
    clip: tuple[float, float] | None = None
    note: str = ""


def choose_form(sample: JudgedSample, bounds: tuple[float, float] | None) -> Form:
    """Choose by what the labels look like, never by how wide an interval comes out.

    Raises
    ------
    DataError
        If a label is outside the bounds.
    """
    y = sample.y[:, 0]
    if bounds is not None:
        _check_bounds(y, bounds)
        ends = np.isin(y, bounds)
        score = bool(ends.all()) or not has_spread(y) or _piled(y, bounds) is not None
        return Form(bounds if score else None, bounds)
    if np.isin(y, (0.0, 1.0)).all():
        return Form((0.0, 1.0), (0.0, 1.0))
    if not has_spread(y):
        return Form(None)
    end = _piled(y, (float(y.min()), float(y.max())))
    if end is None:
        return Form(None)
    seen = _joint_range(sample, end)
    if seen is None:
        return Form(None)
    return Form(
        seen,
        seen,
        f"most labels are {end:g}: human values are taken to lie in [{seen[0]:.4g}, "
        f"{seen[1]:.4g}], the range seen; give bounds if you know them",
    )


def _check_bounds(y: FloatArray, bounds: tuple[float, float]) -> None:
    low, high = bounds
    if not low < high:
        raise DataError(f"bounds {bounds}: the first must be below the second")
    outside = np.flatnonzero((y < low) | (y > high))
    if len(outside):
        raise DataError(
            f"{len(outside)} human value(s) outside the scale [{low:g}, {high:g}], first "
            f"{y[outside[0]]:g} at position {outside[0]}"
        )


def _piled(y: FloatArray, ends: tuple[float, float]) -> float | None:
    """Return the end at which half the labels or more pile up while few depart from it."""
    for end in ends:
        departing = int(np.count_nonzero(y != end))
        tied = len(y) - departing
        if tied >= max(_MIN_TIED, departing) and departing < _MIN_DEPARTING:
            return end
    return None


def _joint_range(sample: JudgedSample, end: float) -> tuple[float, float] | None:
    """Range of human and judge values, if the judge seems to answer on people's scale."""
    y = sample.y[:, 0]
    low, high = float(y.min()), float(y.max())
    spread = high - low
    if sample.x.shape[1] == 1:
        judge = np.concatenate([sample.x[:, 0], sample.x_unlabeled[:, 0]])
        lowest, highest = float(judge.min()), float(judge.max())
        if end == high and highest <= high + spread:
            low = min(low, lowest)
        elif end == low and lowest >= low - spread:
            high = max(high, highest)
    return (low, high) if high - low <= _SAME_SCALE * spread else None


def draw_interval(
    sample: JudgedSample, fit: RegressionFit, target: Target, quantile: float, form: Form
) -> tuple[float, float, float]:
    """Return estimate, lower and upper end."""
    if form.bounds is not None:
        return score_form(sample, fit, target, quantile, form.bounds)
    estimate = float(fit.estimate[0])
    error = math.sqrt(max(float(fit.covariance[0, 0]), 0.0))
    skewness = fit.skewness if sample.n_units >= _MIN_SKEW else 0.0
    lower = estimate - error * _hall(quantile, skewness)
    upper = estimate - error * _hall(-quantile, skewness)
    if form.clip is not None:
        lower, estimate, upper = (float(np.clip(v, *form.clip)) for v in (lower, estimate, upper))
    return estimate, min(lower, estimate), max(upper, estimate)


def _hall(z: float, skewness: float) -> float:
    """Quantile of a studentised mean from that of t (Hall 1992, transformation of its skewness).

    ``skewness`` is that of the estimate, γ/√n; as it vanishes the value is ``z``.
    """
    if abs(skewness) < 1e-6:
        return z
    return 3 / skewness * (float(np.cbrt(1 + skewness * (z - skewness / 6))) - 1)
