"""Are two means over the same queries equal within a margin: two one-sided tests.

A test of no difference that does not reject proves nothing: with few queries it rejects nothing.
[K] Table 2 ("no significant discrepancy" between corpora searched alone) needs the reverse, a
test whose rejection means that the difference is small (Schuirmann 1987, Journal of
Pharmacokinetics and Biopharmaceutics 15:657).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.clusters import clustered_mean
from rag_sourcebias.inference.noninferiority import MIN_CHANGED, MIN_QUERIES, CrossedMean
from rag_sourcebias.inference.quantiles import check_level, normal_quantile, t_quantile
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["EquivalenceTest", "equivalence_test"]

_SAME = 1e-12
_POWER = 0.8
_STEPS = 40
_SMALLEST_P = 1e-12
_LARGEST_P = 0.499_999


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivalenceTest:
    """Two one-sided paired tests that a mean difference lies within ± ``margin``.

    Parameters
    ----------
    margin : float
        Largest difference that counts as none, in the units of the scores.
    level : float
        Error probability: at most this often do means pass that differ by the margin or more.
    difference : Interval
        Mean of first − second with its interval at confidence level 1 − 2 · ``level``. The test
        passes when the interval lies within ± ``margin``.
    p_value : float
        The larger of the two one-sided p-values, of "first is lower by the margin or more" and
        "first is higher by the margin or more".
    n_queries : int
    n_needed : int or None
        Queries with which means that do not differ at all would pass with probability .8. Where
        few queries changed: those with which the bound reached here would lie within the margin;
        None where the difference seen is not within it.
    note : str or None
        Why it was not a t test.
    """

    margin: float
    level: float
    difference: Interval
    p_value: float
    n_queries: int
    n_needed: int | None
    note: str | None = None

    @property
    def equivalent(self) -> bool:
        """Whether a difference of the margin or more is excluded, in both directions."""
        return self.p_value <= self.level


def equivalence_test(
    first: FloatArray, second: FloatArray, *, margin: float, level: float = 0.05
) -> EquivalenceTest:
    """Test that two means over the same queries differ by less than a margin.

    Parameters
    ----------
    first, second : float64 arrays of shape (n,)
        Scores in [0, 1] of the same queries, such as NDCG@5 over the human corpus alone and over
        its rewrites alone.
    margin : float
        In (0, 1), in the units of the scores: .02 accepts 2 points of NDCG × 100.
    level : float
        Error probability in (0, 0.5).

    Raises
    ------
    DataError
        If the arrays do not align, hold NaN or values outside [0, 1].
    InsufficientDataError
        With fewer than 20 queries.

    Notes
    -----
    Where fewer than 15 queries differ, their variance is too uncertain for t. Gains and losses
    are then bounded by Clopper–Pearson (:func:`clustered_mean`), so that two columns that
    agree on every query pass only when there are enough of them.

    Simulated error rates at a difference of exactly the margin (nominal .05, 3,000 runs each; 25 to
    300 queries): .044–.053 for normal differences, at most .058 where 70 % of queries agree, but
    .08 where an eighth of 300 queries lose .4 and no other changes: t is liberal there.

    Examples
    --------
    >>> scores = np.tile([0.2, 0.4, 0.6, 0.8], 25)
    >>> noise = np.random.default_rng(0).uniform(-0.1, 0.1, 100)
    >>> equivalence_test(scores + noise, scores, margin=0.02).equivalent
    True
    """
    first, second = _checked(first, second, margin, level)
    difference = first - second
    n = len(difference)
    if np.count_nonzero(np.abs(difference) > _SAME) < MIN_CHANGED:
        return _of_few_changes(difference, margin, level)
    moments = CrossedMean.of(difference[None, :])
    width = moments.half_width(level)
    # The same test twice: the mean lies above −margin, and below +margin.
    p_value = max(
        replace(moments, mean=margin + sign * moments.mean).p_not_above_zero() for sign in (1, -1)
    )
    interval = Interval(
        estimate=moments.mean,
        lower=moments.mean - width,
        upper=moments.mean + width,
        confidence_level=1 - 2 * level,
        method="paired t",
        n_labeled=n,
        assumptions=("queries are a random sample",),
    )
    return EquivalenceTest(
        margin=margin,
        level=level,
        difference=interval,
        p_value=p_value,
        n_queries=n,
        n_needed=_queries_needed(math.sqrt(moments.query_variance * n), margin, level),
    )


def _of_few_changes(difference: FloatArray, margin: float, level: float) -> EquivalenceTest:
    clusters, n = np.arange(len(difference)), len(difference)

    def reached(tail: float) -> tuple[Interval, float]:
        found = clustered_mean(
            difference,
            clusters,
            confidence_level=1 - 2 * tail,
            bounds=(-1.0, 1.0),
            one_sided=True,
        )
        return found, max(abs(found.lower), abs(found.upper))

    interval, bound = reached(level)
    p_value = 1.0
    if reached(_LARGEST_P)[1] < margin:
        low, high = math.log(_SMALLEST_P), math.log(_LARGEST_P)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if reached(math.exp(middle))[1] < margin else (middle, high)
        p_value = math.exp(high)
    # Exact where none differs: the bound is then 1 − tail^(1/n).
    grows = math.log1p(-min(bound, 1 - _SAME)) / math.log1p(-margin)
    within = abs(interval.estimate) < margin
    changed = int(np.count_nonzero(np.abs(difference) > _SAME))
    return EquivalenceTest(
        margin=margin,
        level=level,
        difference=interval,
        p_value=p_value,
        n_queries=n,
        n_needed=max(math.ceil(n * grows), MIN_QUERIES) if within else None,
        note=f"only {changed} of {n} queries differ",
    )


def _checked(
    first: FloatArray, second: FloatArray, margin: float, level: float
) -> tuple[FloatArray, FloatArray]:
    first, second = (np.asarray(a, dtype=np.float64) for a in (first, second))
    if first.shape != second.shape or first.ndim != 1:
        raise DataError(
            f"first has shape {first.shape}, second {second.shape}; both need one score per query"
        )
    for name, scores in (("first", first), ("second", second)):
        bad = np.flatnonzero(~((scores >= -_SAME) & (scores <= 1 + _SAME)))
        if len(bad):
            raise DataError(
                f"{name}[{bad[0]}] is {scores[bad[0]]}; scores must lie in [0, 1], for every query"
            )
    if not 0 < margin < 1:
        raise DataError(f"margin {margin!r} is outside (0, 1); 0.02 is 2 points of NDCG × 100")
    check_level(level)
    if level >= 0.5:
        raise DataError(f"level {level!r} must be below 0.5; 0.05 is usual")
    if len(first) < MIN_QUERIES:
        raise InsufficientDataError(
            f"an equivalence test needs at least {MIN_QUERIES} queries, there are {len(first)}",
            n=len(first),
            n_needed=MIN_QUERIES,
        )
    return first, second


def _queries_needed(spread: float, margin: float, level: float) -> int:
    """Queries with which no difference at all passes both tests with probability .8."""
    # Both must pass, so each may fail with half of what is left.
    beta = normal_quantile((1 + _POWER) / 2)
    n = math.ceil(((normal_quantile(1 - level) + beta) * spread / margin) ** 2)
    n = max(n, MIN_QUERIES)
    # Once more with t: at 20 queries it is 5 % wider than the normal distribution.
    wanted = (t_quantile(1 - level, n - 1) + t_quantile((1 + _POWER) / 2, n - 1)) * spread / margin
    return max(math.ceil(wanted**2), MIN_QUERIES)
