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
    LengthAdjusted,
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
    adjusted_ranks : tuple of tuple of Interval or None, shape (q, d)
        Average ranks at equal length (:func:`length_adjusted`); empty without lengths, and where
        they cannot be told apart from styles.
    length_slopes : tuple of float, length q
        Empty where ``adjusted_ranks`` is.
    """

    average_ranks: tuple[tuple[Interval | None, ...], ...]
    unfairness: tuple[Interval | None, ...]
    mean_unfairness: Interval | None
    sd_unfairness: Interval | None
    adjusted_ranks: tuple[tuple[Interval | None, ...], ...] = ()
    length_slopes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingIntervals:
    """Gain of each style under matching queries; None where all queries agree exactly."""

    by_style: Mapping[str, Interval | None]
    overall: Interval | None


def style_matrix_intervals(
    matrix: StyleMatrix,
    *,
    lengths: npt.NDArray[np.float64] | npt.NDArray[np.int64] | None = None,
    ddof: int = 0,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> StyleMatrixIntervals:
    """Resample queries, each with all its versions.

    Parameters
    ----------
    lengths : array of shape (n, d), optional
        Length of every document version, positive; gives ranks at equal length.
    ddof : int
        Of the unfairness score.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 2 queries.
    """
    n, q, d = matrix.ranks.shape
    columns = matrix.ranks.reshape(n, q * d)
    terms = None if lengths is None else _length_terms(matrix, lengths)
    # One resampling for everything: a query is drawn with its ranks and its lengths.
    drawn = bootstrap_means(
        columns if terms is None else np.concatenate((columns, terms), axis=1),
        resamples=resamples,
        rng=rng,
    )
    means = drawn[:, : q * d]
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
    found = None if lengths is None else _slopes(matrix, lengths)
    adjusted: tuple[Interval | None, ...] = ()
    if found is not None:
        draws = [adjusted_from_means(drawn[:, _own(form, q, d)]) for form in range(q)]
        adjusted = bootstrap_intervals(
            np.concatenate([row.adjusted for row in found]),
            np.concatenate(draws, axis=1),
            n=n,
            confidence_level=confidence_level,
        )
    return StyleMatrixIntervals(
        average_ranks=_by_row(cells, d),
        unfairness=rows[:q],
        mean_unfairness=rows[q],
        sd_unfairness=rows[q + 1] if q > 1 else None,
        adjusted_ranks=_by_row(adjusted, d),
        length_slopes=() if found is None else tuple(row.slope for row in found),
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


def _mean(values: npt.NDArray[np.float64], level: float) -> Interval | None:
    try:
        return clustered_mean(values, np.arange(len(values)), confidence_level=level)
    except InsufficientDataError:
        return None


def _with_summary(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.concatenate((scores, summarise_unfairness(scores)), axis=-1)


def _slopes(
    matrix: StyleMatrix, lengths: npt.NDArray[np.float64] | npt.NDArray[np.int64]
) -> list[LengthAdjusted] | None:
    """Adjusted ranks per query style; None where length and style cannot be told apart."""
    forms = range(len(matrix.query_styles))
    try:
        return [length_adjusted(matrix.ranks[:, form], lengths) for form in forms]
    except InsufficientDataError:
        return None


def _length_terms(
    matrix: StyleMatrix, lengths: npt.NDArray[np.float64] | npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Per query: log lengths x (d columns), Σ x·rank per query style (q), Σ x²."""
    d = len(matrix.doc_styles)
    rows = [length_columns(matrix.ranks[:, a], lengths) for a in range(len(matrix.query_styles))]
    products = [row[:, -2] for row in rows]
    return np.column_stack((rows[0][:, d : 2 * d], *products, rows[0][:, -1]))


def _own(form: int, q: int, d: int) -> npt.NDArray[np.int64]:
    """Columns of one query style, in the order of :func:`length_columns`."""
    first = form * d
    own = np.r_[first : first + d, q * d : q * d + d, q * d + d + form, q * d + d + q]
    return np.asarray(own, dtype=np.int64)


def _by_row(cells: tuple[Interval | None, ...], d: int) -> tuple[tuple[Interval | None, ...], ...]:
    return tuple(cells[i : i + d] for i in range(0, len(cells), d))
