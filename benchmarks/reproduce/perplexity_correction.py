"""Scores without the part that goes with a text's perplexity (CDC, Wang et al., ICLR 2025).

Two stages, with the source as instrument. First: the mean perplexity of both versions of the same
documents. Second: the slope of the score on those means. A document's score then loses
``slope · perplexity``. Retrieval scores and texts' worth both vary with perplexity for many
reasons, so only the part of perplexity that the source explains is used for the slope. It
attributes the whole score gap between versions to perplexity. RATE@K of the same repository is the
human row of ``exposure(run, tags, browsing="top-<k>")``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError, check_level
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import t_quantile

_MIN_QUERIES = 10
_MIN_F = 10.0  # Staiger & Stock (1997): below it the instrument is weak


@dataclass(frozen=True, kw_only=True, eq=False)
class PerplexityCorrection:
    """A fitted correction.

    Parameters
    ----------
    encoder : str
        Fingerprint of the encoder (or reranker) whose scores were fitted.
    perplexity_model : str
        Identity of what computed the perplexities, scale included.
    slope : Interval
        Change of the score per unit of perplexity; the interval is Anderson & Rubin's, which holds
        however weak the instrument is.
    first_stage_f : float
        F statistic of the first stage, clustered by query.
    reference : float
        Mean perplexity of the baseline versions; a document with it keeps its score.
    n_pairs : int
    """

    encoder: str
    perplexity_model: str
    slope: Interval
    first_stage_f: float
    reference: float
    n_pairs: int

    def apply(self, scores: FloatArray, perplexities: FloatArray) -> FloatArray:
        """Return ``score − slope · (perplexity − reference)``; shape (n,).

        The reference shifts all scores alike, and lets a document whose perplexity is unknown (not
        finite) keep its score.
        """
        if np.shape(scores) != np.shape(perplexities):
            raise DataError(
                f"{np.size(scores)} scores but {np.size(perplexities)} perplexities; need as many"
            )
        return scores - self.slope.estimate * np.where(
            np.isfinite(perplexities), perplexities - self.reference, 0.0
        )


def fit_perplexity_correction(
    *,
    baseline_scores: FloatArray,
    source_scores: FloatArray,
    baseline_perplexities: FloatArray,
    source_perplexities: FloatArray,
    queries: npt.NDArray[np.integer[Any]],
    encoder: str,
    perplexity_model: str,
    confidence_level: float = 0.95,
) -> PerplexityCorrection:
    """Fit the two-stage regression on pairs: both versions of documents, for the same queries.

    With one instrument of two values the slope is mean score gap over mean perplexity gap.

    Parameters
    ----------
    baseline_scores, source_scores : float64 arrays of shape (n,)
        Row i holds one query and both versions of one relevant document.
    baseline_perplexities, source_perplexities : float64 arrays of shape (n,)
        On any one scale; the paper takes the mean log loss of a masked model.
    queries : integer array of shape (n,)
        Same number, same query.

    Raises
    ------
    InsufficientDataError
        If the source is a weak instrument (F below 10) or there are fewer than 10 queries.
    DataError
        If the columns differ in length or hold a number that is not finite.
    """
    check_level(confidence_level)
    _check((baseline_scores, source_scores, baseline_perplexities, source_perplexities), queries)
    score_gap = source_scores - baseline_scores
    perplexity_gap = source_perplexities - baseline_perplexities
    n, n_queries = len(queries), len(np.unique(queries))
    if n_queries < _MIN_QUERIES:
        raise InsufficientDataError(
            f"{n} pairs for {n_queries} queries; at least {_MIN_QUERIES} queries are needed",
            n=n_queries,
            n_needed=_MIN_QUERIES,
        )
    means = np.array([score_gap.mean(), perplexity_gap.mean()])
    covariance = _clustered_covariance(np.stack((score_gap, perplexity_gap)), queries)
    f = _f_statistic(float(means[1]), float(covariance[1, 1]))
    t = t_quantile(0.5 + confidence_level / 2, n_queries - 1)
    needed = max(_MIN_F, t**2)
    if not f > needed:
        # F grows with the pairs from 1, which it has on average where perplexities do not differ
        pairs = math.ceil(n * (needed - 1) / (f - 1)) if f > 1 else None
        raise InsufficientDataError(
            f"the source is a weak instrument: it shifts perplexity by {means[1]:.3g} with F = "
            f"{f:.3g} over {n} pairs of {n_queries} queries, and F must be above {needed:.3g}; "
            + (
                f"about {pairs} pairs would do"
                if pairs
                else "no number of pairs can be promised to do; use a parity calibration"
            ),
            n=n,
            n_needed=pairs,
        )
    lower, upper = _anderson_rubin(means, covariance, t)
    slope = float(means[0] / means[1])
    return PerplexityCorrection(
        encoder=encoder,
        perplexity_model=perplexity_model,
        slope=Interval(
            estimate=slope,
            lower=min(lower, slope),
            upper=max(upper, slope),
            confidence_level=confidence_level,
            method=InferCode.GIVEN(),
            n_labeled=n_queries,
            assumptions=(),
        ),
        first_stage_f=f,
        reference=float(baseline_perplexities.mean()),
        n_pairs=n,
    )


def _check(columns: Sequence[FloatArray], queries: npt.NDArray[np.integer[Any]]) -> None:
    shapes = [np.shape(column) for column in (*columns, queries)]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise DataError(f"columns of shapes {shapes}; expected five of the same length")
    for name, column in zip(
        ("baseline score", "source score", "baseline perplexity", "source perplexity"),
        columns,
        strict=True,
    ):
        if len(bad := np.flatnonzero(~np.isfinite(column))):
            raise DataError(
                f"{name} {column[bad[0]]} in pair {bad[0]}; leave such pairs out, expected finite "
                "numbers"
            )


def _clustered_covariance(gaps: FloatArray, queries: npt.NDArray[np.integer[Any]]) -> FloatArray:
    """CR1 covariance of the two mean gaps, shape (2, 2)."""
    codes = np.unique(queries, return_inverse=True)[1]
    g = int(codes.max()) + 1
    centred = gaps - gaps.mean(axis=1, keepdims=True)
    sums = np.stack([np.bincount(codes, weights=row) for row in centred])
    return np.asarray(sums @ sums.T * (g / (g - 1)) / gaps.shape[1] ** 2)


def _f_statistic(gap: float, variance: float) -> float:
    if variance > 0:
        return gap**2 / variance
    return math.inf if gap else 0.0


def _anderson_rubin(means: FloatArray, covariance: FloatArray, t: float) -> tuple[float, float]:
    """Slopes b for which the mean of score gap − b · perplexity gap is within t errors of 0."""
    a = means[1] ** 2 - t**2 * covariance[1, 1]
    half_b = means[0] * means[1] - t**2 * covariance[0, 1]
    c = means[0] ** 2 - t**2 * covariance[0, 0]
    root = math.sqrt(max(float(half_b**2 - a * c), 0.0))
    return float((half_b - root) / a), float((half_b + root) / a)
