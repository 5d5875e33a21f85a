r"""Has quality fallen by less than a margin, over queries and training seeds (METHODS §5.1).

Scores y[s, q] of seed s on query q follow y = μ + query + seed + query × seed, and both are random
factors: other queries and other seeds could have been drawn (readers and cases in the studies of
Dorfman, Berbaum & Metz 1992). The mean squares of the two-way table give the variance of the mean
for these seeds, MS_query / (seeds · queries), and what seeds add to it, max(MS_seed − MS_residual,
0) / (seeds · queries). A half width is √(t²(queries − 1) · the first + t²(seeds − 1) · the second),
the recovery of variance estimates of Zou & Donner (2008, Statistics in Medicine 27:1693): one
pooled t with Satterthwaite's degrees of freedom covers only .92 at 3 seeds that differ much
(nominal .95), this at least .946.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.clusters import clustered_mean
from rag_sourcebias.inference.quantiles import check_level, normal_quantile, t_quantile
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.finite import require_finite
from rag_sourcebias.types.tests import NoninferiorityTest

__all__ = ["MIN_CHANGED", "MIN_QUERIES", "CrossedMean", "noninferiority_test"]

MIN_QUERIES = 20
# As for Relative Δ: with fewer queries that changed, losses too rare to be seen carry the risk.
MIN_CHANGED = 15
_SAME = 1e-12
_STEPS = 40
_SMALLEST_P = 1e-12
_LARGEST_P = 0.499_999
_POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedMean:
    """Mean over seeds and queries, both random; build it with :meth:`of`.

    Parameters
    ----------
    mean : float
        Of all values, in their unit.
    query_variance : float
        Squared standard error of the mean for these very seeds; it shrinks with more queries.
    seed_variance : float
        What seeds add and more queries do not remove; 0 with one seed.
    n, seeds : int
        Queries, and seeds of training that each of them was measured with.
    """

    mean: float
    query_variance: float
    seed_variance: float
    n: int
    seeds: int

    @classmethod
    def of(cls, values: FloatArray) -> CrossedMean:
        """Take the moments of an array of shape (seeds, n), n at least 2."""
        seeds, n = values.shape
        if n < 2:
            raise InsufficientDataError(f"a variance needs at least 2 queries, there is {n}", n=n)
        mean, by_query = float(values.mean()), values.mean(axis=0)
        between_seeds = 0.0
        if seeds > 1:
            by_seed = values.mean(axis=1)
            residual = values - by_query - by_seed[:, None] + mean
            ms_rest = float(np.sum(residual**2)) / ((seeds - 1) * (n - 1))
            between_seeds = max(float(by_seed.var(ddof=1)) - ms_rest / n, 0.0) / seeds
        return cls(
            mean=mean,
            query_variance=float(by_query.var(ddof=1)) / n,
            seed_variance=between_seeds,
            n=n,
            seeds=seeds,
        )

    def seed_part(self, tail: float) -> float:
        """Squared half width that random seeds add; ``tail`` is the probability beyond one end."""
        if self.seed_variance == 0:
            return 0.0
        return t_quantile(1 - tail, self.seeds - 1) ** 2 * self.seed_variance

    def half_width(self, tail: float) -> float:
        """Distance from the mean to the end beyond which lies ``tail``."""
        queries = t_quantile(1 - tail, self.n - 1) ** 2 * self.query_variance
        return math.sqrt(queries + self.seed_part(tail))

    def above_zero(self, level: float) -> bool:
        """Whether a mean of 0 or less is rejected, one-sided."""
        return self.mean > max(self.half_width(level), _SAME)

    def p_not_above_zero(self) -> float:
        """One-sided p-value of a mean of 0 or less: the level at which it is just rejected."""
        if self.query_variance + self.seed_variance < _SAME**2:
            return 0.0 if self.mean > _SAME else 1.0
        distance = abs(self.mean)
        p = _level_where(lambda tail: self.half_width(tail) <= distance)
        p = min(p, 0.5)  # a mean of about 0
        return p if self.mean > 0 else 1 - p


def noninferiority_test(
    treated: FloatArray,
    reference: FloatArray,
    *,
    relative_margin: float = 0.01,
    level: float = 0.05,
    quality: str = "",
) -> NoninferiorityTest:
    """Test that the mean of ``treated`` lost less than a share of the mean of ``reference``.

    The hypothesis to reject is mean(treated) ≤ (1 − margin) · mean(reference), by a one-sided t
    test on treated − (1 − margin) · reference, paired by query and by seed, which treats the
    reference's mean as estimated too (Fieller). ``lower`` inverts the same test.

    Parameters
    ----------
    treated, reference : float64 arrays of shape (seeds, n)
        Scores in [0, 1] of the same seeds and queries. Pairing by seed is valid whether or not
        seeds of the two have anything in common.
    relative_margin : float
        In (0, 1).
    level : float
        Error probability in (0, 0.5).

    Raises
    ------
    DataError
        If the arrays do not align, or hold NaN.
    InsufficientDataError
        With fewer than 20 queries, or a reference that never scores.

    Notes
    -----
    Where fewer than 15 queries changed, a loss on the rare queries that change could go unseen
    and a t test would pass too often. The mean loss (gains do not count) is then bounded by
    Clopper–Pearson and compared with the margin at the observed mean of the reference: without
    any loss seen, about 3 / (margin · mean) queries are needed to pass.
    """
    _check(treated, reference, relative_margin, level)
    base = float(reference.mean())
    at_margin = CrossedMean.of(treated - (1 - relative_margin) * reference)
    n, note = at_margin.n, None
    changed = int(np.count_nonzero(np.abs(treated - reference).max(axis=0) > _SAME))
    if changed < MIN_CHANGED:
        losses = np.maximum((reference - treated).mean(axis=0), 0.0)
        p_value = _p_of_loss(losses, relative_margin * base)
        bound, allowed = _largest_loss(losses, level), relative_margin * base
        lower = max(-100 * bound / base, -100.0)
        # The bound shrinks nearly as 1 / n.
        needed = math.ceil(n * bound / allowed) if float(losses.mean()) < allowed else None
        note = f"only {changed} of {n} queries changed"
    else:
        p_value = at_margin.p_not_above_zero()
        lower = _lower_bound(treated, reference, level)
        needed = _queries_needed(at_margin, relative_margin * base, level)
    return NoninferiorityTest(
        quality=quality,
        relative_margin=relative_margin,
        level=level,
        change=100 * (float(treated.mean()) / base - 1),
        lower=lower,
        p_value=p_value,
        n_queries=n,
        n_seeds=at_margin.seeds,
        n_needed=needed,
        note=note,
    )


def _check(treated: FloatArray, reference: FloatArray, margin: float, level: float) -> None:
    if treated.shape != reference.shape or treated.ndim != 2:
        raise DataError(
            f"treated has shape {treated.shape}, reference {reference.shape}; both need one row "
            "per seed and one column per query"
        )
    for values, what in ((treated, "treated scores"), (reference, "reference scores")):
        require_finite(values, what, remedy="score every query before inference")
    if not 0 < margin < 1:
        raise DataError(f"relative_margin {margin!r} is outside (0, 1); 0.01 accepts a loss of 1 %")
    check_level(level)
    if level >= 0.5:
        raise DataError(f"level {level!r} must be below 0.5; 0.05 is usual")
    n = treated.shape[1]
    if n < MIN_QUERIES:
        raise InsufficientDataError(
            f"a non-inferiority test needs at least {MIN_QUERIES} queries, there are {n}",
            n=n,
            n_needed=MIN_QUERIES,
        )
    if not reference.mean() > 0:
        raise InsufficientDataError(
            f"the reference scores on none of {n} queries, so a relative loss is undefined", n=n
        )


def _largest_loss(losses: FloatArray, tail: float) -> float:
    """Upper confidence bound for the mean of losses in [0, 1] that are nearly all 0."""
    clusters = np.arange(len(losses))
    level = 1 - 2 * tail
    return clustered_mean(
        losses, clusters, confidence_level=level, bounds=(0.0, 1.0), one_sided=True
    ).upper


def _p_of_loss(losses: FloatArray, allowed: float) -> float:
    """Level at which a mean loss of ``allowed`` is just excluded."""
    return _level_where(lambda tail: _largest_loss(losses, tail) <= allowed)


def _level_where(rejected: Callable[[float], bool]) -> float:
    """Smallest level below 0.5 at which a hypothesis is rejected; 1 where none does."""
    low, high = math.log(_SMALLEST_P), math.log(_LARGEST_P)
    if not rejected(_LARGEST_P):
        return 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if rejected(math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


def _lower_bound(treated: FloatArray, reference: FloatArray, level: float) -> float:
    """Largest relative loss that the test does not exclude, as a change in percent."""
    ratio = float(treated.mean()) / float(reference.mean())
    excluded, kept = 0.0, ratio
    if not CrossedMean.of(treated).above_zero(level):
        return -100.0
    for _ in range(_STEPS):
        middle = (excluded + kept) / 2
        if CrossedMean.of(treated - middle * reference).above_zero(level):
            excluded = middle
        else:
            kept = middle
    return 100 * (excluded - 1)


def _queries_needed(seen: CrossedMean, margin: float, level: float) -> int | None:
    """Queries with which no change at all would pass with probability .8."""
    allowed = (margin / (normal_quantile(1 - level) + normal_quantile(_POWER))) ** 2
    if seen.seed_variance >= allowed:
        return None
    return max(
        math.ceil(seen.n * seen.query_variance / (allowed - seen.seed_variance)), MIN_QUERIES
    )
