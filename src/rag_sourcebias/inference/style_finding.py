"""The verdict of a style audit: are styles ranked apart, alike, or can nobody tell yet."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_sourcebias.inference.planning import queries_to_tell
from rag_sourcebias.inference.quantiles import normal_quantile
from rag_sourcebias.inference.resampling import dirichlet_sums
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.style_parts import StyleCode, StyleFinding
from rag_sourcebias.types.tests import FriedmanTest, RankPair

__all__ = ["style_finding"]

_DRAWS = 1_000


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
        needed = _queries_needed(ranks, places, alpha, rng)
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


def _queries_needed(
    ranks: FloatArray, margin: float, alpha: float, rng: np.random.Generator | int
) -> int:
    k, quantile = ranks.shape[1], normal_quantile(1 - alpha)

    def alike(found: FloatArray, queries: int, contrast: float) -> npt.NDArray[np.bool_]:
        error = math.sqrt(2 / queries) * contrast
        within: npt.NDArray[np.bool_] = (
            np.ptp(found, axis=-1) + quantile * error + (k - 1) / (queries + 1) <= margin
        )
        return within

    return queries_to_tell(ranks, alpha=alpha, alike=alike, rng=rng)
