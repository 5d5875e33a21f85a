"""How good probabilities and decisions are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.types.arrays import FloatArray, IntArray

__all__ = ["Rate", "ReliabilityBin", "auroc", "brier_score", "calibration_error", "reliability"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share with its Clopper–Pearson interval.

    The interval treats documents as independent; twins of one topic are not quite.

    Parameters
    ----------
    hits, n : int
    lower, upper : float
        0 and 1 where there is no document.
    """

    hits: int
    n: int
    lower: float
    upper: float

    @classmethod
    def of(cls, hits: int, n: int, *, confidence_level: float = 0.95) -> Rate:
        """Make a rate out of counts."""
        from scipy.special import betaincinv

        tail = (1 - confidence_level) / 2
        lower = float(betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
        upper = float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
        return cls(hits=hits, n=n, lower=lower, upper=upper)

    @property
    def value(self) -> float:
        """The share; NaN where there is no document."""
        return self.hits / self.n if self.n else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Documents of similar confidence: what was promised and what was kept."""

    n: int
    confidence: float
    accuracy: float


def auroc(scores: FloatArray, positive: npt.NDArray[np.bool_]) -> float:
    """Area under the ROC curve: P(a positive scores above a negative), ties half."""
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if not n_positive or not n_negative:
        return float("nan")
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    total = float(middle[inverse][positive].sum())
    return (total - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)


def brier_score(probabilities: FloatArray, codes: IntArray) -> float:
    """Mean over documents of Σ_k (p_k − y_k)² / 2; with two labels the usual Brier score."""
    hit = np.zeros_like(probabilities)
    hit[np.arange(len(codes)), codes] = 1.0
    return float(((probabilities - hit) ** 2).sum(axis=1).mean() / 2)


def reliability(
    confidence: FloatArray, right: npt.NDArray[np.bool_], *, n_bins: int = 10
) -> tuple[ReliabilityBin, ...]:
    """Bins of equally many documents, from the least to the most confident."""
    order = np.argsort(confidence, kind="stable")
    return tuple(
        ReliabilityBin(
            n=len(rows),
            confidence=float(confidence[rows].mean()),
            accuracy=float(right[rows].mean()),
        )
        for rows in np.array_split(order, n_bins)
        if len(rows)
    )


def calibration_error(bins: tuple[ReliabilityBin, ...]) -> float:
    """Expected calibration error: mean over documents of |accuracy − confidence| of their bin."""
    n = sum(b.n for b in bins)
    return sum(b.n * abs(b.accuracy - b.confidence) for b in bins) / n
