"""Counts of values between edges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rag_sourcebias.core.arrays import FloatArray, IntArray
from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.errors import DataError

# One confidence interval with everything needed to defend it.


JudgeFinding: TypeAlias = Literal["", "few", "constant", "weak"]
#: What a reader is told of a judge that was set aside, or that is of no use.
JUDGE_NOTES: Mapping[JudgeFinding, str] = {
    "few": "fewer than 10 labels: the judge was not used",
    "constant": "the judge is constant on the labelled items and was not used",
    "weak": "this judge is no better than none: labels alone are as good",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(Stored):
    """An estimate with a two-sided confidence interval.

    Parameters
    ----------
    estimate, lower, upper : float
        In the unit of the estimated quantity; ``lower <= estimate <= upper``.
    confidence_level : float
        In (0, 1).
    method : str
        Name of the method, such as ``"delta"`` or ``"bootstrap"``.
    target : str
        What is estimated: ``"population"``, ``"pool"`` or ``"unlabeled"``.
    n_labeled : int
        Number of independent units (queries, labelled items) behind it.
    n_unlabeled : int
    assumptions : tuple of str
        What must hold for the stated confidence.
    correlation : float or None
        Between human and judge values on the labelled items, where a judge was used.
    notes : tuple of str
        What a reader should know before quoting the interval, such as that labels alone are
        better than this judge.
    judge : {"", "few", "constant", "weak"}
        What was found of the judge: set aside, as labels are few or it is constant on them; used,
        but its correlation is too weak to be of use. Else "".
    """

    estimate: float
    lower: float
    upper: float
    confidence_level: float
    method: str
    target: str = "population"
    n_labeled: int
    n_unlabeled: int = 0
    assumptions: tuple[str, ...] = ()
    correlation: float | None = None
    notes: tuple[str, ...] = ()
    judge: JudgeFinding = ""

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence_level < 1.0:
            raise DataError(f"confidence_level {self.confidence_level!r} is outside (0, 1)")
        if any(math.isnan(v) for v in (self.estimate, self.lower, self.upper)):
            raise DataError(f"an interval may not hold NaN: {self}")
        if not self.lower <= self.estimate <= self.upper:
            raise DataError(
                f"interval [{self.lower}, {self.upper}] does not hold its estimate {self.estimate}"
            )

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return (self.upper - self.lower) / 2

    def excludes(self, value: float) -> bool:
        """Whether ``value`` lies outside the interval."""
        return not self.lower <= value <= self.upper

    def __str__(self) -> str:
        facts = [f"{100 * self.confidence_level:.4g}%", self.method]
        if self.target != "population":
            facts.append(f"of the {self.target} items")
        facts.append(f"n = {self.n_labeled}")
        if self.n_unlabeled:
            facts[-1] += f" + {self.n_unlabeled} unlabelled"
        if self.correlation is not None:
            facts.append(f"judge r = {self.correlation:.2f}")
        facts += self.notes
        return f"{self.estimate:.4g} [{self.lower:.4g}, {self.upper:.4g}] ({', '.join(facts)})"


# Statistical tests as data.


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


# Counts of values between edges.


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """Counts between edges.

    Parameters
    ----------
    edges : float64 array of shape (bins + 1,)
    counts : int64 array of shape (bins,)
        Values outside the outer edges are in the first and the last bin.
    mean, median : float
    """

    edges: FloatArray = field(repr=False)
    counts: IntArray = field(repr=False)
    mean: float
    median: float
