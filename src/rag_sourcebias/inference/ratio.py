r"""Intervals for Relative Δ from per-query scores (METHODS §1.3).

With h and l the mean scores of the baseline and the other source and x = ln(h / l), Relative Δ is
200·tanh(x / 2): a monotone map, so an interval for x becomes an interval for Relative Δ.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.pairs import SAMPLED, ScorePair
from rag_sourcebias.inference.quantiles import (
    as_generator,
    beta_quantile,
    check_level,
    t_quantile,
)
from rag_sourcebias.inference.resampling import bootstrap_relative_delta
from rag_sourcebias.inference.weighted import BoundedRatio
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["IntervalMethod", "relative_delta_interval"]

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
        ``"auto"``: :class:`~rag_sourcebias.inference.weighted.BoundedRatio` of h − l to
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
            *ratio.ends(confidence_level), confidence_level, "weighted queries", (SAMPLED,)
        )
    _require_normal(pair, method)
    if method == "delta":
        return _delta(pair, confidence_level)
    if method == "fieller":
        return _fieller(pair, confidence_level)
    lower, upper = bootstrap_relative_delta(
        baseline,
        other,
        confidence_level=confidence_level,
        resamples=resamples,
        rng=as_generator(rng),
    )
    return pair.interval(lower, upper, confidence_level, "bootstrap", (SAMPLED,))


def _require_normal(pair: ScorePair, method: str) -> None:
    """Refuse a method by name where its normal approximation does not hold."""
    instead = "; method 'auto' gives an interval that needs no approximation"
    if pair.z_min < _MIN_Z:
        needed = math.ceil(pair.n * (_MIN_Z / pair.z_min) ** 2) if pair.z_min > 0 else None
        raise InsufficientDataError(
            f"the mean score of one source is {pair.z_min:.1f} standard errors from 0 over "
            f"{pair.n} queries; method {method!r} needs at least {_MIN_Z:.0f}"
            + ("" if needed is None else f", about {needed} queries")
            + instead,
            n=pair.n,
            n_needed=needed,
        )
    if pair.differing < _MIN_DIFFERING:
        needed = math.ceil(pair.n * _MIN_DIFFERING / pair.differing) if pair.differing else None
        raise InsufficientDataError(
            f"all but {pair.differing} of {pair.n} queries give the two sources scores in one "
            f"ratio; method {method!r} needs at least {_MIN_DIFFERING} that differ"
            + ("" if needed is None else f", about {needed} queries")
            + instead,
            n=pair.n,
            n_needed=needed,
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
    return pair.interval(200 * (2 * lower - 1), 200 * (2 * upper - 1), level, "exact", (SAMPLED,))


def _delta(pair: ScorePair, level: float) -> Interval:
    x = math.log(pair.h / pair.l)
    width = t_quantile(0.5 + level / 2, pair.n - 1) * math.sqrt(pair.var_log)
    assumptions = (SAMPLED, "enough queries that ln of the ratio of means is nearly normal")
    return pair.interval(
        200 * math.tanh((x - width) / 2),
        200 * math.tanh((x + width) / 2),
        level,
        "delta",
        assumptions,
    )


def _fieller(pair: ScorePair, level: float) -> Interval:
    diff, total = pair.h - pair.l, pair.h + pair.l
    v_diff = pair.v_h + pair.v_l - 2 * pair.cov
    v_total = pair.v_h + pair.v_l + 2 * pair.cov
    t2 = t_quantile(0.5 + level / 2, pair.n - 1) ** 2
    a = total**2 - t2 * v_total
    if a <= 0:
        needed = math.ceil(pair.n * t2 * v_total / total**2) + 1
        raise InsufficientDataError(
            f"the sources score so rarely over {pair.n} queries that Fieller's set is unbounded "
            f"at confidence level {level}; about {needed} queries are needed",
            n=pair.n,
            n_needed=needed,
        )
    b = diff * total - t2 * (pair.v_h - pair.v_l)
    root = math.sqrt(max(b**2 - a * (diff**2 - t2 * v_diff), 0.0))
    assumptions = (SAMPLED, "the mean scores are nearly normal (Fieller's set)")
    return pair.interval(
        200 * max((b - root) / a, -1.0),
        200 * min((b + root) / a, 1.0),
        level,
        "fieller",
        assumptions,
    )
