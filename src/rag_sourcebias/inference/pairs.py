"""Two columns of per-query scores: their moments and what these allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["SAMPLED", "ScorePair"]

SAMPLED = "queries are a random sample of the queries of interest"
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
            raise InsufficientDataError(
                f"an interval needs at least 2 queries, there is {n}", n=n, n_needed=2
            )
        if not (np.all(np.isfinite(baseline)) and np.all(np.isfinite(other))):
            raise DataError("scores hold NaN or infinity; score every query before inference")
        if min(float(baseline.min()), float(other.min())) < 0:
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

    def require_scores(self) -> None:
        """Raise when no query scores: Relative Δ is then 0 / 0."""
        if self.h + self.l == 0:
            raise InsufficientDataError(
                f"neither source scores on any of {self.n} queries, so Relative Δ is undefined",
                n=self.n,
            )

    @property
    def estimate(self) -> float:
        """Relative Δ in percent."""
        return 200.0 * ((self.h - self.l) / (self.h + self.l))

    @property
    def largest(self) -> float:
        """Largest possible score: 1, or more when more was seen."""
        return max(1.0, float(self.baseline.max()), float(self.other.max()))

    @property
    def var_log(self) -> float:
        """Variance of ln(h / l) by the delta method."""
        return max(
            self.v_h / self.h**2 + self.v_l / self.l**2 - 2 * self.cov / (self.h * self.l), 0.0
        )

    @property
    def z_min(self) -> float:
        """Smaller of the two means in standard errors."""
        return min(
            mean / math.sqrt(var) if var > 0 else (math.inf if mean > 0 else 0.0)
            for mean, var in ((self.h, self.v_h), (self.l, self.v_l))
        )

    @property
    def exclusive(self) -> bool:
        """Whether each query was won by one source or none: the shape of cutoff 1."""
        both = np.concatenate((self.baseline, self.other))
        return bool(np.all((both == 0) | (both == 1)) and not np.any(self.baseline * self.other))

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
        above = int(np.count_nonzero(share > common + _SAME))
        below = int(np.count_nonzero(share < common - _SAME))
        return common, above, below

    @property
    def differing(self) -> int:
        """Scoring queries that depart from the commonest share; all variation comes from them."""
        return self.departures[1] + self.departures[2]

    def interval(
        self, lower: float, upper: float, level: float, method: str, assumptions: tuple[str, ...]
    ) -> Interval:
        """Wrap two ends in percent."""
        return Interval(
            estimate=self.estimate,
            lower=max(min(lower, self.estimate), -200.0),
            upper=min(max(upper, self.estimate), 200.0),
            confidence_level=level,
            method=method,
            n_labeled=self.n,
            assumptions=assumptions,
        )
