"""What every interval takes: values, a target, and how the labelled items were drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypedDict, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["Design", "Labels", "Target", "as_values", "check_target", "judge_correlation"]

Labels = Sequence[Any] | npt.NDArray[Any]
Target = Literal["population", "pool", "unlabeled"]


class Design(TypedDict, total=False):
    """How the labelled items were drawn; nothing means at random, one by one.

    Parameters
    ----------
    weights : array-like of shape (n,)
        Density ratios (pool over labelled) when the labelled items were drawn from another
        distribution.
    strata, strata_unlabeled : sequences of length n and N
        Strata within which the labelled items were drawn; each needs 2 labels.
    clusters, clusters_unlabeled : sequences of length n and N
        Items that belong together, such as answers to one question; drawn as a whole.
    """

    weights: npt.ArrayLike | None
    strata: Labels | None
    strata_unlabeled: Labels | None
    clusters: Labels | None
    clusters_unlabeled: Labels | None


def check_target(target: str) -> None:
    """Raise unless the target is one of the three."""
    if target not in get_args(Target):
        raise DataError(f"target {target!r} is not one of {', '.join(get_args(Target))}")


def as_values(name: str, values: npt.ArrayLike, *, columns: bool = False) -> FloatArray:
    """Return finite float64 values of shape (n,), or (n, p) with ``columns``.

    Raises
    ------
    DataError
        Naming the first value that is not finite.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: values must be numbers ({error})") from None
    if columns and array.ndim == 1:
        array = array[:, None]
    if array.ndim != 1 + columns:
        raise DataError(f"{name} has shape {array.shape}; expected one value per item")
    bad = ~np.isfinite(array)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise DataError(
            f"{name}: {int(bad.sum())} value(s) are not finite, first {array[first]} at position "
            f"{first[0]}; leave such items out knowingly, or bound what they could have been "
            "(rag_sourcebias.judges offers worst-case bounds)"
        )
    return array


def judge_correlation(y: FloatArray, yhat: FloatArray) -> float:
    """Pearson correlation; 0 where either side does not vary."""
    a, b = y - y.mean(), yhat - yhat.mean()
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size > 1e-300 else 0.0
