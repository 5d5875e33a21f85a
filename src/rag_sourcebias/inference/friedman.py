"""Do queries agree on an order of styles? Friedman's test and Kendall's W."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.style_parts import FriedmanTest

__all__ = ["friedman_test", "kendalls_w"]

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

    Parameters
    ----------
    ranks : float array of shape (n, k)
        Ranks within each query, ties averaged; queries are independent.

    Raises
    ------
    DataError
        As :func:`kendalls_w`.
    """
    from scipy.special import chdtrc

    w = kendalls_w(ranks)
    n, k = ranks.shape
    statistic = 0.0 if w is None else n * (k - 1) * w
    return FriedmanTest(
        statistic=statistic,
        degrees=k - 1,
        p_value=float(chdtrc(k - 1, statistic)),
        w=w,
        n_queries=n,
        n_styles=k,
    )


def _checked(ranks: RankArray) -> npt.NDArray[np.float64]:
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 2 or not len(values) or values.shape[1] < 2:
        raise DataError(
            f"ranks have shape {values.shape}; expected at least 1 query and 2 styles, one row "
            "per query"
        )
    if not np.all(np.isfinite(values)):
        raise DataError("ranks hold NaN or infinity; leave out queries that lack a version")
    k = values.shape[1]
    wrong = np.flatnonzero(np.abs(values.sum(axis=1) - k * (k + 1) / 2) > _UNEQUAL * k)
    if len(wrong):
        raise DataError(
            f"row {wrong[0]} sums to {values[wrong[0]].sum():g}, but ranks of {k} styles sum to "
            f"{k * (k + 1) / 2:g}; rank within each query and average ties"
        )
    return values
