"""From intervals and p-values to verdicts, and the queries that these need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from rag_sourcebias.core.errors import DataError

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
    p = np.array([p for p in p_values if p is not None], dtype=np.float64)
    if np.any((p < 0) | (p > 1) | np.isnan(p)):
        raise DataError(f"p-values must lie in [0, 1], got {list(p_values)}")
    m = len(p)
    order = np.argsort(p, kind="stable")
    if correction == "holm":
        adjusted = np.maximum.accumulate(p[order] * (m - np.arange(m)))
    elif correction == "bh":
        adjusted = np.minimum.accumulate((p[order] * m / np.arange(1, m + 1))[::-1])[::-1]
    elif correction == "none":
        adjusted = p[order]
    else:
        raise DataError(f"unknown correction {correction!r}; there are 'holm', 'bh' and 'none'")
    found = np.empty(m)
    found[order] = np.minimum(adjusted, 1.0)
    known = iter(found.tolist())
    return [None if p is None else next(known) for p in p_values]
