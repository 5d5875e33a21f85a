"""Bias of a judge: mean judge − human, per group, and between groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference.clusters import clustered_difference, clustered_mean
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_bias import GroupBias

__all__ = ["group_biases", "mean_error"]

_FEW = 15


def mean_error(
    errors: FloatArray, clusters: IntArray, *, span: float, confidence_level: float = 0.95
) -> Interval | None:
    """Mean of judge − human with a cluster-robust t interval.

    Where fewer than 15 errors, and not even half of them, differ from 0, their variance is too
    uncertain, and gains and losses are bounded one by one instead (:func:`clustered_difference`):
    a judge that agrees on each of 30 items is not known to agree always.

    Parameters
    ----------
    span : float
        Length of the scale: no error is larger.

    Returns
    -------
    Interval or None
        None with fewer than 2 clusters, or where all errors are one value other than 0.
    """
    wrong = int(np.count_nonzero(errors))
    try:
        if wrong < _FEW and 2 * wrong < len(errors) and span > 0:
            unit = clustered_difference(errors / span, clusters, confidence_level=confidence_level)
            return replace(
                unit,
                estimate=unit.estimate * span,
                lower=unit.lower * span,
                upper=unit.upper * span,
            )
        return clustered_mean(errors, clusters, confidence_level=confidence_level)
    except InsufficientDataError:
        return None


def group_biases(
    human: FloatArray,
    judge: FloatArray,
    groups: Sequence[str],
    clusters: IntArray,
    *,
    span: float,
    confidence_level: float = 0.95,
) -> tuple[GroupBias, ...]:
    """Bias of every group, in the order of their names."""
    names, code = np.unique(np.asarray(groups), return_inverse=True)
    result = []
    for g, name in enumerate(names.tolist()):
        rows = np.flatnonzero(code == g)
        result.append(
            GroupBias(
                group=str(name),
                n=len(rows),
                human_mean=float(human[rows].mean()),
                judge_mean=float(judge[rows].mean()),
                bias=mean_error(
                    judge[rows] - human[rows],
                    clusters[rows],
                    span=span,
                    confidence_level=confidence_level,
                ),
            )
        )
    return tuple(result)
