"""Functions that version 0.1 documented and no verdict rests on any more."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rag_sourcebias.core.arrays import FloatArray
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.stats.ratio import ScorePair
from rag_sourcebias.stats.resampling import as_generator, check_level, normal_quantile

_BLOCK = 250_000  # random numbers held at once
_EXACT_LIMIT = 14  # 2^14 sign patterns are enumerated rather than drawn
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
    n = len(difference)
    if n == 0:
        return 1.0
    observed = abs(float(difference.sum())) - _TIE * max(1.0, float(np.abs(difference).sum()))
    if n <= _EXACT_LIMIT:
        signs = 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1
        return float(np.mean(np.abs(signs @ difference) >= observed))
    generator = as_generator(rng)
    extreme = 0
    block = max(1, _BLOCK // n)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        bits = np.unpackbits(
            np.frombuffer(generator.bytes(-(-size * n // 8)), dtype=np.uint8), count=size * n
        )
        # Σ ±d = 2 Σ_{kept} d − Σ d
        total = 2 * (bits.reshape(size, n).astype(np.float64) @ difference)
        extreme += int(np.count_nonzero(np.abs(total - difference.sum()) >= observed))
    return (1 + extreme) / (1 + resamples)


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
