"""Quantiles; what they need is loaded by the first one."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.errors import DataError

__all__ = ["as_generator", "beta_quantile", "check_level", "normal_quantile", "t_quantile"]


def check_level(confidence_level: float) -> None:
    """Raise unless the level lies strictly between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise DataError(f"confidence_level {confidence_level!r} is outside (0, 1); 0.95 is usual")


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def t_quantile(probability: float, degrees: float) -> float:
    """Quantile of Student's t with ``degrees`` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Quantile of the beta distribution."""
    from scipy.special import betaincinv

    return float(betaincinv(a, b, probability))


def as_generator(rng: np.random.Generator | int) -> np.random.Generator:
    """Return a generator; an integer is a seed."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
