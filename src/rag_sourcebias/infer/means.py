"""Means, of labels alone or of observations in clusters, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    as_generator,
    check_level,
    require_finite,
)
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.decide import normal_quantile, t_quantile
from rag_sourcebias.infer.dependence import design_effect, group_codes
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.samples import as_values, has_spread


def t_interval(
    y: npt.ArrayLike, *, confidence_level: float = 0.95, fraction_labeled: float = 0.0
) -> Interval:
    """Student's t interval for a mean.

    Parameters
    ----------
    y : array-like of shape (n,)
    fraction_labeled : float
        n/(n + N) in [0, 1] when the mean of a finite pool is wanted; 0 for a population.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 values, or values that do not differ.

    Examples
    --------
    >>> print(t_interval([3.0, 5.0, 4.0, 6.0]))
    4.5 [2.446, 6.554] (95%, labels alone (t), n = 4)
    """
    check_level(confidence_level)
    values = spread_values(y)
    n = len(values)
    error = values.std(ddof=1) / math.sqrt(n) * math.sqrt(max(1 - fraction_labeled, 0.0))
    return t_around(
        float(values.mean()),
        float(error),
        n - 1,
        level=confidence_level,
        method=InferCode.LABELS_T(),
        target="pool" if fraction_labeled else "population",
        n_labeled=n,
        assumptions=(InferCode.ITEMS_SAMPLED(), InferCode.MEAN_NORMAL()),
    )


def t_around(
    estimate: float,
    error: float,
    degrees: float,
    *,
    level: float,
    **about: Any,  # noqa: ANN401 - fields of Interval
) -> Interval:
    """Return an interval of t quantiles to both sides of an estimate.

    Parameters
    ----------
    error : float
        Standard error.
    degrees : float
        Of freedom; infinite for quantiles of the normal distribution.
    **about
        Further fields of the interval.
    """
    half = t_quantile(0.5 + level / 2, degrees) * error
    return Interval(
        estimate=estimate,
        lower=estimate - half,
        upper=estimate + half,
        confidence_level=level,
        **about,
    )


def mean_of_alike(values: FloatArray, *, level: float, **about: Any) -> Interval:  # noqa: ANN401
    """Return the mean of values that are all one: nothing is left to estimate.

    Parameters
    ----------
    **about
        Further fields of the interval.
    """
    return t_around(
        float(values[0]),
        0.0,
        math.inf,
        level=level,
        method=InferCode.ALIKE(),
        n_labeled=len(values),
        **about,
    )


def spread_values(y: npt.ArrayLike) -> FloatArray:
    """Return values that have a spread to estimate, or raise."""
    values = as_values("y", y)
    if len(values) < 2:
        raise InsufficientDataError(
            f"{len(values)} human label(s): an interval needs at least 2, and 10 to be useful",
            n=len(values),
            n_needed=2,
        )
    if not has_spread(values):
        raise InsufficientDataError(
            f"all {len(values)} human values equal {values[0]:g}, so their spread cannot be "
            "estimated; label more items, or give the range of the values as bounds=(low, high)",
            n=len(values),
        )
    return values


def wilson_interval(successes: float, n: float, *, confidence_level: float = 0.95) -> Interval:
    """Wilson score interval for a proportion (Wilson 1927).

    Parameters
    ----------
    successes, n : float
        0 ≤ successes ≤ n; fractions are effective counts (Korn & Graubard 1998).

    Returns
    -------
    Interval
        In [0, 1].
    """
    if n < 1:
        raise InsufficientDataError(f"{n} trials: a proportion needs at least 1", n=int(n))
    if not 0 <= successes <= n:
        raise DataError(f"{successes} successes out of {n} trials")
    share = successes / n
    lower, upper = wilson_ends(share, n, normal_quantile(0.5 + confidence_level / 2))
    return Interval(
        estimate=share,
        lower=lower,
        upper=upper,
        confidence_level=confidence_level,
        method=InferCode.LABELS_WILSON(),
        n_labeled=round(n),
        assumptions=(InferCode.TRIALS(),),
    )


def wilson_ends(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Ends of the score interval for a share observed on ``n`` (effective) items."""
    square = quantile * quantile / n
    centre = (share + square / 2) / (1 + square)
    half = quantile / (1 + square) * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return max(min(centre - half, share), 0.0), min(max(centre + half, share), 1.0)


_CHUNK = 4_000_000  # resampled values held at a time


def bootstrap_interval(
    y: npt.ArrayLike,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """Percentiles of resampled means, the baseline of Oosterhuis et al. (KDD 2024).

    Too short with few labels.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 values, or values that do not differ.
    """
    values = spread_values(y)
    n, generator = len(values), as_generator(rng)
    means = np.empty(n_resamples)
    step = max(_CHUNK // n, 1)
    for start in range(0, n_resamples, step):
        stop = min(start + step, n_resamples)
        means[start:stop] = values[generator.integers(0, n, (stop - start, n))].mean(axis=1)
    tail = 0.5 - confidence_level / 2
    lower, upper = np.quantile(means, [tail, 1 - tail]).tolist()
    mean = float(values.mean())
    return Interval(
        estimate=mean,
        lower=min(lower, mean),
        upper=max(upper, mean),
        confidence_level=confidence_level,
        method=InferCode.LABELS_BOOTSTRAP(),
        n_labeled=n,
        assumptions=(InferCode.ITEMS_SAMPLED(), InferCode.RESAMPLING()),
    )


_NO_SPREAD = 1e-12
_REMEDY = "leave out what has none"


def clustered_mean(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    information: float = 1.0,
    one_sided: bool = False,
) -> Interval:
    """Mean over observations with a cluster-robust interval.

    Without bounds: CR1 variance and t(clusters − 1). With finite bounds:
    :class:`BoundedRatio` over clusters, which covers near the
    bounds, where the t interval fails (.63–.93 for a share of .01–.05 with 100 clusters).

    Parameters
    ----------
    values : float64 array of shape (n,)
    clusters : integer array of shape (n,)
    bounds : tuple of float or None
        Range of the values, such as (0, 1) for win rates.
    information : float
        Share of its independent information that each cluster keeps where clusters depend on one
        another (:func:`~rag_sourcebias.infer.dependence.independent_share`); used with bounds.
    one_sided : bool
        Whether one end alone is used, and must hold on its own; matters with bounds.

    Raises
    ------
    DataError
        If a value is NaN or lies outside the bounds.
    InsufficientDataError
        If there are fewer than 2 clusters, or no bounds and no variation between clusters.
    """
    assumptions = (InferCode.CLUSTERS_SAMPLED(),)
    if bounds is None:
        _check_values(values)
        mean = float(values.mean())
        error, g = _standard_error(values - mean, clusters)
        return t_around(
            mean,
            error,
            g - 1,
            level=confidence_level,
            method=InferCode.CLUSTERED_MEAN(),
            n_labeled=g,
            assumptions=assumptions,
        )
    found = bounded_mean(
        values, clusters, bounds=bounds, information=information, one_sided=one_sided
    )
    lower, upper = found.ends(confidence_level)
    return Interval(
        estimate=found.estimate,
        lower=lower,
        upper=upper,
        confidence_level=confidence_level,
        method=InferCode.WEIGHTED_CLUSTERS(),
        n_labeled=len(found.numerator),
        assumptions=assumptions,
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
    n = len(values)
    if n < 2 or not np.ptp(values) > 0:
        raise InsufficientDataError(InferCode.NO_SPREAD(n=n))
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    centred = (values - mean) / sd
    error, g = _standard_error(centred - mean / sd / 2 * (centred**2 - 1), clusters)
    return t_around(
        mean / sd,
        error,
        g - 1,
        level=confidence_level,
        method=InferCode.STANDARDISED_MEAN(),
        n_labeled=g,
        assumptions=(InferCode.CLUSTERS_SAMPLED(),),
    )


def _standard_error(
    influence: FloatArray, clusters: npt.NDArray[np.integer[Any]]
) -> tuple[float, int]:
    """CR1 standard error of a mean, and the number of clusters."""
    code = group_codes(clusters)
    g = int(code.max(initial=-1)) + 1
    _require_two(g)
    sums = np.bincount(code, weights=influence)
    error = math.sqrt(float(np.sum(sums**2)) * g / (g - 1)) / len(influence)
    if error < _NO_SPREAD:
        raise InsufficientDataError(InferCode.CLUSTERS_AGREE(n=g))
    return error, g


def _check_values(values: FloatArray) -> None:
    require_finite(values, "values", remedy=_REMEDY)
    _require_two(len(values))


def _require_two(g: int) -> None:
    if g < 2:
        raise InsufficientDataError(InferCode.FEW_CLUSTERS(n=g, n_needed=2))


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
    _check_values(values)
    lowest, highest = bounds
    if values.min() < lowest or values.max() > highest:
        raise DataError(
            f"values reach from {values.min()} to {values.max()}, outside the bounds {bounds}"
        )
    code = group_codes(clusters)
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


def bootstrap_intervals(
    estimates: FloatArray,
    draws: FloatArray,
    *,
    n: int,
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
        Queries resampled, at least 2.

    Returns
    -------
    tuple of Interval or None, length m
        None where all resamples agree, which says nothing about how much queries vary.
    """
    t = t_quantile(0.5 + confidence_level / 2, n - 1) * math.sqrt(n / (n - 1))
    tail = 0.5 * math.erfc(t / math.sqrt(2))  # whose normal quantile is √(n/(n − 1)) · t(n − 1)
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
    lower, upper = np.minimum(lower, estimates), np.maximum(upper, estimates)
    return tuple(
        Interval(
            estimate=float(estimate),
            lower=float(low),
            upper=float(high),
            confidence_level=confidence_level,
            method=InferCode.BOOTSTRAP(),
            n_labeled=n,
            assumptions=(InferCode.QUERIES_SAMPLED(),),
        )
        if wide > _NO_SPREAD
        else None
        for estimate, low, high, wide in zip(
            estimates, lower, upper, np.ptp(draws, axis=0), strict=True
        )
    )


# Intervals for means and ratios of bounded values, from few or many independent units.
# A unit (a query, or a cluster of queries) carries a numerator and a denominator; what is wanted
# is the ratio of their expectations, a mean where every denominator is 1. The units are given
# random Dirichlet weights, and one more unit is added that stands for what was not seen: the
# lowest possible one for the lower end, the highest possible one for the upper end. The ends are
# quantiles of the weighted ratio.
# For values of 0 and 1 and a full extra unit this is the Clopper–Pearson interval; for any bounded
# values it is Gaffke's bound (2005; Learned-Miller & Thomas 2019 on its coverage). A full unit is
# needlessly cautious; with half a one a test of .05 rejects .07 where the only deviations are rare
# and large. The weight used is about the smallest that keeps .05 there. Nothing is switched by how
# many units differ, so the ends move smoothly with the data.


_UNSEEN = 0.65  # weight of the unit that stands for what was not seen
_NEGLIGIBLE = 1e-12
_STEPS = 100
_MANY = 4096  # units from which adding up equal ones pays for the sorting
_CLOSE = 1e-7
_FAR = 40.0  # probits beyond it are certainty
_CENTRE = 1e-4  # |w| below which the tail formula is 0/0 and its limit is used


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundedRatio:
    """Ratio of two sums over independent units, with what one unit could contribute at most.

    Parameters
    ----------
    numerator, denominator : float64 arrays of shape (n,)
        Denominators are at least 0 and not all 0.
    lowest, highest : tuple of float
        Numerator and denominator of the most extreme possible unit in either direction.
    information : float
        Share of a unit's independent information that each unit carries, in (0, 1]: below 1 where
        units depend on one another, such as queries that share documents.
    one_sided : bool
        Whether one end alone is used: it then has a full extra unit. Where a loss is too rare to
        be seen all error lies at one end, and with the weight for two ends a one-sided test of
        .05 would reject .09.
    """

    numerator: FloatArray
    denominator: FloatArray
    lowest: tuple[float, float]
    highest: tuple[float, float]
    information: float = 1.0
    one_sided: bool = False

    @property
    def estimate(self) -> float:
        """Ratio of the sums."""
        return float(self.numerator.sum()) / float(self.denominator.sum())

    def ends(self, confidence_level: float) -> tuple[float, float]:
        """Return the ends of the two-sided interval."""
        check_level(confidence_level)
        z = normal_quantile(0.5 + confidence_level / 2)
        estimate = self.estimate
        return (
            min(self._end(-z, self.lowest, low=True), estimate),
            max(self._end(z, self.highest, low=False), estimate),
        )

    def p_value(self, value: float = 0.0) -> float:
        """Return the two-sided p-value of the ratio being ``value``.

        One minus the largest confidence level whose interval excludes it.
        """
        from scipy.special import ndtr

        below = ndtr(_probit(value, self._units(self.lowest))[0])
        above = ndtr(-_probit(value, self._units(self.highest))[0])
        return float(min(2 * min(below, above), 1.0))

    def _end(self, target: float, extra: tuple[float, float], *, low: bool) -> float:
        """Ratio at which the weighted ratio lies below with probability Φ(target)."""
        inner, outer = self.estimate, self._reach(extra, low=low)
        if abs(outer - inner) <= _NEGLIGIBLE * max(abs(inner), 1.0):
            return outer
        units = self._units(extra)
        residuals = self.numerator - inner * self.denominator
        spread = math.sqrt(float(residuals @ residuals) / self.information + extra[0] ** 2)
        guess = inner + 2 * math.copysign(spread, -1 if low else 1) / float(self.denominator.sum())
        near = 0.0
        for _ in range(_STEPS):
            if not min(inner, outer) < guess < max(inner, outer):
                guess = (inner + outer) / 2
            probit, slope, near = _probit(guess, units, near)
            distance = min(max(probit - target, -_FAR), _FAR)
            if abs(distance) < _CLOSE or abs(outer - inner) < _CLOSE * (abs(inner) + abs(outer)):
                break
            inner, outer = (guess, outer) if (distance > 0) == low else (inner, guess)
            guess = guess - distance / slope if slope > 0 and abs(distance) < _FAR else outer
        return guess

    def _reach(self, extra: tuple[float, float], *, low: bool) -> float:
        """Most extreme ratio that any unit, or the extra one, has on its own."""
        top = np.append(self.numerator, extra[0])
        bottom = np.append(self.denominator, extra[1])
        some = bottom > _NEGLIGIBLE
        ratios = top[some] / bottom[some]
        bound = float(ratios.min() if low else ratios.max())
        # A unit without a denominator can push the ratio further still.
        loose = top[~some]
        if np.any(loose < -_NEGLIGIBLE if low else loose > _NEGLIGIBLE):
            spread = float(np.abs(top).sum()) / max(float(bottom.sum()), _NEGLIGIBLE)
            bound += (-1 if low else 1) * 1e3 * max(spread, 1.0)
        return bound

    def _units(self, extra: tuple[float, float]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Numerators, denominators and shapes of the units and the extra one; equal ones once."""
        rows = np.stack((self.numerator, self.denominator))
        counts: FloatArray = np.full(rows.shape[1], self.information)
        if rows.shape[1] >= _MANY:
            # as complex numbers, which sort as columns do, at a tenth of the time
            pairs, repeated = np.unique(rows[0] + 1j * rows[1], return_counts=True)
            rows = np.stack((pairs.real, pairs.imag))
            counts = self.information * repeated.astype(np.float64)
        return (
            np.append(rows[0], extra[0]),
            np.append(rows[1], extra[1]),
            np.append(counts, 1.0 if self.one_sided else _UNSEEN),
        )


def _probit(
    ratio: float, units: tuple[FloatArray, FloatArray, FloatArray], near: float = 0.0
) -> tuple[float, float, float]:
    """Return Φ⁻¹ of P(Σ G_i (top_i − ratio · bottom_i) ≤ 0), about its slope, and the saddlepoint.

    The G_i are independent gamma variables of the given shapes. With two different values this is
    a beta probability; otherwise the saddlepoint approximation of Barndorff-Nielsen (r*), whose
    error is of third order in the number of units. ``near`` is a saddlepoint to start from.
    """
    top, bottom, shapes = units
    v = top - ratio * bottom
    lowest, highest = float(v.min()), float(v.max())
    tiny = _NEGLIGIBLE * max(-lowest, highest, _NEGLIGIBLE)
    if highest <= tiny:
        return (0.0 if lowest >= -tiny else math.inf), 0.0, 0.0
    if lowest >= -tiny:
        return -math.inf, 0.0, 0.0
    up, down = v == highest, v == lowest
    if np.all(up | down | (v == 0)):
        width = highest - lowest
        steep = (bottom[down][0] * width + lowest * (bottom[down][0] - bottom[up][0])) / width**2
        probit, density = _beta_probit(
            float(shapes[up].sum()), float(shapes[down].sum()), -lowest / width
        )
        return probit, float(steep) * density, 0.0
    s = _saddlepoint(v, shapes, lowest, highest, near)
    rest = 1 - s * v
    cumulant = -float(shapes @ np.log(rest))
    part = v / rest
    second = float(shapes @ part**2)
    # K' = 0 at s, so that K changes with the ratio as −s Σ a bottom/(1 − s v) does
    slope = float(shapes @ (bottom / rest)) / math.sqrt(second)
    w = math.copysign(math.sqrt(max(-2 * cumulant, 0.0)), s)
    if abs(w) < _CENTRE:
        third = 2 * float(shapes @ part**3)
        return w + third / (6 * second**1.5), slope, s
    u = s * math.sqrt(second)
    return w + math.log(u / w) / w, slope * u / w, s


def _saddlepoint(v: FloatArray, a: FloatArray, lowest: float, highest: float, near: float) -> float:
    """Root of Σ a v/(1 − s v), by Newton steps kept inside (1/min v, 1/max v)."""
    low, high = 1 / lowest, 1 / highest
    s = near if low < near < high else 0.0
    for _ in range(_STEPS):
        part = v / (1 - s * v)
        first = float(a @ part)
        low, high = (low, s) if first > 0 else (s, high)
        step = first / float(a @ (part * part))
        new = s - step if low < s - step < high else (low + high) / 2
        if abs(new - s) <= _CLOSE * abs(new):
            return new
        s = new
    return s


def _beta_probit(up: float, down: float, x: float) -> tuple[float, float]:
    """Return Φ⁻¹ of P(B ≤ x) for a beta variable of these shapes, and its derivative in x."""
    from scipy.special import betainc, betaln, ndtri

    below = float(betainc(up, down, x))
    # the smaller tail keeps its digits
    probit = float(ndtri(below) if below < 0.5 else -ndtri(betainc(down, up, 1 - x)))
    log_density = (up - 1) * math.log(x) + (down - 1) * math.log1p(-x) - float(betaln(up, down))
    log_normal = -(probit**2 + math.log(2 * math.pi)) / 2
    return probit, math.exp(min(log_density - log_normal, _FAR))
