"""What a regression estimate would lose without each item or cluster."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.intervals.sample import JudgedSample
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["CONSTANT", "cluster_influence", "item_influence"]

CONSTANT = 1e-10  # spread relative to size below which a judge column is constant
_ROUNDING = 1e-12  # relative to the largest value
_ALONE = 1e-9  # 1 − leverage below which an item fixes its own fitted value


def item_influence(
    sample: JudgedSample,
    design: FloatArray,
    inverse: FloatArray,
    coefficients: FloatArray,
    towards: FloatArray,
) -> FloatArray:
    """What the estimate would lose without each item; shape (n, k)."""
    residuals = sample.y - design @ coefficients
    free = 1 - sample.weights * np.einsum("ij,ij->i", design @ inverse, design)
    alone = free < _ALONE
    left_out = residuals / np.where(alone, 1.0, free)[:, None]
    if alone.any():
        # The item alone decides a direction of the fit, so its own residual is 0. Without it that
        # direction has no slope, and the mean of the other items is what would predict it.
        total = sample.y.sum(axis=0)
        others = (total - sample.y[alone]) / max(sample.n_labeled - 1, 1)
        left_out[alone] = sample.y[alone] - others
    # What rounding leaves of a perfect fit is no residual.
    left_out[np.abs(left_out) <= _ROUNDING * np.abs(sample.y).max(initial=0.0)] = 0.0
    influence: FloatArray = (sample.weights * (design @ (inverse @ towards)))[:, None] * left_out
    return influence


def cluster_influence(
    sample: JudgedSample,
    design: FloatArray,
    normal_equations: tuple[FloatArray, FloatArray],
    estimate: FloatArray,
    towards: FloatArray,
) -> FloatArray:
    """What the estimate would lose without each cluster; shape (G, k)."""
    gram, moments = normal_equations
    codes = np.unique(np.asarray(sample.cluster), return_inverse=True)[1]
    n_clusters = int(codes.max()) + 1
    weighted = design * sample.weights[:, None]
    width = design.shape[1]

    def by_cluster(values: FloatArray) -> FloatArray:
        return np.stack(
            [np.bincount(codes, weights=column, minlength=n_clusters) for column in values.T],
            axis=1,
        )

    grams = by_cluster((weighted[:, :, None] * design[:, None, :]).reshape(len(design), -1))
    own = by_cluster((weighted[:, :, None] * sample.y[:, None, :]).reshape(len(design), -1))
    without = np.linalg.pinv(
        gram - grams.reshape(n_clusters, width, width), rcond=CONSTANT, hermitian=True
    )
    left_out = without @ (moments - own.reshape(n_clusters, width, -1))
    influence: FloatArray = estimate - np.einsum("j,gjk->gk", towards, left_out)
    return influence
