"""How much of the score gap of twins goes with which difference between the versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.explain.regression import Fit, fit
from rag_sourcebias.explain.variance_shares import variance_shares
from rag_sourcebias.inference import clustered_mean
from rag_sourcebias.inference.quantiles import check_level, t_quantile
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.explain import GapDecomposition, GapFactor
from rag_sourcebias.types.intervals import Interval

__all__ = ["decompose_gap"]

IntArray = npt.NDArray[np.integer[Any]]

_MIN_APART = 4.0  # standard errors of the mean gap from 0, for shares of it
_MAX_FACTORS = 8  # orders of entry grow as 2^p
_ASSUMPTIONS = ("queries are a random sample", "the score gap is linear in the factors")
_ASSOCIATION = (
    "parts are associations: differences between versions go together, and what causes the gap "
    "cannot be told from them"
)


def decompose_gap(
    gaps: FloatArray,
    factors: Mapping[str, FloatArray],
    *,
    queries: IntArray,
    no_difference: Mapping[str, float] | None = None,
    confidence_level: float = 0.95,
    resamples: int = 500,
    rng: np.random.Generator | int = 0,
) -> GapDecomposition:
    """Regress the score gap of twins on how their versions differ.

    gap_i = b₀ + Σ_k b_k (x_ki − r_k) + e_i with r_k the value at which versions do not differ.
    Then mean gap = b₀ + Σ_k b_k (mean x_k − r_k): a remainder and one component per factor
    (Oaxaca 1973; Blinder 1973). Intervals are clustered by query and include the error of the
    factor's mean.

    Parameters
    ----------
    gaps : float64 array of shape (n,)
        Score of the other version minus that of the human one, one row per (query, pair).
    factors : mapping of name to float64 array of shape (n,)
        Such as log length ratio, overlap, perplexity gap, position along the source direction
        (:func:`~rag_sourcebias.explain.geometry.positions_along_source`). At most 8.
    queries : integer array of shape (n,)
        Same number, same query.
    no_difference : mapping of name to float, optional
        Value of a factor at which versions do not differ; 0 where not given. Overlap needs 1.

    Raises
    ------
    DataError
        If columns differ in length, a number is not finite, or a name is unknown.
    InsufficientDataError
        With fewer than 10 · (factors + 1) queries, or factors that are constant or collinear.
    """
    check_level(confidence_level)
    names = tuple(factors)
    origin = np.array([(no_difference or {}).get(name, 0.0) for name in names])
    x = _checked(gaps, factors, queries, no_difference or {}) - origin
    found = fit(gaps, x, names=names)
    gap = clustered_mean(gaps, queries, confidence_level=confidence_level)
    apart = _is_apart(gap, confidence_level)
    parts = [_component(found, x, k) for k in range(len(names))]

    def interval(values: FloatArray) -> Interval:
        made = clustered_mean(values, queries, confidence_level=confidence_level)
        return replace(made, method="regression, cluster-robust", assumptions=_ASSUMPTIONS)

    def share(part: FloatArray) -> Interval | None:
        if not apart:
            return None
        ratio = part.mean() / gap.estimate
        return interval(ratio + (part - ratio * gaps) / gap.estimate)

    total, each = variance_shares(
        gaps, x, queries, confidence_level=confidence_level, resamples=resamples, rng=rng
    )
    low, high = x.min(axis=0), x.max(axis=0)
    return GapDecomposition(
        gap=gap,
        factors=tuple(
            GapFactor(
                name=name,
                slope=interval(found.values(k + 1)),
                mean=float(x[:, k].mean() + origin[k]),
                no_difference=float(origin[k]),
                component=interval(parts[k]),
                share=share(parts[k]),
                variance_share=each[k],
                extrapolated=not bool(low[k] <= 0 <= high[k]),
            )
            for k, name in enumerate(names)
        ),
        remainder=interval(found.values(0)),
        remainder_share=share(found.values(0)),
        r_squared=total,
        n=len(gaps),
        n_queries=gap.n_labeled,
        notes=_notes(
            [name for k, name in enumerate(names) if not low[k] <= 0 <= high[k]], gap, apart=apart
        ),
    )


def _checked(
    gaps: FloatArray,
    factors: Mapping[str, FloatArray],
    queries: IntArray,
    no_difference: Mapping[str, float],
) -> FloatArray:
    """Return the factors as columns, shape (n, p)."""
    if not 1 <= len(factors) <= _MAX_FACTORS:
        raise DataError(f"{len(factors)} factors; expected between 1 and {_MAX_FACTORS}")
    if unknown := sorted(set(no_difference) - set(factors)):
        raise DataError(
            f"no_difference names {unknown[0]!r}, which is no factor; there are "
            f"{', '.join(factors)}"
        )
    for name, column in {"gaps": gaps, "queries": queries, **factors}.items():
        if np.ndim(column) != 1 or len(column) != len(gaps):
            raise DataError(f"{name} has shape {np.shape(column)}; expected ({len(gaps)},)")
        if len(bad := np.flatnonzero(~np.isfinite(column))):
            raise DataError(
                f"{name} is {column[bad[0]]} in row {bad[0]}; leave such rows out, expected "
                "finite numbers"
            )
    n_queries, needed = len(np.unique(queries)), 10 * (len(factors) + 1)
    if n_queries < needed:
        raise InsufficientDataError(
            f"{len(factors)} factor(s) need at least {needed} queries with pairs, there are "
            f"{n_queries}",
            n=n_queries,
            n_needed=needed,
        )
    return np.column_stack(list(factors.values())).astype(np.float64)


def _component(found: Fit, x: FloatArray, k: int) -> FloatArray:
    """Values whose mean is slope · mean, and whose spread holds the error of both."""
    slope, mean = found.coefficients[k + 1], x[:, k].mean()
    values: FloatArray = slope * x[:, k] + mean * found.influence[:, k + 1]
    return values


def _is_apart(gap: Interval, level: float) -> bool:
    error = gap.half_width / t_quantile(0.5 + level / 2, gap.n_labeled - 1)
    return abs(gap.estimate) >= _MIN_APART * error


def _notes(beyond: list[str], gap: Interval, *, apart: bool) -> tuple[str, ...]:
    notes = [_ASSOCIATION]
    if beyond:
        notes.append(
            f"no pair reaches no difference in {', '.join(beyond)}: components and remainder "
            "extrapolate to it"
        )
    if not apart:
        notes.append(
            f"the mean gap {gap.estimate:.3g} is within {_MIN_APART:g} standard errors of 0: "
            "shares of it are not given"
        )
    return tuple(notes)
