"""Perplexities of both versions under one language model ([K] Fig. 7, App. B)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.explain.histogram import histogram, shared_edges
from rag_sourcebias.explain.perplexity_gap import perplexity_gap
from rag_sourcebias.inference import clustered_mean
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.explain_report import BoundedPerplexity, ModelPerplexity

__all__ = ["bounded_perplexity", "compare_perplexities"]

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
        As for :func:`~rag_sourcebias.explain.perplexity_gap.perplexity_gap`.
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
