"""The judge brought to the human scale by one λ (METHODS §4.2)."""

from __future__ import annotations

import math

import numpy as np

from rag_sourcebias.intervals.crc.critical import INSIDE, TIE, check_values, set_crossing
from rag_sourcebias.intervals.crc.perturb import UtilityPath
from rag_sourcebias.intervals.crc.roots import rising_root
from rag_sourcebias.intervals.utility import FloatArray, IntArray, RankedLabels

__all__ = ["balance", "recalibrated_utilities", "recalibration"]


def recalibration(labels: RankedLabels, y: FloatArray) -> float:
    """Return λ*, at which the mean error of the judge over the labelled queries is 0.

    Parameters
    ----------
    labels : RankedLabels
        Judge labels of exactly the labelled queries.
    y : float64 array of shape (n_queries,)
        Their human utilities.

    Returns
    -------
    float
        In (−1, 1). Where several λ are equally good the one nearest 0; where none brings the
        error to 0, the nearest 0 of those with the smallest error. One-hot labels do not move
        inside (−1, 1), so their λ* is 0.
    """
    check_values(labels, y)
    return balance(UtilityPath.of(labels), labels, y) if labels.n_queries else 0.0


def balance(path: UtilityPath, labels: RankedLabels, y: FloatArray) -> float:
    """Return the same with the path of ``labels`` at hand."""
    total = float(np.sum(y))

    def error(lam: float) -> float:
        return float(path.at(lam).sum()) - total

    now = error(0.0)
    if abs(now) <= TIE:
        return 0.0
    lam = rising_root(error, start=0.0, known=now, step=1.0, tolerance=TIE)
    # a root in a flat end is not yet the one nearest 0; with a slope on the side of 0 it is
    if abs(lam) < INSIDE and abs(error(lam * (1.0 - 1e-3))) > TIE:
        return lam
    there = error(math.copysign(INSIDE, -now))
    if now * there < 0 and abs(there) > TIE:  # the flat ends are not at the human mean
        return lam
    # the jump at ±1 forgets the judge; stay on the near side of it, at the edge of the flat end
    first, last = set_crossing(labels, y + there / labels.n_queries)
    return float(np.clip(np.clip(0.0, first, last), -INSIDE, INSIDE))


def recalibrated_utilities(
    labels: RankedLabels, y: FloatArray, labelled: IntArray
) -> tuple[float, FloatArray]:
    """Return λ* fitted on the labelled queries, and the utilities of all queries at λ*.

    Parameters
    ----------
    labels : RankedLabels
        Judge labels of all queries.
    y : float64 array of shape (n,)
        Human utilities of the labelled queries.
    labelled : int64 array of shape (n,)
        Their indices.
    """
    lam = recalibration(labels.take(labelled), y)
    return lam, UtilityPath.of(labels).at(lam)
