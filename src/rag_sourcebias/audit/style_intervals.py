"""Intervals for everything a style matrix shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference.bootstrap_intervals import bootstrap_intervals
from rag_sourcebias.inference.clusters import clustered_mean
from rag_sourcebias.inference.quantiles import normal_quantile, t_quantile
from rag_sourcebias.inference.resampling import dirichlet_sums
from rag_sourcebias.inference.spread import crossing
from rag_sourcebias.measures.style import max_unfairness, unfairness_score
from rag_sourcebias.measures.style_length import (
    LengthAdjusted,
    adjusted_from_means,
    length_adjusted,
    length_columns,
)
from rag_sourcebias.measures.style_matching import MatchingEffect, matching_effect
from rag_sourcebias.measures.style_matrix import StyleMatrix
from rag_sourcebias.measures.style_ranks import rank_versions
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = [
    "MatchingIntervals",
    "StyleMatrixIntervals",
    "matching_intervals",
    "style_matrix_intervals",
]

_MIN_QUERIES = 2
_MIN_UNFAIR = 10  # simulated from here on


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleMatrixIntervals:
    """Intervals from one resampling of the queries.

    Parameters
    ----------
    average_ranks : tuple of tuple of Interval, shape (q, d)
    unfairness : tuple of Interval or None, length q
        Per query style; None with fewer than 10 queries.
    mean_unfairness : Interval or None
        Mean over query styles ([W] Table 1, Avg).
    adjusted_ranks : tuple of tuple of Interval or None, shape (q, d)
        Average ranks at equal length (:func:`length_adjusted`); empty without lengths, and where
        they cannot be told apart from styles.
    length_slopes : tuple of float, length q
        Empty where ``adjusted_ranks`` is.
    """

    average_ranks: tuple[tuple[Interval | None, ...], ...]
    unfairness: tuple[Interval | None, ...]
    mean_unfairness: Interval | None
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

    Notes
    -----
    An average rank is a mean of bounded values: its ends are Gaffke's, with one query more at the
    last or at the first place (:func:`~rag_sourcebias.inference.resampling.dirichlet_sums`).

    Noise can only raise unfairness, so that resampled values lie above the truth. Its ends are
    those of a test instead: average ranks that deviate in the seen direction by t are kept if the
    seen unfairness lies within the central part of what they give with the errors of resampling.
    Errors are enlarged to the variance and the quantile of a t interval; the query not seen has
    no preference for the lower end, and the order seen for the upper one.
    """
    n, q, d = matrix.ranks.shape
    if n < _MIN_QUERIES:
        raise InsufficientDataError(
            f"intervals need at least {_MIN_QUERIES} queries, there is {n}",
            n=n,
            n_needed=_MIN_QUERIES,
        )
    columns = matrix.ranks.reshape(n, q * d)
    terms = None if lengths is None else _length_terms(matrix, lengths)
    # One resampling for everything: a query is drawn with its ranks and its lengths.
    drawn, share = dirichlet_sums(
        columns if terms is None else np.concatenate((columns, terms), axis=1),
        resamples=resamples,
        rng=rng,
    )
    make = _Maker(n=n, level=confidence_level)
    sums = drawn[:, : q * d]
    found = None if lengths is None else _slopes(matrix, lengths)
    adjusted: tuple[Interval | None, ...] = ()
    if found is not None:
        seen = drawn / (1 - share[:, None])
        draws = [adjusted_from_means(seen[:, _own(form, q, d)]) for form in range(q)]
        adjusted = bootstrap_intervals(
            np.concatenate([row.adjusted for row in found]),
            np.concatenate(draws, axis=1),
            n=n,
            confidence_level=confidence_level,
        )
    rows: list[Interval | None] = [None] * (q + 1)
    if n >= _MIN_UNFAIR:
        shaped = sums.reshape(-1, q, d)
        parts = [slice(a, a + 1) for a in range(q)] + ([slice(None)] if q > 1 else [])
        rows = [
            make.unfairness(matrix.average[at], shaped[:, at], share, ddof=ddof) for at in parts
        ]
    return StyleMatrixIntervals(
        average_ranks=_by_row(make.means(matrix.average.ravel(), sums, share, d), d),
        unfairness=tuple(rows[:q]),
        mean_unfairness=rows[-1],
        adjusted_ranks=_by_row(adjusted, d),
        length_slopes=() if found is None else tuple(row.slope for row in found),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Maker:
    """Intervals of one level from weighted sums of n queries."""

    n: int
    level: float

    def means(
        self, average: FloatArray, sums: FloatArray, share: FloatArray, d: int
    ) -> tuple[Interval, ...]:
        tail = (1 - self.level) / 2
        lower = np.quantile(sums + share[:, None], tail, axis=0).clip(1)
        upper = np.quantile(sums + d * share[:, None], 1 - tail, axis=0).clip(None, d)
        return tuple(
            self._interval(float(m), float(low), float(high), "Gaffke")
            for m, low, high in zip(average, lower, upper, strict=True)
        )

    def unfairness(
        self, average: FloatArray, sums: FloatArray, share: FloatArray, *, ddof: int
    ) -> Interval:
        """Mean unfairness of average ranks of shape (r, d), from sums of (resamples, r, d)."""
        d = average.shape[1]
        seen = float(unfairness_score(average, ddof=ddof).mean())
        if average.size == 2:
            # Half the squared difference (ddof 0), so that its interval is that of the difference.
            return self._of_two(seen, sums[:, 0, 0] - sums[:, 0, 1], share, ddof)
        deviations = average - average.mean(axis=1, keepdims=True)
        centred = sums - sums.mean(axis=2, keepdims=True)
        outward = rank_versions(-deviations) - (d + 1) / 2
        direction, unit = deviations, seen
        if seen == 0:
            direction = np.broadcast_to(np.arange(d) - (d - 1) / 2, average.shape)
            unit = max_unfairness(d, ddof=ddof)

        def at(errors: FloatArray, probability: float, t: float) -> float:
            # The root, because unfairness grows with the square of t.
            moved = np.sqrt(unfairness_score(t * direction + errors, ddof=ddof).mean(axis=1))
            return float(np.quantile(moved, probability))

        tail, root = (1 - self.level) / 2, math.sqrt(seen)
        inward = self._enlarged(deviations - centred)
        outer = self._enlarged(deviations - centred - share[:, None, None] * outward)
        lower = crossing(partial(at, inward, 1 - tail), root) if seen > 0 else 0.0
        upper = crossing(partial(at, outer, tail), root)
        most = max_unfairness(d, ddof=ddof)
        return self._interval(seen, lower**2 * unit, min(upper**2 * unit, most), "inverted test")

    def _of_two(
        self, seen: float, difference: FloatArray, share: FloatArray, ddof: int
    ) -> Interval:
        tail = (1 - self.level) / 2
        low = float(np.quantile(difference - share, tail))
        high = float(np.quantile(difference + share, 1 - tail))
        nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        most, farthest = max_unfairness(2, ddof=ddof), max(abs(low), abs(high))
        return self._interval(seen, nearest**2 * most, farthest**2 * most, "Gaffke")

    def _enlarged(self, errors: FloatArray) -> FloatArray:
        n, probability = self.n, 0.5 + self.level / 2
        scale = math.sqrt((n + 1) * (n + 2) / (n * (n - 1)))
        scale *= t_quantile(probability, n - 1) / normal_quantile(probability)
        middle = errors.mean(axis=0)
        enlarged: FloatArray = middle + scale * (errors - middle)
        return enlarged

    def _interval(self, estimate: float, lower: float, upper: float, method: str) -> Interval:
        return Interval(
            estimate=estimate,
            lower=min(lower, estimate),
            upper=max(upper, estimate),
            confidence_level=self.level,
            method=method,
            n_labeled=self.n,
            assumptions=("queries are a random sample of the queries of interest",),
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
