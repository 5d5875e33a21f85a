"""What half-width to expect from labels that are not there yet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import t_quantile
from rag_sourcebias.intervals.documents.design import residual_spread
from rag_sourcebias.intervals.documents.draw import inclusion_probabilities
from rag_sourcebias.intervals.documents.estimate import combined_degrees, judge_features
from rag_sourcebias.intervals.documents.sample import LabeledDocuments
from rag_sourcebias.intervals.utility import RankedLabels
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["FEWEST_PILOT", "GUESSED_CORRELATION", "SHARED_IN_QUERY", "Outlook", "outlook"]

GUESSED_CORRELATION = 0.5  # of human and judge gains, where no human label exists
SHARED_IN_QUERY = 0.3  # correlation of two residuals of a query, where no pilot tells it
FEWEST_PILOT = 10
_FEWEST_PAIRS = 30
_FEWEST_QUERIES = 10  # labelled queries from which a judge is worth using


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outlook:
    """Spread to expect, and the half-widths that follow.

    Parameters
    ----------
    size : float64 array of shape (m,)
        What chances of inclusion are proportional to; infinite for labelled documents.
    noise : float64 array of shape (m,)
        (ω σ)², σ the spread of the human gain around the fitted one.
    explained, residual : float
        Variance over queries of the fitted utility, and of what it misses.
    per_query : float
        Documents with weight of a query, on average.
    """

    size: FloatArray
    noise: FloatArray
    explained: float
    residual: float
    n_queries: int
    per_query: float
    target: Literal["population", "pool"]
    confidence_level: float

    def by_documents(self, n_labels: int) -> float:
        """Half-width with the labels spread over documents."""
        chance = inclusion_probabilities(self.size, n_labels)
        some = chance > 0
        design = float((self.noise[some] * (1 / chance[some] - 1)).sum()) / self.n_queries**2
        drawn = n_labels - int((chance == 1).sum())
        # leave-one-out residuals and estimated coefficients each add 3/n
        design *= 1 + 6 / max(drawn, 1)
        degrees = float(max(drawn - 3, 1))
        if self.target == "pool":
            return self._half(design, degrees)
        between = (self.explained + self.residual) / self.n_queries
        degrees = combined_degrees(design, degrees, design + between, self.n_queries - 1)
        return self._half(design + between, degrees)

    def by_queries(self, n: int) -> float:
        """Half-width with n whole queries labelled, and the judge on the others."""
        if n < _FEWEST_QUERIES:
            return self.alone(n)
        variance = self.residual / n + self.explained / self.n_queries
        if self.target == "pool":
            variance = self.residual * max(1 / n - 1 / self.n_queries, 0.0)
        return self._half(variance, n - 2)

    def alone(self, n: int) -> float:
        """Half-width with n whole queries labelled and no judge; infinite for one query."""
        if n < 2:
            return math.inf
        lost = 1 / n if self.target == "population" else max(1 / n - 1 / self.n_queries, 0.0)
        return self._half((self.explained + self.residual) * lost, n - 1)

    def _half(self, variance: float, degrees: float) -> float:
        return t_quantile(0.5 + self.confidence_level / 2, degrees) * math.sqrt(variance)


def outlook(
    labels: RankedLabels,
    *,
    pilot: LabeledDocuments | None,
    target: Literal["population", "pool"],
    confidence_level: float,
) -> Outlook:
    """Estimate the spread from a pilot, or guess it from the judge's own.

    Without a pilot human gains are taken to spread like the judge's, to correlate with them at
    .5, and the residuals of two documents of a query at .3.

    Raises
    ------
    DataError
        If no document has weight, or the pilot's labels do not fit the pool.
    InsufficientDataError
        If the pilot has fewer than 10 labelled documents.
    """
    size = labels.weights * residual_spread(labels)
    used = size > 0
    if not used.any():
        raise DataError("no document has a rank with weight: there is nothing to label")
    spread = residual_spread(labels)
    if pilot is None:
        fitted, scale, shared = _guess(labels, spread, used)
    else:
        fitted, scale, shared = _from_pilot(labels, spread, used, pilot)
        size[pilot.rows] = np.where(used[pilot.rows], np.inf, 0.0)
    sigma = scale * spread
    noise = (labels.weights * sigma) ** 2
    own = float(noise.sum()) / labels.n_queries
    joint = float((labels.total(sigma) ** 2).sum()) / labels.n_queries
    utilities = labels.total(fitted)
    return Outlook(
        size=size,
        noise=noise,
        explained=float(utilities.var(ddof=1)) if labels.n_queries > 1 else 0.0,
        residual=(1 - shared) * own + shared * joint,
        n_queries=labels.n_queries,
        per_query=int(used.sum()) / labels.n_queries,
        target=target,
        confidence_level=confidence_level,
    )


def _guess(
    labels: RankedLabels, spread: FloatArray, used: npt.NDArray[np.bool_]
) -> tuple[FloatArray, float, float]:
    gain = labels.document_gains()
    center, sd = float(gain[used].mean()), float(gain[used].std())
    if sd <= 1e-9 * float(np.ptp(labels.gains)):
        # a constant judge: a quarter of the scale is the spread of gains that fill half of it
        sd = float(np.ptp(labels.gains)) / 4 / math.sqrt(1 - GUESSED_CORRELATION**2)
    missed = sd * math.sqrt(1 - GUESSED_CORRELATION**2)
    scale = missed / math.sqrt(float(np.mean(spread[used] ** 2)))
    return center + GUESSED_CORRELATION * (gain - center), scale, SHARED_IN_QUERY


def _from_pilot(
    labels: RankedLabels,
    spread: FloatArray,
    used: npt.NDArray[np.bool_],
    pilot: LabeledDocuments,
) -> tuple[FloatArray, float, float]:
    n_rows = len(spread)
    outside = pilot.rows[(pilot.rows < 0) | (pilot.rows >= n_rows)]
    if len(outside):
        raise DataError(f"pilot row {int(outside[0])} is not one of the pool's {n_rows}")
    keep = used[pilot.rows]
    rows, y = pilot.rows[keep], pilot.human_gains[keep]
    if len(rows) < FEWEST_PILOT:
        raise InsufficientDataError(
            f"a pilot of {len(rows)} labelled documents with weight tells too little; "
            f"{FEWEST_PILOT} are needed, or none for a guess",
            n=len(rows),
            n_needed=FEWEST_PILOT,
        )
    x = judge_features(labels)
    coefficients = np.linalg.lstsq(x[rows], y, rcond=1e-10)[0]
    standard = (y - x[rows] @ coefficients) / spread[rows]
    # averaged as documents will be drawn: what is drawn rarely matters little to the width
    drawn = labels.weights[rows] * spread[rows]
    variance = float(drawn @ standard**2) / float(drawn.sum()) * len(rows) / (len(rows) - 3)
    query = labels.query[rows]
    total = np.bincount(query, weights=standard)
    count = np.bincount(query)
    pairs = int((count * (count - 1)).sum()) // 2
    shared = SHARED_IN_QUERY
    if pairs >= _FEWEST_PAIRS and variance > 0:
        products = float((total**2).sum() - (standard**2).sum()) / (2 * pairs)
        shared = min(max(products / variance, 0.0), 1.0)
    return x @ coefficients, math.sqrt(variance), shared
