"""Conformal residuals of a regression on the recalibrated judge."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.errors import CalibrationError
from rag_sourcebias.intervals.crc.perturb import UtilityPath
from rag_sourcebias.intervals.crc.recalibrate import balance
from rag_sourcebias.intervals.utility import FloatArray, RankedLabels

__all__ = ["residual_bounds"]

_FEWEST = 5  # a line and a line of scales, left without one query
_SMALLEST_SCALE = 0.25  # of the mean absolute residual; keeps one small scale from ruling
_ALONE = 1.0 - 1e-9  # leverage of a query without which there is no slope


def residual_bounds(
    labels: RankedLabels, y: FloatArray, target: RankedLabels, *, rank: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return estimate, lower and upper of every target query.

    y is regressed on the judge at λ*, and the absolute residuals on the same judge value, which
    gives every query its scale. The score of a labelled query is its leave-one-out residual over
    its leave-one-out scale; the bounds are the fit ± the ``rank``-th smallest score × scale, cut
    to what the labels can reach.
    """
    if len(y) < _FEWEST:
        raise CalibrationError(
            f"{len(y)} labelled queries cannot support a fitted scale; at least {_FEWEST} are "
            "needed"
        )
    path, ahead = UtilityPath.of(labels), UtilityPath.of(target)
    lam = balance(path, labels, y)
    judge = path.at(lam)
    away = judge - judge.mean()
    squares = float(away @ away)
    if squares <= 1e-12 * max(1.0, float(judge @ judge)):  # a constant judge has no slope
        away, squares = np.zeros_like(away), np.inf
    share = away**2 / squares
    alone = 1.0 / len(y) + share >= _ALONE
    slope = float(away @ y) / squares
    left_out = (y - y.mean() - slope * away) / np.where(alone, 1.0, 1.0 - 1.0 / len(y) - share)
    sizes = np.abs(left_out)
    scale_slope, kept = _scale(sizes, away, squares)
    own = _without_own(sizes, sizes.mean() + scale_slope * away, 1.0 / len(y) + kept * share)
    smallest = _SMALLEST_SCALE * float(sizes.mean())
    own = np.maximum(own, smallest)
    scores = np.where(alone, np.inf, sizes / np.where(own > 0, own, 1.0))
    quantile = float(np.partition(scores, rank - 1)[rank - 1])

    away = ahead.at(lam) - judge.mean() if squares < np.inf else np.zeros(target.n_queries)
    scale = np.maximum(sizes.mean() + scale_slope * away, smallest)
    reach = np.where(scale > 0, quantile * np.where(scale > 0, scale, 1.0), 0.0)
    fit, bottom, top = y.mean() + slope * away, ahead.at(-1.0), ahead.at(1.0)
    lower, estimate, upper = (np.clip(v, bottom, top) for v in (fit - reach, fit, fit + reach))
    return estimate, lower, upper


def _scale(sizes: FloatArray, away: FloatArray, squares: float) -> tuple[float, float]:
    """Return the slope of the residual sizes, shrunk by 1 − 1/F, and the share kept.

    With few queries the slope is mostly noise, and noise in the scale widens every interval.
    """
    slope = float(away @ sizes) / squares
    rest = sizes - sizes.mean() - slope * away
    noise = float(rest @ rest) / (len(sizes) - 2) / squares
    kept = max(0.0, 1.0 - noise / slope**2) if slope else 0.0
    return kept * slope, kept


def _without_own(sizes: FloatArray, fitted: FloatArray, leverage: FloatArray) -> FloatArray:
    """Return the fit of every query without its own size."""
    return np.asarray(sizes - (sizes - fitted) / np.maximum(1.0 - leverage, 1.0 - _ALONE))
