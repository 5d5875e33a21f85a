"""Do queries agree on an order of styles, and which styles differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import as_generator, if_enough
from rag_sourcebias.infer.decide import Correction, adjust_p_values, box_degrees
from rag_sourcebias.infer.means import clustered_mean
from rag_sourcebias.infer.resampling import coin_flips
from rag_sourcebias.style.data import FriedmanTest, RankPair

_EXACT_LIMIT = 14  # 2^14 sign patterns are enumerated rather than drawn
_TIE = 1e-9


def compare_ranks(
    ranks: FloatArray,
    names: Sequence[str],
    baseline: str,
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
    correction : {"holm", "bh", "none"}
    resamples : int
        Sign patterns drawn; with at most 14 queries all are enumerated. An adjusted p-value
        cannot be below (number of pairs)/(1 + resamples).
    """
    at = list(names).index(baseline)
    others = [i for i in range(len(names)) if i != at]
    differences = ranks[:, others] - ranks[:, [at]]
    p_values = sign_flips(differences, resamples=resamples, generator=as_generator(rng))
    adjusted = adjust_p_values(p_values, correction=correction)
    queries = np.arange(len(ranks))
    pairs = []
    for i, column, p, p_adjusted in zip(others, differences.T, p_values, adjusted, strict=True):
        pair = RankPair(
            first=names[i],
            second=baseline,
            difference=float(column.mean()),
            interval=if_enough(clustered_mean, column, queries, confidence_level=confidence_level),
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


def friedman_test(ranks: FloatArray) -> FriedmanTest:
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
    """
    w = kendalls_w(ranks)
    n, k = ranks.shape
    return FriedmanTest(
        statistic=0.0 if w is None else n * (k - 1) * w,
        degrees=k - 1,
        # All queries agreeing is no rarer than this, however many styles there are, where each
        # wants one of two opposite orders.
        p_value=max(1.0 if w is None else _p_value(ranks), min(1.0, 2.0 ** (1 - n))),
        w=w,
        n_queries=n,
        n_styles=k,
    )


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
