"""Resampling, means of observations that come in clusters, and p-values adjusted over a family."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray, IntArray, Interval
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.settings import check_level, require_finite
from rag_sourcebias.infer.quantiles import normal_quantile, t_quantile
from rag_sourcebias.infer.ratios import BoundedRatio

_NO_SPREAD = 1e-12


def bootstrap_intervals(
    estimates: FloatArray,
    draws: FloatArray,
    *,
    n: int,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    confidence_level: float = 0.95,
) -> tuple[Interval | None, ...]:
    """One percentile interval per statistic from its resampled values.

    Not for statistics that noise can only raise, such as a range or unfairness: resampled values
    then lie above the truth.

    Tails are widened for small n (Hesterberg 2015), so that for a mean the interval is as wide as
    Student's t.

    Parameters
    ----------
    estimates : float64 array of shape (m,)
        From all queries.
    draws : float64 array of shape (resamples, m)
        From resampled queries (:func:`bootstrap_means` and a function of its rows).
    n : int
        Queries resampled.
    bounds : tuple of float
        Range of the statistic.

    Returns
    -------
    tuple of Interval or None, length m
        None where all resamples agree, which says nothing about how much queries vary.

    Raises
    ------
    DataError
        If shapes disagree or a value is not finite.
    InsufficientDataError
        If n < 2.
    """
    check_level(confidence_level)
    if draws.ndim != 2 or draws.shape[1:] != estimates.shape or not len(draws):
        raise DataError(f"{estimates.shape} estimates but resampled values {draws.shape}")
    for values, what in ((estimates, "estimates"), (draws, "resampled values")):
        require_finite(values, what, remedy="leave out queries without a value")
    if n < 2:
        raise InsufficientDataError(
            f"a bootstrap interval needs at least 2 queries, there is {n}", n=n, n_needed=2
        )
    t = t_quantile(0.5 + confidence_level / 2, n - 1) * math.sqrt(n / (n - 1))
    tail = 0.5 * math.erfc(t / math.sqrt(2))  # whose normal quantile is √(n/(n − 1)) · t(n − 1)
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
    lower = np.minimum(np.clip(lower, *bounds), estimates)
    upper = np.maximum(np.clip(upper, *bounds), estimates)
    return tuple(
        Interval(
            estimate=float(estimate),
            lower=float(low),
            upper=float(high),
            confidence_level=confidence_level,
            method="bootstrap",
            n_labeled=n,
            assumptions=("queries are a random sample of the queries of interest",),
        )
        if wide > _NO_SPREAD
        else None
        for estimate, low, high, wide in zip(
            estimates, lower, upper, np.ptp(draws, axis=0), strict=True
        )
    )


# Variances of sums whose terms depend on one another along several factors.
# Terms that share a query, a document or a cluster may be correlated. The variance counts every
# pair of terms that shares any factor once (Cameron, Gelbach & Miller 2011, Journal of Business &
# Economic Statistics 29:238): one-way variances added, those of joint factors subtracted.


_NOTHING = 1e-18  # a sum of squares that rounding alone makes
#: Fewest clusters of a factor that is treated as random.
MIN_CLUSTERS = 6


def multiway_variance(terms: FloatArray, factors: Sequence[IntArray]) -> float:
    """Return the variance of ``terms.sum()``, never below that of any factor alone.

    Parameters
    ----------
    terms : float64 array of shape (n,)
        Influence values, summing to about 0.
    factors : sequence of int64 arrays of shape (n,)
        Cluster of each term per factor, numbered from 0; -1 for a term that shares it with none.
        Each one-way part is multiplied by G/(G − 1).
    """
    codes = [_own(factor) for factor in factors]
    parts = [_clustered(terms, code) for code in codes]
    total = sum(parts)
    for size in range(2, len(codes) + 1):
        for chosen in combinations(codes, size):
            total += (-1) ** (size + 1) * _clustered(terms, _joint(chosen))
    return max(total, *parts)


def independent_share(
    terms: FloatArray, units: IntArray, others: Sequence[IntArray], *, confidence_level: float
) -> float:
    """Return how much of its independent information each unit keeps, in (0, 1].

    The variance over the units alone as a share of that over all factors, times the squared ratio
    of t quantiles where another factor has fewer clusters than there are units. Where nothing
    varies, or a factor has one cluster, units are as many as the fewest clusters of a factor.
    """
    alone = _clustered(terms, _own(units))
    shared = [factor for factor in others if _crosses(factor, units)]
    if not shared:
        return 1.0
    fewest = min(_count(factor) for factor in (units, *shared))
    if alone <= _NOTHING or fewest < 2:
        return fewest / _count(units)
    share = min(alone / multiway_variance(terms, [units, *shared]), 1.0)
    p = 0.5 + confidence_level / 2
    if fewest < _count(units):
        share *= (t_quantile(p, _count(units) - 1) / t_quantile(p, fewest - 1)) ** 2
    return round(min(share, 1.0), 12)  # the same for every order of the terms


def design_effect(terms: FloatArray, units: IntArray) -> tuple[float, float]:
    """Return how many terms of a unit move together, and what few units leave of its information.

    Returns
    -------
    effect : float
        The variance between units as a multiple of that of independent terms, from 1, where terms
        of a unit have nothing in common, to their mean number, where they are equal or nothing
        varies.
    kept : float
        Squared ratio of the normal to the t quantile at .975 with units − 1 degrees of freedom;
        1 where every term is a unit of its own.
    """
    alone, g = float(terms @ terms), _count(units)
    if len(terms) <= g or g < 2:
        return 1.0, 1.0
    kept = (normal_quantile(0.975) / t_quantile(0.975, g - 1)) ** 2
    effect = _clustered(terms, units) / alone if alone > _NOTHING else len(terms) / g
    return round(min(max(effect, 1.0), len(terms) / g), 12), kept


def require_clusters(n: int, what: str, remedy: str) -> None:
    """Refuse a factor with fewer than 6 clusters.

    Raises
    ------
    InsufficientDataError
        ``n_needed`` is 6.
    """
    if n < MIN_CLUSTERS:
        raise InsufficientDataError(
            f"{n} {what} are too few to tell how much they vary; at least {MIN_CLUSTERS} are "
            f"needed: {remedy}",
            n=n,
            n_needed=MIN_CLUSTERS,
        )


def _count(factor: IntArray) -> int:
    return int(np.count_nonzero(np.bincount(factor[factor >= 0])))


def _own(factor: IntArray) -> IntArray:
    """Give each term without a cluster one of its own."""
    code = factor.copy()
    alone = np.flatnonzero(code < 0)
    code[alone] = int(code.max(initial=-1)) + 1 + np.arange(len(alone))
    return code


def _joint(codes: Sequence[IntArray]) -> IntArray:
    key = codes[0]
    for code in codes[1:]:
        key = np.unique(key * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1]
    return key


def _crosses(factor: IntArray, units: IntArray) -> bool:
    """Whether a cluster of the factor reaches into more than one unit."""
    inside = factor >= 0
    pairs = np.unique(np.stack((factor[inside], units[inside])), axis=1)
    return bool(np.any(np.diff(pairs[0]) == 0))


def _clustered(terms: FloatArray, code: IntArray) -> float:
    _, code = np.unique(code, return_inverse=True)
    sums = np.bincount(code, weights=terms)
    g = len(sums)
    return float(sums @ sums) * g / (g - 1) if g > 1 else 0.0


# Intervals for means of observations that come in clusters, such as pairs within a query.


_ASSUMPTIONS = (
    "clusters (queries) are a random sample; observations within one may depend on each other",
)


def clustered_mean(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    information: float = 1.0,
    one_sided: bool = False,
) -> Interval:
    """Mean over observations with a cluster-robust interval.

    Without bounds: CR1 variance and t(clusters − 1). With finite bounds:
    :class:`~rag_sourcebias.infer.ratios.BoundedRatio` over clusters, which covers near the
    bounds, where the t interval fails (.63–.93 for a share of .01–.05 with 100 clusters).

    Parameters
    ----------
    values : float64 array of shape (n,)
    clusters : integer array of shape (n,)
    bounds : tuple of float
        Range of the values, such as (0, 1) for win rates.
    information : float
        Share of its independent information that each cluster keeps where clusters depend on one
        another (:func:`~rag_sourcebias.infer.means.independent_share`); used with bounds.
    one_sided : bool
        Whether one end alone is used, and must hold on its own; matters with bounds.

    Raises
    ------
    DataError
        If a value is NaN or lies outside the bounds.
    InsufficientDataError
        If there are fewer than 2 clusters, or no bounds and no variation between clusters.
    """
    check_level(confidence_level)
    _require_finite(values)
    if all(map(math.isfinite, bounds)):
        found = bounded_mean(
            values, clusters, bounds=bounds, information=information, one_sided=one_sided
        )
        estimate, (lower, upper) = found.estimate, found.ends(confidence_level)
        g, method = len(found.numerator), "weighted clusters"
    else:
        estimate = float(np.mean(values)) if len(values) else math.nan
        error, g = _standard_error(values - estimate, clusters)
        width = t_quantile(0.5 + confidence_level / 2, g - 1) * error
        lower, upper = max(estimate - width, bounds[0]), min(estimate + width, bounds[1])
        method = "cluster-robust mean"
    return Interval(
        estimate=estimate,
        lower=min(lower, estimate),
        upper=max(upper, estimate),
        confidence_level=confidence_level,
        method=method,
        n_labeled=g,
        assumptions=_ASSUMPTIONS,
    )


def clustered_difference(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """Mean of paired differences of scores in [0, 1]: :func:`clustered_mean` within [−1, 1].

    Columns that agree on every query give a narrow interval, not a point.
    """
    return clustered_mean(values, clusters, confidence_level=confidence_level, bounds=(-1.0, 1.0))


def difference_test(values: FloatArray, clusters: npt.NDArray[np.integer[Any]]) -> float:
    """Return the two-sided p-value of paired differences in [−1, 1] having mean 0.

    It inverts the interval of :func:`clustered_difference`. A sign-flip test would assume
    symmetric differences: on skewed ones of mean 0 it rejects .34 at 10 queries,
    and studentising does not help it, as every pattern of signs has the same sum of squares.
    """
    return bounded_mean(values, clusters, bounds=(-1.0, 1.0)).p_value()


def clustered_standardised_mean(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """Mean in units of the standard deviation, with a cluster-robust interval.

    The standard deviation is estimated too; its error enters through the influence function.

    Parameters
    ----------
    values : float64 array of shape (n,)
        In any unit.
    clusters : integer array of shape (n,)
        Same number, dependent observations.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 2 clusters, or no variation between clusters.
    """
    check_level(confidence_level)
    n = len(values)
    _require_finite(values)
    if n < 2 or not np.ptp(values) > 0:
        raise InsufficientDataError(
            f"{n} observation(s) without spread cannot be standardised; at least 2 different "
            "values are needed",
            n=n,
        )
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    centred = (values - mean) / sd
    error, g = _standard_error(centred - mean / sd / 2 * (centred**2 - 1), clusters)
    width = t_quantile(0.5 + confidence_level / 2, g - 1) * error
    return Interval(
        estimate=mean / sd,
        lower=mean / sd - width,
        upper=mean / sd + width,
        confidence_level=confidence_level,
        method="cluster-robust standardised mean",
        n_labeled=g,
        assumptions=_ASSUMPTIONS,
    )


def _standard_error(
    influence: FloatArray, clusters: npt.NDArray[np.integer[Any]]
) -> tuple[float, int]:
    """CR1 standard error of a mean, and the number of clusters."""
    if influence.shape != clusters.shape:
        raise DataError(f"{len(influence)} values but {len(clusters)} cluster labels")
    _, code = np.unique(clusters, return_inverse=True)
    g = int(code.max(initial=-1)) + 1
    _require_two(g)
    sums = np.bincount(code, weights=influence)
    error = math.sqrt(float(np.sum(sums**2)) * g / (g - 1)) / len(influence)
    if error < _NO_SPREAD:
        raise InsufficientDataError(
            f"all {g} clusters (queries) agree exactly, so nothing is known about how much they "
            "vary; an interval needs clusters that differ",
            n=g,
        )
    return error, g


def _require_finite(values: FloatArray) -> None:
    if not np.all(np.isfinite(values)):
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(
            f"value {at} is {values[at]}; an interval needs numbers, leave out what has none"
        )


def _require_two(g: int) -> None:
    if g < 2:
        raise InsufficientDataError(
            f"an interval needs at least 2 clusters, or queries; there is {g}, add data",
            n=g,
            n_needed=2,
        )


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


def bounded_mean(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    bounds: tuple[float, float],
    information: float = 1.0,
    one_sided: bool = False,
) -> BoundedRatio:
    """Return the mean of bounded values over clusters, for its interval and its p-value.

    Raises
    ------
    DataError
        If a value is NaN or lies outside the bounds.
    InsufficientDataError
        If there are fewer than 2 clusters.
    """
    _require_finite(values)
    if values.shape != clusters.shape:
        raise DataError(f"{len(values)} values but {len(clusters)} cluster labels")
    lowest, highest = bounds
    if len(values) and (float(values.min()) < lowest or float(values.max()) > highest):
        raise DataError(
            f"values reach from {values.min()} to {values.max()}, outside the bounds {bounds}"
        )
    _, code = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(code).astype(np.float64)
    _require_two(len(sizes))
    # a cluster that was not seen is as extreme as its observations depend on one another
    size, certain = design_effect(values - values.mean(), code)
    return BoundedRatio(
        numerator=np.bincount(code, weights=values).astype(np.float64, copy=False),
        denominator=sizes,
        lowest=(lowest * size, size),
        highest=(highest * size, size),
        information=information * certain,
        one_sided=one_sided,
    )
