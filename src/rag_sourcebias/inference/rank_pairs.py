"""Which styles differ: paired comparisons of average ranks, adjusted for their number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.clusters import clustered_mean
from rag_sourcebias.inference.multiplicity import Correction, adjust_p_values
from rag_sourcebias.inference.quantiles import as_generator, check_level
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.finite import require_finite
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.tests import RankPair

__all__ = ["compare_ranks"]

_BLOCK = 250_000  # random signs held at once
_EXACT_LIMIT = 14  # 2^14 sign patterns are enumerated rather than drawn
_TIE = 1e-9


def compare_ranks(
    ranks: npt.NDArray[np.floating[Any]],
    names: Sequence[str],
    *,
    baseline: str | None = None,
    correction: Correction = "holm",
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> tuple[RankPair, ...]:
    """Compare all pairs of styles, or every style with a baseline.

    A pair is tested on its own rank differences, so which other styles are compared does not
    enter its test (it does in Nemenyi's; Benavoli, Corani & Mangili 2016).

    Parameters
    ----------
    ranks : float array of shape (n, k)
        One row per query.
    names : sequence of str, length k
    baseline : str, optional
        Compare only with this style: k − 1 tests instead of k(k − 1)/2, so smaller adjusted
        p-values.
    correction : {"holm", "bh", "none"}
    resamples : int
        Sign patterns drawn; with at most 14 queries all are enumerated. An adjusted p-value
        cannot be below (number of pairs)/(1 + resamples).

    Raises
    ------
    DataError
        If names and columns disagree, there are fewer than 2 styles, or a rank is not finite.
    """
    check_level(confidence_level)
    values = _checked(ranks, names)
    if resamples < 1:
        raise DataError(f"resamples {resamples} must be at least 1")
    pairs = list(combinations(range(len(names)), 2))
    if baseline is not None:
        if baseline not in names:
            raise DataError(f"baseline {baseline!r} is not one of the styles {list(names)}")
        at = list(names).index(baseline)
        pairs = [(at, j) for j in range(len(names)) if j != at]
    first, second = np.array(pairs).T
    differences = values[:, first] - values[:, second]
    p_values = _sign_flips(differences, resamples=resamples, generator=as_generator(rng))
    adjusted = adjust_p_values(p_values, correction=correction)
    return tuple(
        RankPair(
            first=names[i],
            second=names[j],
            difference=float(column.mean()),
            interval=_interval(column, confidence_level),
            p_value=p,
            p_adjusted=p if p_adjusted is None else p_adjusted,
        )
        for (i, j), column, p, p_adjusted in zip(
            pairs, differences.T, p_values, adjusted, strict=True
        )
    )


def _checked(ranks: npt.NDArray[np.floating[Any]], names: Sequence[str]) -> FloatArray:
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(names) or not len(values):
        raise DataError(
            f"ranks have shape {values.shape}; expected at least 1 query and {len(names)} columns"
        )
    if len(names) < 2:
        raise DataError(f"{len(names)} style(s) cannot be compared; give at least 2")
    require_finite(values, "ranks", remedy="leave out queries that lack a version")
    return values


def _interval(difference: FloatArray, level: float) -> Interval | None:
    try:
        return clustered_mean(difference, np.arange(len(difference)), confidence_level=level)
    except InsufficientDataError:
        return None


def _sign_flips(
    differences: FloatArray, *, resamples: int, generator: np.random.Generator
) -> list[float]:
    """Two-sided p-value of each column; all columns share the sign patterns."""
    n = len(differences)
    size = np.abs(differences).sum(axis=0)
    observed = np.abs(differences.sum(axis=0)) - _TIE * np.maximum(1.0, size)
    if n <= _EXACT_LIMIT:
        signs = 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1
        extreme = np.abs(signs @ differences) >= observed
        return [float(p) for p in extreme.mean(axis=0)]
    total = differences.sum(axis=0)
    count = np.zeros(differences.shape[1], dtype=np.int64)
    block = max(1, _BLOCK // n)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        bits = np.unpackbits(
            np.frombuffer(generator.bytes(-(-rows * n // 8)), dtype=np.uint8), count=rows * n
        )
        # Σ ±d = 2 Σ_{kept} d − Σ d
        flipped = 2 * (bits.reshape(rows, n).astype(np.float64) @ differences) - total
        count += np.count_nonzero(np.abs(flipped) >= observed, axis=0)
    return [float(p) for p in (1 + count) / (1 + resamples)]
