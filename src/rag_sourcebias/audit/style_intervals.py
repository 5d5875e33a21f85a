"""Intervals for everything a style matrix shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference.bootstrap_intervals import bootstrap_intervals
from rag_sourcebias.inference.clusters import clustered_mean
from rag_sourcebias.inference.resampling import bootstrap_means
from rag_sourcebias.measures.style import (
    max_unfairness,
    summarise_unfairness,
    unfairness_score,
)
from rag_sourcebias.measures.style_length import (
    adjusted_from_means,
    length_adjusted,
    length_columns,
)
from rag_sourcebias.measures.style_matching import MatchingEffect, matching_effect
from rag_sourcebias.measures.style_matrix import StyleMatrix
from rag_sourcebias.types.intervals import Interval

__all__ = [
    "MatchingIntervals",
    "StyleMatrixIntervals",
    "length_adjusted_intervals",
    "matching_intervals",
    "style_matrix_intervals",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleMatrixIntervals:
    """Intervals from one resampling of the queries; None where no resample differs.

    Parameters
    ----------
    average_ranks : tuple of tuple of Interval or None, shape (q, d)
    unfairness : tuple of Interval or None, length q
        Per query style.
    mean_unfairness, sd_unfairness : Interval or None
        Mean and standard deviation (ddof 0) over query styles ([W] Table 1, Avg and Std).
    """

    average_ranks: tuple[tuple[Interval | None, ...], ...]
    unfairness: tuple[Interval | None, ...]
    mean_unfairness: Interval | None
    sd_unfairness: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingIntervals:
    """Gain of each style under matching queries; None where all queries agree exactly."""

    by_style: Mapping[str, Interval | None]
    overall: Interval | None


def style_matrix_intervals(
    matrix: StyleMatrix,
    *,
    ddof: int = 0,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> StyleMatrixIntervals:
    """Resample queries, each with all its versions.

    Parameters
    ----------
    ddof : int
        Of the unfairness score.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 2 queries.
    """
    n, q, d = matrix.ranks.shape
    columns = matrix.ranks.reshape(n, q * d)
    means = bootstrap_means(columns, resamples=resamples, rng=rng)
    cells = bootstrap_intervals(
        matrix.average.ravel(), means, n=n, bounds=(1, d), confidence_level=confidence_level
    )
    scores = unfairness_score(means.reshape(-1, q, d), ddof=ddof)
    rows = bootstrap_intervals(
        *(_with_summary(s) for s in (matrix.unfairness(ddof=ddof), scores)),
        n=n,
        ends="basic",
        bounds=(0, max_unfairness(d, ddof=ddof)),
        confidence_level=confidence_level,
    )
    return StyleMatrixIntervals(
        average_ranks=tuple(cells[i * d : (i + 1) * d] for i in range(q)),
        unfairness=rows[:q],
        mean_unfairness=rows[q],
        sd_unfairness=rows[q + 1] if q > 1 else None,
    )


def matching_intervals(
    matrix: StyleMatrix,
    *,
    reference: str | None = None,
    matches: Mapping[str, str] | None = None,
    confidence_level: float = 0.95,
) -> MatchingIntervals:
    """Intervals (t over queries) for what a style gains under queries of the same style.

    Parameters are those of :func:`matching_effect`.
    """
    found: MatchingEffect = matching_effect(matrix, reference=reference, matches=matches)
    return MatchingIntervals(
        by_style={
            style: _mean(column, confidence_level)
            for style, column in zip(found.styles, found.gains.T, strict=True)
        },
        overall=_mean(found.gains.mean(axis=1), confidence_level),
    )


def length_adjusted_intervals(
    ranks: npt.NDArray[np.float64],
    lengths: npt.NDArray[np.float64] | npt.NDArray[np.int64],
    *,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> tuple[Interval | None, ...]:
    """Average rank of each style at equal length; the slope is fitted in every resample.

    Parameters
    ----------
    ranks, lengths : arrays of shape (n, k)
        As in :func:`length_adjusted`.
    """
    found = length_adjusted(ranks, lengths)
    means = bootstrap_means(length_columns(ranks, lengths), resamples=resamples, rng=rng)
    return bootstrap_intervals(
        found.adjusted, adjusted_from_means(means), n=len(ranks), confidence_level=confidence_level
    )


def _mean(values: npt.NDArray[np.float64], level: float) -> Interval | None:
    try:
        return clustered_mean(values, np.arange(len(values)), confidence_level=level)
    except InsufficientDataError:
        return None


def _with_summary(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.concatenate((scores, summarise_unfairness(scores)), axis=-1)
