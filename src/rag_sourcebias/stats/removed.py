"""Functions that version 0.1 documented and no verdict rests on any more."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import FloatArray, as_generator, check_level, normal_quantile
from rag_sourcebias.stats.comparisons import sign_flips
from rag_sourcebias.stats.ratio import ScorePair

_TIE = 1e-9
_MIN_DIFFERING = 15


def sign_flip_test(
    baseline: FloatArray,
    other: FloatArray,
    *,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> float:
    """Return the two-sided p-value of a permutation test that two sources score alike.

    It assumes symmetric differences; use :func:`~rag_sourcebias.stats.difference_test`.

    Parameters
    ----------
    baseline, other : float64 arrays of shape (n,)
        Scores of the same queries, in any common unit.
    resamples : int
        Random swaps, where more than 14 queries differ; up to there the test is exact.
    """
    difference = baseline - other
    difference = difference[np.abs(difference) > _TIE]
    if not len(difference):
        return 1.0
    return sign_flips(difference[:, None], resamples=resamples, generator=as_generator(rng))[0]


def queries_needed(
    baseline: FloatArray,
    other: FloatArray,
    *,
    half_width: float,
    confidence_level: float = 0.95,
) -> int | None:
    """Return the queries that the delta method needs for Relative Δ ± ``half_width``.

    A plan for a verdict is :func:`~rag_sourcebias.stats.queries_for_verdict`.

    Parameters
    ----------
    baseline, other : float64 arrays of shape (n,)
        Scores of the same queries, in [0, 1].
    half_width : float
        Points of Relative Δ, above 0.

    Returns
    -------
    int or None
        None where one source never scores, or fewer than 15 queries depart from the commonest
        ratio.
    """
    if half_width <= 0:
        raise DataError(f"half_width {half_width!r} must be positive (Relative Δ points)")
    check_level(confidence_level)
    pair = ScorePair.of(baseline, other)
    if pair.h == 0 or pair.l == 0 or (pair.differing < _MIN_DIFFERING and not pair.exclusive):
        return None
    slope = 100.0 * (1 - (pair.estimate / 200.0) ** 2)
    z = normal_quantile(0.5 + confidence_level / 2)
    by_width = math.ceil(pair.var_log * pair.n * (z * slope / half_width) ** 2)
    by_method = math.ceil(_MIN_DIFFERING * pair.n / max(pair.differing, 1))
    return max(by_width, by_method if pair.differing >= _MIN_DIFFERING else 2)


class Elsewhere(NamedTuple):
    """Another cutoff at which the difference is significant, as verdicts of version 0.1 had it."""

    measure: str
    direction: str
