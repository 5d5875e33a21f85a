r"""Intervals for Relative Δ from per-query scores (METHODS §1.3).

With h and l the mean scores of the baseline and the other source and x = ln(h / l), Relative Δ is
200·tanh(x / 2): a monotone map, so an interval for x becomes an interval for Relative Δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import (
    as_generator,
    beta_quantile,
    check_level,
    normal_quantile,
    t_quantile,
)
from rag_sourcebias.inference.resampling import bootstrap_relative_delta
from rag_sourcebias.types.intervals import Interval

__all__ = ["IntervalMethod", "queries_needed", "relative_delta_interval"]

IntervalMethod = Literal["auto", "delta", "bootstrap", "fieller", "exact"]
FloatArray = npt.NDArray[np.float64]

# Below these the log-ratio (delta) and the quotient (Fieller) approximations were seen to
# under-cover in simulation (tests/statistics); the exact interval has no such limit.
MIN_Z_DELTA = 4.0
MIN_SCORING = 8
_SAMPLED = "queries are a random sample of the queries of interest"


def relative_delta_interval(
    baseline: FloatArray,
    other: FloatArray,
    *,
    confidence_level: float = 0.95,
    method: IntervalMethod = "auto",
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """Confidence interval for Relative Δ of two paired per-query score columns.

    Parameters
    ----------
    baseline, other : float64 arrays of shape (n,)
        Scores of the same queries, at least 0.
    method : {"auto", "delta", "bootstrap", "fieller", "exact"}
        ``"delta"``: delta method on the log ratio with the covariance of the pair, t(n − 1).
        ``"bootstrap"``: percentiles of resampled queries. ``"fieller"``: Fieller's set for
        (h − l)/(h + l), for means near 0. ``"exact"``: Clopper–Pearson on the queries that one
        of the two won, for scores of 0 and 1 of which at most one is 1 (cutoff 1).
        ``"auto"``: exact where it applies and a source scores on few queries, else delta, else
        Fieller.
    resamples : int
    rng : numpy.random.Generator or int

    Returns
    -------
    Interval
        In percent, within [−200, 200].

    Raises
    ------
    InsufficientDataError
        If no method is trustworthy; ``n_needed`` estimates how many queries would be enough.

    Examples
    --------
    >>> h = np.array([1.0] * 30 + [0.0] * 30)
    >>> print(relative_delta_interval(h, 1 - h, method="exact"))
    0 [-52.88, 52.88] (95%, exact, n = 60)
    """
    check_level(confidence_level)
    pair = _Pair.of(baseline, other)
    if method == "exact":
        return pair.exact(confidence_level)
    if method == "auto" and pair.exclusive and pair.z_min < MIN_Z_DELTA:
        return pair.exact(confidence_level)
    pair.require_scores()
    if method == "bootstrap":
        lower, upper = bootstrap_relative_delta(
            baseline,
            other,
            confidence_level=confidence_level,
            resamples=resamples,
            rng=as_generator(rng),
        )
        return pair.interval(lower, upper, confidence_level, "bootstrap", (_SAMPLED,))
    if method == "delta" or (method == "auto" and pair.z_min >= MIN_Z_DELTA):
        return pair.delta(confidence_level)
    return pair.fieller(confidence_level)


def queries_needed(
    baseline: FloatArray,
    other: FloatArray,
    *,
    half_width: float,
    confidence_level: float = 0.95,
) -> int | None:
    """Queries needed for an interval of Relative Δ ± ``half_width`` at the skew seen here.

    Returns
    -------
    int or None
        None when one source never scores, so that its variance cannot be estimated. For scores
        of 0 and 1 at cutoff 1 this is n = 384,160 · 4q(1 − q) / ((h + l)/0.4 · w²) with
        q = h/(h + l).
    """
    if half_width <= 0:
        raise DataError(f"half_width {half_width!r} must be positive (Relative Δ points)")
    check_level(confidence_level)
    pair = _Pair.of(baseline, other)
    if pair.h == 0 or pair.l == 0:
        return None
    slope = 100.0 * (1 - (pair.estimate / 200.0) ** 2)
    z = normal_quantile(0.5 + confidence_level / 2)
    return max(2, math.ceil(pair.var_log * pair.n * (z * slope / half_width) ** 2))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Means and covariance of the means of the two columns."""

    baseline: FloatArray
    other: FloatArray
    n: int
    h: float
    l: float  # noqa: E741 - the letter the formula uses
    v_h: float
    v_l: float
    cov: float

    @classmethod
    def of(cls, baseline: FloatArray, other: FloatArray) -> _Pair:
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

    @property
    def estimate(self) -> float:
        return 200.0 * (self.h - self.l) / (self.h + self.l)

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

    def require_scores(self) -> None:
        scoring = min(np.count_nonzero(self.baseline), np.count_nonzero(self.other))
        if scoring < MIN_SCORING:
            needed = None if scoring == 0 else math.ceil(self.n * MIN_SCORING / scoring)
            raise InsufficientDataError(
                f"one source scores above 0 on {scoring} of {self.n} queries only; an interval "
                f"needs at least {MIN_SCORING} such queries"
                + ("" if needed is None else f", about {needed} queries in all"),
                n=self.n,
                n_needed=needed,
            )

    def delta(self, level: float) -> Interval:
        x = math.log(self.h / self.l)
        width = t_quantile(0.5 + level / 2, self.n - 1) * math.sqrt(self.var_log)
        assumptions = (_SAMPLED, "enough queries that ln of the ratio of means is nearly normal")
        return self.interval(
            200 * math.tanh((x - width) / 2),
            200 * math.tanh((x + width) / 2),
            level,
            "delta",
            assumptions,
        )

    def fieller(self, level: float) -> Interval:
        diff, total = self.h - self.l, self.h + self.l
        v_diff = self.v_h + self.v_l - 2 * self.cov
        v_total = self.v_h + self.v_l + 2 * self.cov
        c = self.v_h - self.v_l
        t2 = t_quantile(0.5 + level / 2, self.n - 1) ** 2
        a = total**2 - t2 * v_total
        if a <= 0:
            needed = math.ceil(self.n * t2 * v_total / total**2) + 1
            raise InsufficientDataError(
                f"both sources score so rarely over {self.n} queries that no bounded interval "
                f"exists; about {needed} queries are needed",
                n=self.n,
                n_needed=needed,
            )
        b = diff * total - t2 * c
        root = math.sqrt(max(b**2 - a * (diff**2 - t2 * v_diff), 0.0))
        assumptions = (_SAMPLED, "the mean scores are nearly normal (Fieller's set)")
        return self.interval(
            200 * max((b - root) / a, -1.0),
            200 * min((b + root) / a, 1.0),
            level,
            "fieller",
            assumptions,
        )

    def exact(self, level: float) -> Interval:
        if not self.exclusive:
            raise DataError(
                "the exact interval needs scores of 0 and 1 of which at most one per query is 1 "
                "(binary judgments at cutoff 1, no ties)"
            )
        wins, losses = int(self.baseline.sum()), int(self.other.sum())
        if wins + losses == 0:
            raise InsufficientDataError(
                f"neither source scores on any of {self.n} queries, so Relative Δ is undefined",
                n=self.n,
            )
        tail = (1 - level) / 2
        lower = beta_quantile(tail, wins, losses + 1) if wins else 0.0
        upper = beta_quantile(1 - tail, wins + 1, losses) if losses else 1.0
        return self.interval(
            200 * (2 * lower - 1), 200 * (2 * upper - 1), level, "exact", (_SAMPLED,)
        )

    def interval(
        self, lower: float, upper: float, level: float, method: str, assumptions: tuple[str, ...]
    ) -> Interval:
        return Interval(
            estimate=self.estimate,
            lower=min(lower, self.estimate),
            upper=max(upper, self.estimate),
            confidence_level=level,
            method=method,
            n_labeled=self.n,
            assumptions=assumptions,
        )
