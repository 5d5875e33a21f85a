"""The verdict of a style audit: are styles ranked apart, alike, or can nobody tell yet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from rag_sourcebias.inference.friedman import box_degrees
from rag_sourcebias.inference.quantiles import normal_quantile
from rag_sourcebias.inference.resampling import dirichlet_sums
from rag_sourcebias.inference.spread import crossing
from rag_sourcebias.types.style_parts import FriedmanTest, RankPair, StyleCode, StyleFinding

__all__ = ["style_finding"]

FloatArray = npt.NDArray[np.float64]
_DRAWS = 1_000
_PLANNED = 200  # draws for each candidate number of queries
# Quantiles of the distances that the data leave plausible.
_TRUTHS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
_ASSURANCE = 0.8  # of a verdict, and share of the distances that have it
_MOST = 10_000_000


def style_finding(
    ranks: FloatArray,
    styles: Sequence[str],
    *,
    test: FriedmanTest,
    against_original: Sequence[RankPair] = (),
    margin: float,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> StyleFinding:
    """Decide what the ranks of document styles say.

    Styles are ranked alike where the upper bound for the distance of every two average ranks lies
    within the margin (an intersection of one-sided tests, each at 1 − ``confidence_level``). Else
    the system favours some styles where the test of equal average ranks is significant.

    Parameters
    ----------
    ranks : float64 array of shape (n, k)
        Ranks within each query.
    test : FriedmanTest
        Of these ranks.
    against_original : sequence of RankPair
        Each style (``first``) with the original, adjusted over the styles.
    margin : float
        Share of the k − 1 places.
    """
    n, k = ranks.shape
    alpha = round(1 - confidence_level, 12)
    means = ranks.mean(axis=0)
    places = margin * (k - 1)
    sums, share = dirichlet_sums(ranks, resamples=_DRAWS, rng=rng)
    bound = _largest_distance(sums, share, alpha)
    code, needed = _code(test, bound, places, alpha), None
    if code is StyleCode.TOO_FEW:
        needed = _fewest(alpha)
    elif code is StyleCode.CANNOT_TELL:
        needed = _queries_needed(ranks, sums, places, alpha)
    clear = [p for p in against_original if code is StyleCode.FAVOURS and p.p_adjusted < alpha]
    return StyleFinding(
        code=code,
        best=styles[int(means.argmin())],
        worst=styles[int(means.argmax())],
        apart=float(np.ptp(means)),
        apart_at_most=bound,
        margin=places,
        p_value=test.p_value,
        n_queries=n,
        n_needed=needed,
        favoured=tuple(p.first for p in clear if p.difference < 0),
        silenced=tuple(p.first for p in clear if p.difference > 0),
    )


def _code(test: FriedmanTest, bound: float, margin: float, alpha: float) -> StyleCode:
    if test.w is None:
        return StyleCode.TIED
    if test.n_queries < _fewest(alpha):
        return StyleCode.TOO_FEW
    if bound <= margin:
        return StyleCode.ALIKE
    return StyleCode.FAVOURS if test.p_value < alpha else StyleCode.CANNOT_TELL


def _fewest(alpha: float) -> int:
    """Queries below which even full agreement is not significant (:func:`friedman_test`)."""
    return 1 + math.ceil(-math.log2(alpha))


def _largest_distance(sums: FloatArray, share: FloatArray, alpha: float) -> float:
    """Upper bound for every difference of two true average ranks, each at level alpha."""
    k = sums.shape[1]
    first, second = np.nonzero(~np.eye(k, dtype=np.bool_))
    unseen = share * (k - 1)  # a query that puts the two at opposite ends
    apart = sums[:, first] - sums[:, second] + unseen[:, None]
    return float(np.quantile(apart, 1 - alpha, axis=0).max())


def _queries_needed(ranks: FloatArray, sums: FloatArray, margin: float, alpha: float) -> int:
    """Fewest queries that give a verdict with probability .8, for .8 of what is plausible now.

    Plausible are average ranks that lie apart in the direction seen, by distances from their
    confidence distribution: planned for the distance seen alone, half the plans are too small.
    """
    from scipy.special import fdtri

    n, k = ranks.shape
    covariance = np.cov(ranks, rowvar=False)
    total, degrees = float(np.trace(covariance)), box_degrees(covariance, n)
    deviations = ranks.mean(axis=0) - (k + 1) / 2
    errors = sums - sums.mean(axis=0)
    errors *= math.sqrt(total / n / float(np.sum(errors.var(axis=0))))
    seen = float(np.linalg.norm(deviations))
    truths = np.zeros((1, k))
    if seen > 0:

        def at(probability: float, t: float) -> float:
            length = np.linalg.norm(t * deviations + errors, axis=1)
            return float(np.quantile(length, probability))

        scales = [crossing(partial(at, 1 - q), seen) for q in _TRUTHS]
        truths = np.array(scales)[:, None] * deviations
    per_query = errors[:_PLANNED] * math.sqrt(n)
    spread = math.sqrt(2 * total / (k - 1))  # of the difference of two ranks
    quantile = normal_quantile(1 - alpha)

    def decided(queries: int) -> bool:
        found = truths[:, None] + per_query / math.sqrt(queries)
        statistic = queries * np.sum(found**2, axis=2) / total * queries / (queries + 1)
        critical = float(fdtri(degrees, degrees * (queries - 1), 1 - alpha))
        upper = np.ptp(found, axis=2) + quantile * spread / math.sqrt(queries)
        upper += (k - 1) / (queries + 1)
        told = np.mean((statistic >= critical) | (upper <= margin), axis=1)
        return bool(np.mean(told >= _ASSURANCE) >= _ASSURANCE)

    low, high = int(n), int(n) + 1
    while not decided(high) and high < _MOST:
        low, high = high, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high
