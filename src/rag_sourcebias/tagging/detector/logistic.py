"""Regularised logistic regression over sparse n-grams and dense stylometry."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.tagging.detector.features import Features
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["LinearModel", "average", "fit_linear", "standards"]

_LIMIT = 5.0  # standard deviations: a text unlike all labelled ones may not decide by one habit
_MAX_ITERATIONS = 500


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearModel:
    """Linear scores of K labels.

    Parameters
    ----------
    mean, scale : float64 arrays of shape (n_dense,)
        Standardise the dense features.
    coef : float32 array of shape (K, n_hashed + n_dense)
    intercept : float64 array of shape (K,)
    converged : bool
    """

    mean: FloatArray
    scale: FloatArray
    coef: npt.NDArray[np.float32]
    intercept: FloatArray
    converged: bool = True

    def scores(self, features: Features) -> FloatArray:
        """Uncalibrated scores (logits), shape ``(n, K)``."""
        n_hashed = features.hashed.shape[1]
        hashed = features.hashed @ self.coef[:, :n_hashed].T
        dense = _standardised(features.dense, self.mean, self.scale)
        # not a matrix product: its last digits depend on how many texts there are
        total: FloatArray = (
            hashed + np.einsum("nd,kd->nk", dense, self.coef[:, n_hashed:]) + self.intercept
        )
        return total


def standards(dense: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and scale of dense features, over the values that are there; each of shape (d,)."""
    known = ~np.isnan(dense)
    counts = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, dense, 0.0).sum(axis=0) / counts
    spread = np.sqrt((np.where(known, dense - mean, 0.0) ** 2).sum(axis=0) / counts)
    return mean, np.where(spread > 1e-12, spread, 1.0)


def average(models: Sequence[LinearModel]) -> LinearModel:
    """Average of models with the same standards: its scores are the mean of theirs."""
    return replace(
        models[0],
        coef=np.asarray(np.mean([model.coef for model in models], axis=0), dtype=np.float32),
        intercept=np.mean([model.intercept for model in models], axis=0),
        converged=all(model.converged for model in models),
    )


def fit_linear(
    features: Features,
    codes: npt.NDArray[np.int64],
    n_labels: int,
    *,
    mean: FloatArray,
    scale: FloatArray,
    strength: float,
) -> LinearModel:
    """Fit a multinomial (two labels: binary) logistic regression with a ridge penalty.

    Parameters
    ----------
    features : Features of n texts
    codes : int64 array of shape (n,)
        Label of each text; all of 0 … n_labels − 1 occur.
    mean, scale : float64 arrays of shape (n_dense,)
        From :func:`standards`.
    strength : float
        Inverse of the penalty, scikit-learn's ``C``.
    """
    from scipy import sparse
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    dense = _standardised(features.dense, mean, scale)
    matrix = sparse.hstack([features.hashed, sparse.csr_matrix(dense)], format="csr")
    # The weight of an n-gram that never occurs is 0: leaving it out saves time.
    used = np.flatnonzero(matrix.getnnz(axis=0))
    model: Any = LogisticRegression(C=strength, max_iter=_MAX_ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # kept as ``converged``
        model.fit(matrix[:, used], codes)
    coef = np.zeros((len(model.coef_), matrix.shape[1]))
    coef[:, used] = model.coef_
    intercept = model.intercept_
    if n_labels == 2:  # one row of differences: split evenly, so that all K are alike
        coef = np.vstack([-coef / 2, coef / 2])
        intercept = np.concatenate([-intercept / 2, intercept / 2])
    return LinearModel(
        mean=mean,
        scale=scale,
        coef=coef.astype(np.float32),
        intercept=intercept,
        converged=bool(np.max(model.n_iter_) < _MAX_ITERATIONS),
    )


def _standardised(dense: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray:
    """Standardise, cut to ±5, put the mean where a value is missing; all columns together as
    heavy as one block of n-grams would be if each had size 1.
    """  # noqa: D205
    columns = np.clip((dense - mean) / scale, -_LIMIT, _LIMIT)
    result: FloatArray = np.nan_to_num(columns) / np.sqrt(dense.shape[1])
    return result
