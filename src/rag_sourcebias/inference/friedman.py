"""Do queries agree on an order of styles? Friedman's test and Kendall's W."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.finite import require_finite
from rag_sourcebias.types.tests import FriedmanTest

__all__ = ["box_degrees", "friedman_test", "kendalls_w"]

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
    if largest == 0:
        return None
    return min(float(np.sum(centred.mean(axis=0) ** 2)) / largest, 1.0)


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
    p_value = 1.0 if w is None else _sign_test(values) if k == 2 else _box_test(values)
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


def _box_test(ranks: npt.NDArray[np.float64]) -> float:
    from scipy.special import fdtrc

    n, k = ranks.shape
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


def _sign_test(ranks: npt.NDArray[np.float64]) -> float:
    from scipy.special import bdtr

    signs = np.sign(ranks[:, 0] - ranks[:, 1])
    wins, losses = int(np.count_nonzero(signs > 0)), int(np.count_nonzero(signs < 0))
    return min(1.0, 2 * float(bdtr(min(wins, losses), wins + losses, 0.5)))


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
