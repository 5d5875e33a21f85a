"""Prediction-powered inference exactly as in Oosterhuis et al. (KDD 2024)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.interval import Interval
from rag_sourcebias.stats.resampling import as_generator, check_level, normal_quantile, t_quantile
from rag_sourcebias.stats.samples import Target, as_values, check_target, judge_correlation

# What all forms of prediction-powered inference share.


DISTINCT = "the unlabelled items are other items from the same distribution"
RANDOM = "the labelled items are drawn at random from the judged pool"


def ppi_samples(
    y: npt.ArrayLike, yhat: npt.ArrayLike, pool: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check the three samples PPI takes."""
    human, judge, others = as_values("y", y), as_values("yhat", yhat), as_values("pool", pool)
    if len(human) != len(judge):
        raise DataError(f"{len(human)} human values and {len(judge)} judge values of them")
    for name, size in (("labelled", len(human)), ("judged", len(others))):
        if size < 2:
            raise InsufficientDataError(
                f"{size} {name} item(s): PPI needs at least 2", n=size, n_needed=2
            )
    return human, judge, others


def ppi_result(
    estimate: float,
    half: float,
    *,
    confidence_level: float,
    method: str,
    target: str,
    human: FloatArray,
    judge: FloatArray,
    n_pool: int,
    assumptions: tuple[str, ...],
    notes: tuple[str, ...] = (),
) -> Interval:
    """Build the interval around an estimate."""
    return Interval(
        estimate=estimate,
        lower=estimate - half,
        upper=estimate + half,
        confidence_level=confidence_level,
        method=method,
        target=target,
        n_labeled=len(human),
        n_unlabeled=n_pool,
        assumptions=assumptions,
        correlation=judge_correlation(human, judge),
        notes=notes,
    )


# Prediction-powered inference for a mean: fixed, tuned and cross-fitted power, and [R]'s form.
# The default method of this library is :mod:`~rag_sourcebias.stats.regression`; these are offered
# by name, for comparison and where the power λ was fixed before seeing labels.


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


# Prediction-powered inference with a cross-fitted power.


def crossfit_ppi_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    n_folds: int = 10,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """PPI for the population, with λ for each fold tuned on the other folds.

    The power is not clipped, so an inverted judge helps too. The residuals that give the variance
    were not used to choose the power they are formed with.

    Parameters
    ----------
    y, yhat : array-like of shape (n,)
        Human and judge values of the labelled items.
    yhat_unlabeled : array-like of shape (N,)
        Judge values of other items.
    n_folds : int
        At least 2; no more folds than labelled items are made.
    """
    check_level(confidence_level)
    human, judge, pool = ppi_samples(y, yhat, yhat_unlabeled)
    n, n_pool = len(human), len(pool)
    folds = min(n_folds, n)
    if folds < 2:
        raise DataError(f"n_folds {n_folds} is below 2")
    code = as_generator(rng).permutation(n) % folds
    sizes = np.bincount(code, minlength=folds).astype(np.float64)
    rest = n - sizes

    def without(values: FloatArray) -> FloatArray:
        return np.asarray(values.sum() - np.bincount(code, weights=values, minlength=folds))

    sums_y, sums_f = without(human), without(judge)
    together = (without(human * judge) - sums_y * sums_f / rest) / np.maximum(rest - 1, 1)
    everything = np.concatenate([judge, pool])
    spread = float(everything.var(ddof=1))
    power = together / ((1 + n / n_pool) * spread) if spread > 0 else np.zeros(folds)
    residual = human - power[code] * judge
    weight = float((power * sizes).sum() / n)
    estimate = weight * float(pool.mean()) + float(residual.mean())
    # The residuals of different folds have different centres when λ differs; remove the shift.
    level = residual + (power[code] - weight) * float(pool.mean())
    variance = float(level.var(ddof=1)) / n + weight**2 * float(pool.var(ddof=1)) / n_pool
    half = t_quantile(0.5 + confidence_level / 2, n - 1) * math.sqrt(variance)
    return ppi_result(
        estimate,
        half,
        confidence_level=confidence_level,
        method=f"PPI (cross-fitted λ = {weight:.3g})",
        target="population",
        human=human,
        judge=judge,
        n_pool=n_pool,
        assumptions=(RANDOM, DISTINCT),
    )


# Prediction-powered inference exactly as in Oosterhuis et al. (KDD 2024).


def paper_ppi_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_all: npt.ArrayLike,
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """PPI exactly as in [R] Eq. 8–11.

    Parameters
    ----------
    y, yhat : array-like of shape (n,)
    yhat_all : array-like of shape (N,)
        Judge values of all items, the labelled ones among them.

    Returns
    -------
    Interval
        Mean prediction over N plus mean error over n, ± 1.96 √(σ²_err/n + σ²_pred/N). As the
        labelled items are among the N, the formula leaves out a covariance.
    """
    check_level(confidence_level)
    human, judge, everything = ppi_samples(y, yhat, yhat_all)
    error = human - judge
    variance = error.var(ddof=1) / len(error) + everything.var(ddof=1) / len(everything)
    half = normal_quantile(0.5 + confidence_level / 2) * math.sqrt(float(variance))
    return ppi_result(
        float(everything.mean() + error.mean()),
        half,
        confidence_level=confidence_level,
        method="PPI (paper)",
        target="population",
        human=human,
        judge=judge,
        n_pool=len(everything) - len(human),
        assumptions=(RANDOM, "normal quantiles; the overlap of the two samples is ignored"),
    )
