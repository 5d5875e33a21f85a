"""Means and ratios of means, of observations that may share causes: intervals, tests, verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import BoolArray, FloatArray, IntArray, Qrels, TagTable
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    as_generator,
    check_level,
    require_finite,
    require_one_of,
)
from rag_sourcebias.core.finding import CORRECTIONS, Code, Finding, Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.intake.belong import Ids, require_common
from rag_sourcebias.measure.relevance import relative_delta

# Resamples, quantiles and p-values; what these allow to say, and the queries that it takes.


_BLOCK = 250_000  # random numbers held at once: what fits in the cache is 2–3 times faster


def resample_blocks(n: int, resamples: int) -> Iterator[slice]:
    """Rows of as many resamples of n units as are held at once."""
    step = max(1, _BLOCK // n)
    for start in range(0, resamples, step):
        yield slice(start, min(start + step, resamples))


def coin_flips(n: int, resamples: int, generator: np.random.Generator) -> Iterator[FloatArray]:
    """Random 0 and 1 in blocks of some rows, of shape (rows, n)."""
    for part in resample_blocks(n, resamples):
        rows = part.stop - part.start
        drawn = np.frombuffer(generator.bytes(-(-rows * n // 8)), dtype=np.uint8)
        yield np.unpackbits(drawn, count=rows * n).reshape(rows, n).astype(np.float64)


def resampled_counts(
    n: int, *, resamples: int, rng: np.random.Generator | int
) -> Iterator[FloatArray]:
    """Give in blocks how often each of n units is drawn, of shape (rows, n)."""
    generator = as_generator(rng)
    for part in resample_blocks(n, resamples):
        rows = part.stop - part.start
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
    for part in resample_blocks(n, resamples):
        size = part.stop - part.start
        if distinct * 8 < n:
            drawn = generator.multinomial(n, counts / n, size=size)
        else:
            which = generator.integers(0, n, size=(size, n), dtype=np.int32)
            if distinct < n:
                which = np.repeat(np.arange(distinct, dtype=np.int32), counts)[which]
            which += np.arange(size, dtype=np.int32)[:, None] * np.int32(distinct)
            drawn = np.bincount(which.ravel(), minlength=size * distinct)
            drawn = drawn.reshape(size, distinct)
        result[part] = drawn.astype(np.float64) @ rows / n
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
    for part in resample_blocks(len(shapes), resamples):
        size = (part.stop - part.start, len(shapes))
        weights = (
            generator.standard_exponential(size)
            if len(rows) == len(columns)
            else generator.standard_gamma(shapes, size)
        )
        weights /= weights.sum(axis=1, keepdims=True)
        sums[part] = weights[:, :-1] @ rows
        share[part] = weights[:, -1]
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
    m = len(p)
    order = np.argsort(p, kind="stable")
    if correction == "holm":
        adjusted = np.maximum.accumulate(p[order] * (m - np.arange(m)))
    elif correction == "bh":
        adjusted = np.minimum.accumulate((p[order] * m / np.arange(1, m + 1))[::-1])[::-1]
    else:
        require_one_of("correction", correction, CORRECTIONS)
        adjusted = p[order]
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


_CROSSING_STEPS = 60
_CROSSED = 1e-9


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
    for _ in range(_CROSSING_STEPS):
        middle = high - above * (high - low) / (above - below)
        value = at(middle) - seen
        if abs(value) <= _CROSSED * seen or high - low <= _CROSSED * high:
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
    clusters: IntArray | None = None,
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
    clusters : int64 array of shape (n,), optional
        Codes of clusters of queries: more of these are asked then.
    alpha : float
        Of the test of equal means (Friedman's).
    alike : callable
        Whether deviations of means, of shape (..., k), found with so many queries are called alike,
        given also the standard deviation of one query's contrast of length 1.
    """
    from scipy.special import fdtri

    of_each = 1.0
    if clusters is not None:
        flips = cluster_flips(columns, clusters)
        of_each = len(columns) / len(flips.denominator)
        columns = flips.numerator / of_each
    n, k = len(columns), columns.shape[1]
    centred = columns - columns.mean(axis=1, keepdims=True)
    covariance = np.cov(centred, rowvar=False)
    total, degrees = float(np.trace(covariance)), box_degrees(covariance, n)
    if total <= 0:
        return n
    deviations = centred.mean(axis=0)
    sums, _ = dirichlet_sums(centred, resamples=_DRAWS, rng=rng)
    errors = sums - sums.mean(axis=0)
    errors *= math.sqrt(total / n / np.sum(errors.var(axis=0)))
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
    return math.ceil(high * of_each)


# What observations share, and how much independent information that leaves them.


_NOTHING = 1e-18  # a sum of squares that rounding alone makes
#: Fewest clusters of a factor that is treated as random.
MIN_CLUSTERS = 6


def group_codes(values: npt.ArrayLike) -> IntArray:
    """Return the number of each value among the different ones, in sorted order; shape (n,)."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64, copy=False)


def mid_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1, ties averaged."""
    _, code, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2).take(code)


def others_below(scores: FloatArray, positive: BoolArray) -> FloatArray:
    """Items of the other kind below each item, ties counting one half; shape (n,)."""
    own = np.empty(len(scores))
    for side in (positive, ~positive):
        own[side] = mid_ranks(scores[side])
    return mid_ranks(scores) - own


@dataclass(frozen=True, kw_only=True, eq=False)
class Dependence:
    """Factors that observations share.

    Parameters
    ----------
    query_ids : tuple of str, length nq
    documents : int64 array of shape (len(qrels.doc_ids),)
        Number of each judged document; versions of one document share it.
    rewriters : int64 array of shape (len(qrels.doc_ids),), optional
        Source of each judged document before sources were merged, -1 for those that were not.
    clusters : int64 array of shape (nq,), optional
        Cluster of each query, such as its topic or user session.
    """

    query_ids: tuple[str, ...]
    documents: IntArray
    rewriters: IntArray | None = None
    clusters: IntArray | None = None

    @classmethod
    def of(
        cls,
        qrels: Qrels,
        tags: TagTable,
        clusters: Mapping[str, str] | None,
        *,
        merged_from: TagTable | None = None,
    ) -> Dependence:
        """Gather the factors of judged documents and queries.

        Raises
        ------
        DataError
            If the clusters name queries without judgments or lack some, or hold one query each.
        """
        rows = tags.rows_for(qrels.doc_ids)
        known = rows >= 0
        pair = np.full(len(rows), -1, dtype=np.int64)
        pair[known] = tags.pair_codes[rows[known]]
        rewriters = None
        if merged_from not in (None, tags):
            rewriters = np.full(len(rows), -1, dtype=np.int64)
            rewriters[known] = merged_from.source_codes[rows[known]]
            kept = np.array([name in tags.sources for name in merged_from.sources])
            rewriters[(rewriters >= 0) & kept[rewriters]] = -1
        return cls(
            query_ids=qrels.query_ids,
            documents=np.where(pair >= 0, pair, len(tags.pair_ids) + np.arange(len(rows))),
            rewriters=rewriters,
            clusters=cluster_codes(qrels.query_ids, clusters, of="judgments"),
        )

    def units(self, query_ids: Sequence[str] | None = None) -> IntArray:
        """Return the unit of each query that is independent of others: itself, or its cluster.

        Queries without judgments are units of their own.
        """
        if query_ids is None:
            query_ids = self.query_ids
        if self.clusters is None:
            return np.arange(len(query_ids))
        code = dict(zip(self.query_ids, self.clusters.tolist(), strict=True))
        return np.array(
            [code.get(q, len(self.query_ids) + i) for i, q in enumerate(query_ids)], dtype=np.int64
        )

    @property
    def what(self) -> str:
        """The units in words."""
        return "queries" if self.clusters is None else "clusters of queries"


def declared_clusters(
    query_ids: Sequence[str], clusters: Mapping[str, str] | None, *, of: str, alone: str
) -> tuple[IntArray | None, tuple[str, ...]]:
    """Return the cluster of each query, and what a report says of them; nothing without clusters.

    Parameters
    ----------
    of : str
        What the queries have, as for :func:`cluster_codes`.
    alone : str
        What does not go by them, in the plural.
    """
    codes = cluster_codes(query_ids, clusters, of=of)
    if codes is None:
        return None, ()
    told = InferCode.CLUSTERED(n=int(codes.max()) + 1, effective=effective_number(codes))
    return codes, (f"{told} Only {alone} do not.",)


def cluster_codes(
    query_ids: Sequence[str], clusters: Mapping[str, str] | None, *, of: str
) -> IntArray | None:
    """Return the number of each query's cluster; None where there are no clusters.

    Parameters
    ----------
    of : str
        What the queries have, such as ``"judgments"``.

    Raises
    ------
    DataError
        If the clusters name other queries or lack some, or hold one query each.
    """
    if clusters is None:
        return None
    require_common("query", Ids("the clusters", list(clusters)), Ids(f"the {of}", query_ids))
    if unlike := sorted(clusters.keys() ^ set(query_ids)):
        raise DataError(
            f"{len(unlike)} queries have a cluster or {of}, not both, such as {unlike[0]!r}; "
            f"give each query of the {of} a cluster, and no other"
        )
    unique, codes = np.unique([clusters[q] for q in query_ids], return_inverse=True)
    if len(unique) == len(clusters) > 1:
        raise DataError(
            f"each of {len(clusters)} queries has a cluster of its own, which is the same as none; "
            "leave the clusters out, or give related queries one name"
        )
    return codes.astype(np.int64)


def two_way_variance(terms: FloatArray, first: IntArray, second: IntArray) -> float:
    """Return the variance of ``terms.sum()``, never below that of either factor alone.

    Every pair of terms that shares any factor counts once (Cameron, Gelbach & Miller 2011, Journal
    of Business & Economic Statistics 29:238).

    Parameters
    ----------
    terms : float64 array of shape (n,)
        Influence values, summing to about 0.
    first, second : int64 arrays of shape (n,)
        Cluster of each term per factor, numbered from 0; -1 for a term that shares it with none.
        Each part is multiplied by G/(G − 1).
    """
    first, second = _own(first), _own(second)
    parts = _clustered(terms, first), _clustered(terms, second)
    both = _clustered(terms, first * (int(second.max(initial=0)) + 1) + second)
    return max(sum(parts) - both, *parts)


def shared_variance(
    values: FloatArray, units: IntArray, documents: IntArray
) -> tuple[float, float]:
    """Return the variance of a sum over units that share documents, and its degrees of freedom.

    The value of a unit is a mean, an effect of each of its documents and an error of its own. The
    variances of effects and errors follow from two sums of squares, of the values and of the sums
    that documents have of them; the degrees of freedom are Satterthwaite's (1946).

    Parameters
    ----------
    values : float64 array of shape (n,)
        One per unit, summing to about 0.
    units, documents : int64 arrays of shape (h,)
        A row for each document of a unit.

    Returns
    -------
    variance : float
        0 where nothing is shared, or nothing varies.
    degrees : float
        Infinite where nothing is shared; 0 where all units have the same documents.
    """
    from scipy.sparse import csr_array

    shape = (len(values), int(documents.max(initial=-1)) + 1)
    design = csr_array((np.ones(len(units)), (units, documents)), shape=shape)
    design.sum_duplicates()
    design = design[:, np.flatnonzero(np.bincount(design.indices, minlength=shape[1]) > 1)]
    if not design.nnz:
        return 0.0, math.inf
    n, total = len(values), design.sum(axis=0)
    # s0 to s4 are the traces of the powers of the covariance that effects of variance 1 give to
    # values less their mean; p1 to p4 take the part of the mean out.
    once = design.T @ design
    twice = once @ once
    p1, p2, p3 = (float(total @ part) for part in (total, once @ total, twice @ total))
    p4 = float((once @ total) @ (twice @ total))
    mean = p1 / n
    s0 = n - 1.0
    s1 = once.trace() - mean
    s2 = (once * once).sum() - 2 * p2 / n + mean**2
    s3 = (twice * once).sum() - 3 * p3 / n + 3 * p1 * p2 / n**2 - mean**3
    s4 = (twice * twice).sum() - 4 * p4 / n + (4 * p1 * p3 + 2 * p2**2) / n**2
    s4 += mean**4 - 4 * p1**2 * p2 / n**3
    apart = s0 * s2 - s1**2
    if s2 <= _CLOSE * mean**2 or apart <= _CLOSE * s0 * s2:
        return 0.0, 0.0
    sums = design.T @ values
    within, between = float(values @ values), float(sums @ sums)
    if within <= _NOTHING:
        return 0.0, float(design.shape[1] - 1)
    effect = (s0 * between - s1 * within) / apart
    error = (s2 * within - s1 * between) / apart
    weights = ((s2 * n - s1 * p1) / apart, (s0 * p1 - s1 * n) / apart)
    if effect <= 0:
        effect, error, weights = 0.0, within / s0, (n / s0, 0.0)
    elif error <= 0:
        effect, error, weights = within / s1, 0.0, (p1 / s1, 0.0)
    variance = effect * p1 + error * n
    spread = np.convolve(
        np.convolve(weights, weights), np.convolve((error, effect), (error, effect))
    )
    return variance, variance**2 / float(spread @ (s0, s1, s2, s3, s4))


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


def effective_number(clusters: IntArray) -> float:
    """Return as how many clusters of equal size these count: (Σ n)²/Σ n²."""
    sizes = np.bincount(group_codes(clusters))
    return float(sizes.sum() ** 2 / (sizes @ sizes))


def fewest_clusters(confidence_level: float) -> int:
    """Return how many clusters it takes to flip their signs."""
    # half of all patterns of signs are the other half turned round
    return max(MIN_CLUSTERS, math.floor(-math.log2(1 - confidence_level)) + 2)


def require_even(clusters: IntArray) -> None:
    """Refuse clusters of which a few hold nearly all queries.

    Raises
    ------
    InsufficientDataError
        If they count as fewer than 5 of equal size.
    """
    n, effective = _count(clusters), effective_number(clusters)
    if round(effective) < _LEAST_EFFECTIVE:
        needed = math.ceil(n * _LEAST_EFFECTIVE / effective)
        raise InsufficientDataError(
            InferCode.UNEVEN(n=n, effective=effective, least=_LEAST_EFFECTIVE, n_needed=needed)
        )


_LEAST_EFFECTIVE = 5  # with fewer, sign flips rest on the sign of one cluster


def require_flippable(clusters: IntArray, confidence_level: float) -> None:
    """Refuse clusters that are too few to flip their signs, or too uneven.

    Parameters
    ----------
    clusters : int64 array of shape (n,)
    """
    n, needed = _count(clusters), fewest_clusters(confidence_level)
    if n < needed:
        raise InsufficientDataError(InferCode.FEW_CLUSTERS(n=n, n_needed=needed))
    require_even(clusters)


def require_clusters(n: int, code: Code, **numbers: Any) -> None:  # noqa: ANN401
    """Refuse a factor with fewer than 6 clusters.

    Parameters
    ----------
    code : Code
        What to say: of ``n``, ``n_needed`` and these numbers.

    Raises
    ------
    InsufficientDataError
        ``n_needed`` is 6.
    """
    if n < MIN_CLUSTERS:
        raise InsufficientDataError(code(n=n, n_needed=MIN_CLUSTERS, **numbers))


def _count(factor: IntArray) -> int:
    return int(np.count_nonzero(np.bincount(factor[factor >= 0])))


def _own(factor: IntArray) -> IntArray:
    """Give each term without a cluster one of its own."""
    code = factor.copy()
    alone = np.flatnonzero(code < 0)
    code[alone] = int(code.max(initial=-1)) + 1 + np.arange(len(alone))
    return code


def _clustered(terms: FloatArray, code: IntArray) -> float:
    code = group_codes(code)
    sums = np.bincount(code, weights=terms)
    g = len(sums)
    return float(sums @ sums) * g / (g - 1) if g > 1 else 0.0


# A mean of values that are independent.


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


def of_queries(
    estimate: float,
    lower: float,
    upper: float,
    *,
    level: float,
    method: InferCode,
    n: int,
    sampled: InferCode = InferCode.QUERIES_SAMPLED,
) -> Interval:
    """Return the interval of n queries, taken as a sample; it reaches to its estimate at least."""
    return Interval(
        estimate=estimate,
        lower=min(lower, estimate),
        upper=max(upper, estimate),
        confidence_level=level,
        method=method(),
        n_labeled=n,
        assumptions=(sampled(),),
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


_NO_SPREAD = 1e-12


def clustered_mean(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]] | None = None,
    *,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    one_sided: bool = False,
) -> Interval:
    """Mean over observations with a cluster-robust interval.

    Without bounds: CR1 variance and t(clusters − 1). With finite bounds:
    :class:`BoundedRatio` over clusters, which covers near the
    bounds, where the t interval fails (.63–.93 for a share of .01–.05 with 100 clusters).

    Parameters
    ----------
    values : float64 array of shape (n,)
    clusters : integer array of shape (n,), optional
        Left out, each observation is one of its own.
    bounds : tuple of float or None
        Range of the values, such as (0, 1) for win rates.
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
    found = bounded_mean(values, clusters, bounds=bounds, one_sided=one_sided)
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
    clusters: npt.NDArray[np.integer[Any]] | None = None,
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """Mean of paired differences of scores in [0, 1]: :func:`clustered_mean` within [−1, 1].

    Columns that agree on every query give a narrow interval, not a point.
    """
    return clustered_mean(values, clusters, confidence_level=confidence_level, bounds=(-1.0, 1.0))


def difference_test(
    values: FloatArray, clusters: npt.NDArray[np.integer[Any]] | None = None
) -> float:
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


def _of_units(clusters: npt.NDArray[np.integer[Any]] | None, n: int) -> IntArray:
    """Code clusters; without, each of n observations is one of its own."""
    return np.arange(n) if clusters is None else group_codes(clusters)


def _standard_error(
    influence: FloatArray, clusters: npt.NDArray[np.integer[Any]] | None
) -> tuple[float, int]:
    """CR1 standard error of a mean, and the number of clusters."""
    code = _of_units(clusters, len(influence))
    g = int(code.max(initial=-1)) + 1
    _require_two(g)
    sums = np.bincount(code, weights=influence)
    error = math.sqrt(np.sum(sums**2) * g / (g - 1)) / len(influence)
    if error < _NO_SPREAD:
        raise InsufficientDataError(InferCode.CLUSTERS_AGREE(n=g))
    return error, g


def _check_values(values: FloatArray) -> None:
    require_finite(values, "values", remedy="leave out what has none")
    _require_two(len(values))


def _require_two(g: int) -> None:
    if g < 2:
        raise InsufficientDataError(InferCode.FEW_CLUSTERS(n=g, n_needed=2))


def bounded_mean(
    values: FloatArray,
    clusters: npt.NDArray[np.integer[Any]] | None,
    *,
    bounds: tuple[float, float],
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
    code = _of_units(clusters, len(values))
    sizes = np.bincount(code).astype(np.float64)
    _require_two(len(sizes))
    # a cluster that was not seen is as extreme as its observations depend on one another
    size, certain = design_effect(values - values.mean(), code)
    return BoundedRatio(
        numerator=np.bincount(code, weights=values).astype(np.float64, copy=False),
        denominator=sizes,
        lowest=(lowest * size, size),
        highest=(highest * size, size),
        information=certain,
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
    ends = np.stack((estimates, lower, upper), axis=1).tolist()
    return tuple(
        of_queries(*found, level=confidence_level, method=InferCode.BOOTSTRAP, n=n)
        if wide > _NO_SPREAD
        else None
        for found, wide in zip(ends, np.ptp(draws, axis=0), strict=True)
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
_HALVINGS = 30  # to a billionth of the width
_FAR = 40.0  # probits beyond it are certainty
_CENTRE = 1e-4  # |w| below which the tail formula is 0/0 and its limit is used


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterFlips:
    """Ratio of two sums over clusters, tested by flipping the signs of whole clusters.

    What clusters of unequal size add up to is far from normal, whatever their number: what the
    ratio leaves of each cluster has its sign flipped at random, and the studentised sum is compared
    with the one seen (Cameron, Gelbach & Miller 2008, with the variance CR2).

    Parameters
    ----------
    numerator : float64 array of shape (n,) or (n, k)
        One per cluster, or one vector: its squared length is then studentised, by the sum of the
        variances, so that k ratios are tested together.
    denominator : float64 array of shape (n,)
        At least 0, and several are not 0.
    resamples : int
        Flips drawn; where there are fewer patterns, each is taken once.
    """

    numerator: FloatArray
    denominator: FloatArray
    resamples: int = 10_000
    seed: np.random.Generator | int = 0

    @cached_property
    def _columns(self) -> FloatArray:
        """All numbers, and all times the weighted denominator; shape (n, 2k + 2)."""
        once = np.column_stack((self.numerator, self.denominator))
        share = self.denominator / self.denominator.sum()
        return np.concatenate((once, once * (self.denominator / (1 - share))[:, None]), axis=1)

    @cached_property
    def _drawn(self) -> tuple[FloatArray, bool]:
        """Sums of columns as seen, then flipped, and whether the pattern seen is drawn too."""
        n, seen = len(self.numerator), self._columns.sum(axis=0)[None]
        if n <= math.log2(self.resamples):
            # the sign of the last cluster stays: flipping all changes nothing
            flips = np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1
            return np.concatenate((seen, (1.0 - 2 * flips) @ self._columns)), True
        blocks = coin_flips(n, self.resamples, np.random.default_rng(self.seed))
        return np.concatenate([seen, *((1 - 2 * block) @ self._columns for block in blocks)]), False

    def p_value(self, value: float | FloatArray = 0.0) -> float:
        """Return the two-sided p-value of the ratio being ``value``."""
        sums, complete = self._drawn
        statistic = self._statistic(sums, value)
        drawn = statistic[1:] if complete else statistic
        return float(np.mean(drawn >= statistic[0] * (1 - _CLOSE)))

    def _statistic(self, sums: FloatArray, value: float | FloatArray) -> FloatArray:
        """Squared studentised sums of what a ratio leaves of the clusters, of shape (m,)."""
        k = sums.shape[1] // 2
        total = float(self.denominator.sum())
        left = self._left(value)
        weight = 1 / (1 - self.denominator / total)
        sum_of, product = (
            part[:, :-1] - value * part[:, -1:] for part in (sums[:, :k], sums[:, k:])
        )
        mean = sum_of / total
        variance = (weight @ left**2) - 2 * mean * product
        variance += mean**2 * (weight @ self.denominator**2)
        return np.asarray((sum_of**2).sum(axis=1) / np.maximum(variance.sum(axis=1), _NOTHING))

    def _left(self, value: float | FloatArray) -> FloatArray:
        """Return what a ratio leaves of each cluster, of shape (n, k)."""
        columns = self.numerator.reshape(len(self.denominator), -1)
        return np.asarray(columns - self.denominator[:, None] * value)

    @property
    def direction(self) -> FloatArray:
        """Direction of the vector of ratios, of length 1 and shape (k,)."""
        sums = self.numerator.sum(axis=0)
        if not sums.any():
            sums[[0, -1]] = 1, -1  # none is nearer than another
        return np.asarray(sums / np.linalg.norm(sums))

    def ends(self, confidence_level: float, along: float | FloatArray = 1.0) -> tuple[float, float]:
        """Return the ends of the interval of ratios that are not rejected.

        Parameters
        ----------
        along : float64 array of shape (k,), optional
            Of k ratios, the ends are those of their length in this direction.

        Raises
        ------
        InsufficientDataError
            If fewer patterns are drawn than it takes to reject anything at this level.
        """
        sums, complete = self._drawn
        if (len(sums) - complete) * (1 - confidence_level) < 1:
            if complete:
                needed = fewest_clusters(confidence_level)
                raise InsufficientDataError(
                    InferCode.FEW_CLUSTERS(n=len(self.denominator), n_needed=needed)
                )
            needed = math.floor(1 / (1 - confidence_level))
            raise InsufficientDataError(InferCode.FEW_FLIPS(n=self.resamples, n_needed=needed))
        lower, upper = (self._end(confidence_level, side, along) for side in (-1, 1))
        return lower, upper

    def interval(self, estimate: float, lower: float, upper: float, level: float) -> Interval:
        """Return the interval of what was found of the ratio."""
        return of_queries(
            estimate,
            lower,
            upper,
            level=level,
            method=InferCode.CLUSTER_FLIPS,
            n=len(self.denominator),
            sampled=InferCode.CLUSTERS_SAMPLED,
        )

    def _end(self, level: float, direction: int, along: float | FloatArray) -> float:
        total = float(self.denominator.sum())
        inner = float(np.sum(self.numerator.sum(axis=0) * along)) / total
        spread = math.sqrt(np.sum(self._left(inner * along) ** 2))
        step = direction * max(spread / total, _CLOSE)
        while self.p_value((inner + step) * along) > 1 - level:
            inner, step = inner + step, 2 * step
        outer = inner + step
        for _ in range(_HALVINGS):
            middle = (inner + outer) / 2
            inside = self.p_value(middle * along) > 1 - level
            inner, outer = (middle, outer) if inside else (inner, middle)
        return outer


def cluster_flips(
    values: FloatArray,
    clusters: IntArray,
    weights: FloatArray | None = None,
    **drawn: Any,  # noqa: ANN401
) -> ClusterFlips:
    """Sum values by cluster, for flips of the signs of their mean.

    Parameters
    ----------
    values : float64 array of shape (n,) or (n, k)
    clusters : int64 array of shape (n,)
        Codes from 0 on.
    weights : float64 array of shape (n,), optional
        Denominators of a ratio, instead of 1.
    **drawn
        ``resamples`` and ``seed``.
    """
    sums = np.zeros((int(clusters.max()) + 1, *values.shape[1:]))
    np.add.at(sums, clusters, values)
    sizes = np.bincount(clusters, weights=weights).astype(np.float64)
    return ClusterFlips(numerator=sums, denominator=sizes, **drawn)


def flipped_mean(
    values: FloatArray,
    clusters: IntArray | None,
    *,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    **drawn: Any,  # noqa: ANN401
) -> Interval:
    """:func:`clustered_mean`, as wide as sign flips of declared clusters ask.

    Parameters
    ----------
    clusters : int64 array of shape (n,), optional
        Codes; clusters of any sizes. Left out, each observation is one of its own.
    **drawn
        ``resamples`` and ``seed`` of :class:`ClusterFlips`.

    Raises
    ------
    InsufficientDataError
        As :func:`clustered_mean`; if clusters are too few, or a few hold nearly all values.
    """
    if clusters is not None:
        require_flippable(clusters, confidence_level)
    mean = clustered_mean(values, clusters, confidence_level=confidence_level, bounds=bounds)
    if clusters is None:
        return mean
    lower, upper = cluster_flips(values, clusters, **drawn).ends(confidence_level)
    least, most = bounds or (-math.inf, math.inf)
    return replace(
        mean,
        lower=max(min(mean.lower, lower), least),
        upper=min(max(mean.upper, upper), most),
        method=InferCode.CLUSTER_FLIPS(),
    )


def means_of(
    clusters: IntArray | None,
    config: Any,  # noqa: ANN401 - settings of an audit
) -> Callable[..., Interval]:
    """Return :func:`flipped_mean` of values of these clusters, at the settings of an audit."""
    return partial(
        flipped_mean,
        clusters=clusters,
        confidence_level=config.confidence_level,
        resamples=config.resamples,
        seed=config.seed,
    )


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
        spread = math.sqrt((residuals @ residuals) / self.information + extra[0] ** 2)
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


# Two columns of per-query scores: their moments and what these allow.


_SAME = 1e-9  # ratios closer than this are one ratio


@dataclass(frozen=True, kw_only=True)
class ScorePair:
    """Scores of the same queries for two sources; build it with :meth:`of`.

    Parameters
    ----------
    baseline, other : float64 arrays of shape (n,)
    n : int
    h, l : float
        Means of the baseline and of the other source.
    v_h, v_l, cov : float
        Variances and covariance of these means.
    """

    baseline: FloatArray
    other: FloatArray
    n: int
    h: float
    l: float  # noqa: E741 - the letter the formula uses
    v_h: float
    v_l: float
    cov: float

    @classmethod
    def of(cls, baseline: FloatArray, other: FloatArray) -> ScorePair:
        """Check two columns and take their moments."""
        if baseline.shape != other.shape or baseline.ndim != 1:
            raise DataError(
                f"scores must be two columns of equal length, got {baseline.shape} and "
                f"{other.shape}"
            )
        n = len(baseline)
        if n < 2:
            raise InsufficientDataError(InferCode.FEW_QUERIES(n=n, n_needed=2))
        both = np.concatenate((baseline, other))
        require_finite(both, "scores", remedy="score every query before inference")
        if both.min() < 0:
            raise DataError("scores hold a negative value; ranking measures are at least 0")
        cov = np.cov(baseline, other) / n
        return cls(
            baseline=baseline,
            other=other,
            n=n,
            h=float(baseline.mean()),
            l=float(other.mean()),
            v_h=float(cov[0, 0]),
            v_l=float(cov[1, 1]),
            cov=float(cov[0, 1]),
        )

    def require_scores(self, side: str = "") -> None:
        """Raise when no query scores, before or after a change: Relative Δ is then 0 / 0."""
        if self.h + self.l == 0:
            refusal = InferCode.NEITHER_SCORES(n=self.n)
            if side:
                refusal = InferCode.NEITHER_SCORES_THEN(side=side, n=self.n)
            raise InsufficientDataError(refusal)

    @property
    def estimate(self) -> float:
        """Relative Δ in percent."""
        return 200.0 * ((self.h - self.l) / (self.h + self.l))

    @property
    def largest(self) -> float:
        """Largest possible score: 1, or more when more was seen."""
        return max(1.0, float(self.baseline.max()), float(self.other.max()))

    @cached_property
    def departures(self) -> tuple[float, int, int]:
        """Commonest share h/(h + l) of a scoring query, and how many lie above and below it.

        Some query must score (:meth:`require_scores`).
        """
        total = self.baseline + self.other
        share = self.baseline[total > 0] / total[total > 0]
        values, counts = np.unique(np.round(share / _SAME) * _SAME, return_counts=True)
        commonest = values[counts == counts.max(initial=0)]
        # Of several equally common ones the nearest to the overall share, so that exchanging the
        # sources mirrors the result.
        common = float(commonest[np.abs(commonest - self.h / (self.h + self.l)).argmin()])
        return (
            common,
            int(np.count_nonzero(share > common + _SAME)),
            int(np.count_nonzero(share < common - _SAME)),
        )

    def interval(
        self, lower: float, upper: float, level: float, method: InferCode, *assumptions: InferCode
    ) -> Interval:
        """Wrap two ends in percent; queries are taken as a sample besides other assumptions."""
        return Interval(
            estimate=self.estimate,
            lower=max(min(lower, self.estimate), -200.0),
            upper=min(max(upper, self.estimate), 200.0),
            confidence_level=level,
            method=method(),
            n_labeled=self.n,
            assumptions=tuple(code() for code in (InferCode.QUERIES_SAMPLED, *assumptions)),
        )


# Intervals for Relative Δ from per-query scores.
# With h and l the mean scores of the baseline and the other source and x = ln(h / l), Relative Δ
# is 200·tanh(x / 2): a monotone map, so an interval for x becomes an interval for Relative Δ.


# When the normal approximations (delta, bootstrap, Fieller) may be used. Below 4 standard errors
# the delta method covered .62–.93 where few queries carry most of a score.
_MIN_Z = 4.0
# Queries that must depart from the commonest share h/(h + l): with 10 the delta method covered
# .928 when twins nearly always tie, with 15 at least .935.
_MIN_DIFFERING = 15


def relative_delta_interval(
    baseline: FloatArray,
    other: FloatArray,
    *,
    confidence_level: float = 0.95,
    method: Literal["auto", "delta", "bootstrap", "fieller", "exact"] = "auto",
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """Confidence interval for Relative Δ of two paired per-query score columns.

    Parameters
    ----------
    baseline, other : float64 arrays of shape (n,)
        Scores of the same queries, in [0, 1]. On a larger scale, such as percent, the largest
        score seen is taken for the largest possible.
    method : {"auto", "delta", "bootstrap", "fieller", "exact"}
        ``"auto"``: :class:`~rag_sourcebias.infer.means.BoundedRatio` of h − l to
        (h + l)/2, which needs no approximation to hold and moves smoothly with the data.
        ``"delta"``: delta method on the log ratio with the covariance of the pair, t(n − 1).
        ``"bootstrap"``: percentiles of resampled queries. ``"fieller"``: Fieller's set for
        (h − l)/(h + l). ``"exact"``: Clopper–Pearson on the queries that one of the two won, for
        scores of 0 and 1 of which at most one is 1 (cutoff 1).
    resamples : int
    rng : numpy.random.Generator or int

    Returns
    -------
    Interval
        In percent, within [−200, 200].

    Raises
    ------
    InsufficientDataError
        If neither source scores on any query, or the method asked for cannot be trusted here;
        ``n_needed`` estimates how many queries would be enough.

    Examples
    --------
    >>> h = np.array([1.0] * 30 + [0.0] * 30)
    >>> print(relative_delta_interval(h, 1 - h, method="exact"))
    0 [-52.78, 52.78] (95%, exact, n = 60)
    """
    check_level(confidence_level)
    pair = ScorePair.of(baseline, other)
    pair.require_scores()
    if method == "exact":
        return _exact(pair, confidence_level)
    if method == "auto":
        top = pair.largest
        ratio = BoundedRatio(
            numerator=200 * (pair.baseline - pair.other),
            denominator=pair.baseline + pair.other,
            lowest=(-200 * top, top),
            highest=(200 * top, top),
        )
        return pair.interval(
            *ratio.ends(confidence_level), confidence_level, InferCode.WEIGHTED_QUERIES
        )
    _require_normal(pair, method)
    if method == "delta":
        x = math.log(pair.h / pair.l)
        h, low = pair.h, pair.l
        # of ln(h / l), by the delta method
        variance = pair.v_h / h**2 + pair.v_l / low**2 - 2 * pair.cov / (h * low)
        error = math.sqrt(max(variance, 0.0))
        width = t_quantile(0.5 + confidence_level / 2, pair.n - 1) * error
        return pair.interval(
            200 * math.tanh((x - width) / 2),
            200 * math.tanh((x + width) / 2),
            confidence_level,
            InferCode.DELTA,
            InferCode.RATIO_NORMAL,
        )
    if method == "fieller":
        return _fieller(pair, confidence_level)
    means = bootstrap_means(np.column_stack((baseline, other)), resamples=resamples, rng=rng)
    total = means.sum(axis=1)
    seen = total > 0
    tail = (1 - confidence_level) / 2
    # a monotone function of ln(h / l): percentiles of one are percentiles of the other
    lower, upper = np.quantile(
        200 * ((means[seen, 0] - means[seen, 1]) / total[seen]), [tail, 1 - tail]
    ).tolist()
    return pair.interval(lower, upper, confidence_level, InferCode.BOOTSTRAP)


def _require_normal(pair: ScorePair, method: str) -> None:
    """Refuse a method by name where its normal approximation does not hold."""
    n, (_, above, below) = pair.n, pair.departures
    differing = above + below  # all variation comes from these queries
    z = math.inf  # the smaller of the two means in standard errors
    for mean, variance in ((pair.h, pair.v_h), (pair.l, pair.v_l)):
        if not mean > 0:
            z = 0.0
        elif variance > 0:
            z = min(z, mean / math.sqrt(variance))
    if not z > 0:
        raise InsufficientDataError(InferCode.ONE_NEVER_SCORES(n=n, method=method))
    if z < _MIN_Z:
        needed = math.ceil(n * (_MIN_Z / z) ** 2)
        raise InsufficientDataError(
            InferCode.SCORES_RARE(z=z, n=n, method=method, least=_MIN_Z, n_needed=needed)
        )
    least = _MIN_DIFFERING
    if not differing:
        raise InsufficientDataError(InferCode.ONE_RATIO(n=n, method=method, least=least))
    if differing < least:
        needed = math.ceil(n * least / differing)
        raise InsufficientDataError(
            InferCode.RATIOS_RARE(
                differing=differing, n=n, method=method, least=least, n_needed=needed
            )
        )


def _exact(pair: ScorePair, level: float) -> Interval:
    """Clopper–Pearson interval on the queries that one of the two sources won.

    Given the number of queries won at all, wins of the baseline are binomial with probability
    h/(h + l), and Relative Δ is 200 (2q − 1): no approximation is involved.

    Raises
    ------
    DataError
        If a score is not 0 or 1, or both sources score on one query.
    """
    both = np.concatenate((pair.baseline, pair.other))
    if not np.isin(both, (0, 1)).all() or np.any(pair.baseline * pair.other):
        raise DataError(
            "the exact interval needs scores of 0 and 1 of which at most one per query is 1 "
            "(binary judgments at cutoff 1, no ties)"
        )
    wins, losses = int(pair.baseline.sum()), int(pair.other.sum())
    tail = (1 - level) / 2
    lower = beta_quantile(tail, wins, losses + 1) if wins else 0.0
    upper = beta_quantile(1 - tail, wins + 1, losses) if losses else 1.0
    return pair.interval(200 * (2 * lower - 1), 200 * (2 * upper - 1), level, InferCode.EXACT)


def _fieller(pair: ScorePair, level: float) -> Interval:
    diff, total = pair.h - pair.l, pair.h + pair.l
    v_total = pair.v_h + pair.v_l + 2 * pair.cov
    t2 = t_quantile(0.5 + level / 2, pair.n - 1) ** 2
    a = total**2 - t2 * v_total
    if a <= 0:
        needed = math.ceil(pair.n * t2 * v_total / total**2) + 1
        raise InsufficientDataError(InferCode.UNBOUNDED(n=pair.n, level=level, n_needed=needed))
    b = diff * total - t2 * (pair.v_h - pair.v_l)
    v_diff = pair.v_h + pair.v_l - 2 * pair.cov
    root = math.sqrt(max(b**2 - a * (diff**2 - t2 * v_diff), 0.0))
    return pair.interval(
        200 * max((b - root) / a, -1.0),
        200 * min((b + root) / a, 1.0),
        level,
        InferCode.FIELLER,
        InferCode.MEANS_NORMAL,
    )


def published_delta(
    baseline: FloatArray,
    other: FloatArray,
    **how: Any,  # noqa: ANN401 - of relative_delta_interval
) -> tuple[float | None, Interval | None, Finding | None]:
    """Return Relative Δ as published, its interval, and why there is none."""
    try:
        interval = relative_delta_interval(baseline, other, **how)
    except InsufficientDataError as error:
        return relative_delta(float(baseline.mean()), float(other.mean())), None, error.finding
    return interval.estimate, interval, None
