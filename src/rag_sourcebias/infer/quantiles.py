"""Quantiles of usual distributions, without scipy.stats."""

from __future__ import annotations


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def expit(logit: float) -> float:
    """Probability whose logarithm of odds is given."""
    from scipy import special

    return float(special.expit(logit))


def t_quantile(probability: float, degrees: float) -> float:
    """Quantile of Student's t with ``degrees`` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Quantile of the beta distribution."""
    from scipy.special import betaincinv

    return float(betaincinv(a, b, probability))
