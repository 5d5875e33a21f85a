"""Win rate of twins at equal length, by logistic regression (METHODS §1.5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level, t_quantile
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["win_rate_at"]

_MAX_STEPS = 50
_MIN_EVENTS = 5  # with fewer the interval covered .90 (tests/statistics)
_CONSTANT = 1e-12
_EXTRAPOLATED = "… also beyond the covariate values seen, where the win rate is extrapolated"
_MAX_COEFFICIENT = 15.0  # on standardised covariates: beyond it the classes are separated


def win_rate_at(
    wins: FloatArray,
    covariates: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    at: FloatArray,
    confidence_level: float = 0.95,
) -> Interval:
    """P(win) at chosen covariate values, with a cluster-robust interval.

    Fits logit P(win) = b₀ + b · (covariates − at) and reports the intercept on the probability
    scale.

    Parameters
    ----------
    wins : float64 array of shape (n,)
        1 won, 0 lost, 0.5 tied (quasi-likelihood).
    covariates : float64 array of shape (n, p)
    clusters : integer array of shape (n,)
    at : float64 array of shape (p,)

    Raises
    ------
    InsufficientDataError
        If there are too few clusters for the covariates, too few pairs that went one way, the
        outcome is separated, the clusters do not vary, or a covariate is constant at another
        value than ``at``.
    """
    check_level(confidence_level)
    n, p = covariates.shape
    if wins.shape != (n,) or clusters.shape != (n,) or at.shape != (p,):
        raise DataError("wins, covariates, clusters and at disagree in shape")
    _, code = np.unique(clusters, return_inverse=True)
    g = int(code.max(initial=-1)) + 1
    _require_enough(wins, n_clusters=g, n_covariates=p)
    scale = covariates.std(axis=0)
    used = scale > _CONSTANT
    if np.any(stuck := ~used & (np.abs(covariates.mean(axis=0) - at) > _CONSTANT)):
        column = int(np.argmax(stuck))
        raise InsufficientDataError(
            f"covariate {column} is {covariates[0, column]:.4g} for every pair, so nothing is "
            f"known about wins at {at[column]:.4g}",
            n=g,
        )
    design = np.column_stack((np.ones(n), (covariates[:, used] - at[used]) / scale[used]))
    beta, fitted, bread = _fit(wins, design)
    scores = design * (wins - fitted)[:, None]
    sums = np.zeros((g, design.shape[1]))
    np.add.at(sums, code, scores)
    variance = float((bread @ (sums.T @ sums) @ bread)[0, 0]) * g / (g - 1)
    if variance < _CONSTANT**2:
        raise InsufficientDataError(
            f"all {g} queries agree exactly, so nothing is known about how much they vary; an "
            "interval needs queries that differ",
            n=g,
        )
    width = t_quantile(0.5 + confidence_level / 2, g - 1) * math.sqrt(variance)
    inside = (covariates.min(axis=0) <= at) & (at <= covariates.max(axis=0))
    return Interval(
        estimate=_expit(beta[0]),
        lower=_expit(beta[0] - width),
        upper=_expit(beta[0] + width),
        confidence_level=confidence_level,
        method="logistic regression, cluster-robust",
        n_labeled=g,
        assumptions=(
            "queries are a random sample",
            "log odds of winning are linear in the covariates",
            *(() if np.all(inside) else (_EXTRAPOLATED,)),
        ),
    )


def _require_enough(wins: FloatArray, *, n_clusters: int, n_covariates: int) -> None:
    """Refuse a fit that so few clusters, or so one-sided an outcome, cannot support."""
    needed = 10 * (n_covariates + 1)
    if n_clusters < needed:
        raise InsufficientDataError(
            f"adjusting for {n_covariates} covariate(s) needs at least {needed} queries with "
            f"pairs, there are {n_clusters}",
            n=n_clusters,
            n_needed=needed,
        )
    events = min(float(wins.sum()), float(len(wins) - wins.sum()))
    if events < _MIN_EVENTS:
        raise InsufficientDataError(
            f"{events:g} of {len(wins)} pairs went one way; a logistic regression needs at least "
            f"{_MIN_EVENTS} each way",
            n=n_clusters,
        )


def _fit(wins: FloatArray, design: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Newton's method; returns coefficients, fitted probabilities and the inverse information."""
    beta: FloatArray = np.zeros(design.shape[1])
    for _ in range(_MAX_STEPS):
        fitted = 1 / (1 + np.exp(-np.clip(design @ beta, -40, 40)))
        weight = fitted * (1 - fitted)
        information = (design * weight[:, None]).T @ design
        if np.linalg.cond(information) > 1e12:
            break
        bread: FloatArray = np.linalg.inv(information).astype(np.float64)
        step = bread @ (design.T @ (wins - fitted))
        beta = beta + step
        if np.max(np.abs(beta)) > _MAX_COEFFICIENT:
            break
        if np.max(np.abs(step)) < 1e-10:
            return beta, fitted, bread
    raise InsufficientDataError(
        "the covariates separate wins from losses completely (or are collinear), so a win rate "
        "at equal length cannot be estimated from these pairs",
        n=len(wins),
    )


def _expit(value: float) -> float:
    return 1 / (1 + math.exp(-value))
