"""How well a judge tells right from wrong: the area under the ROC curve."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level, t_quantile
from rag_sourcebias.judges.association import ASSUMPTIONS
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["auc_interval"]


def auc_interval(
    scores: FloatArray,
    positive: npt.NDArray[np.bool_],
    clusters: IntArray,
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """Probability that a positive item scores above a negative one, ties counting one half.

    Placement values (DeLong et al. 1988) summed within clusters (Obuchowski 1997), on the logit
    scale.

    Raises
    ------
    InsufficientDataError
        With fewer than 2 positive or 2 negative items, or where scores separate them completely:
        the placements then have no spread.
    """
    check_level(confidence_level)
    n1 = int(np.count_nonzero(positive))
    n0 = len(positive) - n1
    if min(n0, n1) < 2:
        raise InsufficientDataError(
            f"AUC needs at least 2 items of each kind, there are {n1} positive and {n0} negative",
            n=min(n0, n1),
            n_needed=2,
        )
    all_ranks, own = _mid_ranks(scores), np.empty(len(scores))
    own[positive], own[~positive] = _mid_ranks(scores[positive]), _mid_ranks(scores[~positive])
    place = (all_ranks - own) / np.where(positive, n0, n1)
    auc = float(place[positive].mean())
    place[~positive] = 1 - place[~positive]
    influence = (place - auc) / np.where(positive, n1, n0)
    influence *= np.sqrt(np.where(positive, n1 / (n1 - 1), n0 / (n0 - 1)))
    error = math.sqrt(float((np.bincount(clusters, weights=influence) ** 2).sum()))
    if error < 1e-12 or not 0 < auc < 1:
        raise InsufficientDataError(
            f"the judge separates all {n1} positive from all {n0} negative items (AUC {auc:g}); "
            "an interval needs items that overlap",
            n=min(n0, n1),
        )
    logit = math.log(auc / (1 - auc))
    g = int(clusters.max()) + 1
    width = t_quantile(0.5 + confidence_level / 2, max(g - 2, 1)) * error / (auc * (1 - auc))
    return Interval(
        estimate=auc,
        lower=1 / (1 + math.exp(width - logit)),
        upper=1 / (1 + math.exp(-width - logit)),
        confidence_level=confidence_level,
        method="AUC, DeLong placements on the logit scale",
        n_labeled=g,
        assumptions=ASSUMPTIONS,
    )


def _mid_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1, ties averaged."""
    _, code, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(count) - (count - 1) / 2)[code]
    return ranks
