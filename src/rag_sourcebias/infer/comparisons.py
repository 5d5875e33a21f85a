"""Comparisons of paired columns: ranks of styles, means of systems, queries needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.core.settings import as_generator, check_level, require_finite
from rag_sourcebias.infer.decide import Correction, adjust_p_values
from rag_sourcebias.infer.means import clustered_mean
from rag_sourcebias.infer.quantiles import normal_quantile, t_quantile
from rag_sourcebias.infer.resampling import SAMPLED, bootstrap_means, coin_flips, dirichlet_sums

# One figure from several independent studies that differ in what they measure.


_FEWEST = 3


def random_effects(intervals: Sequence[Interval], *, what: str = "data sets") -> Interval:
    """Return the mean effect of which the studies are a sample.

    Paule and Mandel's between-study variance, and the t interval of Hartung, Knapp, Sidik and
    Jonkman (2001, 2002), never narrower than with known variances (Röver, Knapp & Friede 2015).

    Parameters
    ----------
    intervals : sequence of Interval
        One per study, of one confidence level, in one unit; their widths give the variances.
    what : str
        Name of the studies, for the assumptions and messages.

    Raises
    ------
    InsufficientDataError
        With fewer than 3 studies.

    Examples
    --------
    >>> studies = [
    ...     Interval(
    ...         estimate=x,
    ...         lower=x - 4,
    ...         upper=x + 4,
    ...         confidence_level=0.95,
    ...         method="delta",
    ...         n_labeled=99,
    ...     )
    ...     for x in (-9.0, -4.0, 1.0)
    ... ]
    >>> print(random_effects(studies))
    -4 [-16.42, 8.421] (95%, random effects, n = 3)
    """
    k = len(intervals)
    if k < _FEWEST:
        raise InsufficientDataError(
            f"{k} {what} are too few to tell how much they differ; at least {_FEWEST} are needed",
            n=k,
            n_needed=_FEWEST,
        )
    level = intervals[0].confidence_level
    z = normal_quantile(0.5 + level / 2)
    values = np.array([one.estimate for one in intervals])
    within = np.maximum(np.array([one.half_width / z for one in intervals]) ** 2, 1e-12)

    def spread(between: float) -> float:
        weights = 1 / (within + between)
        return float(weights @ (values - weights @ values / weights.sum()) ** 2)

    low, high = 0.0, float(np.var(values, ddof=1)) * k if spread(0.0) > k - 1 else 0.0
    for _ in range(100 if high else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if spread(middle) > k - 1 else (low, middle)
    weights = 1 / (within + high)
    mean = float(weights @ values / weights.sum())
    inflation = max(float(weights @ (values - mean) ** 2) / (k - 1), 1.0)
    width = t_quantile(0.5 + level / 2, k - 1) * math.sqrt(inflation / float(weights.sum()))
    return Interval(
        estimate=mean,
        lower=mean - width,
        upper=mean + width,
        confidence_level=level,
        method="random effects",
        n_labeled=k,
        assumptions=(f"the {k} {what} are a random sample of their kind",),
    )


# Which styles differ: paired comparisons of average ranks, adjusted for their number.


_EXACT_LIMIT = 14  # 2^14 sign patterns are enumerated rather than drawn
_TIE = 1e-9


def compare_ranks(
    ranks: npt.NDArray[np.floating[Any]],
    names: Sequence[str],
    *,
    baseline: str | None = None,
    correction: Correction = "holm",
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> tuple[RankPair, ...]:
    """Compare all pairs of styles, or every style with a baseline.

    A pair is tested on its own rank differences, so which other styles are compared does not
    enter its test (it does in Nemenyi's; Benavoli, Corani & Mangili 2016).

    Parameters
    ----------
    ranks : float array of shape (n, k)
        One row per query.
    names : sequence of str, length k
    baseline : str, optional
        Compare only with this style: k − 1 tests instead of k(k − 1)/2, so smaller adjusted
        p-values.
    correction : {"holm", "bh", "none"}
    resamples : int
        Sign patterns drawn; with at most 14 queries all are enumerated. An adjusted p-value
        cannot be below (number of pairs)/(1 + resamples).

    Raises
    ------
    DataError
        If names and columns disagree, there are fewer than 2 styles, or a rank is not finite.
    """
    check_level(confidence_level)
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(names) or not len(values):
        raise DataError(
            f"ranks have shape {values.shape}; expected at least 1 query and {len(names)} columns"
        )
    if len(names) < 2:
        raise DataError(f"{len(names)} style(s) cannot be compared; give at least 2")
    require_finite(values, "ranks", remedy="leave out queries that lack a version")
    if resamples < 1:
        raise DataError(f"resamples {resamples} must be at least 1")
    pairs = list(combinations(range(len(names)), 2))
    if baseline is not None:
        if baseline not in names:
            raise DataError(f"baseline {baseline!r} is not one of the styles {list(names)}")
        at = list(names).index(baseline)
        pairs = [(at, j) for j in range(len(names)) if j != at]
    first, second = np.array(pairs).T
    differences = values[:, first] - values[:, second]
    p_values = sign_flips(differences, resamples=resamples, generator=as_generator(rng))
    return tuple(
        RankPair(
            first=names[i],
            second=names[j],
            difference=float(column.mean()),
            interval=_interval(column, confidence_level),
            p_value=p,
            p_adjusted=p if p_adjusted is None else p_adjusted,
        )
        for (i, j), column, p, p_adjusted in zip(
            pairs,
            differences.T,
            p_values,
            adjust_p_values(p_values, correction=correction),
            strict=True,
        )
    )


def _interval(difference: FloatArray, level: float) -> Interval | None:
    try:
        return clustered_mean(difference, np.arange(len(difference)), confidence_level=level)
    except InsufficientDataError:
        return None


def sign_flips(
    differences: FloatArray, *, resamples: int, generator: np.random.Generator
) -> list[float]:
    """Two-sided p-value of each column; all columns share the sign patterns."""
    n = len(differences)
    size = np.abs(differences).sum(axis=0)
    observed = np.abs(differences.sum(axis=0)) - _TIE * np.maximum(1.0, size)
    if n <= _EXACT_LIMIT:
        signs = 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1
        return [float(p) for p in (np.abs(signs @ differences) >= observed).mean(axis=0)]
    total = differences.sum(axis=0)
    count = np.zeros(differences.shape[1], dtype=np.int64)
    for kept in coin_flips(n, resamples, generator):
        flipped = 2 * (kept @ differences) - total  # Σ ±d = 2 Σ_{kept} d − Σ d
        count += np.count_nonzero(np.abs(flipped) >= observed, axis=0)
    return [float(p) for p in (1 + count) / (1 + resamples)]


# Do queries agree on an order of styles? Friedman's test and Kendall's W.


@dataclass(frozen=True, slots=True, kw_only=True)
class FriedmanTest:
    """Friedman's test that no style is ranked higher than another (Friedman 1937).

    Parameters
    ----------
    statistic : float
        χ², corrected for ties; 0 when every query ties all styles.
    degrees : int
        k − 1.
    p_value : float
        By Box's F, with two styles by the sign test.
    w : float or None
        Kendall's W, in [0, 1]; None when every query ties all styles.
    n_queries, n_styles : int
    """

    statistic: float
    degrees: int
    p_value: float
    w: float | None
    n_queries: int
    n_styles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPair:
    """Two styles compared on the same queries.

    Parameters
    ----------
    first, second : str
    difference : float
        Average rank of the first minus that of the second; negative when the first is preferred.
    interval : Interval or None
        For the difference, not adjusted for the number of pairs; None when all queries agree
        exactly.
    p_value, p_adjusted : float
        Two-sided sign-flip permutation test; adjusted over all pairs compared.
    """

    first: str
    second: str
    difference: float
    interval: Interval | None
    p_value: float
    p_adjusted: float


RankArray = npt.NDArray[np.floating[Any]]
_UNEQUAL = 1e-6  # row sums of averaged ranks may differ by rounding only


def kendalls_w(ranks: RankArray) -> float | None:
    """Kendall's coefficient of concordance, corrected for ties (Kendall & Babington Smith 1939).

    The variance of the average ranks as a share of its maximum: 12 S / (n²(k³ − k) − n ΣT) with S
    the sum of squared deviations of the k rank sums and T = Σ(t³ − t) over the tie blocks of a
    query.

    Parameters
    ----------
    ranks : float array of shape (n, k)
        Ranks within each query, ties averaged.

    Returns
    -------
    float or None
        1 when all queries agree, 0 when they cancel out; None when every query ties all styles.

    Raises
    ------
    DataError
        If there is no query, fewer than 2 styles, a rank that is not finite, or ties that are not
        averaged.

    Examples
    --------
    >>> kendalls_w(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    1.0
    """
    values = _checked(ranks)
    centred = values - (values.shape[1] + 1) / 2
    # Σ(r − r̄)² of a query is (k³ − k − T)/12: ties need no counting.
    largest = float(np.sum(centred**2)) / len(values)
    seen = float(np.sum(centred.mean(axis=0) ** 2))
    return None if largest == 0 else min(seen / largest, 1.0)


def friedman_test(ranks: RankArray) -> FriedmanTest:
    """Test whether all styles have the same average rank.

    Friedman's χ² is right only if styles are exchangeable; where some queries want the styles in
    one order and the others in the reverse, it rejects .08 to .20 of the time at .05. Here the
    sum of squared deviations is set against the variances and covariances of the ranks as they
    are: Box's F with degrees of freedom after Huynh & Feldt (1976). One query without a preference
    is counted in, with three styles two. The size at .05 of exchangeable styles is .03 to .05
    from 10 queries on. With two styles it is the exact sign test.

    Parameters
    ----------
    ranks : float array of shape (n, k)
        Ranks within each query, ties averaged; queries are independent.

    Raises
    ------
    DataError
        As :func:`kendalls_w`.
    """
    w = kendalls_w(ranks)
    values = _checked(ranks)
    n, k = values.shape
    return FriedmanTest(
        statistic=0.0 if w is None else n * (k - 1) * w,
        degrees=k - 1,
        # All queries agreeing is no rarer than this, however many styles there are, where each
        # wants one of two opposite orders.
        p_value=max(1.0 if w is None else _p_value(values), min(1.0, 2.0 ** (1 - n))),
        w=w,
        n_queries=n,
        n_styles=k,
    )


def box_degrees(covariance: npt.NDArray[np.float64], n: int) -> float:
    """Degrees of freedom of a sum of squared deviations of k dependent means (Huynh & Feldt 1976).

    Parameters
    ----------
    covariance : float64 array of shape (k, k)
        Estimated from n rows, of columns whose sum is constant.
    """
    k = len(covariance)
    trace, squares, nu = float(np.trace(covariance)) ** 2, float(np.sum(covariance**2)), n - 1
    # Unbiased for tr(V²) and (tr V)² if ranks were normal; the plain ratio is far too small where
    # there are about as many styles as queries.
    of_squares = (squares - trace / nu) / (1 + 1 / nu - 2 / nu**2) if nu > 1 else 0.0
    if of_squares <= 0:
        return k - 1.0
    return min(max((trace - 2 * of_squares / nu) / of_squares, 1.0), k - 1.0)


def _p_value(ranks: npt.NDArray[np.float64]) -> float:
    """Return the p-value of the exact sign test for two styles, of Box's F for more."""
    from scipy.special import bdtr, fdtrc

    n, k = ranks.shape
    if k == 2:
        wins, losses = (int(np.count_nonzero(ranks[:, i] > ranks[:, 1 - i])) for i in (0, 1))
        return min(1.0, 2 * float(bdtr(min(wins, losses), wins + losses, 0.5)))
    if n < 2:
        return 1.0
    covariance = np.cov(ranks, rowvar=False)
    deviations = ranks.mean(axis=0) - (k + 1) / 2
    total = float(np.trace(covariance))
    if total <= _UNEQUAL:
        return 0.0
    # Sums of three ranks take few values, of which some lie just beyond the critical one.
    without = 2 if k == 3 else 1
    statistic = n * float(np.sum(deviations**2)) / total * n / (n + without)
    degrees = box_degrees(covariance, n)
    return float(fdtrc(degrees, degrees * (n - 1), statistic))


def _checked(ranks: RankArray) -> npt.NDArray[np.float64]:
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 2 or not len(values) or values.shape[1] < 2:
        raise DataError(
            f"ranks have shape {values.shape}; expected at least 1 query and 2 styles, one row "
            "per query"
        )
    require_finite(values, "ranks", remedy="leave out queries that lack a version")
    k = values.shape[1]
    wrong = np.flatnonzero(np.abs(values.sum(axis=1) - k * (k + 1) / 2) > _UNEQUAL * k)
    if len(wrong):
        raise DataError(
            f"row {wrong[0]} sums to {values[wrong[0]].sum():g}, but ranks of {k} styles sum to "
            f"{k * (k + 1) / 2:g}; rank within each query and average ties"
        )
    return values


# Intervals for how far the means of paired columns lie apart, such as systems' mean scores.


MIN_ROWS = 20
_STEPS = 60
_CLOSE = 1e-9


def spread_interval(
    columns: FloatArray,
    *,
    ddof: int = 0,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """Interval for the standard deviation of the columns' true means.

    Sampling error alone spreads means, so that the spread of resampled means lies above that of
    the data, and percentiles never reach 0. Here each candidate spread is tested instead: true
    means that deviate in the seen direction by t are kept if the seen spread lies within the
    central part of those of t·direction + (resampled − seen means).

    Parameters
    ----------
    columns : float64 array of shape (n, k)
        One row per query, one column per system.
    ddof : int
        As for the estimate, the plain standard deviation of the column means.

    Raises
    ------
    InsufficientDataError
        With fewer than 20 rows.
    """
    _check(columns, confidence_level)
    n, k = columns.shape
    if not 0 <= ddof < k:
        raise DataError(f"ddof {ddof} must be at least 0 and less than the {k} columns")
    means = columns.mean(axis=0)
    deviations = means - means.mean()
    seen = float(np.linalg.norm(deviations))
    errors = bootstrap_means(columns, resamples=resamples, rng=as_generator(rng)) - means
    errors -= errors.mean(axis=1, keepdims=True)
    # To the variance and the quantile of a t interval: without it 20 rows of 2 columns cover .91.
    probability = 0.5 + confidence_level / 2
    errors *= t_quantile(probability, n - 1) / normal_quantile(probability)
    errors *= math.sqrt(n / (n - 1))
    along = errors @ (deviations / seen) if seen > 0 else np.zeros(resamples)
    square = (errors**2).sum(axis=1)
    tail = (1 - confidence_level) / 2

    def at(probability: float, t: float) -> float:
        spread = np.sqrt(np.maximum(t**2 + 2 * t * along + square, 0.0))
        return float(np.quantile(spread, probability))

    start = seen + float(np.sqrt(square.max()))
    lower, upper = (
        crossing(partial(at, p), seen, start=start) if start else 0.0 for p in (1 - tail, tail)
    )
    scale = np.sqrt(k - ddof)
    return Interval(
        estimate=seen / scale,
        lower=min(lower, seen) / scale,
        upper=max(upper, seen) / scale,
        confidence_level=confidence_level,
        method="inverted paired bootstrap",
        n_labeled=n,
        assumptions=(SAMPLED,),
    )


def crossing(at: Callable[[float], float], seen: float, *, start: float = 1.0) -> float:
    """Return the t of at least 0 where a rising function passes ``seen``; 0 where it starts above.

    False position with halved ends (Illinois): a few steps where the function is nearly straight.
    """
    low, below = 0.0, at(0.0) - seen
    if below >= 0:
        return 0.0
    high = start
    while (above := at(high) - seen) < 0:
        low, below, high = high, above, 2 * high
    side = 0
    for _ in range(_STEPS):
        middle = high - above * (high - low) / (above - below)
        value = at(middle) - seen
        if abs(value) <= _CLOSE * seen or high - low <= _CLOSE * high:
            return middle
        if value < 0:
            low, below, above = middle, value, above / (2 if side < 0 else 1)
        else:
            high, above, below = middle, value, below / (2 if side > 0 else 1)
        side = -1 if value < 0 else 1
    return high


def _check(columns: FloatArray, confidence_level: float) -> None:
    check_level(confidence_level)
    if columns.ndim != 2 or columns.shape[1] < 2:
        raise DataError(
            f"columns have shape {columns.shape}; expected one row per query and at least 2 columns"
        )
    require_finite(columns, "columns", remedy="take the rows that have every value")
    if len(columns) < MIN_ROWS:
        raise InsufficientDataError(
            f"a bootstrap over {len(columns)} rows covers too rarely; at least {MIN_ROWS} are "
            "needed",
            n=len(columns),
            n_needed=MIN_ROWS,
        )


# How many queries a verdict on the means of paired columns needs.


_DRAWS = 1_000
_PLANNED = 200  # draws for each candidate number of queries
# Quantiles of the distances that the data leave plausible.
_TRUTHS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
_ASSURANCE = 0.8  # of a verdict, and share of the distances that have it
_MOST = 10_000_000


def queries_to_tell(
    columns: FloatArray,
    *,
    alpha: float,
    alike: Callable[[FloatArray, int, float], npt.NDArray[np.bool_]],
    rng: np.random.Generator | int = 0,
) -> int:
    """Fewest queries that give a verdict with probability .8, for .8 of what is plausible now.

    Plausible are means that lie apart in the direction seen, by distances from their confidence
    distribution: planned for the distance seen alone, half the plans are too small.

    Parameters
    ----------
    columns : float64 array of shape (n, k)
        One row per query. Only differences within rows count.
    alpha : float
        Of the test of equal means (:func:`~rag_sourcebias.infer.friedman_test`).
    alike : callable
        Whether deviations of means, of shape (..., k), found with so many queries are called alike,
        given also the standard deviation of one query's contrast of length 1.
    """
    from scipy.special import fdtri

    n, k = len(columns), columns.shape[1]
    centred = columns - columns.mean(axis=1, keepdims=True)
    covariance = np.cov(centred, rowvar=False)
    total, degrees = float(np.trace(covariance)), box_degrees(covariance, n)
    if total <= 0:
        return n
    deviations = centred.mean(axis=0)
    sums, _ = dirichlet_sums(centred, resamples=_DRAWS, rng=rng)
    errors = sums - sums.mean(axis=0)
    errors *= math.sqrt(total / n / float(np.sum(errors.var(axis=0))))
    seen = float(np.linalg.norm(deviations))
    truths = np.zeros((1, k))
    if seen > 0:

        def at(probability: float, t: float) -> float:
            return float(np.quantile(np.linalg.norm(t * deviations + errors, axis=1), probability))

        truths = (
            np.array([crossing(partial(at, 1 - q), seen) for q in _TRUTHS])[:, None] * deviations
        )
    per_query = errors[:_PLANNED] * math.sqrt(n)
    contrast = math.sqrt(total / (k - 1))

    def decided(queries: int) -> bool:
        found = truths[:, None] + per_query / math.sqrt(queries)
        statistic = queries * np.sum(found**2, axis=2) / total * queries / (queries + 1)
        critical = float(fdtri(degrees, degrees * (queries - 1), 1 - alpha))
        told = np.mean((statistic >= critical) | alike(found, queries, contrast), axis=1)
        return bool(np.mean(told >= _ASSURANCE) >= _ASSURANCE)

    low, high = n, n + 1
    while not decided(high) and high < _MOST:
        low, high = high, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high
