"""Statistical tests as data."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.types.intervals import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class NoninferiorityTest:
    """One-sided paired test that a mean fell by less than a relative margin.

    Parameters
    ----------
    quality : str
        What was tested, such as ``"human-only"``.
    relative_margin : float
        Largest loss accepted, as a share of the reference's mean.
    level : float
        Error probability of the test.
    change : float
        (mean / mean of the reference − 1) · 100, in percent.
    lower : float
        One-sided confidence bound for ``change`` at level 1 − ``level``; the test passes when it
        lies above −100 · ``relative_margin``. −100 where nothing can be excluded.
    p_value : float
        Of the hypothesis that the loss is the margin or more.
    n_queries, n_seeds : int
    n_needed : int or None
        Queries with which a change of 0 would pass with probability .8, or where few queries
        changed those with which the share that lost would do; None where more queries would not
        help.
    note : str or None
        Why it was not a t test.
    """

    quality: str
    relative_margin: float
    level: float
    change: float
    lower: float
    p_value: float
    n_queries: int
    n_seeds: int
    n_needed: int | None = None
    note: str | None = None

    @property
    def passed(self) -> bool:
        """Whether a loss of the margin or more is excluded."""
        return self.p_value <= self.level


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
        By Box's F, with two styles by the sign test; in reports of version 0.1 from χ².
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
