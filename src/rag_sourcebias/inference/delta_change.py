r"""By how much Relative Δ differs between two systems judged on the same queries.

With d = h − l and s = h + l of a query, and D, S their means, Relative Δ is 200·D/S. The change is
200·(D₂/S₂ − D₁/S₁), a smooth function of four means that share queries, in [−400, 400].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.noninferiority import MIN_QUERIES
from rag_sourcebias.inference.pairs import SAMPLED, ScorePair
from rag_sourcebias.inference.quantiles import as_generator, check_level
from rag_sourcebias.inference.weighted import BoundedRatio
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["delta_change_interval", "delta_change_test"]

_SAME = 1e-9
_BLOCK = 250_000  # random numbers held at once
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
    interval of :class:`~rag_sourcebias.inference.weighted.BoundedRatio`, with one more query that
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
    check_level(confidence_level)
    data = _Change.of(h_before, l_before, h_after, l_after)
    if data.n < MIN_QUERIES:
        raise InsufficientDataError(
            f"an interval for a change in Relative Δ needs at least {MIN_QUERIES} queries, there "
            f"are {data.n}",
            n=data.n,
            n_needed=MIN_QUERIES,
        )
    values, most = data.changes()
    if data.unchanged:
        lower = upper = estimate = 0.0
        method = "no query changed"
    else:
        found = BoundedRatio(
            numerator=values,
            denominator=np.ones(data.n),
            lowest=(-most, 1.0),
            highest=(most, 1.0),
        )
        method, estimate = "weighted queries", data.estimate
        lower, upper = found.ends(confidence_level)
    return Interval(
        estimate=estimate,
        lower=max(min(lower, estimate), -400.0),
        upper=min(max(upper, estimate), 400.0),
        confidence_level=confidence_level,
        method=method,
        n_labeled=data.n,
        assumptions=(SAMPLED, "both means of all scores are known well"),
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
    data = _Change.of(h_before, l_before, h_after, l_after)
    moments = _Moments.of(data)
    m = moments.swaps.shape[1]
    if m == 0:
        return 1.0
    observed = float(moments.statistic(np.zeros((1, m)))[0]) * (1 - _SAME)
    if m <= _EXACT_LIMIT:
        swapped = ((np.arange(2**m)[:, None] >> np.arange(m)) & 1).astype(np.float64)
        return float(np.mean(moments.statistic(swapped) >= observed))
    generator = as_generator(rng)
    extreme, block = 0, max(1, _BLOCK // m)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        bits = np.unpackbits(
            np.frombuffer(generator.bytes(-(-size * m // 8)), dtype=np.uint8), count=size * m
        )
        swapped = bits.reshape(size, m).astype(np.float64)
        extreme += int(np.count_nonzero(moments.statistic(swapped) >= observed))
    return (1 + extreme) / (1 + resamples)


@dataclass(frozen=True, kw_only=True)
class _Change:
    """Scores before and after; build it with :meth:`of`."""

    before: ScorePair
    after: ScorePair

    @classmethod
    def of(
        cls, h_before: FloatArray, l_before: FloatArray, h_after: FloatArray, l_after: FloatArray
    ) -> _Change:
        pairs = ScorePair.of(h_before, l_before), ScorePair.of(h_after, l_after)
        if pairs[0].n != pairs[1].n:
            raise DataError(
                f"there are {pairs[0].n} queries before and {pairs[1].n} after; a change is paired "
                "by query"
            )
        for name, pair in zip(("before", "after"), pairs, strict=True):
            if pair.largest > 1 + _SAME:
                raise DataError(f"a score {name} is {pair.largest:g}; scores must lie in [0, 1]")
            try:
                pair.require_scores()
            except InsufficientDataError as error:
                raise InsufficientDataError(f"{name}: {error}", n=pair.n) from error
        return cls(before=pairs[0], after=pairs[1])

    @property
    def n(self) -> int:
        return self.before.n

    @property
    def estimate(self) -> float:
        return self.after.estimate - self.before.estimate

    @property
    def unchanged(self) -> bool:
        """Whether every query scores as before, for both sources."""
        return bool(
            np.allclose(self.before.baseline, self.after.baseline, rtol=0, atol=_SAME)
            and np.allclose(self.before.other, self.after.other, rtol=0, atol=_SAME)
        )

    def changes(self) -> tuple[FloatArray, float]:
        """Return what each query adds to the change, and the most that one could add."""
        values = self.estimate + _influence(self.after) - _influence(self.before)
        turn = 200 / (self.before.h + self.before.l) + 200 / (self.after.h + self.after.l)
        return values, max(turn / 2, float(np.abs(values).max()))


def _influence(pair: ScorePair) -> FloatArray:
    """Influence of each query on Relative Δ in percent; shape (n,), mean 0."""
    ratio = pair.estimate / 200
    return 200 * (pair.baseline * (1 - ratio) - pair.other * (1 + ratio)) / (pair.h + pair.l)


@dataclass(frozen=True, kw_only=True)
class _Moments:
    """Sums from which the change and its standard error follow, and what swaps add to them.

    Rows are d, s, d², ds, s² of the first system, the same of the second, and the products d₁d₂,
    s₁s₂, d₁s₂ and d₂s₁.
    """

    totals: FloatArray
    swaps: FloatArray

    @classmethod
    def of(cls, data: _Change) -> _Moments:
        before, after = data.before, data.after
        d1, s1 = before.baseline - before.other, before.baseline + before.other
        d2, s2 = after.baseline - after.other, after.baseline + after.other
        first = np.stack((d1, s1, d1 * d1, d1 * s1, s1 * s1))
        second = np.stack((d2, s2, d2 * d2, d2 * s2, s2 * s2))
        added = second - first
        crossed = d2 * s1 - d1 * s2
        none = np.zeros_like(crossed)
        changed = np.maximum(np.abs(d2 - d1), np.abs(s2 - s1)) > _SAME
        rows = np.stack((*added, *-added, none, none, crossed, -crossed))
        products = np.stack((d1 * d2, s1 * s2, d1 * s2, d2 * s1))
        return cls(
            totals=np.concatenate((first, second, products)).sum(axis=1), swaps=rows[:, changed]
        )

    def statistic(self, swapped: FloatArray) -> FloatArray:
        """|Change| in standard errors when rows of ``swapped`` say what is swapped; shape (b,)."""
        sums = self.totals[:, None] + self.swaps @ swapped.T
        d1, s1, dd1, ds1, ss1, d2, s2, dd2, ds2, ss2, d1d2, s1s2, d1s2, d2s1 = sums
        # A permutation may leave one system without any score: its Relative Δ counts as 0.
        s1, s2 = np.maximum(s1, _SAME), np.maximum(s2, _SAME)
        r1, r2 = d1 / s1, d2 / s2
        variance = (
            (dd1 - 2 * r1 * ds1 + r1**2 * ss1) / s1**2
            + (dd2 - 2 * r2 * ds2 + r2**2 * ss2) / s2**2
            - 2 * (d1d2 - r2 * d1s2 - r1 * d2s1 + r1 * r2 * s1s2) / (s1 * s2)
        )
        found: FloatArray = np.abs(r2 - r1) / np.sqrt(np.maximum(variance, _SAME**2))
        return found
