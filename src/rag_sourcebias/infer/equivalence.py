"""Has a mean, or Relative Δ, stayed the same within a margin: paired tests over queries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError, as_generator, check_level
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    BoundedRatio,
    ScorePair,
    clustered_mean,
    coin_flips,
    normal_quantile,
    of_queries,
    t_quantile,
)

# Has quality fallen by less than a margin, over queries and training seeds.
# Scores y[s, q] of seed s on query q follow y = μ + query + seed + query × seed, and both are
# random factors: other queries and other seeds could have been drawn (readers and cases in the
# studies of Dorfman, Berbaum & Metz 1992). The mean squares of the two-way table give the variance
# of the mean for these seeds, MS_query / (seeds · queries), and what seeds add to it, max(MS_seed
# − MS_residual, 0) / (seeds · queries). A half width is √(t²(queries − 1) · the first + t²(seeds −
# 1) · the second), the recovery of variance estimates of Zou & Donner (2008, Statistics in
# Medicine 27:1693): one pooled t with Satterthwaite's degrees of freedom covers only .92 at 3
# seeds that differ much (nominal .95), this at least .946.


MIN_QUERIES = 20
# As for Relative Δ: with fewer queries that changed, losses too rare to be seen carry the risk.
MIN_CHANGED = 15
_SAME = 1e-12
_STEPS = 40
_SMALLEST_P = 1e-12
_LARGEST_P = 0.499_999
_POWER = 0.8


@dataclass(frozen=True, kw_only=True)
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
    note : Finding or None
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
    n_needed: int | None
    note: Finding | None = None

    @property
    def passed(self) -> bool:
        """Whether a loss of the margin or more is excluded."""
        return self.p_value <= self.level


@dataclass(frozen=True, kw_only=True)
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
        return math.sqrt(
            t_quantile(1 - tail, self.n - 1) ** 2 * self.query_variance + self.seed_part(tail)
        )

    def above_zero(self, level: float) -> bool:
        """Whether a mean of 0 or less is rejected, one-sided."""
        return self.mean > max(self.half_width(level), _SAME)

    def p_not_above_zero(self) -> float:
        """One-sided p-value of a mean of 0 or less: the level at which it is just rejected."""
        if self.query_variance + self.seed_variance < _SAME**2:
            return 0.0 if self.mean > _SAME else 1.0
        p = _level_where(lambda tail: self.half_width(tail) <= abs(self.mean))
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
    _check_level(level)
    n, base = treated.shape[1], float(reference.mean())
    _require_queries(InferCode.FEW_FOR_TEST, n)
    if base == 0:
        raise InsufficientDataError(InferCode.REFERENCE_NEVER_SCORES(n=n))
    at_margin = CrossedMean.of(treated - (1 - relative_margin) * reference)
    note = None
    changed = int(np.count_nonzero(np.abs(treated - reference).max(axis=0) > _SAME))
    if changed < MIN_CHANGED:
        losses = np.maximum((reference - treated).mean(axis=0), 0.0)
        bound, allowed = _largest_loss(losses, level), relative_margin * base
        p_value = _level_where(lambda tail: _largest_loss(losses, tail) <= allowed)
        lower = max(-100 * bound / base, -100.0)
        # The bound shrinks nearly as 1 / n.
        needed = math.ceil(n * bound / allowed) if losses.mean() < allowed else None
        note = InferCode.FEW_CHANGED(changed=changed, n=n)
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


def _check_level(level: float) -> None:
    check_level(level)
    if level >= 0.5:
        raise DataError(f"level {level!r} must be below 0.5; 0.05 is usual")


def _require_queries(code: InferCode, n: int) -> None:
    if n < MIN_QUERIES:
        raise InsufficientDataError(code(n=n, n_needed=MIN_QUERIES))


def _largest_loss(losses: FloatArray, tail: float) -> float:
    """Upper confidence bound for the mean of losses in [0, 1] that are nearly all 0."""
    return clustered_mean(
        losses,
        confidence_level=1 - 2 * tail,
        bounds=(0.0, 1.0),
        one_sided=True,
    ).upper


def _level_where(rejected: Callable[[float], bool]) -> float:
    """Smallest level below 0.5 at which a hypothesis is rejected; 1 where none does."""
    low, high = math.log(_SMALLEST_P), math.log(_LARGEST_P)
    if not rejected(_LARGEST_P):
        return 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if rejected(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _lower_bound(treated: FloatArray, reference: FloatArray, level: float) -> float:
    """Largest relative loss that the test does not exclude, as a change in percent."""
    excluded, kept = 0.0, float(treated.mean()) / float(reference.mean())
    if not CrossedMean.of(treated).above_zero(level):
        return -100.0
    for _ in range(_STEPS):
        middle = (excluded + kept) / 2
        above = CrossedMean.of(treated - middle * reference).above_zero(level)
        excluded, kept = (middle, kept) if above else (excluded, middle)
    return 100 * (excluded - 1)


def _queries_needed(seen: CrossedMean, margin: float, level: float) -> int | None:
    """Queries with which no change at all would pass with probability .8."""
    allowed = (margin / (normal_quantile(1 - level) + normal_quantile(_POWER))) ** 2
    left = allowed - seen.seed_variance
    return max(math.ceil(seen.n * seen.query_variance / left), MIN_QUERIES) if left > 0 else None


# By how much Relative Δ differs between two systems judged on the same queries.
# With d = h − l and s = h + l of a query, and D, S their means, Relative Δ is 200·D/S. The change
# is 200·(D₂/S₂ − D₁/S₁), a smooth function of four means that share queries, in [−400, 400].


_SAME_RATIO = 1e-9
_EXACT_LIMIT = 14  # 2^14 swap patterns are enumerated rather than drawn


def delta_change_interval(
    h_before: FloatArray,
    l_before: FloatArray,
    h_after: FloatArray,
    l_after: FloatArray,
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """Confidence interval for Relative Δ after minus Relative Δ before.

    The influence values of both Relative Δ are subtracted query by query, and their mean gets the
    interval of :class:`~rag_sourcebias.infer.means.BoundedRatio`, with one more query that
    would change as much as half a complete turn (one source alone found before, the other alone
    after), or as the largest change seen. Where no query changed, the change is 0, exactly.

    Parameters
    ----------
    h_before, l_before, h_after, l_after : float64 arrays of shape (n,)
        Scores of the baseline and of the other source in [0, 1], of the same queries.
    confidence_level : float

    Returns
    -------
    Interval
        In points of Relative Δ, within [−400, 400].

    Raises
    ------
    DataError
        If the columns do not align or hold a value outside [0, 1].
    InsufficientDataError
        With fewer than 20 queries, or where neither source scores before or after.

    Examples
    --------
    >>> h = np.tile([1.0, 0.0, 0.5], 20)
    >>> print(delta_change_interval(h, h, h, h))
    0 [0, 0] (95%, no query changed, n = 60)
    """
    before, after = _pairs(h_before, l_before, h_after, l_after)
    n = before.n
    _require_queries(InferCode.FEW_QUERIES, n)
    lower = upper = estimate = 0.0
    method = InferCode.UNCHANGED
    if not (
        np.allclose(before.baseline, after.baseline, rtol=0, atol=_SAME_RATIO)
        and np.allclose(before.other, after.other, rtol=0, atol=_SAME_RATIO)
    ):
        method, estimate = InferCode.WEIGHTED_QUERIES, after.estimate - before.estimate
        values = estimate + _influence(after) - _influence(before)
        turn = 200 / (before.h + before.l) + 200 / (after.h + after.l)
        most = max(turn / 2, float(np.abs(values).max()))  # that one query could add
        lower, upper = BoundedRatio(
            numerator=values,
            denominator=np.ones(n),
            lowest=(-most, 1.0),
            highest=(most, 1.0),
        ).ends(confidence_level)
    return Interval(
        estimate=estimate,
        lower=max(min(lower, estimate), -400.0),
        upper=min(max(upper, estimate), 400.0),
        confidence_level=confidence_level,
        method=method(),
        n_labeled=n,
        assumptions=(InferCode.QUERIES_SAMPLED(), InferCode.MEANS_KNOWN()),
    )


def delta_change_test(
    h_before: FloatArray,
    l_before: FloatArray,
    h_after: FloatArray,
    l_after: FloatArray,
    *,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> float:
    """Two-sided paired permutation test that both systems have the same Relative Δ.

    Before and after are swapped query by query, for both sources together, and the change is
    compared in units of its standard error: exact where the two systems are interchangeable, and
    right for many queries where only their Relative Δ agree (Janssen 1997 for studentised
    permutation tests).

    Parameters
    ----------
    h_before, l_before, h_after, l_after : float64 arrays of shape (n,)
        As in :func:`delta_change_interval`.
    resamples : int
        Random swaps.

    Returns
    -------
    float
        p-value in (0, 1]; over all swaps when at most 14 queries changed, otherwise
        (1 + more extreme) / (1 + resamples).

    Raises
    ------
    DataError
        If the columns do not align or hold a value outside [0, 1].
    InsufficientDataError
        With one query, or where neither source scores before or after.
    """
    before, after = _pairs(h_before, l_before, h_after, l_after)
    gaps, totals = (
        np.stack((sign * before.other + before.baseline, sign * after.other + after.baseline))
        for sign in (-1, 1)
    )
    apart = np.maximum(np.abs(gaps[1] - gaps[0]), np.abs(totals[1] - totals[0]))
    changed = np.flatnonzero(apart > _SAME_RATIO)
    m = len(changed)
    if m == 0:
        return 1.0
    nothing = np.zeros((1, m))
    observed = _statistic(gaps, totals, changed, nothing)[0] * (1 - _SAME_RATIO)
    if m <= _EXACT_LIMIT:
        swapped = ((np.arange(2**m)[:, None] >> np.arange(m)) & 1).astype(np.float64)
        return float(np.mean(_statistic(gaps, totals, changed, swapped) >= observed))
    extreme = 0
    for swapped in coin_flips(m, resamples, as_generator(rng)):
        found = _statistic(gaps, totals, changed, swapped)
        extreme += int(np.count_nonzero(found >= observed))
    return (1 + extreme) / (1 + resamples)


def _pairs(
    h_before: FloatArray, l_before: FloatArray, h_after: FloatArray, l_after: FloatArray
) -> tuple[ScorePair, ScorePair]:
    before, after = ScorePair.of(h_before, l_before), ScorePair.of(h_after, l_after)
    for name, pair in (("before", before), ("after", after)):
        pair.require_scores(name)
    return before, after


def _influence(pair: ScorePair) -> FloatArray:
    """Influence of each query on Relative Δ in percent; shape (n,), mean 0."""
    ratio = pair.estimate / 200
    return 200 * (pair.baseline * (1 - ratio) - pair.other * (1 + ratio)) / (pair.h + pair.l)


def _statistic(
    gaps: FloatArray, totals: FloatArray, changed: IntArray, swapped: FloatArray
) -> FloatArray:
    """|Change| in standard errors when rows of ``swapped`` say what is swapped; shape (b,).

    ``gaps`` and ``totals`` of shape (2, n) are h − l and h + l before and after.
    """
    swap = np.zeros((len(swapped), gaps.shape[1]), dtype=bool)
    swap[:, changed] = swapped > 0
    ratios, influences = [], []
    for own, other in ((0, 1), (1, 0)):
        gap = np.where(swap, gaps[other], gaps[own])
        total = np.where(swap, totals[other], totals[own])
        # A permutation may leave one system without any score: its Relative Δ counts as 0.
        scored = np.maximum(total.sum(axis=1), _SAME_RATIO)
        ratio = gap.sum(axis=1) / scored
        ratios.append(ratio)
        influences.append((gap - ratio[:, None] * total) / scored[:, None])
    variance = np.square(influences[1] - influences[0]).sum(axis=1)
    error = np.sqrt(np.maximum(variance, _SAME_RATIO**2))
    return np.asarray(np.abs(ratios[1] - ratios[0]) / error)


# Are two means over the same queries equal within a margin: two one-sided tests.
# A test of no difference that does not reject proves nothing: with few queries it rejects nothing.
# [K] Table 2 ("no significant discrepancy" between corpora searched alone) needs the reverse, a
# test whose rejection means that the difference is small (Schuirmann 1987, Journal of
# Pharmacokinetics and Biopharmaceutics 15:657).


@dataclass(frozen=True, kw_only=True)
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
    note : Finding or None
        Why it was not a t test.
    """

    margin: float
    level: float
    difference: Interval
    p_value: float
    n_queries: int
    n_needed: int | None
    note: Finding | None = None

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
    _check_level(level)
    _require_queries(InferCode.FEW_FOR_TEST, len(first))
    difference = first - second
    n = len(difference)
    if np.count_nonzero(np.abs(difference) > _SAME) < MIN_CHANGED:
        return _of_few_changes(difference, margin, level)
    moments = CrossedMean.of(difference[None, :])
    width = moments.half_width(level)
    # Both must pass, so each may fail with half of what is left of a power of .8.
    power, spread = (1 + _POWER) / 2, math.sqrt(moments.query_variance * n)
    needed, degrees = 0, math.inf
    # Twice: at 20 queries t is 5 % wider than the normal distribution.
    for _ in range(2):
        quantiles = t_quantile(1 - level, degrees) + t_quantile(power, degrees)
        needed = max(math.ceil((quantiles * spread / margin) ** 2), MIN_QUERIES)
        degrees = needed - 1
    # The same test twice: the mean lies above −margin, and below +margin.
    p_value = max(
        replace(moments, mean=margin + sign * moments.mean).p_not_above_zero() for sign in (1, -1)
    )
    return EquivalenceTest(
        margin=margin,
        level=level,
        difference=of_queries(
            moments.mean,
            moments.mean - width,
            moments.mean + width,
            level=1 - 2 * level,
            method=InferCode.PAIRED_T,
            n=n,
        ),
        p_value=p_value,
        n_queries=n,
        n_needed=needed,
    )


def _of_few_changes(difference: FloatArray, margin: float, level: float) -> EquivalenceTest:
    n = len(difference)

    def reached(tail: float) -> tuple[Interval, float]:
        found = clustered_mean(
            difference,
            confidence_level=1 - 2 * tail,
            bounds=(-1.0, 1.0),
            one_sided=True,
        )
        return found, max(abs(found.lower), abs(found.upper))

    interval, bound = reached(level)
    # Exact where none differs: the bound is then 1 − tail^(1/n).
    grows = math.log1p(-min(bound, 1 - _SAME)) / math.log1p(-margin)
    changed = int(np.count_nonzero(np.abs(difference) > _SAME))
    return EquivalenceTest(
        margin=margin,
        level=level,
        difference=interval,
        p_value=_level_where(lambda tail: reached(tail)[1] < margin),
        n_queries=n,
        n_needed=max(math.ceil(n * grows), MIN_QUERIES)
        if abs(interval.estimate) < margin
        else None,
        note=InferCode.FEW_DIFFER(changed=changed, n=n),
    )
