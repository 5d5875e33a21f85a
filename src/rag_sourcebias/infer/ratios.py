"""Ratios of two means over queries, Relative Δ before all, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    as_generator,
    check_level,
    require_finite,
)
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.infer.decide import beta_quantile, bootstrap_means, t_quantile
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import BoundedRatio
from rag_sourcebias.measure.relevance import relative_delta

# Two columns of per-query scores: their moments and what these allow.


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
            raise InsufficientDataError(InferCode.FEW_QUERIES(n=n, n_needed=2))
        both = np.concatenate((baseline, other))
        require_finite(both, "scores", remedy="score every query before inference")
        if both.min() < 0:
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

    def require_scores(self, side: str = "") -> None:
        """Raise when no query scores, before or after a change: Relative Δ is then 0 / 0."""
        if self.h + self.l == 0:
            refusal = InferCode.NEITHER_SCORES(n=self.n)
            if side:
                refusal = InferCode.NEITHER_SCORES_THEN(side=side, n=self.n)
            raise InsufficientDataError(refusal)

    @property
    def estimate(self) -> float:
        """Relative Δ in percent."""
        return 200.0 * ((self.h - self.l) / (self.h + self.l))

    @property
    def largest(self) -> float:
        """Largest possible score: 1, or more when more was seen."""
        return max(1.0, float(self.baseline.max()), float(self.other.max()))

    @property
    def z_min(self) -> float:
        """Smaller of the two means in standard errors."""
        return min(
            mean / math.sqrt(var) if var > 0 else (math.inf if mean > 0 else 0.0)
            for mean, var in ((self.h, self.v_h), (self.l, self.v_l))
        )

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
        return (
            common,
            int(np.count_nonzero(share > common + _SAME)),
            int(np.count_nonzero(share < common - _SAME)),
        )

    @property
    def differing(self) -> int:
        """Scoring queries that depart from the commonest share; all variation comes from them."""
        return self.departures[1] + self.departures[2]

    def interval(
        self, lower: float, upper: float, level: float, method: InferCode, *assumptions: InferCode
    ) -> Interval:
        """Wrap two ends in percent; queries are taken as a sample besides other assumptions."""
        return Interval(
            estimate=self.estimate,
            lower=max(min(lower, self.estimate), -200.0),
            upper=min(max(upper, self.estimate), 200.0),
            confidence_level=level,
            method=method(),
            n_labeled=self.n,
            assumptions=tuple(code() for code in (InferCode.QUERIES_SAMPLED, *assumptions)),
        )


# Intervals for Relative Δ from per-query scores.
# With h and l the mean scores of the baseline and the other source and x = ln(h / l), Relative Δ
# is 200·tanh(x / 2): a monotone map, so an interval for x becomes an interval for Relative Δ.


IntervalMethod = Literal["auto", "delta", "bootstrap", "fieller", "exact"]

# When the normal approximations (delta, bootstrap, Fieller) may be used. Below 4 standard errors
# the delta method covered .62–.93 where few queries carry most of a score.
_MIN_Z = 4.0
# Queries that must depart from the commonest share h/(h + l): with 10 the delta method covered
# .928 when twins nearly always tie, with 15 at least .935.
_MIN_DIFFERING = 15


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
        Scores of the same queries, in [0, 1]. On a larger scale, such as percent, the largest
        score seen is taken for the largest possible.
    method : {"auto", "delta", "bootstrap", "fieller", "exact"}
        ``"auto"``: :class:`~rag_sourcebias.infer.means.BoundedRatio` of h − l to
        (h + l)/2, which needs no approximation to hold and moves smoothly with the data.
        ``"delta"``: delta method on the log ratio with the covariance of the pair, t(n − 1).
        ``"bootstrap"``: percentiles of resampled queries. ``"fieller"``: Fieller's set for
        (h − l)/(h + l). ``"exact"``: Clopper–Pearson on the queries that one of the two won, for
        scores of 0 and 1 of which at most one is 1 (cutoff 1).
    resamples : int
    rng : numpy.random.Generator or int

    Returns
    -------
    Interval
        In percent, within [−200, 200].

    Raises
    ------
    InsufficientDataError
        If neither source scores on any query, or the method asked for cannot be trusted here;
        ``n_needed`` estimates how many queries would be enough.

    Examples
    --------
    >>> h = np.array([1.0] * 30 + [0.0] * 30)
    >>> print(relative_delta_interval(h, 1 - h, method="exact"))
    0 [-52.78, 52.78] (95%, exact, n = 60)
    """
    check_level(confidence_level)
    pair = ScorePair.of(baseline, other)
    pair.require_scores()
    if method == "exact":
        return _exact(pair, confidence_level)
    if method == "auto":
        top = pair.largest
        ratio = BoundedRatio(
            numerator=200 * (pair.baseline - pair.other),
            denominator=pair.baseline + pair.other,
            lowest=(-200 * top, top),
            highest=(200 * top, top),
        )
        return pair.interval(
            *ratio.ends(confidence_level), confidence_level, InferCode.WEIGHTED_QUERIES
        )
    _require_normal(pair, method)
    if method == "delta":
        x = math.log(pair.h / pair.l)
        h, low = pair.h, pair.l
        # of ln(h / l), by the delta method
        variance = pair.v_h / h**2 + pair.v_l / low**2 - 2 * pair.cov / (h * low)
        error = math.sqrt(max(variance, 0.0))
        width = t_quantile(0.5 + confidence_level / 2, pair.n - 1) * error
        return pair.interval(
            200 * math.tanh((x - width) / 2),
            200 * math.tanh((x + width) / 2),
            confidence_level,
            InferCode.DELTA,
            InferCode.RATIO_NORMAL,
        )
    if method == "fieller":
        return _fieller(pair, confidence_level)
    lower, upper = bootstrap_relative_delta(
        baseline,
        other,
        confidence_level=confidence_level,
        resamples=resamples,
        rng=as_generator(rng),
    )
    return pair.interval(lower, upper, confidence_level, InferCode.BOOTSTRAP)


def _require_normal(pair: ScorePair, method: str) -> None:
    """Refuse a method by name where its normal approximation does not hold."""
    n, z, differing = pair.n, pair.z_min, pair.differing
    if not z > 0:
        raise InsufficientDataError(InferCode.ONE_NEVER_SCORES(n=n, method=method))
    if z < _MIN_Z:
        needed = math.ceil(n * (_MIN_Z / z) ** 2)
        raise InsufficientDataError(
            InferCode.SCORES_RARE(z=z, n=n, method=method, least=_MIN_Z, n_needed=needed)
        )
    least = _MIN_DIFFERING
    if not differing:
        raise InsufficientDataError(InferCode.ONE_RATIO(n=n, method=method, least=least))
    if differing < least:
        needed = math.ceil(n * least / differing)
        raise InsufficientDataError(
            InferCode.RATIOS_RARE(
                differing=differing, n=n, method=method, least=least, n_needed=needed
            )
        )


def _exact(pair: ScorePair, level: float) -> Interval:
    """Clopper–Pearson interval on the queries that one of the two sources won.

    Given the number of queries won at all, wins of the baseline are binomial with probability
    h/(h + l), and Relative Δ is 200 (2q − 1): no approximation is involved.

    Raises
    ------
    DataError
        If a score is not 0 or 1, or both sources score on one query.
    """
    both = np.concatenate((pair.baseline, pair.other))
    if not np.isin(both, (0, 1)).all() or np.any(pair.baseline * pair.other):
        raise DataError(
            "the exact interval needs scores of 0 and 1 of which at most one per query is 1 "
            "(binary judgments at cutoff 1, no ties)"
        )
    wins, losses = int(pair.baseline.sum()), int(pair.other.sum())
    tail = (1 - level) / 2
    lower = beta_quantile(tail, wins, losses + 1) if wins else 0.0
    upper = beta_quantile(1 - tail, wins + 1, losses) if losses else 1.0
    return pair.interval(200 * (2 * lower - 1), 200 * (2 * upper - 1), level, InferCode.EXACT)


def _fieller(pair: ScorePair, level: float) -> Interval:
    diff, total = pair.h - pair.l, pair.h + pair.l
    v_total = pair.v_h + pair.v_l + 2 * pair.cov
    t2 = t_quantile(0.5 + level / 2, pair.n - 1) ** 2
    a = total**2 - t2 * v_total
    if a <= 0:
        needed = math.ceil(pair.n * t2 * v_total / total**2) + 1
        raise InsufficientDataError(InferCode.UNBOUNDED(n=pair.n, level=level, n_needed=needed))
    b = diff * total - t2 * (pair.v_h - pair.v_l)
    v_diff = pair.v_h + pair.v_l - 2 * pair.cov
    root = math.sqrt(max(b**2 - a * (diff**2 - t2 * v_diff), 0.0))
    return pair.interval(
        200 * max((b - root) / a, -1.0),
        200 * min((b + root) / a, 1.0),
        level,
        InferCode.FIELLER,
        InferCode.MEANS_NORMAL,
    )


def published_delta(
    baseline: FloatArray,
    other: FloatArray,
    *,
    confidence_level: float,
    method: IntervalMethod = "auto",
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> tuple[float | None, Interval | None, Finding | None]:
    """Return Relative Δ as published, its interval, and why there is none."""
    delta = relative_delta(float(baseline.mean()), float(other.mean()))
    if delta is None:
        return None, None, InferCode.NEITHER_SCORES(n=len(baseline))
    try:
        interval = relative_delta_interval(
            baseline,
            other,
            confidence_level=confidence_level,
            method=method,
            resamples=resamples,
            rng=rng,
        )
    except InsufficientDataError as error:
        return delta, None, error.finding
    return delta, interval, None


def bootstrap_relative_delta(
    baseline: FloatArray,
    other: FloatArray,
    *,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> tuple[float, float]:
    """Percentile interval of Relative Δ over resampled queries.

    Relative Δ is a monotone function of ln(h / l), so percentiles of one are percentiles of the
    other.

    Parameters
    ----------
    baseline, other : float64 arrays of shape (n,)
        Scores of the same queries, at least 0, in any common unit.

    Returns
    -------
    lower, upper : float
        In percent.
    """
    means = bootstrap_means(
        np.column_stack((baseline, other)), resamples=resamples, rng=as_generator(rng)
    )
    total = means.sum(axis=1)
    empty = int(np.count_nonzero(total == 0))
    if empty > resamples // 1000:
        raise InsufficientDataError(
            InferCode.RESAMPLES_EMPTY(empty=empty, resamples=resamples, n=len(baseline))
        )
    seen = total > 0
    tail = (1 - confidence_level) / 2
    lower, upper = np.quantile(
        200 * ((means[seen, 0] - means[seen, 1]) / total[seen]), [tail, 1 - tail]
    )
    return float(lower), float(upper)
