"""Corrections for testing many cells at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from rag_sourcebias.errors import DataError

__all__ = ["Correction", "adjust_p_values"]

Correction = Literal["holm", "bh", "none"]


def adjust_p_values(
    p_values: Sequence[float | None], *, correction: Correction = "holm"
) -> list[float | None]:
    """Adjust p-values over their family.

    Parameters
    ----------
    p_values : sequence of float or None
        None marks a test that could not be made; it stays None and is not counted.
    correction : {"holm", "bh", "none"}
        Holm (1979) controls the chance of any false finding, under any dependence; Benjamini and
        Hochberg (1995) the expected share of false findings, under independence or positive
        dependence.

    Returns
    -------
    list of float or None
        In the given order, each in [0, 1].

    Examples
    --------
    >>> adjust_p_values([0.01, None, 0.03])
    [0.02, None, 0.03]
    """
    index = [i for i, p in enumerate(p_values) if p is not None]
    p = np.array([p_values[i] for i in index], dtype=np.float64)
    if np.any((p < 0) | (p > 1) | np.isnan(p)):
        raise DataError(f"p-values must lie in [0, 1], got {list(p_values)}")
    m = len(p)
    order = np.argsort(p, kind="stable")
    if correction == "holm":
        adjusted = np.maximum.accumulate(p[order] * (m - np.arange(m)))
    elif correction == "bh":
        scaled = p[order] * m / np.arange(1, m + 1)
        adjusted = np.minimum.accumulate(scaled[::-1])[::-1]
    elif correction == "none":
        adjusted = p[order]
    else:
        raise DataError(f"unknown correction {correction!r}; there are 'holm', 'bh' and 'none'")
    result: list[float | None] = [None] * len(p_values)
    for place, value in zip(order, np.minimum(adjusted, 1.0), strict=True):
        result[index[place]] = float(value)
    return result
