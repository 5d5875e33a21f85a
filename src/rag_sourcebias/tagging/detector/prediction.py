"""Probabilities of texts, and which of them may become tags."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.types.arrays import FloatArray

__all__ = ["Prediction", "sure"]


class Prediction(NamedTuple):
    """What a detector finds in n texts.

    Parameters
    ----------
    probabilities : float64 array of shape (n, K)
    sure : bool array of shape (n,)
        The highest probability reaches the threshold.
    alike : bool array of shape (n,)
        The text is of the kind that was labelled.
    """

    probabilities: FloatArray
    sure: npt.NDArray[np.bool_]
    alike: npt.NDArray[np.bool_]

    @property
    def decided(self) -> npt.NDArray[np.bool_]:
        """Texts that get the likeliest label as their tag; the others are unknown."""
        both: npt.NDArray[np.bool_] = self.sure & self.alike
        return both


def sure(probabilities: FloatArray, threshold: float | None) -> npt.NDArray[np.bool_]:
    """Which rows of probabilities reach the threshold; none where there is no threshold."""
    if threshold is None:
        return np.zeros(len(probabilities), dtype=np.bool_)
    reached: npt.NDArray[np.bool_] = probabilities.max(axis=1) >= threshold
    return reached
