"""Scores without the part that goes with a text's perplexity (CDC, Wang et al., ICLR 2025).

Two stages, with the source as instrument. First: the mean perplexity of both versions of the same
documents. Second: the slope of the score on those means. A document's score then loses
``slope · perplexity``. As retrieval scores and texts' worth both vary with perplexity for many
reasons, only the part of perplexity that the source explains is used for the slope.

This needs no tags when it is used, but it changes the order within a source, and it attributes the
whole score gap between versions to perplexity. That is an assumption: later work points at the
supervision of retrievers as the cause. Compare it with a parity calibration on your own data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level, t_quantile
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.documents import DocTags
from rag_sourcebias.types.intervals import Interval

__all__ = ["PerplexityCorrection", "PerplexityRescorer", "fit_perplexity_correction"]


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
        excess = np.where(np.isfinite(perplexities), perplexities - self.reference, 0.0)
        corrected: FloatArray = scores - self.slope.estimate * excess
        return corrected


class PerplexityRescorer:
    """A correction at work; a :class:`~rag_sourcebias.protocols.Rescorer`.

    Parameters
    ----------
    correction : PerplexityCorrection
    perplexity : callable
        Texts to perplexities, by the model and on the scale the correction was fitted with. It is
        called for every query, from several threads: look up what was computed when indexing.
    """

    def __init__(
        self,
        correction: PerplexityCorrection,
        perplexity: Callable[[Sequence[str]], Sequence[float]],
    ) -> None:
        self.correction = correction
        self.perplexity = perplexity

    def __call__(
        self,
        query: str,  # noqa: ARG002 - of the protocol
        *,
        doc_ids: Sequence[str],
        texts: Sequence[str],
        tags: Sequence[DocTags],  # noqa: ARG002
        scores: Sequence[float] | None,
    ) -> list[float]:
        """Return corrected scores.

        Raises
        ------
        DataError
            If the retriever gave no scores, or the perplexities are not one for each text.
        """
        if scores is None:
            raise DataError(
                "perplexity correction needs the retriever's scores of the "
                f"{len(doc_ids)} documents, there are none; keep them with "
                "InstrumentedRetriever(score_key=…)"
            )
        found = np.asarray(self.perplexity(texts), dtype=np.float64)
        corrected = self.correction.apply(np.asarray(scores, dtype=np.float64), found)
        return [float(score) for score in corrected]


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
    columns = (baseline_scores, source_scores, baseline_perplexities, source_perplexities)
    _check(columns, queries)
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
    _refuse_weak(f, needed=max(_MIN_F, t**2), gap=float(means[1]), n=n, n_queries=n_queries)
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
            method="Anderson–Rubin, clustered",
            n_labeled=n_queries,
            assumptions=("the source changes scores through perplexity only",),
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
    covariance: FloatArray = sums @ sums.T * (g / (g - 1)) / gaps.shape[1] ** 2
    return covariance


def _f_statistic(gap: float, variance: float) -> float:
    if variance > 0:
        return gap**2 / variance
    return math.inf if gap else 0.0


def _refuse_weak(f: float, *, needed: float, gap: float, n: int, n_queries: int) -> None:
    if f > needed:
        return
    # F grows with the pairs from 1, which it has on average where perplexities do not differ
    pairs = math.ceil(n * (needed - 1) / (f - 1)) if f > 1 else None
    raise InsufficientDataError(
        f"the source is a weak instrument: it shifts perplexity by {gap:.3g} with F = {f:.3g} over "
        f"{n} pairs of {n_queries} queries, and F must be above {needed:.3g}; "
        + (
            f"about {pairs} pairs would do"
            if pairs
            else "no number of pairs can be promised to do; use a parity calibration"
        ),
        n=n,
        n_needed=pairs,
    )


def _anderson_rubin(means: FloatArray, covariance: FloatArray, t: float) -> tuple[float, float]:
    """Slopes b for which the mean of score gap − b · perplexity gap is within t errors of 0."""
    a = means[1] ** 2 - t**2 * covariance[1, 1]
    half_b = means[0] * means[1] - t**2 * covariance[0, 1]
    c = means[0] ** 2 - t**2 * covariance[0, 0]
    root = math.sqrt(max(float(half_b**2 - a * c), 0.0))
    return float((half_b - root) / a), float((half_b + root) / a)
