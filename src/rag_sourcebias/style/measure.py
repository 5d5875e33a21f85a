"""Ranks of styled versions of documents: tables, unfairness, matching effect and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import DataError, as_generator, if_enough
from rag_sourcebias.infer.means import (
    Correction,
    adjust_p_values,
    box_degrees,
    cluster_flips,
    coin_flips,
    dirichlet_sums,
    flipped_mean,
    normal_quantile,
    queries_to_tell,
)
from rag_sourcebias.style.data import FriedmanTest, RankPair, StyleCode, StyleFinding, Unfairness

_EXACT_LIMIT = 14  # 2^14 sign patterns are enumerated rather than drawn
_TIE = 1e-9


def compare_ranks(
    ranks: FloatArray,
    names: Sequence[str],
    baseline: str,
    clusters: IntArray | None = None,
    *,
    correction: Correction = "holm",
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> tuple[RankPair, ...]:
    """Compare the average rank of every other style with that of a baseline.

    A pair is tested on its own rank differences, so which other styles are compared does not
    enter its test (it does in Nemenyi's; Benavoli, Corani & Mangili 2016).

    Parameters
    ----------
    ranks : float array of shape (n, k)
        One row per query.
    names : sequence of str, length k
    clusters : int64 array of shape (n,), optional
        Codes of clusters of queries, whose signs are flipped together.
    correction : {"holm", "bh", "none"}
    resamples : int
        Sign patterns drawn; with at most 14 queries all are enumerated. An adjusted p-value
        cannot be below (number of pairs)/(1 + resamples).
    """
    at = list(names).index(baseline)
    others = [i for i in range(len(names)) if i != at]
    differences = ranks[:, others] - ranks[:, [at]]
    signed = differences if clusters is None else cluster_flips(differences, clusters).numerator
    p_values = sign_flips(signed, resamples=resamples, generator=as_generator(rng))
    adjusted = adjust_p_values(p_values, correction=correction)
    pairs = []
    for i, column, p, p_adjusted in zip(others, differences.T, p_values, adjusted, strict=True):
        pair = RankPair(
            first=names[i],
            second=baseline,
            difference=float(column.mean()),
            interval=if_enough(
                flipped_mean,
                column,
                clusters,
                confidence_level=confidence_level,
                resamples=resamples,
            ),
            p_value=p,
            p_adjusted=cast("float", p_adjusted),
        )
        pairs.append(pair)
    return tuple(pairs)


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


_UNEQUAL = 1e-6  # row sums of averaged ranks may differ by rounding only


def kendalls_w(ranks: FloatArray) -> float | None:
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

    Examples
    --------
    >>> kendalls_w(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    1.0
    """
    centred = ranks - (ranks.shape[1] + 1) / 2
    # Σ(r − r̄)² of a query is (k³ − k − T)/12: ties need no counting.
    largest = float(np.sum(centred**2)) / len(ranks)
    seen = float(np.sum(centred.mean(axis=0) ** 2))
    return None if largest == 0 else min(seen / largest, 1.0)


def friedman_test(ranks: FloatArray, clusters: IntArray | None = None) -> FriedmanTest:
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
        Ranks within each query, ties averaged.
    clusters : int64 array of shape (n,), optional
        Codes of clusters of queries; left out, queries are independent. With clusters the average
        ranks are tested by flipping the signs of whole clusters.
    """
    w = kendalls_w(ranks)
    n, k = ranks.shape
    p_value = 1.0
    if w is not None and clusters is not None:
        p_value = cluster_flips(ranks - (k + 1) / 2, clusters).p_value()
    elif w is not None:
        p_value = _p_value(ranks)
    return FriedmanTest(
        statistic=0.0 if w is None else n * (k - 1) * w,
        degrees=k - 1,
        # All queries agreeing is no rarer than this, however many styles there are, where each
        # wants one of two opposite orders.
        p_value=max(p_value, min(1.0, 2.0 ** (1 - n))),
        w=w,
        n_queries=n,
        n_styles=k,
    )


def _p_value(ranks: npt.NDArray[np.float64]) -> float:
    """Return the p-value of the exact sign test for two styles, of Box's F for more."""
    from scipy.special import bdtr, fdtrc

    n, k = ranks.shape
    if k == 2:
        wins, losses = (np.count_nonzero(ranks[:, i] > ranks[:, 1 - i]) for i in (0, 1))
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


# Unfairness of a retriever towards writing styles ([W] Eq. 2–3).
# Every document exists in k versions. With R̄ the average rank of each style over queries,
# unfairness = (max R̄ − min R̄) · std(R̄)


def unfairness_score(
    average_ranks: npt.NDArray[np.floating[Any]], *, ddof: int = 0
) -> npt.NDArray[np.float64]:
    """Unfairness from average ranks: (max − min) · std ([W] Eq. 3).

    Parameters
    ----------
    average_ranks : float array of shape (..., k)
        One score is computed along the last axis.
    ddof : int
        The standard deviation divides by k − ddof. [W] does not state it; the Std column of its
        Table 1 is the population form, so 0 is the default.

    Returns
    -------
    float64 array of shape (...)
        A single row gives an array of shape ().

    Examples
    --------
    >>> float(unfairness_score(np.array([1.0, 2.0, 3.0, 4.0])).round(4))
    3.3541
    """
    score: FloatArray = np.ptp(average_ranks, axis=-1) * average_ranks.std(axis=-1, ddof=ddof)
    return score


def max_unfairness(n_styles: int, *, ddof: int = 0) -> float:
    """Largest possible score of k styles: every query ranks them alike.

    (k − 1) · √((k² − 1)/12) with ``ddof=0``: 25.85 for 10 styles.
    """
    k = n_styles
    return (k - 1) * math.sqrt((k * k - 1) / 12 * (k / (k - ddof)))


def null_unfairness(ranks: npt.NDArray[np.floating[Any]], *, ddof: int = 0) -> float:
    r"""Mean unfairness of a retriever that does not care about style.

    Without preferences each query shuffles its ranks, so the average ranks are nearly normal with
    variance σ² = Σ v_i / N², v_i the variance of the ranks of query i ((k² − 1)/12 without ties)
    and equal correlations. Range / std and std are then independent (Basu), and

        E = σ² · √(k/(k − 1)) · d₂(k) / c₄(k) · √(k/(k − ddof)),

    d₂ and c₄ being the mean range and mean standard deviation of k standard normal values. For
    k = 10 this is 27.5/N. The normal form is 1 % high at N = 5 and 3 % at N = 2; it is cut off at
    the largest score that these ties allow.

    Parameters
    ----------
    ranks : float array of shape (n, k)
        Per query; only their ties matter.
    """
    n, k = ranks.shape
    variance: float = float(ranks.var(axis=1).sum()) / n**2
    # Queries with these ties that all agree score highest; of one query that is the score itself.
    most = float(unfairness_score(np.sort(ranks, axis=1).mean(axis=0), ddof=ddof))
    c4 = math.sqrt(2 / (k - 1)) * math.exp(math.lgamma(k / 2) - math.lgamma((k - 1) / 2))
    scale = math.sqrt(k / (k - 1)) * math.sqrt(k / (k - ddof))
    return min(variance * scale * _mean_range(k) / c4, most)


def unfairness(ranks: npt.NDArray[np.floating[Any]], *, ddof: int = 0) -> Unfairness:
    """Score the per-query ranks of k styles, with null expectation and normalised forms.

    Parameters
    ----------
    ranks : float array of shape (n, k)
    ddof : int
    """
    expected = null_unfairness(ranks, ddof=ddof)
    average = ranks.mean(axis=0)
    n, k = ranks.shape
    score = float(unfairness_score(average, ddof=ddof))
    return Unfairness(
        score=score,
        null_expectation=expected,
        corrected=score - expected,
        normalised=score / max_unfairness(k, ddof=ddof),
        ddof=ddof,
        n_queries=n,
        n_styles=k,
    )


def _mean_range(k: int) -> float:
    """Mean range of k standard normal values, ∫ 1 − Φᵏ − (1 − Φ)ᵏ."""
    from scipy.special import ndtr

    x = np.linspace(-12.0, 12.0, 4001)  # smooth and flat at both ends: sums are exact to 1e-12
    below = ndtr(x)
    return float(np.sum(1 - below**k - (1 - below) ** k) * (x[1] - x[0]))


# Ranks of the versions of one document among themselves ([W] Eq. 1).


def rank_versions(scores: npt.NDArray[np.floating[Any]]) -> FloatArray:
    """Rank along the last axis, highest score first; tied scores share the mean of their ranks.

    Parameters
    ----------
    scores : float array of shape (..., k)
        Finite. Compared in single precision, as scores of a run are: scores that differ by less
        than float32 resolves are tied.

    Returns
    -------
    float64 array of the same shape
        In [1, k].

    Examples
    --------
    >>> rank_versions(np.array([0.9, 0.5, 0.9, 0.1])).tolist()
    [1.5, 3.0, 1.5, 4.0]
    """
    with np.errstate(over="ignore"):
        values = np.asarray(scores, dtype=np.float32)
    if not np.all(np.isfinite(values)):
        raise DataError("scores hold NaN, infinity or a number beyond single precision")
    ranks = np.full(values.shape, 0.5)  # a version counts itself among its equals
    # One version at a time: k passes over (..., k) instead of an array of shape (..., k, k).
    for j in range(values.shape[-1]):
        other = values[..., j : j + 1]
        ranks += other > values
        ranks += 0.5 * (other == values)
    return ranks


# Average rank of every document style under every query style ([W] Table 1, Fig. 5).


class StyleMatrix(NamedTuple):
    """Ranks of d document styles for n queries, each query written in q styles.

    Parameters
    ----------
    query_styles : tuple of str, length q
    doc_styles : tuple of str, length d
    ranks : float64 array of shape (n, q, d)
        Rank of each document style, 1 is most similar; in [1, d].
    clusters : int64 array of shape (n,), optional
        Codes of clusters of queries.
    """

    query_styles: tuple[str, ...]
    doc_styles: tuple[str, ...]
    ranks: npt.NDArray[np.float64]
    clusters: IntArray | None = None

    @property
    def average(self) -> npt.NDArray[np.float64]:
        """Average ranks, shape (q, d); each row sums to d(d + 1)/2."""
        return np.asarray(self.ranks.mean(axis=0))


# Does a query in one style raise documents of the same style? ([W] §4, finding c).


def matching_gains(matrix: StyleMatrix, styles: Sequence[str]) -> FloatArray:
    """Compare the diagonal of the matrix with the rest of each column.

    Parameters
    ----------
    styles : sequence of str, length m
        Each both a query style, of at least two, and a document style.

    Returns
    -------
    float64 array of shape (n, m)
        Per query: mean rank under the other query styles − rank under the matching one; positive
        when the matching query raises the document.
    """
    columns = []
    for style in styles:
        ranks = matrix.ranks[:, :, matrix.doc_styles.index(style)]
        own = matrix.query_styles.index(style)
        columns.append(np.delete(ranks, own, axis=1).mean(axis=1) - ranks[:, own])
    return np.column_stack(columns)


# Average ranks at equal length.
# Styles differ in length, so a preference for a style may be one for length. With x the log length
# of a version minus the mean log length of the versions of its document,
# rank_ij = a_j + b·x_ij + error, adjusted R̄_j = R̄_j − b·x̄_j
# where the slope b comes from how lengths vary from query to query within a style.


_CONSTANT = 1e-12


def length_columns(ranks: npt.NDArray[np.floating[Any]], lengths: npt.NDArray[Any]) -> FloatArray:
    """Per-query terms whose means determine the adjusted ranks, to resample queries by.

    Returns
    -------
    float64 array of shape (n, 2k + 2)
        Ranks, centred log lengths x, Σ x·rank and Σ x².
    """
    x = np.log(lengths)
    x -= x.mean(axis=1, keepdims=True)
    return np.column_stack((ranks, x, (x * ranks).sum(axis=1), (x * x).sum(axis=1)))


def adjusted_from_means(means: FloatArray) -> FloatArray:
    """Adjusted average ranks from means of :func:`length_columns`.

    Parameters
    ----------
    means : float64 array of shape (..., 2k + 2)
        Such as resampled means. Where lengths do not vary within styles nothing is adjusted.

    Returns
    -------
    float64 array of shape (..., k)
    """
    ranks, x = _by_style(means)
    return ranks - length_slope(means)[..., None] * x


def length_slope(means: FloatArray) -> FloatArray:
    """Ranks per unit of ln(length), from means of :func:`length_columns`.

    Negative where longer versions rank higher; 0 where lengths do not vary.
    """
    ranks, x = _by_style(means)
    spread = _spread(means)
    shared = means[..., -2] - np.sum(ranks * x, axis=-1)
    return np.asarray(np.divide(shared, spread, out=np.zeros_like(spread), where=_varies(means)))


def lengths_vary(means: FloatArray) -> bool:
    """Whether lengths vary within styles, so that length and style can be told apart."""
    return bool(np.all(_varies(means)))


def _varies(means: FloatArray) -> npt.NDArray[np.bool_]:
    return _spread(means) >= _CONSTANT


def _spread(means: FloatArray) -> FloatArray:
    """Mean over queries of Σ (x − x̄ of its style)²."""
    _, x = _by_style(means)
    return np.asarray(means[..., -1] - np.sum(x * x, axis=-1))


def _by_style(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean rank and mean centred log length of each style."""
    k = means.shape[-1] // 2 - 1
    return means[..., :k], means[..., k : 2 * k]


# The verdict of a style audit: are styles ranked apart, alike, or can nobody tell yet.


_DRAWS = 1_000


def style_finding(
    ranks: FloatArray,
    styles: Sequence[str],
    *,
    test: FriedmanTest,
    against_original: Sequence[RankPair] = (),
    margin: float,
    clusters: IntArray | None = None,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> StyleFinding:
    """Decide what the ranks of document styles say.

    Styles are ranked alike where the upper bound for the distance of every two average ranks lies
    within the margin (an intersection of one-sided tests, each at 1 − ``confidence_level``). Else
    the system favours some styles where the test of equal average ranks is significant.

    Parameters
    ----------
    ranks : float64 array of shape (n, k)
        Ranks within each query.
    test : FriedmanTest
        Of these ranks.
    against_original : sequence of RankPair
        Each style (``first``) with the original, adjusted over the styles.
    margin : float
        Share of the k − 1 places.
    clusters : int64 array of shape (n,), optional
        Codes of clusters of queries.
    """
    n, k = ranks.shape
    alpha = round(1 - confidence_level, 12)
    means = ranks.mean(axis=0)
    places = margin * (k - 1)
    sums, share = dirichlet_sums(ranks, resamples=_DRAWS, rng=rng)
    # Upper bound for every difference of two true average ranks, each at level alpha: a query that
    # is not seen puts the two at opposite ends.
    first, second = np.nonzero(~np.eye(k, dtype=np.bool_))
    apart = sums[:, first] - sums[:, second] + (share * (k - 1))[:, None]
    bound = float(np.quantile(apart, 1 - alpha, axis=0).max())
    if clusters is not None:
        bound = max(
            flipped_mean(
                ranks[:, i] - ranks[:, j],
                clusters,
                confidence_level=1 - 2 * alpha,
                bounds=(1.0 - k, k - 1.0),
                resamples=_DRAWS,
            ).upper
            for i, j in permutations(range(k), 2)
        )
    code, needed = _code(test, bound, places, alpha), None
    if code is StyleCode.TOO_FEW:
        needed = _fewest(alpha)
    elif code is StyleCode.CANNOT_TELL:
        needed = _queries_needed(ranks, places, alpha, rng, clusters)
    clear = [p for p in against_original if code is StyleCode.FAVOURS and p.p_adjusted < alpha]
    return StyleFinding(
        code=code,
        best=styles[int(means.argmin())],
        worst=styles[int(means.argmax())],
        apart=float(np.ptp(means)),
        apart_at_most=bound,
        margin=places,
        p_value=test.p_value,
        n_queries=n,
        n_needed=needed,
        favoured=tuple(p.first for p in clear if p.difference < 0),
        silenced=tuple(p.first for p in clear if p.difference > 0),
    )


def _code(test: FriedmanTest, bound: float, margin: float, alpha: float) -> StyleCode:
    if test.w is None:
        return StyleCode.TIED
    if test.n_queries < _fewest(alpha):
        return StyleCode.TOO_FEW
    if bound <= margin:
        return StyleCode.ALIKE
    return StyleCode.FAVOURS if test.p_value < alpha else StyleCode.CANNOT_TELL


def _fewest(alpha: float) -> int:
    """Queries below which even full agreement is not significant (:func:`friedman_test`)."""
    return 1 + math.ceil(-math.log2(alpha))


def _queries_needed(
    ranks: FloatArray,
    margin: float,
    alpha: float,
    rng: np.random.Generator | int,
    clusters: IntArray | None,
) -> int:
    k, quantile = ranks.shape[1], normal_quantile(1 - alpha)

    def alike(found: FloatArray, queries: int, contrast: float) -> npt.NDArray[np.bool_]:
        error = math.sqrt(2 / queries) * contrast
        reach = np.ptp(found, axis=-1) + quantile * error + (k - 1) / (queries + 1)
        return np.asarray(reach <= margin)

    return queries_to_tell(ranks, clusters, alpha=alpha, alike=alike, rng=rng)
