r"""Unfairness of a retriever towards writing styles ([W] Eq. 2–3, METHODS §2).

Every document exists in k versions. With R̄ the average rank of each style over queries,

    unfairness = (max R̄ − min R̄) · std(R̄)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.finite import require_finite
from rag_sourcebias.types.style_parts import Unfairness

__all__ = [
    "max_unfairness",
    "null_unfairness",
    "summarise_unfairness",
    "unfairness",
    "unfairness_score",
]


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

    Raises
    ------
    DataError
        If there are fewer than 2 styles, k − ddof is not positive, or a rank is not finite.

    Examples
    --------
    >>> float(unfairness_score(np.array([1.0, 2.0, 3.0, 4.0])).round(4))
    3.3541
    """
    ranks = np.asarray(average_ranks, dtype=np.float64)
    _check(ranks.shape[-1] if ranks.ndim else 0, ddof)
    require_finite(ranks, "average ranks", remedy="rank every version first")
    score: FloatArray = np.ptp(ranks, axis=-1) * ranks.std(axis=-1, ddof=ddof)
    return score


def max_unfairness(n_styles: int, *, ddof: int = 0) -> float:
    """Largest possible score of k styles: every query ranks them alike.

    (k − 1) · √((k² − 1)/12) with ``ddof=0``: 25.85 for 10 styles.
    """
    _check(n_styles, ddof)
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
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 2 or not len(values):
        raise DataError(f"ranks have shape {values.shape}; expected (queries, styles), not empty")
    require_finite(values, "ranks", remedy="leave out queries that lack a version")
    n, k = values.shape
    _check(k, ddof)
    variance: float = float(values.var(axis=1).sum()) / n**2
    # Queries with these ties that all agree score highest; of one query that is the score itself.
    most = float(unfairness_score(np.sort(values, axis=1).mean(axis=0), ddof=ddof))
    log_c4 = math.lgamma(k / 2) - math.lgamma((k - 1) / 2)
    c4 = math.sqrt(2 / (k - 1)) * math.exp(log_c4)
    scale = math.sqrt(k / (k - 1)) * math.sqrt(k / (k - ddof))
    return min(variance * scale * _mean_range(k) / c4, most)


def unfairness(ranks: npt.NDArray[np.floating[Any]], *, ddof: int = 0) -> Unfairness:
    """Score the per-query ranks of k styles, with null expectation and normalised forms.

    Parameters
    ----------
    ranks : float array of shape (n, k)
        Such as :attr:`StyleRanks.ranks`.
    ddof : int
    """
    expected = null_unfairness(ranks, ddof=ddof)
    average = np.asarray(ranks, dtype=np.float64).mean(axis=0)
    n, k = ranks.shape
    score = float(unfairness_score(average, ddof=ddof))
    return Unfairness(
        score=score,
        null_expectation=expected,
        corrected=score - expected,
        normalised=score / max_unfairness(k, ddof=ddof),
        rank_range=float(np.ptp(average)) / (k - 1),
        ddof=ddof,
        n_queries=n,
        n_styles=k,
    )


def summarise_unfairness(scores: npt.NDArray[np.floating[Any]]) -> FloatArray:
    """Mean and population standard deviation over query styles ([W] Table 1, Avg and Std).

    A low mean is a fair retriever, a low standard deviation a robust one.

    Parameters
    ----------
    scores : float array of shape (..., q)
        Unfairness per query style.

    Returns
    -------
    float64 array of shape (..., 2)
    """
    values = np.asarray(scores, dtype=np.float64)
    require_finite(values, "unfairness scores", remedy="rank every version first")
    return np.stack((values.mean(axis=-1), values.std(axis=-1)), axis=-1)


def _mean_range(k: int) -> float:
    """Mean range of k standard normal values, ∫ 1 − Φᵏ − (1 − Φ)ᵏ."""
    from scipy.special import ndtr

    x = np.linspace(-12.0, 12.0, 4001)  # smooth and flat at both ends: sums are exact to 1e-12
    below = ndtr(x)
    return float(np.sum(1 - below**k - (1 - below) ** k) * (x[1] - x[0]))


def _check(n_styles: int, ddof: int) -> None:
    if n_styles < 2:
        raise DataError(f"{n_styles} style(s) cannot be compared; unfairness needs at least 2")
    if ddof < 0 or ddof >= n_styles:
        raise DataError(f"ddof {ddof} must be at least 0 and below the {n_styles} styles; 0 is [W]")
