"""Least squares with errors clustered by query, as influence on the coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["Fit", "fit"]

_CONSTANT = 1e-12
_COLLINEAR = 1e10


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """y = b₀ + Σ b_k x_k + e.

    Parameters
    ----------
    coefficients : float64 array of shape (p + 1,)
        The intercept first.
    influence : float64 array of shape (n, p + 1)
        Of each row on each coefficient, so that coefficient plus influence are values whose mean
        is the coefficient and whose clustered standard error is its own (CR1, with the factor
        (n − 1)/(n − p − 1) of Stata).
    """

    coefficients: FloatArray
    influence: FloatArray

    def values(self, k: int) -> FloatArray:
        """Return values whose mean is coefficient k; shape (n,)."""
        found: FloatArray = self.coefficients[k] + self.influence[:, k]
        return found


def fit(y: FloatArray, x: FloatArray, *, names: tuple[str, ...]) -> Fit:
    """Fit by least squares.

    Parameters
    ----------
    y : float64 array of shape (n,)
    x : float64 array of shape (n, p)
        Without a column for the intercept.
    names : tuple of str, length p
        Of the columns, for messages.

    Raises
    ------
    InsufficientDataError
        If a column of x is constant, or a sum of others.
    """
    n, p = x.shape
    scale = x.std(axis=0)
    for k in np.flatnonzero(scale <= _CONSTANT * np.maximum(1, np.abs(x).max(axis=0, initial=0))):
        raise InsufficientDataError(
            f"{names[k]} is {x[0, k]:.4g} for every pair, so that nothing can be said about what "
            "goes with it; leave it out",
            n=n,
        )
    centre = x.mean(axis=0)
    design = np.column_stack((np.ones(n), (x - centre) / scale))
    moment = design.T @ design / n
    if n <= p + 1 or np.linalg.cond(moment) > _COLLINEAR:
        raise InsufficientDataError(
            f"{', '.join(names)} cannot be told apart in {n} pairs (one is a sum of others); leave "
            "one out",
            n=n,
        )
    inverse = np.linalg.inv(moment)
    beta = inverse @ (design.T @ y) / n
    residual = y - design @ beta
    influence = design @ inverse * residual[:, None] * math.sqrt((n - 1) / (n - p - 1))
    # Back to the columns as they were: slopes per unit, intercept at x = 0.
    back = np.eye(p + 1)
    back[1:, 1:] = np.diag(1 / scale)
    back[0, 1:] = -centre / scale
    return Fit(coefficients=back @ beta, influence=influence @ back.T)
