"""Statistics of style ranks that a report holds; computed in ``measures`` and ``inference``."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.types.intervals import Interval

__all__ = ["FriedmanTest", "RankPair", "Unfairness"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfairness:
    """The unfairness score with what is needed to read it.

    Parameters
    ----------
    score : float
        [W] Eq. 3, in [0, :func:`~rag_sourcebias.measures.max_unfairness`].
    null_expectation : float
        Mean score of a retriever without preferences on as many queries with the same ties.
    corrected : float
        ``score - null_expectation``: 0 on average without preferences, negative by chance. The
        more styles really differ, the smaller the true bias: then it is too low, by at most
        ``null_expectation``.
    normalised : float
        ``score`` in parts of its maximum, in [0, 1].
    rank_range : float
        (max − min) / (k − 1) of the average ranks, in [0, 1].
    ddof : int
    n_queries, n_styles : int
    """

    score: float
    null_expectation: float
    corrected: float
    normalised: float
    rank_range: float
    ddof: int
    n_queries: int
    n_styles: int


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
        From the χ² distribution, which is conservative for few queries.
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
