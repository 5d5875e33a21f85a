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
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.quantiles import beta_quantile, normal_quantile, t_quantile
from rag_sourcebias.infer.resampling import bootstrap_means
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


# Intervals for means and ratios of bounded values, from few or many independent units.
# A unit (a query, or a cluster of queries) carries a numerator and a denominator; what is wanted
# is the ratio of their expectations, a mean where every denominator is 1. The units are given
# random Dirichlet weights, and one more unit is added that stands for what was not seen: the
# lowest possible one for the lower end, the highest possible one for the upper end. The ends are
# quantiles of the weighted ratio.
# For values of 0 and 1 and a full extra unit this is the Clopper–Pearson interval; for any bounded
# values it is Gaffke's bound (2005; Learned-Miller & Thomas 2019 on its coverage). A full unit is
# needlessly cautious; with half a one a test of .05 rejects .07 where the only deviations are rare
# and large. The weight used is about the smallest that keeps .05 there. Nothing is switched by how
# many units differ, so the ends move smoothly with the data.


_UNSEEN = 0.65  # weight of the unit that stands for what was not seen
_NEGLIGIBLE = 1e-12
_STEPS = 100
_MANY = 4096  # units from which adding up equal ones pays for the sorting
_CLOSE = 1e-7
_FAR = 40.0  # probits beyond it are certainty
_CENTRE = 1e-4  # |w| below which the tail formula is 0/0 and its limit is used


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundedRatio:
    """Ratio of two sums over independent units, with what one unit could contribute at most.

    Parameters
    ----------
    numerator, denominator : float64 arrays of shape (n,)
        Denominators are at least 0 and not all 0.
    lowest, highest : tuple of float
        Numerator and denominator of the most extreme possible unit in either direction.
    information : float
        Share of a unit's independent information that each unit carries, in (0, 1]: below 1 where
        units depend on one another, such as queries that share documents.
    one_sided : bool
        Whether one end alone is used: it then has a full extra unit. Where a loss is too rare to
        be seen all error lies at one end, and with the weight for two ends a one-sided test of
        .05 would reject .09.
    """

    numerator: FloatArray
    denominator: FloatArray
    lowest: tuple[float, float]
    highest: tuple[float, float]
    information: float = 1.0
    one_sided: bool = False

    @property
    def estimate(self) -> float:
        """Ratio of the sums."""
        return float(self.numerator.sum()) / float(self.denominator.sum())

    def ends(self, confidence_level: float) -> tuple[float, float]:
        """Return the ends of the two-sided interval."""
        check_level(confidence_level)
        z = normal_quantile(0.5 + confidence_level / 2)
        estimate = self.estimate
        return (
            min(self._end(-z, self.lowest, low=True), estimate),
            max(self._end(z, self.highest, low=False), estimate),
        )

    def p_value(self, value: float = 0.0) -> float:
        """Return the two-sided p-value of the ratio being ``value``.

        One minus the largest confidence level whose interval excludes it.
        """
        from scipy.special import ndtr

        below = ndtr(_probit(value, self._units(self.lowest))[0])
        above = ndtr(-_probit(value, self._units(self.highest))[0])
        return float(min(2 * min(below, above), 1.0))

    def _end(self, target: float, extra: tuple[float, float], *, low: bool) -> float:
        """Ratio at which the weighted ratio lies below with probability Φ(target)."""
        inner, outer = self.estimate, self._reach(extra, low=low)
        if abs(outer - inner) <= _NEGLIGIBLE * max(abs(inner), 1.0):
            return outer
        units = self._units(extra)
        residuals = self.numerator - inner * self.denominator
        spread = math.sqrt(float(residuals @ residuals) / self.information + extra[0] ** 2)
        guess = inner + 2 * math.copysign(spread, -1 if low else 1) / float(self.denominator.sum())
        near = 0.0
        for _ in range(_STEPS):
            if not min(inner, outer) < guess < max(inner, outer):
                guess = (inner + outer) / 2
            probit, slope, near = _probit(guess, units, near)
            distance = min(max(probit - target, -_FAR), _FAR)
            if abs(distance) < _CLOSE or abs(outer - inner) < _CLOSE * (abs(inner) + abs(outer)):
                break
            inner, outer = (guess, outer) if (distance > 0) == low else (inner, guess)
            guess = guess - distance / slope if slope > 0 and abs(distance) < _FAR else outer
        return guess

    def _reach(self, extra: tuple[float, float], *, low: bool) -> float:
        """Most extreme ratio that any unit, or the extra one, has on its own."""
        top = np.append(self.numerator, extra[0])
        bottom = np.append(self.denominator, extra[1])
        some = bottom > _NEGLIGIBLE
        ratios = top[some] / bottom[some]
        bound = float(ratios.min() if low else ratios.max())
        # A unit without a denominator can push the ratio further still.
        loose = top[~some]
        if np.any(loose < -_NEGLIGIBLE if low else loose > _NEGLIGIBLE):
            spread = float(np.abs(top).sum()) / max(float(bottom.sum()), _NEGLIGIBLE)
            bound += (-1 if low else 1) * 1e3 * max(spread, 1.0)
        return bound

    def _units(self, extra: tuple[float, float]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Numerators, denominators and shapes of the units and the extra one; equal ones once."""
        rows = np.stack((self.numerator, self.denominator))
        counts: FloatArray = np.full(rows.shape[1], self.information)
        if rows.shape[1] >= _MANY:
            # as complex numbers, which sort as columns do, at a tenth of the time
            pairs, repeated = np.unique(rows[0] + 1j * rows[1], return_counts=True)
            rows = np.stack((pairs.real, pairs.imag))
            counts = self.information * repeated.astype(np.float64)
        return (
            np.append(rows[0], extra[0]),
            np.append(rows[1], extra[1]),
            np.append(counts, 1.0 if self.one_sided else _UNSEEN),
        )


def _probit(
    ratio: float, units: tuple[FloatArray, FloatArray, FloatArray], near: float = 0.0
) -> tuple[float, float, float]:
    """Return Φ⁻¹ of P(Σ G_i (top_i − ratio · bottom_i) ≤ 0), about its slope, and the saddlepoint.

    The G_i are independent gamma variables of the given shapes. With two different values this is
    a beta probability; otherwise the saddlepoint approximation of Barndorff-Nielsen (r*), whose
    error is of third order in the number of units. ``near`` is a saddlepoint to start from.
    """
    top, bottom, shapes = units
    v = top - ratio * bottom
    lowest, highest = float(v.min()), float(v.max())
    tiny = _NEGLIGIBLE * max(-lowest, highest, _NEGLIGIBLE)
    if highest <= tiny:
        return (0.0 if lowest >= -tiny else math.inf), 0.0, 0.0
    if lowest >= -tiny:
        return -math.inf, 0.0, 0.0
    up, down = v == highest, v == lowest
    if np.all(up | down | (v == 0)):
        width = highest - lowest
        steep = (bottom[down][0] * width + lowest * (bottom[down][0] - bottom[up][0])) / width**2
        probit, density = _beta_probit(
            float(shapes[up].sum()), float(shapes[down].sum()), -lowest / width
        )
        return probit, float(steep) * density, 0.0
    s = _saddlepoint(v, shapes, lowest, highest, near)
    rest = 1 - s * v
    cumulant = -float(shapes @ np.log(rest))
    part = v / rest
    second = float(shapes @ part**2)
    # K' = 0 at s, so that K changes with the ratio as −s Σ a bottom/(1 − s v) does
    slope = float(shapes @ (bottom / rest)) / math.sqrt(second)
    w = math.copysign(math.sqrt(max(-2 * cumulant, 0.0)), s)
    if abs(w) < _CENTRE:
        third = 2 * float(shapes @ part**3)
        return w + third / (6 * second**1.5), slope, s
    u = s * math.sqrt(second)
    return w + math.log(u / w) / w, slope * u / w, s


def _saddlepoint(v: FloatArray, a: FloatArray, lowest: float, highest: float, near: float) -> float:
    """Root of Σ a v/(1 − s v), by Newton steps kept inside (1/min v, 1/max v)."""
    low, high = 1 / lowest, 1 / highest
    s = near if low < near < high else 0.0
    for _ in range(_STEPS):
        part = v / (1 - s * v)
        first = float(a @ part)
        low, high = (low, s) if first > 0 else (s, high)
        step = first / float(a @ (part * part))
        new = s - step if low < s - step < high else (low + high) / 2
        if abs(new - s) <= _CLOSE * abs(new):
            return new
        s = new
    return s


def _beta_probit(up: float, down: float, x: float) -> tuple[float, float]:
    """Return Φ⁻¹ of P(B ≤ x) for a beta variable of these shapes, and its derivative in x."""
    from scipy.special import betainc, betaln, ndtri

    below = float(betainc(up, down, x))
    # the smaller tail keeps its digits
    probit = float(ndtri(below) if below < 0.5 else -ndtri(betainc(down, up, 1 - x)))
    log_density = (up - 1) * math.log(x) + (down - 1) * math.log1p(-x) - float(betaln(up, down))
    log_normal = -(probit**2 + math.log(2 * math.pi)) / 2
    return probit, math.exp(min(log_density - log_normal, _FAR))


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
        ``"auto"``: :class:`~rag_sourcebias.infer.ratios.BoundedRatio` of h − l to
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
        width = t_quantile(0.5 + confidence_level / 2, pair.n - 1) * math.sqrt(pair.var_log)
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
    if not pair.exclusive:
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
    check_level(confidence_level)
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
