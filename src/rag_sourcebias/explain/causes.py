"""Perplexities of both versions under one language model ([K] Fig. 7, App. B)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray, IntArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.values import Interval, as_generator, check_level, t_quantile
from rag_sourcebias.explain.data import (
    BoundedPerplexity,
    GapDecomposition,
    GapFactor,
    ModelPerplexity,
    PerplexityGap,
)
from rag_sourcebias.explain.texts import histogram, shared_edges
from rag_sourcebias.stats.clusters import clustered_mean

# Least squares with errors clustered by query, as influence on the coefficients.


_CONSTANT = 1e-12
_COLLINEAR = 1e10


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """y = b₀ + Σ b_k x_k + e.

    Parameters
    ----------
    coefficients : float64 array of shape (p + 1,)
        The intercept first.
    influence : float64 array of shape (n, p + 1)
        Of each row on each coefficient, so that coefficient plus influence are values whose mean
        is the coefficient and whose clustered standard error is its own (CR1, with the factor
        (n − 1)/(n − p − 1) of Stata).
    """

    coefficients: FloatArray
    influence: FloatArray

    def values(self, k: int) -> FloatArray:
        """Return values whose mean is coefficient k; shape (n,)."""
        found: FloatArray = self.coefficients[k] + self.influence[:, k]
        return found


def fit(y: FloatArray, x: FloatArray, *, names: tuple[str, ...]) -> Fit:
    """Fit by least squares.

    Parameters
    ----------
    y : float64 array of shape (n,)
    x : float64 array of shape (n, p)
        Without a column for the intercept.
    names : tuple of str, length p
        Of the columns, for messages.

    Raises
    ------
    InsufficientDataError
        If a column of x is constant, or a sum of others.
    """
    n, p = x.shape
    scale = x.std(axis=0)
    for k in np.flatnonzero(scale <= _CONSTANT * np.maximum(1, np.abs(x).max(axis=0, initial=0))):
        raise InsufficientDataError(
            f"{names[k]} is {x[0, k]:.4g} for every pair, so that nothing can be said about what "
            "goes with it; leave it out",
            n=n,
        )
    centre = x.mean(axis=0)
    design = np.column_stack((np.ones(n), (x - centre) / scale))
    moment = design.T @ design / n
    if n <= p + 1 or np.linalg.cond(moment) > _COLLINEAR:
        raise InsufficientDataError(
            f"{', '.join(names)} cannot be told apart in {n} pairs (one is a sum of others); leave "
            "one out",
            n=n,
        )
    inverse = np.linalg.inv(moment)
    beta = inverse @ (design.T @ y) / n
    residual = y - design @ beta
    influence = design @ inverse * residual[:, None] * math.sqrt((n - 1) / (n - p - 1))
    # Back to the columns as they were: slopes per unit, intercept at x = 0.
    back = np.eye(p + 1)
    back[1:, 1:] = np.diag(1 / scale)
    back[0, 1:] = -centre / scale
    return Fit(coefficients=back @ beta, influence=influence @ back.T)


# Shares of a variance that go with each of several factors, whichever is entered first.


def variance_shares(
    y: FloatArray,
    x: FloatArray,
    clusters: npt.NDArray[np.integer[Any]],
    *,
    confidence_level: float,
    resamples: int,
    rng: np.random.Generator | int,
) -> tuple[Interval, tuple[Interval, ...]]:
    """R² of a regression, and its parts (Lindeman, Merenda and Gold 1980).

    A part is the rise of R² when the factor is added, averaged over all orders of entry (its
    Shapley value); parts sum to R². Noise raises them. Clusters are resampled; ends are ± t
    standard errors, which for nominal 95 % covered .91–1.00 with 80 and 300 queries (percentile
    and basic ends 0–.97 and .67–1.00: a share near 0 is bounded by it).

    Parameters
    ----------
    y : float64 array of shape (n,)
    x : float64 array of shape (n, p)
    clusters : integer array of shape (n,)
    """
    _, code = np.unique(clusters, return_inverse=True)
    g, p = int(code.max()) + 1, x.shape[1]
    # Standardised, so that moments of resamples lose no digits.
    columns = np.column_stack((x, y))
    columns = (columns - columns.mean(axis=0)) / np.maximum(columns.std(axis=0), 1e-300)
    design = np.column_stack((np.ones(len(y)), columns))
    moments = np.zeros((g, p + 2, p + 2))
    np.add.at(moments, code, design[:, :, None] * design[:, None, :])
    counts = as_generator(rng).multinomial(g, np.full(g, 1 / g), size=resamples)
    every = np.concatenate((np.ones((1, g)), counts))
    summed: FloatArray = np.einsum("rg,gij->rij", every, moments, optimize=True)
    parts = _parts(summed, p)
    both = np.column_stack((parts.sum(axis=1), parts))
    widths = t_quantile(0.5 + confidence_level / 2, g - 1) * both[1:].std(axis=0, ddof=1)
    total, *each = (
        Interval(
            estimate=float(share),
            lower=float(max(share - width, 0.0)),
            upper=float(min(share + width, 1.0)),
            confidence_level=confidence_level,
            method="cluster bootstrap, ± t standard errors",
            n_labeled=g,
            assumptions=("queries are a random sample",),
        )
        for share, width in zip(both[0], widths, strict=True)
    )
    return total, tuple(each)


def _parts(moments: FloatArray, p: int) -> FloatArray:
    """Shapley parts of R² from raw moments (r, p + 2, p + 2) with intercept; shape (r, p)."""
    mean = moments[:, 0, 1:] / moments[:, :1, 0]
    cov = moments[:, 1:, 1:] / moments[:, :1, :1] - mean[:, :, None] * mean[:, None, :]
    total = np.maximum(cov[:, p, p], 1e-12)
    explained: dict[tuple[int, ...], FloatArray] = {(): np.zeros(len(cov))}
    for size in range(1, p + 1):
        for some in combinations(range(p), size):
            inner = cov[:, some][:, :, some]
            # A resample may hold a factor at one value only: no more than rounding is added.
            ridge = 1e-9 * np.eye(size)
            right = cov[:, some, p]
            solved = np.linalg.solve(inner + ridge, right[:, :, None])[:, :, 0]
            explained[some] = np.clip((solved * right).sum(axis=1) / total, 0.0, 1.0)
    parts = np.zeros((len(cov), p))
    for some, value in explained.items():
        for k in set(range(p)) - set(some):
            weight = math.factorial(len(some)) * math.factorial(p - len(some) - 1)
            gain = explained[tuple(sorted((*some, k)))] - value
            parts[:, k] += weight / math.factorial(p) * gain
    return parts


# How much of the score gap of twins goes with which difference between the versions.




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
        (:func:`~rag_sourcebias.explain.vectors.positions_along_source`). At most 8.
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
    error = gap.half_width / t_quantile(0.5 + confidence_level / 2, gap.n_labeled - 1)
    apart = abs(gap.estimate) >= _MIN_APART * error
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


# How much lower the perplexity of rewrites is, pair by pair and at equal length.


_MIN_ADJUSTED = 20  # as for win rates at equal length: ten per coefficient


def perplexity_gap(
    human: FloatArray,
    other: FloatArray,
    *,
    log_length_ratio: FloatArray,
    clusters: npt.NDArray[np.integer[Any]] | None = None,
    confidence_level: float = 0.95,
) -> PerplexityGap:
    """Compare log-perplexities of both versions of documents.

    Short texts have a higher perplexity per token, as less precedes each. The gap at equal length
    is the intercept of a regression on the log length ratio.

    A lower perplexity is a property of rewrites. That it causes a retriever's preference does not
    follow.

    Parameters
    ----------
    human, other : float64 arrays of shape (n,)
        Log-perplexities (:mod:`rag_sourcebias.neural.perplexity`); NaN where undefined. Pairs
        with one are left out and counted.
    log_length_ratio : float64 array of shape (n,)
        ln of other's length over human's.
    clusters : integer array of shape (n,), optional
        Same number, dependent pairs; by default each pair stands for itself.

    Raises
    ------
    DataError
        If shapes differ or a length ratio of a pair with both values is not finite.
    InsufficientDataError
        If fewer than 2 clusters are left, or the gaps do not vary.
    """
    groups = np.arange(len(human)) if clusters is None else clusters
    shapes = [np.shape(column) for column in (human, other, log_length_ratio, groups)]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise DataError(f"columns of shapes {shapes}; expected one length for all")
    kept = np.isfinite(human) & np.isfinite(other)
    ratio, groups = log_length_ratio[kept], groups[kept]
    if not np.all(np.isfinite(ratio)):
        raise DataError(
            "a pair with both perplexities has a log length ratio that is not finite; expected ln "
            "of two numbers of words above 0"
        )
    before, after = human[kept], other[kept]
    gaps = after - before
    return PerplexityGap(
        mean_human=float(before.mean()) if len(gaps) else 0.0,
        mean_other=float(after.mean()) if len(gaps) else 0.0,
        gap=clustered_mean(gaps, groups, confidence_level=confidence_level),
        share_lower=clustered_mean(
            (1 - np.sign(gaps)) / 2, groups, confidence_level=confidence_level, bounds=(0.0, 1.0)
        ),
        gap_equal_length=_at_equal_length(gaps, ratio, groups, confidence_level),
        n=len(gaps),
        n_left_out=int(np.count_nonzero(~kept)),
    )


def _at_equal_length(
    gaps: FloatArray, ratio: FloatArray, groups: npt.NDArray[np.integer[Any]], level: float
) -> Interval | None:
    if len(np.unique(groups)) < _MIN_ADJUSTED:
        return None
    try:
        found = fit(gaps, ratio[:, None], names=("log length ratio",))
        return clustered_mean(found.values(0), groups, confidence_level=level)
    except InsufficientDataError:
        return None


# Perplexities of both versions under one language model ([K] Fig. 7, App. B).


_UPPER = 0.95


def compare_perplexities(
    human: FloatArray,
    other: FloatArray,
    *,
    log_length_ratio: FloatArray,
    model: str,
    kind: Literal["causal", "masked"],
    conditional: FloatArray | None = None,
    confidence_level: float = 0.95,
) -> ModelPerplexity:
    """Compare log-perplexities of both versions, pair by pair and as distributions.

    Parameters
    ----------
    human, other, log_length_ratio : float64 arrays of shape (n,)
        As for :func:`~rag_sourcebias.explain.causes.perplexity_gap`.
    conditional : float64 array of shape (n,), optional
        Of the other version after the human one.

    Raises
    ------
    DataError
        If shapes differ.
    InsufficientDataError
        If fewer than 2 pairs have both values, or their gaps do not vary.
    """
    gap = perplexity_gap(
        human, other, log_length_ratio=log_length_ratio, confidence_level=confidence_level
    )
    edges = shared_edges(human, other)
    return ModelPerplexity(
        model=model,
        kind=kind,
        gap=gap,
        human=histogram(human, edges),
        other=histogram(other, edges),
        bounded=None
        if conditional is None
        else bounded_perplexity(other, conditional, confidence_level=confidence_level),
    )


def bounded_perplexity(
    other: FloatArray, conditional: FloatArray, *, confidence_level: float = 0.95
) -> BoundedPerplexity | None:
    """Observe PPL(d^G, B) − PPL(d^G | d^H, B), which [K] App. B bounds by ε.

    Of the theorem's conditions only this one and its conclusion (the perplexity gap) can be
    observed: the others hold the distribution of human writing, which nobody has.

    Parameters
    ----------
    other, conditional : float64 arrays of shape (n,)
        Log-perplexities of the other version alone and after the human one, over the same tokens;
        pairs with NaN are left out.

    Returns
    -------
    BoundedPerplexity or None
        None if fewer than 2 pairs are left or they do not vary.
    """
    if np.shape(other) != np.shape(conditional):
        raise DataError(
            f"{np.shape(other)} values alone and {np.shape(conditional)} after the human text; "
            "need as many"
        )
    drops = other - conditional
    drops = drops[np.isfinite(drops)]
    try:
        mean = clustered_mean(drops, np.arange(len(drops)), confidence_level=confidence_level)
    except InsufficientDataError:
        return None
    return BoundedPerplexity(mean=mean, upper=float(np.quantile(drops, _UPPER)), n=len(drops))
