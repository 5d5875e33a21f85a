"""How much lower the perplexity of rewrites is, pair by pair and at equal length."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.explain.regression import fit
from rag_sourcebias.inference import clustered_mean
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.explain import PerplexityGap
from rag_sourcebias.types.intervals import Interval

__all__ = ["perplexity_gap"]

_MIN_ADJUSTED = 20  # as for win rates at equal length: ten per coefficient


def perplexity_gap(
    human: FloatArray,
    other: FloatArray,
    *,
    log_length_ratio: FloatArray,
    clusters: npt.NDArray[np.integer[Any]] | None = None,
    confidence_level: float = 0.95,
) -> PerplexityGap:
    """Compare log-perplexities of both versions of documents.

    Short texts have a higher perplexity per token, as less precedes each. The gap at equal length
    is the intercept of a regression on the log length ratio.

    A lower perplexity is a property of rewrites. That it causes a retriever's preference does not
    follow.

    Parameters
    ----------
    human, other : float64 arrays of shape (n,)
        Log-perplexities (:mod:`rag_sourcebias.neural.perplexity`); NaN where undefined. Pairs
        with one are left out and counted.
    log_length_ratio : float64 array of shape (n,)
        ln of other's length over human's.
    clusters : integer array of shape (n,), optional
        Same number, dependent pairs; by default each pair stands for itself.

    Raises
    ------
    DataError
        If shapes differ or a length ratio of a pair with both values is not finite.
    InsufficientDataError
        If fewer than 2 clusters are left, or the gaps do not vary.
    """
    groups = np.arange(len(human)) if clusters is None else clusters
    shapes = [np.shape(column) for column in (human, other, log_length_ratio, groups)]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise DataError(f"columns of shapes {shapes}; expected one length for all")
    kept = np.isfinite(human) & np.isfinite(other)
    ratio, groups = log_length_ratio[kept], groups[kept]
    if not np.all(np.isfinite(ratio)):
        raise DataError(
            "a pair with both perplexities has a log length ratio that is not finite; expected ln "
            "of two numbers of words above 0"
        )
    before, after = human[kept], other[kept]
    gaps = after - before
    return PerplexityGap(
        mean_human=float(before.mean()) if len(gaps) else 0.0,
        mean_other=float(after.mean()) if len(gaps) else 0.0,
        gap=clustered_mean(gaps, groups, confidence_level=confidence_level),
        share_lower=clustered_mean(
            (1 - np.sign(gaps)) / 2, groups, confidence_level=confidence_level, bounds=(0.0, 1.0)
        ),
        gap_equal_length=_at_equal_length(gaps, ratio, groups, confidence_level),
        n=len(gaps),
        n_left_out=int(np.count_nonzero(~kept)),
    )


def _at_equal_length(
    gaps: FloatArray, ratio: FloatArray, groups: npt.NDArray[np.integer[Any]], level: float
) -> Interval | None:
    if len(np.unique(groups)) < _MIN_ADJUSTED:
        return None
    try:
        found = fit(gaps, ratio[:, None], names=("log length ratio",))
        return clustered_mean(found.values(0), groups, confidence_level=level)
    except InsufficientDataError:
        return None
