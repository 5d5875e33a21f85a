"""Prediction-powered inference for a mean: fixed, tuned and cross-fitted power, and [R]'s form.

The default method of this library is :mod:`~rag_sourcebias.intervals.regression`; these are
offered by name, for comparison and where the power λ was fixed before seeing labels.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rag_sourcebias.inference.quantiles import (
    check_level,
    normal_quantile,
    t_quantile,
)
from rag_sourcebias.intervals.ppi.forms import DISTINCT, RANDOM, ppi_result, ppi_samples
from rag_sourcebias.intervals.values import Target, check_target
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["ppi_interval", "tuned_power"]


def ppi_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    lam: float | None = 1.0,
    target: Target = "population",
    confidence_level: float = 0.95,
    normal: bool = False,
) -> Interval:
    """PPI interval with power ``lam``, fixed (PPI) or tuned on the same labels (PPI++).

    Parameters
    ----------
    y, yhat : array-like of shape (n,)
        Human and judge values of the labelled items.
    yhat_unlabeled : array-like of shape (N,)
        Judge values of other items.
    lam : float or None
        Weight of the judge; None tunes it in [0, 1] (Angelopoulos, Duchi & Zrnic 2023), which
        under-covers with few labels (.83–.89 at 10–20) because its own error is not counted.
    normal : bool
        Use 1.96-like quantiles and divide variances by n, as the package ``ppi_py`` does, rather
        than t(n − 1) and n − 1.

    Returns
    -------
    Interval
        Population: Var(y − λf)/n + λ²Var(f)/N. Pool: Var(y − λf)(1/n − 1/(n + N)).
        Unlabelled items: Var(y − λf)(1/n + 1/N).
    """
    check_level(confidence_level)
    check_target(target)
    human, judge, pool = ppi_samples(y, yhat, yhat_unlabeled)
    tuned = lam is None
    power = tuned_power(human, judge, pool) if lam is None else float(lam)
    n, n_pool = len(human), len(pool)
    ddof = 0 if normal else 1
    spread = float((human - power * judge).var(ddof=ddof))
    reference = np.concatenate([judge, pool]) if target == "pool" else pool
    estimate = power * float(reference.mean()) + float((human - power * judge).mean())
    if target == "population":
        variance = spread / n + power**2 * float(pool.var(ddof=ddof)) / n_pool
    elif target == "pool":
        variance = spread * (1 / n - 1 / (n + n_pool))
    else:
        variance = spread * (1 / n + 1 / n_pool)
    probability = 0.5 + confidence_level / 2
    quantile = normal_quantile(probability) if normal else t_quantile(probability, n - 1)
    return ppi_result(
        estimate,
        quantile * math.sqrt(variance),
        confidence_level=confidence_level,
        method=f"PPI++ (tuned λ = {power:.3g})" if tuned else f"PPI (λ = {power:.3g})",
        target=target,
        human=human,
        judge=judge,
        n_pool=n_pool,
        assumptions=(
            RANDOM,
            DISTINCT,
            "λ is as good as fixed" if tuned else "λ was fixed in advance",
        ),
        notes=("tuned λ: too short with few labels",) if tuned and n < 40 else (),
    )


def tuned_power(y: FloatArray, yhat: FloatArray, yhat_unlabeled: FloatArray) -> float:
    """Return λ minimising the estimated variance, in [0, 1]; 0 for a constant judge."""
    everything = np.concatenate([yhat, yhat_unlabeled])
    spread = float(everything.var(ddof=1))
    if spread == 0.0:
        return 0.0
    together = float(((y - y.mean()) * (yhat - yhat.mean())).mean())
    ratio = len(y) / len(yhat_unlabeled)
    return min(max(together / ((1 + ratio) * spread), 0.0), 1.0)
