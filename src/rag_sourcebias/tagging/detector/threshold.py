"""How sure a detector must be to say anything."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["check_max_error", "choose_threshold"]


def check_max_error(max_error: float) -> None:
    """Refuse an error rate that cannot be asked for."""
    if not 0 < max_error < 1:
        raise DataError(f"max_error {max_error!r} is outside (0, 1); 0.05 is one wrong tag in 20")


def choose_threshold(
    confidence: FloatArray, right: npt.NDArray[np.bool_], *, max_error: float
) -> float | None:
    """Lowest confidence down to which the wanted error is kept.

    The error of the documents at or above a threshold is taken one standard error high (the upper
    limit of the Wilson score interval with z = 1): the threshold is chosen where the error happens
    to look small, and a handful of lucky documents is not enough. A document below all that were
    seen stays undecided even when every seen one may be decided.

    Parameters
    ----------
    confidence : float64 array of shape (n,)
        Probability of the likeliest label of held-out documents.
    right : bool array of shape (n,)
        Whether that label is theirs.
    max_error : float
        In (0, 1).

    Returns
    -------
    float or None
        None where no threshold keeps the error.
    """
    check_max_error(max_error)
    order = np.argsort(-confidence, kind="stable")
    sorted_confidence = confidence[order]
    bound = _upper_limit(np.cumsum(~right[order]), np.arange(1, len(order) + 1))
    last_of_tie = np.append(sorted_confidence[1:] < sorted_confidence[:-1], True)
    kept = np.flatnonzero((bound <= max_error) & last_of_tie)
    return float(sorted_confidence[kept[-1]]) if len(kept) else None


def _upper_limit(errors: npt.NDArray[np.int64], n: npt.NDArray[np.int64]) -> FloatArray:
    share = errors / n
    half = np.sqrt(share * (1 - share) / n + 1 / (4 * n**2))
    limit: FloatArray = (share + 1 / (2 * n) + half) / (1 + 1 / n)
    return limit
