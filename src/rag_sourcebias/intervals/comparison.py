"""Comparisons from judged values: two systems, win rates, Relative Δ.

The judge is corrected for each system or source by its own human labels. Judges over-rate LLM text
and LLM rankers, so one correction for all would hide exactly what is compared.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level, t_quantile
from rag_sourcebias.intervals.default import MIN_LABELED, assumptions_of
from rag_sourcebias.intervals.mean import mean_interval
from rag_sourcebias.intervals.regression import fit_regression
from rag_sourcebias.intervals.sample import JudgedSample
from rag_sourcebias.intervals.values import Design, Target, check_target, judge_correlation
from rag_sourcebias.types.intervals import Interval

__all__ = [
    "comparison",
    "difference_interval",
    "two_columns",
    "unpaired_difference_interval",
    "win_rate_interval",
]


def difference_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    target: Target = "population",
    confidence_level: float = 0.95,
    **design: Unpack[Design],
) -> Interval:
    """Interval for the mean difference of two systems on the same items (first minus second).

    Parameters
    ----------
    y, yhat : array-like of shape (n, 2)
        Human and judge values of the labelled items, one column per system.
    yhat_unlabeled : array-like of shape (N, 2)
    **design
        As for :func:`~rag_sourcebias.intervals.mean.mean_interval`.

    Returns
    -------
    Interval
        The human difference is regressed on both judge columns, so each system has its own
        correction. ``correlation`` is that of the differences.

    Raises
    ------
    InsufficientDataError
        With fewer than 10 labelled items.
    """
    sample = two_columns(y, yhat, yhat_unlabeled, design)
    check_level(confidence_level)
    check_target(target)
    human = sample.y[:, 0] - sample.y[:, 1]
    if human.min() == human.max():
        raise InsufficientDataError(
            f"the two systems differ by {human[0]:g} on each of the {len(human)} labelled items; "
            "the spread of their difference cannot be estimated from these labels",
            n=len(human),
        )
    fit = fit_regression(sample, target)
    estimate = float(fit.estimate[0] - fit.estimate[1])
    contrast = np.array([1.0, -1.0])
    variance = float(contrast @ fit.covariance @ contrast)
    half = t_quantile(0.5 + confidence_level / 2, fit.degrees) * math.sqrt(max(variance, 0.0))
    return comparison(
        sample,
        (estimate, estimate - half, estimate + half),
        method="difference, regression on the judge",
        target=target,
        confidence_level=confidence_level,
        correlation=judge_correlation(human, sample.x[:, 0] - sample.x[:, 1]),
    )


def unpaired_difference_interval(first: Interval, second: Interval) -> Interval:
    """Interval for the difference of two independent estimates (first minus second).

    For systems judged on different items. Degrees of freedom after Welch and Satterthwaite.
    """
    level = first.confidence_level
    if level != second.confidence_level or first.target != second.target:
        raise DataError("the two intervals differ in confidence level or target")
    errors, degrees = [], []
    for interval in (first, second):
        free = float(max(interval.n_labeled - 2, 1))
        errors.append(interval.half_width / t_quantile(0.5 + level / 2, free))
        degrees.append(free)
    variance = errors[0] ** 2 + errors[1] ** 2
    spread = sum(e**4 / d for e, d in zip(errors, degrees, strict=True))
    free = variance**2 / spread if spread > 0 else min(degrees)
    half = t_quantile(0.5 + level / 2, free) * math.sqrt(variance)
    estimate = first.estimate - second.estimate
    return Interval(
        estimate=estimate,
        lower=estimate - half,
        upper=estimate + half,
        confidence_level=level,
        method=f"unpaired difference, {first.method}",
        target=first.target,
        n_labeled=first.n_labeled + second.n_labeled,
        n_unlabeled=first.n_unlabeled + second.n_unlabeled,
        assumptions=(*first.assumptions, "the two sets of items are independent"),
    )


def win_rate_interval(
    wins: npt.ArrayLike,
    judged: npt.ArrayLike,
    judged_unlabeled: npt.ArrayLike,
    *,
    target: Target = "population",
    confidence_level: float = 0.95,
    **design: Unpack[Design],
) -> Interval:
    """Interval for a pairwise win rate; a win is 1, a loss 0 and a tie 1/2.

    Parameters
    ----------
    wins, judged : array-like of shape (n,)
        Human verdicts, and the judge's on the same pairs (verdicts or probabilities).
    judged_unlabeled : array-like of shape (N,)
    """
    return mean_interval(
        wins,
        judged,
        judged_unlabeled,
        target=target,
        confidence_level=confidence_level,
        bounds=(0.0, 1.0),
        **design,
    )


def two_columns(
    y: npt.ArrayLike, yhat: npt.ArrayLike, yhat_unlabeled: npt.ArrayLike, design: Design
) -> JudgedSample:
    """Check and code a sample with one column per system or source."""
    sample = JudgedSample.build(y, yhat, yhat_unlabeled, **design)
    if sample.y.shape[1] != 2 or sample.x.shape[1] != 2:
        raise DataError(
            f"y and yhat have {sample.y.shape[1]} and {sample.x.shape[1]} columns; a comparison "
            "needs 2, one per system or source"
        )
    if sample.n_units < MIN_LABELED:
        raise InsufficientDataError(
            f"{sample.n_units} labelled item(s): a comparison needs at least {MIN_LABELED}",
            n=sample.n_units,
            n_needed=MIN_LABELED,
        )
    return sample


def comparison(
    sample: JudgedSample,
    ends: tuple[float, float, float],
    *,
    method: str,
    target: Target,
    confidence_level: float,
    correlation: float,
) -> Interval:
    """Build the interval of a comparison from (estimate, lower, upper)."""
    return Interval(
        estimate=ends[0],
        lower=ends[1],
        upper=ends[2],
        confidence_level=confidence_level,
        method=method,
        target=target,
        n_labeled=sample.n_labeled,
        n_unlabeled=sample.n_unlabeled,
        assumptions=assumptions_of(sample),
        correlation=correlation,
    )
