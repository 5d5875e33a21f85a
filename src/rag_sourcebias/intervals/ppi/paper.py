"""Prediction-powered inference exactly as in Oosterhuis et al. (KDD 2024)."""

from __future__ import annotations

import math

import numpy.typing as npt

from rag_sourcebias.inference.quantiles import (
    check_level,
    normal_quantile,
)
from rag_sourcebias.intervals.ppi.forms import RANDOM, ppi_result, ppi_samples
from rag_sourcebias.types.intervals import Interval

__all__ = ["paper_ppi_interval"]


def paper_ppi_interval(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    yhat_all: npt.ArrayLike,
    *,
    confidence_level: float = 0.95,
) -> Interval:
    """PPI exactly as in [R] Eq. 8–11.

    Parameters
    ----------
    y, yhat : array-like of shape (n,)
    yhat_all : array-like of shape (N,)
        Judge values of all items, the labelled ones among them.

    Returns
    -------
    Interval
        Mean prediction over N plus mean error over n, ± 1.96 √(σ²_err/n + σ²_pred/N). As the
        labelled items are among the N, the formula leaves out a covariance.
    """
    check_level(confidence_level)
    human, judge, everything = ppi_samples(y, yhat, yhat_all)
    error = human - judge
    variance = error.var(ddof=1) / len(error) + everything.var(ddof=1) / len(everything)
    half = normal_quantile(0.5 + confidence_level / 2) * math.sqrt(float(variance))
    return ppi_result(
        float(everything.mean() + error.mean()),
        half,
        confidence_level=confidence_level,
        method="PPI (paper)",
        target="population",
        human=human,
        judge=judge,
        n_pool=len(everything) - len(human),
        assumptions=(RANDOM, "normal quantiles; the overlap of the two samples is ignored"),
    )
