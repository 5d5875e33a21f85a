"""What verdicts rest on: resamples, quantiles and p-values; and the queries that they need."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, as_generator
from rag_sourcebias.core.finding import Interval

_BLOCK = 250_000  # random numbers held at once: what fits in the cache is 2–3 times faster


def coin_flips(n: int, resamples: int, generator: np.random.Generator) -> Iterator[FloatArray]:
    """Random 0 and 1 in blocks of some rows, of shape (rows, n)."""
    block = max(1, _BLOCK // n)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = np.frombuffer(generator.bytes(-(-rows * n // 8)), dtype=np.uint8)
        yield np.unpackbits(drawn, count=rows * n).reshape(rows, n).astype(np.float64)


def resampled_counts(
    n: int, *, resamples: int, rng: np.random.Generator | int, held: int = 0
) -> Iterator[FloatArray]:
    """Give in blocks how often each of n units is drawn, of shape (rows, n).

    Parameters
    ----------
    held : int
        Numbers that are made of a row, where these are more than n.
    """
    generator = as_generator(rng)
    block = max(1, _BLOCK // max(n, held))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = generator.integers(0, n, size=(rows, n)) + np.arange(rows)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def bootstrap_means(
    columns: FloatArray, *, resamples: int, rng: np.random.Generator | int
) -> FloatArray:
    """Means of resampled rows.

    Parameters
    ----------
    columns : float64 array of shape (n, m)
        One row per query; a query is drawn with all its columns.
    resamples : int

    Returns
    -------
    float64 array of shape (resamples, m)
    """
    generator = as_generator(rng)
    # Queries with the same scores are interchangeable: draw how often each distinct row comes.
    rows, counts = np.unique(columns, axis=0, return_counts=True)
    n, distinct = len(columns), len(rows)
    result = np.empty((resamples, columns.shape[1]))
    block = max(1, _BLOCK // max(n, distinct))
    for start in range(0, resamples, block):
        stop = min(start + block, resamples)
        if distinct * 8 < n:
            drawn = generator.multinomial(n, counts / n, size=stop - start)
        else:
            which = generator.integers(0, n, size=(stop - start, n), dtype=np.int32)
            if distinct < n:
                which = np.repeat(np.arange(distinct, dtype=np.int32), counts)[which]
            which += np.arange(stop - start, dtype=np.int32)[:, None] * np.int32(distinct)
            drawn = np.bincount(which.ravel(), minlength=(stop - start) * distinct)
            drawn = drawn.reshape(stop - start, distinct)
        result[start:stop] = drawn.astype(np.float64) @ rows / n
    return result


def dirichlet_sums(
    columns: FloatArray, *, resamples: int, rng: np.random.Generator | int
) -> tuple[FloatArray, FloatArray]:
    """Weighted sums of rows, and the weight left for one row that was not seen.

    Weights are uniform over those of n + 1 rows that sum to 1. Let the unseen row lie at a bound
    b of the values: the upper quantiles of ``sums + share * b`` are then upper confidence bounds
    of the mean (Gaffke 2005), those of Clopper and Pearson where values are 0 or 1.

    Parameters
    ----------
    columns : float64 array of shape (n, m)
        One row per query; a query is drawn with all its columns.

    Returns
    -------
    sums : float64 array of shape (resamples, m)
    share : float64 array of shape (resamples,)
    """
    generator = as_generator(rng)
    # Queries with the same scores are interchangeable: their weights add up to one gamma draw.
    rows, counts = np.unique(columns, axis=0, return_counts=True)
    shapes = np.append(counts, 1).astype(np.float64)
    sums, share = np.empty((resamples, columns.shape[1])), np.empty(resamples)
    block = max(1, _BLOCK // len(shapes))
    for start in range(0, resamples, block):
        size = (min(start + block, resamples) - start, len(shapes))
        weights = (
            generator.standard_exponential(size)
            if len(rows) == len(columns)
            else generator.standard_gamma(shapes, size)
        )
        weights /= weights.sum(axis=1, keepdims=True)
        sums[start : start + size[0]] = weights[:, :-1] @ rows
        share[start : start + size[0]] = weights[:, -1]
    return sums, share


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def expit(logit: float) -> float:
    """Probability whose logarithm of odds is given."""
    from scipy import special

    return float(special.expit(logit))


def t_quantile(probability: float, degrees: float) -> float:
    """Quantile of Student's t with ``degrees`` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def t_p_value(statistic: float, degrees: float) -> float:
    """Two-sided p-value of a t statistic."""
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(statistic)))


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Quantile of the beta distribution."""
    from scipy.special import betaincinv

    return float(betaincinv(a, b, probability))


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


class SkewCode(StrEnum):
    """What can be said about one retriever and two sources.

    The first that applies: the interval lies inside the margin, or the test against no skew is
    significant, or neither.
    """

    ALIKE = "alike"
    FAVOURS_BASELINE = "favours_baseline"
    FAVOURS_OTHER = "favours_other"
    CANNOT_TELL = "cannot_tell"
    REFUSED = "refused"


_ASSURANCE = 0.8  # of a verdict
_MOST = 10**8
_GRID = (np.arange(99) + 1) / 100  # quantiles of what the pilot leaves open


def skew_code(interval: Interval | None, p_adjusted: float | None, *, margin: float) -> SkewCode:
    """Decide what one interval and its adjusted p-value allow to say.

    Parameters
    ----------
    interval : Interval or None
        Of centred Relative Δ in percent; None where it was refused.
    p_adjusted : float or None
        Of no skew, with the same dependence as the interval.
    margin : float
        Points within which sources count as treated alike.
    """
    if interval is None or p_adjusted is None:
        return SkewCode.REFUSED
    if -margin <= interval.lower and interval.upper <= margin:
        return SkewCode.ALIKE
    if interval.excludes(0.0) and p_adjusted < 1 - interval.confidence_level:
        return SkewCode.FAVOURS_BASELINE if interval.estimate > 0 else SkewCode.FAVOURS_OTHER
    return SkewCode.CANNOT_TELL


def queries_for_verdict(interval: Interval, *, margin: float) -> int | None:
    """Estimate the queries with which a verdict is reached with probability .8.

    The truth is taken to be spread as the interval says, t-distributed around the estimate, and
    the variance of a query as the interval's width says; a verdict is an interval that lies
    inside the margin or excludes 0.

    Returns
    -------
    int or None
        None where more than 10⁸ would be needed, or the interval is a point.
    """
    from scipy.special import ndtr, stdtrit

    n, level = interval.n_labeled, interval.confidence_level
    z = normal_quantile(0.5 + level / 2)
    error = interval.half_width / z
    if not error > 0:
        return None
    truth = interval.estimate + error * stdtrit(max(n - 1, 1), _GRID)

    def assurance(size: float) -> float:
        later = error * math.sqrt(n / size)
        alike = np.maximum(
            ndtr((margin - truth) / later - z) - ndtr((-margin - truth) / later + z), 0.0
        )
        return float(np.minimum(np.maximum(ndtr(np.abs(truth) / later - z), alike), 1.0).mean())

    low, high = float(n), float(n)
    while assurance(high) < _ASSURANCE:
        low, high = high, 2 * high
        if high > _MOST:
            return None
    while high - low > max(0.5, low / 1000):
        middle = (low + high) / 2
        low, high = (low, middle) if assurance(middle) >= _ASSURANCE else (middle, high)
    return math.ceil(high)


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


_STEPS = 60
_CLOSE = 1e-9


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


_DRAWS = 1_000
_PLANNED = 200  # draws for each candidate number of queries
# Quantiles of the distances that the data leave plausible.
_TRUTHS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
_MOST_QUERIES = 10_000_000


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
        Of the test of equal means (Friedman's).
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
    while not decided(high) and high < _MOST_QUERIES:
        low, high = high, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high
