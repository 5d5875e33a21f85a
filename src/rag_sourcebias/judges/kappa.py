"""Chance-corrected agreement from a table of joint shares."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.types.arrays import FloatArray

__all__ = ["cohen_kappa", "krippendorff_alpha"]


def cohen_kappa(tables: FloatArray, grades: FloatArray, *, power: int) -> FloatArray:
    """Cohen's kappa of contingency tables.

    Parameters
    ----------
    tables : float64 array of shape (b, K, K)
        Counts; rows are the human grade, columns the judge's.
    grades : float64 array of shape (K,)
        Their values.
    power : {0, 1, 2}
        Disagreement is |difference| to this power: unweighted, linear, quadratic.

    Returns
    -------
    float64 array of shape (b,)
        NaN where no disagreement is expected by chance (one grade only).
    """
    gap = np.abs(grades[:, None] - grades[None, :])
    cost = (gap > 0).astype(np.float64) if power == 0 else gap**power
    total = tables.sum(axis=(1, 2))
    seen = (tables * cost).sum(axis=(1, 2)) / total
    chance = np.einsum("bi,ij,bj->b", tables.sum(axis=2), cost, tables.sum(axis=1)) / total**2
    return _one_minus(seen, chance)


def krippendorff_alpha(tables: FloatArray, grades: FloatArray, *, ordinal: bool) -> FloatArray:
    """Krippendorff's alpha of two raters without missing values.

    Parameters
    ----------
    tables, grades
        As in :func:`cohen_kappa`.
    ordinal : bool
        Ordinal distances (the grades between two, by how often they occur) or interval distances.

    Returns
    -------
    float64 array of shape (b,)
    """
    coincidences = tables + tables.transpose(0, 2, 1)
    counts = coincidences.sum(axis=2)
    total = counts.sum(axis=1)
    if ordinal:
        through = np.cumsum(counts, axis=1) - counts / 2
        cost = (through[:, :, None] - through[:, None, :]) ** 2
    else:
        cost = np.broadcast_to((grades[:, None] - grades[None, :]) ** 2, coincidences.shape)
    seen = (coincidences * cost).sum(axis=(1, 2)) / total
    chance = np.einsum("bi,bij,bj->b", counts, cost, counts) / (total * (total - 1))
    return _one_minus(seen, chance)


def _one_minus(seen: FloatArray, chance: FloatArray) -> FloatArray:
    result = np.full(len(seen), np.nan)
    np.divide(seen, chance, out=result, where=chance > 1e-12)
    return 1 - result
