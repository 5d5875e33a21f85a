r"""Has quality fallen by less than a margin, over queries and training seeds (METHODS §5.1).

Scores y[s, q] of seed s on query q follow y = μ + query + seed + query × seed. Both are random
factors: other queries and other seeds could have been drawn. The mean over all then has variance
(MS_seed + max(MS_query − MS_residual, 0)) / (seeds · queries), with the mean squares of the
two-way table, as for readers and cases in studies of diagnostic tests (Dorfman, Berbaum & Metz
1992; Hillis 2007, Statistics in Medicine 26:596). Degrees of freedom are Satterthwaite's: near
seeds − 1 where seeds differ most, near queries − 1 where queries do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level, normal_quantile, t_quantile
from rag_sourcebias.types.debias import NoninferiorityTest

__all__ = ["MIN_CHANGED", "MIN_QUERIES", "CrossedMean", "noninferiority_test"]

FloatArray = npt.NDArray[np.float64]
MIN_QUERIES = 20
# As for Relative Δ: with fewer queries that changed, losses too rare to be seen carry the risk.
MIN_CHANGED = 15
_SAME = 1e-12
_STEPS = 50
_POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedMean:
    """Mean over seeds and queries, both random; build it with :meth:`of`.

    Parameters
    ----------
    mean : float
    variance : float
        Of the mean; never below ``query_variance``.
    degrees : float
        Degrees of freedom of ``variance``.
    query_variance : float
        Of the mean for these very seeds, which shrinks with more queries.
    seed_variance : float
        What seeds add and more queries do not remove.
    n, seeds : int
    """

    mean: float
    variance: float
    degrees: float
    query_variance: float
    seed_variance: float
    n: int
    seeds: int

    @classmethod
    def of(cls, values: FloatArray) -> CrossedMean:
        """Take the moments of an array of shape (seeds, n); one row has no seed variance."""
        seeds, n = values.shape
        if n < 2:
            raise InsufficientDataError(f"a variance needs at least 2 queries, there is {n}", n=n)
        mean = float(values.mean())
        by_query, by_seed = values.mean(axis=0), values.mean(axis=1)
        ms_query = seeds * float(by_query.var(ddof=1))
        cells = seeds * n
        if seeds == 1:
            total, degrees, extra = ms_query, n - 1.0, 0.0
        else:
            ms_seed = n * float(by_seed.var(ddof=1))
            residual = values - by_query - by_seed[:, None] + mean
            ms_rest = float(np.sum(residual**2)) / ((seeds - 1) * (n - 1))
            total = max(ms_seed + max(ms_query - ms_rest, 0.0), ms_query)
            spread = ms_seed**2 / (seeds - 1) + ms_query**2 / (n - 1)
            degrees = min(total**2 / spread, n - 1.0) if spread > 0 else n - 1.0
            extra = max(ms_seed - ms_rest, 0.0)
        return cls(
            mean=mean,
            variance=total / cells,
            degrees=degrees,
            query_variance=ms_query / cells,
            seed_variance=extra / cells,
            n=n,
            seeds=seeds,
        )

    def excess(self, confidence_level: float) -> float:
        """Squared half width that random seeds add to the t interval for these seeds."""
        tail = 0.5 + confidence_level / 2
        full = t_quantile(tail, self.degrees) ** 2 * self.variance
        fixed = t_quantile(tail, self.n - 1) ** 2 * self.query_variance
        return max(full - fixed, 0.0)

    def p_not_above_zero(self) -> float:
        """One-sided p-value of the hypothesis that the true mean is 0 or less."""
        from scipy.special import stdtr

        if self.variance < _SAME**2:
            return 0.0 if self.mean > _SAME else 1.0
        return float(stdtr(self.degrees, -self.mean / math.sqrt(self.variance)))


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
    Where fewer than 15 queries changed there is no test (``p_value`` is None): a loss on the few
    queries that change could go unseen.
    """
    _check(treated, reference, relative_margin, level)
    base = float(reference.mean())
    changed = int(np.count_nonzero(np.abs(treated - reference).max(axis=0) > _SAME))
    at_margin = CrossedMean.of(treated - (1 - relative_margin) * reference)
    n = at_margin.n
    refusal, p_value, lower = None, None, -100.0
    if changed < MIN_CHANGED:
        refusal = (
            f"only {changed} of {n} queries changed; at least {MIN_CHANGED} are needed to know "
            "how much a change can cost"
        )
    else:
        p_value = at_margin.p_not_above_zero()
        lower = _lower_bound(treated, reference, level)
    return NoninferiorityTest(
        quality=quality,
        relative_margin=relative_margin,
        level=level,
        change=100 * (float(treated.mean()) / base - 1),
        lower=lower,
        p_value=p_value,
        n_queries=n,
        n_seeds=at_margin.seeds,
        n_needed=_queries_needed(at_margin, relative_margin * base, level),
        refusal=refusal,
    )


def _check(treated: FloatArray, reference: FloatArray, margin: float, level: float) -> None:
    if treated.shape != reference.shape or treated.ndim != 2:
        raise DataError(
            f"treated has shape {treated.shape}, reference {reference.shape}; both need one row "
            "per seed and one column per query"
        )
    if not (np.all(np.isfinite(treated)) and np.all(np.isfinite(reference))):
        raise DataError("scores hold NaN or infinity; score every query before inference")
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


def _lower_bound(treated: FloatArray, reference: FloatArray, level: float) -> float:
    """Largest relative loss that the test does not exclude, as a change in percent."""
    ratio = float(treated.mean()) / float(reference.mean())
    excluded, kept = 0.0, ratio
    if CrossedMean.of(treated).p_not_above_zero() > level:
        return -100.0
    for _ in range(_STEPS):
        middle = (excluded + kept) / 2
        if CrossedMean.of(treated - middle * reference).p_not_above_zero() <= level:
            excluded = middle
        else:
            kept = middle
    return 100 * (excluded - 1)


def _queries_needed(seen: CrossedMean, margin: float, level: float) -> int | None:
    """Queries with which no change at all would pass with probability .8."""
    allowed = (margin / (normal_quantile(1 - level) + normal_quantile(_POWER))) ** 2
    if seen.seed_variance >= allowed:
        return None
    return max(math.ceil(seen.n * seen.query_variance / (allowed - seen.seed_variance)), MIN_QUERIES)
