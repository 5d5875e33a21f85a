"""One function for the mean of human values: the default method and the others by name."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, Unpack, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level, t_quantile
from rag_sourcebias.intervals.classical import bootstrap_interval, t_interval, wilson_ends
from rag_sourcebias.intervals.ppi import (
    crossfit_ppi_interval,
    paper_ppi_interval,
    ppi_interval,
)
from rag_sourcebias.intervals.regression import RegressionFit, fit_regression
from rag_sourcebias.intervals.sample import (
    Design,
    JudgedSample,
    Target,
    check_target,
    judge_correlation,
)
from rag_sourcebias.types.intervals import Interval

__all__ = ["MIN_CLUSTERS", "MIN_LABELED", "Method", "assumptions_of", "mean_interval"]

FloatArray = npt.NDArray[np.float64]
Method = Literal["regression", "labels", "ppi", "ppi++", "ppi-crossfit", "ppi-paper", "bootstrap"]

MIN_LABELED = 10  # below, no method with a judge covers and beats labels alone
MIN_CLUSTERS = 5


def mean_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_unlabeled: npt.ArrayLike,
    *,
    method: Method = "regression",
    target: Target = "population",
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    lam: float = 1.0,
    rng: np.random.Generator | int = 0,
    **design: Unpack[Design],
) -> Interval:
    """Interval for the mean human value, from a few human and many judge values.

    Parameters
    ----------
    y, yhat : array-like of shape (n,)
        Human and judge values of the labelled items, in the same order and any units.
    yhat_unlabeled : array-like of shape (N,)
        Judge values of the other items.
    method : str
        ``"regression"`` (default): regression on the judge, delete-one jackknife variance,
        t(n − 2). Below 10 labels it returns labels alone and says so. ``"labels"``: human labels
        alone. ``"ppi"``: fixed power ``lam``. ``"ppi++"``: tuned power. ``"ppi-crossfit"``.
        ``"ppi-paper"``: Eq. 8–11 of Oosterhuis et al. (KDD 2024). ``"bootstrap"``: their
        baseline, percentiles of the labels alone.
    target : {"population", "pool", "unlabeled"}
        The mean over the population the items were drawn from, over these n + N items, or over
        the N unlabelled ones.
    bounds : tuple of float, optional
        Range of the human values. With it, or when every human value is 0 or 1, the interval is a
        score interval on the effective number of items, which stays honest near the ends of the
        range and when all labels agree.
    rng : numpy.random.Generator or int
        For ``"ppi-crossfit"`` and ``"bootstrap"``.
    **design
        ``weights``, ``strata``, ``strata_unlabeled``, ``clusters``, ``clusters_unlabeled``: see
        :class:`~rag_sourcebias.intervals.sample.Design`.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 labels, 2 in each stratum or 5 labelled clusters, or when all human
        values are equal and no bounds are known.
    DataError
        If values are missing or not finite, or options do not go together.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> truth = rng.normal(5, 2, 1050)
    >>> judge = truth + rng.normal(1, 1, 1050)
    >>> print(mean_interval(truth[:50], judge[:50], judge[50:]))
    4.985 [4.714, 5.256] (95%, regression on the judge, n = 50 + 1000 unlabelled, judge r = 0.89)
    """
    check_level(confidence_level)
    check_target(target)
    if method not in get_args(Method):
        raise DataError(f"method {method!r} is not one of {', '.join(get_args(Method))}")
    sample = JudgedSample.build(y, yhat, yhat_unlabeled, **design)
    if sample.shifted and target == "pool":
        raise DataError("weights with target 'pool': the labelled items are not of the pool")
    if method in ("regression", "labels"):
        return _regression(sample, method, target, confidence_level, _bounds(sample, bounds))
    extra = [name for name, value in design.items() if value is not None]
    if extra or bounds is not None:
        raise DataError(
            f"method {method!r} does not take {', '.join(extra) or 'bounds'}; use 'regression'"
        )
    human, judge, pool = sample.y[:, 0], sample.x[:, 0], sample.x_unlabeled[:, 0]
    if method == "ppi":
        return ppi_interval(
            human, judge, pool, lam=lam, target=target, confidence_level=confidence_level
        )
    if method == "ppi++":
        return ppi_interval(
            human, judge, pool, lam=None, target=target, confidence_level=confidence_level
        )
    if target != "population":
        raise DataError(f"method {method!r} is defined for target 'population', not {target!r}")
    if method == "ppi-crossfit":
        return crossfit_ppi_interval(human, judge, pool, confidence_level=confidence_level, rng=rng)
    if method == "ppi-paper":
        everything = np.concatenate([judge, pool])
        return paper_ppi_interval(human, judge, everything, confidence_level=confidence_level)
    found = bootstrap_interval(human, confidence_level=confidence_level, kind="empirical", rng=rng)
    return replace(found, n_unlabeled=len(pool))


def _bounds(sample: JudgedSample, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    values = sample.y[:, 0]
    if bounds is None:
        return (0.0, 1.0) if len(values) and np.isin(values, (0.0, 1.0)).all() else None
    low, high = bounds
    if not low < high:
        raise DataError(f"bounds {bounds}: the first must be below the second")
    outside = np.flatnonzero((values < low) | (values > high))
    if len(outside):
        raise DataError(
            f"{len(outside)} human value(s) outside the scale [{low:g}, {high:g}], first "
            f"{values[outside[0]]:g} at position {outside[0]}"
        )
    return low, high


def _regression(
    sample: JudgedSample,
    method: str,
    target: Target,
    level: float,
    bounds: tuple[float, float] | None,
) -> Interval:
    """Regression on the judge or, with no judge columns, labels alone."""
    human, judge = sample.y[:, 0], sample.x[:, 0]
    n = sample.n_labeled
    _check_enough(sample, bounds)
    correlation = judge_correlation(human, judge)
    alone = method == "labels"
    notes: tuple[str, ...] = ()
    if not alone:
        alone, notes = _judge_notes(sample, correlation)
    if alone:
        sample = _without_judge(sample)
    plain = alone and sample.n_strata == 1 and sample.cluster is None and not sample.shifted
    if plain and bounds is None:
        share = n / (n + sample.n_unlabeled)
        found = t_interval(
            human, confidence_level=level, fraction_labeled=share if target == "pool" else 0.0
        )
        if target == "unlabeled" and sample.n_unlabeled:
            stretch = math.sqrt(1 + n / sample.n_unlabeled)
            half = found.half_width * stretch
            found = replace(
                found, lower=found.estimate - half, upper=found.estimate + half, target=target
            )
        return replace(
            found,
            n_unlabeled=sample.n_unlabeled,
            correlation=correlation,
            notes=notes,
            target=target,
        )
    fit = fit_regression(sample, target)
    name = "labels alone" if alone else "regression on the judge"
    quantile = t_quantile(0.5 + level / 2, fit.degrees)
    estimate = float(fit.estimate[0])
    if bounds is None:
        half = quantile * math.sqrt(max(float(fit.covariance[0, 0]), 0.0))
        lower, upper = estimate - half, estimate + half
    else:
        name += ", score form"
        estimate, lower, upper = _score_form(sample, fit, target, quantile, bounds)
    return Interval(
        estimate=estimate,
        lower=lower,
        upper=upper,
        confidence_level=level,
        method=name,
        target=target,
        n_labeled=n,
        n_unlabeled=sample.n_unlabeled,
        assumptions=assumptions_of(sample),
        correlation=correlation,
        notes=notes,
    )


def _check_enough(sample: JudgedSample, bounds: tuple[float, float] | None) -> None:
    if sample.n_labeled < 2:
        raise InsufficientDataError(
            f"{sample.n_labeled} human label(s): an interval needs at least 2 and the judge helps "
            f"from {MIN_LABELED} on",
            n=sample.n_labeled,
            n_needed=MIN_LABELED,
        )
    if sample.cluster is not None and sample.n_units < MIN_CLUSTERS:
        raise InsufficientDataError(
            f"{sample.n_units} labelled cluster(s): an interval needs at least {MIN_CLUSTERS}",
            n=sample.n_units,
            n_needed=MIN_CLUSTERS,
        )
    if bounds is None:
        as_spread = sample.y[:, 0]
        if as_spread.min() == as_spread.max():
            t_interval(as_spread)  # raises, with the remedy


def _judge_notes(sample: JudgedSample, correlation: float) -> tuple[bool, tuple[str, ...]]:
    """Whether labels alone must be used, and what to say about the judge."""
    units = sample.n_units
    if units < MIN_LABELED:
        return True, (f"fewer than {MIN_LABELED} labels: the judge was not used",)
    if np.ptp(sample.x, axis=0).max(initial=0.0) == 0.0:
        return True, ("the judge is constant on the labelled items and was not used",)
    if abs(correlation) <= 1 / math.sqrt(units - 2):
        return False, ("this judge is no better than none: labels alone are as good",)
    return False, ()


def _without_judge(sample: JudgedSample) -> JudgedSample:
    return replace(sample, x=sample.x[:, :0], x_unlabeled=sample.x_unlabeled[:, :0])


def _score_form(
    sample: JudgedSample,
    fit: RegressionFit,
    target: Target,
    quantile: float,
    bounds: tuple[float, float],
) -> tuple[float, float, float]:
    """Wilson's interval on the number of items that would give this variance.

    Four pseudo-items, two at each end of the range (Agresti & Coull 1998), enter the variance:
    labels that all agree, with the judge or with each other, do not make it zero.
    """
    low, high = bounds
    width = high - low
    share = min(max((float(fit.estimate[0]) - low) / width, 0.0), 1.0)
    n = float(sample.n_units)
    variance = max(float(fit.covariance[0, 0]), 0.0) / width**2
    reach = n_factor(sample, target)
    pseudo = 2 * (1 - share) ** 2 + 2 * share**2
    smoothed = (n * variance + reach * pseudo / n) / (n + 4)
    if smoothed <= 0:
        estimate = low + width * share
        return estimate, estimate, estimate
    pulled = (n * share + 2) / (n + 4)
    effective = pulled * (1 - pulled) / smoothed
    lower, upper = wilson_ends(share, effective, quantile)
    return low + width * share, low + width * lower, low + width * upper


def n_factor(sample: JudgedSample, target: Target) -> float:
    """How sampling a finite target shrinks or stretches the variance of the labelled part."""
    n, pool = sample.n_labeled, sample.n_unlabeled
    if target == "pool":
        return pool / (n + pool)
    return 1 + n / pool if target == "unlabeled" and pool else 1.0


def assumptions_of(sample: JudgedSample) -> tuple[str, ...]:
    """What must hold for an interval from this sample."""
    if sample.shifted:
        drawn = "the weights are the true density ratios of the pool to the labelled items"
    elif sample.n_strata > 1:
        drawn = "within each stratum the labelled items were drawn at random from the judged pool"
    else:
        drawn = "the labelled items were drawn at random from the judged pool"
    units = "items are independent" if sample.cluster is None else "clusters are independent"
    same = "the judge treats labelled and unlabelled items alike"
    return drawn, units, same
