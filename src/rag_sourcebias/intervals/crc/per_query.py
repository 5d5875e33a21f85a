"""An interval for the utility of every single query ([R] §6.2 option b, METHODS §4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.intervals.crc.critical import check_values, crossings
from rag_sourcebias.intervals.crc.perturb import UtilityPath
from rag_sourcebias.intervals.crc.ranks import misses_per_side, paper_misses, score_rank
from rag_sourcebias.intervals.crc.recalibrate import recalibration
from rag_sourcebias.intervals.crc.residual import residual_bounds
from rag_sourcebias.intervals.utility import FloatArray, RankedLabels

__all__ = ["PerQueryIntervals", "PerQueryRule", "per_query_intervals"]

PerQueryRule = Literal["residual", "recalibrated", "two-sided", "paper"]

_EXCHANGEABLE = "labelled and target queries are exchangeable"
_REACH = "human values lie between all documents at the lowest and all at the highest grade"
_FITTED = "the fit to the labelled queries costs no more than one of them"
_PAPER = (
    "the rule of the paper spends one n + 1 correction on two sides: it under-covers, "
    "by up to 1/(n + 1)"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerQueryIntervals:
    """Intervals for the utilities of single queries.

    Parameters
    ----------
    estimate, lower, upper : float64 arrays of shape (n_queries,)
        ``lower <= estimate <= upper``.
    lambda_low, lambda_high : float or None
        The pair of λ behind the bounds; None for the rule ``"residual"``.
    rule : str
    n_labeled : int
    confidence_level : float
        Of each single interval, on average over labelled sets and queries.
    assumptions : tuple of str
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    lambda_low: float | None
    lambda_high: float | None
    rule: PerQueryRule
    n_labeled: int
    confidence_level: float
    assumptions: tuple[str, ...]


def per_query_intervals(
    labels_labelled: RankedLabels,
    y: FloatArray,
    labels_target: RankedLabels,
    *,
    rule: PerQueryRule = "residual",
    confidence_level: float,
) -> PerQueryIntervals:
    """Return an interval for the human utility of every target query.

    Parameters
    ----------
    labels_labelled : RankedLabels
        Judge labels of the n labelled queries.
    y : float64 array of shape (n,)
        Their human utilities.
    labels_target : RankedLabels
        Judge labels of the queries to give intervals for.
    rule : {"residual", "recalibrated", "two-sided", "paper"}
        ``"residual"``: leave-one-out residuals of a regression on the recalibrated judge, over a
        fitted scale; the narrowest from about 40 labelled queries on. ``"recalibrated"``: the
        judge is brought to the human scale by λ*, the score of a query is the smallest t with its
        value in [U(λ* − t), U(λ* + t)], and t is the conformal quantile of the scores.
        ``"two-sided"``: the rule of [R] with a full correction for each side. ``"paper"``:
        [R] Eq. 22–25 with single queries, which under-covers.
    confidence_level : float
        Read as a decimal number; ranks are exact.

    Raises
    ------
    CalibrationError
        If n is too small: below 1/α − 1 (``"two-sided"``: 2/α − 1; ``"residual"``: also 5).
    """
    check_values(labels_labelled, y)
    if rule not in get_args(PerQueryRule):
        raise DataError(f"rule {rule!r}; one of {', '.join(get_args(PerQueryRule))} is expected")
    y = np.asarray(y, dtype=np.float64)
    path = UtilityPath.of(labels_target)
    assumptions: tuple[str, ...] = (_EXCHANGEABLE, _REACH)
    low: float | None
    high: float | None
    if rule == "residual":
        rank = score_rank(len(y), confidence_level)
        low = high = None
        estimate, lower, upper = residual_bounds(labels_labelled, y, labels_target, rank=rank)
        assumptions += (_FITTED,)
    else:
        center = recalibration(labels_labelled, y) if len(y) else 0.0
        if rule == "recalibrated":
            rank = score_rank(len(y), confidence_level)
            low, high = _one_parameter(labels_labelled, y, center, rank)
            assumptions += (_FITTED,)
        else:
            allowed = paper_misses if rule == "paper" else misses_per_side
            low, high = _two_parameters(labels_labelled, y, allowed(len(y), confidence_level))
            assumptions += (_PAPER,) if rule == "paper" else ()
        lower, upper = path.at(low), path.at(high)
        estimate = np.clip(path.at(center), lower, upper)
    return PerQueryIntervals(
        estimate=estimate,
        lower=lower,
        upper=upper,
        lambda_low=low,
        lambda_high=high,
        rule=rule,
        n_labeled=len(y),
        confidence_level=confidence_level,
        assumptions=assumptions,
    )


def _one_parameter(
    labels: RankedLabels, y: FloatArray, center: float, rank: int
) -> tuple[float, float]:
    first, last = crossings(labels, y)
    scores = np.maximum(np.maximum(first - center, center - last), 0.0)
    radius = float(np.partition(scores, rank - 1)[rank - 1])
    held = scores <= radius
    # center ± radius may be rounded short of the query that set the radius, or of the jump at ±1
    low = min(center - radius, float(last[held & (last < center)].min(initial=center)))
    high = max(center + radius, float(first[held & (first > center)].max(initial=center)))
    return max(low, -1.0), min(high, 1.0)


def _two_parameters(labels: RankedLabels, y: FloatArray, misses: int) -> tuple[float, float]:
    """Return the tightest λ that leave at most ``misses`` queries outside on each side."""
    first, last = crossings(labels, y)
    high = float(np.sort(first)[::-1][misses])
    low = float(np.sort(last)[misses])
    if low > high:  # ties let the bounds pass each other
        low = high = float(np.clip(0.0, high, low))
    return low, high
