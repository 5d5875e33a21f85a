"""Score intervals for means of bounded values, from a regression on the judge."""

from __future__ import annotations

from rag_sourcebias.intervals.classical import wilson_ends
from rag_sourcebias.intervals.regression import RegressionFit
from rag_sourcebias.intervals.sample import JudgedSample
from rag_sourcebias.intervals.values import Target

__all__ = ["score_form"]


def score_form(
    sample: JudgedSample,
    fit: RegressionFit,
    target: Target,
    quantile: float,
    bounds: tuple[float, float],
) -> tuple[float, float, float]:
    """Wilson's interval on the number of items that would give this variance.

    Four pseudo-items, two at each end of the range (Agresti & Coull 1998), enter the variance:
    labels that all agree, with the judge or with each other, do not make it zero.
    """
    low, high = bounds
    width = high - low
    share = min(max((float(fit.estimate[0]) - low) / width, 0.0), 1.0)
    n = float(sample.n_units)
    variance = max(float(fit.covariance[0, 0]), 0.0) / width**2
    reach = _reach(sample, target)
    pseudo = 2 * (1 - share) ** 2 + 2 * share**2
    smoothed = (n * variance + reach * pseudo / n) / (n + 4)
    if smoothed <= 0:
        estimate = low + width * share
        return estimate, estimate, estimate
    pulled = (n * share + 2) / (n + 4)
    effective = pulled * (1 - pulled) / smoothed
    lower, upper = wilson_ends(share, effective, quantile)
    if target != "population":
        # What is left to estimate are the items where people and judge part: rare, and not pulled
        # towards the middle as Wilson's form pulls.
        half = quantile * smoothed**0.5
        lower, upper = min(lower, max(share - half, 0.0)), max(upper, min(share + half, 1.0))
    return low + width * share, low + width * lower, low + width * upper


def _reach(sample: JudgedSample, target: Target) -> float:
    """How sampling a finite target shrinks or stretches the variance of the labelled part."""
    n, pool = sample.n_labeled, sample.n_unlabeled
    if target == "pool":
        return pool / (n + pool)
    return 1 + n / pool if target == "unlabeled" and pool else 1.0
